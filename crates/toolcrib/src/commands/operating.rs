//! What operators can have done through the console: what takes the files of the workspace, or its servers.

use std::{fs, io, path::PathBuf, sync::Arc};

use toolcrib::{Data, read_lock, write_lock};
use toolcrib_catalogue::{Problem, lock::Lock};
use toolcrib_server::{Operator, Recorded, Usage};

use super::serve::Current;
use crate::terminal;

/// How many sessions are listed.
const MOST_LISTED: usize = 500;

/// The largest session that is read.
const MOST_READ: u64 = 64 << 20;

/// A workspace that is served.
#[derive(Debug)]
pub(crate) struct Operating {
    current: Arc<Current>,
    /// Where sessions are recorded.
    sessions: Option<PathBuf>,
}

impl Operating {
    pub(crate) fn new(current: &Arc<Current>, data: Option<&Data>) -> Arc<Self> {
        let sessions = data.map(|it| it.file("sessions"));
        Arc::new(Self { current: Arc::clone(current), sessions })
    }
}

impl Operator for Operating {
    fn restart(&self, source: &str) -> bool {
        let workspace = self.current.workspace();
        let known = workspace.server_names().iter().any(|it| it == source);
        // Asking for a connection would begin one.
        let connection = known.then(|| workspace.connection(source)).flatten();
        let Some(connection) = connection else { return false };
        connection.restart();
        true
    }

    fn problems(&self) -> Vec<Problem> {
        let workspace = self.current.workspace();
        let files = [workspace.problems.as_slice(), &workspace.warnings].concat();
        let mut all: Vec<Problem> =
            files.into_iter().chain(self.current.own().problems()).collect();
        for problem in &mut all {
            problem.message = terminal::masked(&problem.message);
            problem.hint = problem.hint.as_deref().map(terminal::masked);
        }
        all
    }

    fn read_lock(&self) -> Option<Lock> {
        read_lock(&self.current.workspace().folder).0
    }

    fn write_lock(&self, lock: &Lock) -> io::Result<()> {
        write_lock(&self.current.workspace().folder, lock)
    }

    fn sessions(&self) -> Vec<Recorded> {
        let entries = self.sessions.as_ref().and_then(|it| fs::read_dir(it).ok());
        let entry = |it: fs::DirEntry| {
            let name = it.file_name().into_string().ok().filter(|it| is_session(it))?;
            let bytes = it.metadata().ok().filter(fs::Metadata::is_file)?.len();
            Some(Recorded { name, bytes })
        };
        let mut found: Vec<Recorded> =
            entries.into_iter().flatten().filter_map(|it| entry(it.ok()?)).collect();
        // Their names begin with when they were begun.
        found.sort_by(|a, b| b.name.cmp(&a.name));
        found.truncate(MOST_LISTED);
        found
    }

    fn session(&self, name: &str) -> io::Result<Vec<u8>> {
        let folder = self.sessions.as_ref().filter(|_| is_session(name));
        let path = folder.ok_or(io::ErrorKind::NotFound)?.join(name);
        let found = fs::symlink_metadata(&path)?;
        if !found.is_file() || MOST_READ < found.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        fs::read(path)
    }

    fn usage(&self) -> Usage {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let resident = status.lines().find_map(|it| it.strip_prefix("VmRSS:"));
        let resident =
            resident.and_then(|it| it.trim().trim_end_matches(" kB").parse::<u64>().ok());
        let files = fs::read_dir("/proc/self/fd").ok().map(|it| it.count() as u64);
        Usage { memory: resident.map(|it| it * 1024), files }
    }
}

/// Whether a file may be called so: a name is no path.
fn is_session(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    name.strip_suffix(".jsonl").is_some_and(|it| !it.is_empty() && it.chars().all(plain))
}
