//! Processes that stand between client and server: how they begin and end, what CPU time and memory they use.

use std::{
    fs,
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    time::clock_getcpuclockid,
    unistd::Pid,
};

use crate::failure::Failure;

/// A process of ours, which ends when this is dropped, and its children with it.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// The processes that do the work.
    workers: Vec<u32>,
    /// Goes last.
    pub(crate) folder: Folder,
}

/// Which processes do the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// The one that was started; its children are servers.
    Itself,
    /// Its children: it only looks after them.
    Children,
    /// All of them.
    Tree,
}

/// A folder that goes away when this is dropped.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

/// How long a process may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

impl Process {
    /// Starts a program in its folder. What it says is kept in files there.
    pub(crate) fn start(command: &mut Command, folder: Folder) -> Result<Self, Failure> {
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command
            .stdin(Stdio::null())
            .stdout(fs::File::create(folder.path().join("out.log"))?)
            .stderr(fs::File::create(folder.path().join("error.log"))?)
            .spawn()
            .map_err(|error| Failure::from(error).at(&program))?;
        let workers = vec![child.id()];
        Ok(Self { child, workers, folder })
    }

    /// Waits until it is there, which `ready` says. A process that ends meanwhile is told with what it said.
    pub(crate) fn wait<T>(
        &mut self,
        patience: Duration,
        mut ready: impl FnMut(&Folder) -> Option<T>,
    ) -> Result<T, Failure> {
        let begin = Instant::now();
        while begin.elapsed() < patience {
            if let Some(ready) = ready(&self.folder) {
                return Ok(ready);
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(Failure::new(format!("it ended at once: {status}: {}", self.said())));
            }
            sleep(Duration::from_millis(5));
        }
        Err(Failure::new(format!("it does not begin: {}", self.said())))
    }

    /// Says which processes do the work. To be called when all have begun.
    pub(crate) fn count(&mut self, work: Work) -> Result<(), Failure> {
        let id = self.child.id();
        self.workers = match work {
            Work::Itself => vec![id],
            Work::Children => children_of(id)?,
            Work::Tree => tree(id)?,
        };
        Ok(())
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The CPU time that it has used so far.
    pub(crate) fn cpu(&self) -> Result<Duration, Failure> {
        self.workers.iter().map(|it| cpu_of(*it)).sum()
    }

    /// The memory that is its own: kilobytes of pages that no file stands behind.
    pub(crate) fn memory(&self) -> Result<u64, Failure> {
        self.workers.iter().map(|it| memory_of(*it)).sum()
    }

    /// The end of what it said last.
    fn said(&self) -> String {
        let read = |name| fs::read(self.folder.path().join(name)).unwrap_or_default();
        let [out, error] = ["out.log", "error.log"].map(read);
        let said = if error.trim_ascii().is_empty() { out } else { error };
        let said = String::from_utf8_lossy(said.trim_ascii_end()).into_owned();
        let last: Vec<char> = said.chars().rev().take(400).collect();
        last.into_iter().rev().collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Once it has ended and was waited for, its number may be somebody else's.
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        let left = tree(self.child.id()).unwrap_or_default();
        // Politely: a master that is killed leaves its workers behind.
        signal(self.child.id(), Signal::SIGTERM);
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE && matches!(self.child.try_wait(), Ok(None)) {
            sleep(Duration::from_millis(10));
        }
        self.child.kill().ok();
        self.child.wait().ok();
        // Whoever is left lost its parent a moment ago; no other process can have its number yet.
        left.into_iter().skip(1).for_each(|it| signal(it, Signal::SIGKILL));
    }
}

fn signal(process: u32, signal: Signal) {
    if let Ok(id @ 1..) = i32::try_from(process) {
        kill(Pid::from_raw(id), signal).ok();
    }
}

impl Folder {
    pub(crate) fn new(name: &str) -> Result<Self, Failure> {
        let name = format!("toolcrib-bench-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path)?;
        // Where root starts nginx, its worker is somebody else and has to get in.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> Result<(), Failure> {
        Ok(fs::write(self.0.join(name), bytes)?)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// A port that was free a moment ago: most programs do not take whichever is.
pub(crate) fn free_port() -> Result<SocketAddr, Failure> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

pub(crate) fn listens(address: SocketAddr) -> bool {
    TcpStream::connect(address).is_ok()
}

/// User and system time of all threads, by the process's own clock: to the nanosecond, where `/proc` counts in
/// hundredths of a second.
pub(crate) fn cpu_of(process: u32) -> Result<Duration, Failure> {
    let id = i32::try_from(process).map_err(|error| Failure::new(error.to_string()))?;
    let time = clock_getcpuclockid(Pid::from_raw(id)).and_then(nix::time::ClockId::now);
    let time = time.map_err(|error| Failure::new(format!("process {process}: {error}")))?;
    Ok(Duration::from(time))
}

/// Anonymous pages, in kilobytes.
pub(crate) fn memory_of(process: u32) -> Result<u64, Failure> {
    kilobytes(&format!("/proc/{process}/smaps_rollup"), "Anonymous")
}

/// All pages that are in memory, now and at the most so far, in kilobytes.
pub(crate) fn resident(process: u32) -> Result<[u64; 2], Failure> {
    let path = format!("/proc/{process}/status");
    Ok([kilobytes(&path, "VmRSS")?, kilobytes(&path, "VmHWM")?])
}

/// From now on the most is what is used now.
pub(crate) fn forget_peak(process: u32) -> Result<(), Failure> {
    Ok(fs::write(format!("/proc/{process}/clear_refs"), "5")?)
}

fn kilobytes(path: &str, field: &str) -> Result<u64, Failure> {
    let text = fs::read_to_string(path).map_err(|error| Failure::from(error).at(path))?;
    field_of(&text, field).ok_or_else(|| Failure::new(format!("{path} does not tell {field}")))
}

fn field_of(text: &str, field: &str) -> Option<u64> {
    let fields = text.lines().filter_map(|it| it.split_once(':'));
    let (_, value) = { fields }.find(|(name, _)| *name == field)?;
    value.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// A process, its children, and theirs.
fn tree(root: u32) -> Result<Vec<u32>, Failure> {
    let mut all = vec![root];
    let mut at = 0;
    while at < all.len() {
        let more = children_of(all[at])?;
        all.extend(more);
        at += 1;
    }
    Ok(all)
}

/// The processes that one started, as far as they are there.
pub(crate) fn children_of(parent: u32) -> Result<Vec<u32>, Failure> {
    let names = fs::read_dir("/proc")?.filter_map(|it| it.ok()?.file_name().into_string().ok());
    let processes = names.filter_map(|it| it.parse::<u32>().ok());
    // One that has just ended has no parent any more.
    let parent_of = |it: u32| parent_in(&fs::read_to_string(format!("/proc/{it}/stat")).ok()?);
    Ok(processes.filter(|it| parent_of(*it) == Some(parent)).collect())
}

/// Whose child it is, of a line of `/proc/PID/stat`.
fn parent_in(stat: &str) -> Option<u32> {
    // The name may hold spaces and parentheses; nothing after it does.
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_proc_are_read() {
        assert_eq!(parent_in("31 (a b) c) S 7 31 31 0 -1 4194560 500\n"), Some(7));
        let text =
            "55d0-7ffe ---p 00000000 00:00 0 [rollup]\nRss:  100 kB\nAnonymous:     1234 kB\n";
        assert_eq!(field_of(text, "Anonymous"), Some(1234));
        assert_eq!(field_of(text, "Anon"), None);
    }

    #[test]
    fn a_process_has_a_clock_and_memory() {
        let id = std::process::id();
        assert!(Duration::ZERO < cpu_of(id).unwrap());
        assert!(0 < memory_of(id).unwrap());
        let [now, most] = resident(id).unwrap();
        assert!(0 < now && now <= most + 4096);
    }

    #[test]
    fn a_process_that_ends_at_once_is_told_with_what_it_said() {
        let folder = Folder::new("test-process").unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "echo this is why >&2; exit 3"]);
        let mut process = Process::start(&mut command, folder).unwrap();
        let failure = process.wait(PATIENCE, |_| None::<()>).unwrap_err().to_string();
        assert!(
            failure.contains("exit status: 3") && failure.ends_with("this is why"),
            "{failure}"
        );
    }
}
