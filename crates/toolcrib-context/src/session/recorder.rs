//! Session files as they grow: one for each client, in one folder, for a time and up to a size.
//!
//! Every batch of lines is one append to a file that is opened for it: a client that is quiet for a day holds
//! nothing, and whoever cleans the folder by hand breaks nothing.

use std::{
    collections::HashMap,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// For how long, and how much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordLimits {
    /// A file goes when nothing was added to it for so long.
    pub keep: Duration,
    /// What all files may have together; the oldest go first.
    pub quota: u64,
    /// What one file may have; a client that says more gets a second one.
    pub largest: u64,
    /// How many files there may be; the oldest go first.
    pub files: usize,
}

impl Default for RecordLimits {
    fn default() -> Self {
        Self {
            keep: Duration::from_secs(30 * 86_400),
            quota: 1 << 30,
            largest: 64 << 20,
            files: 10_000,
        }
    }
}

/// How many clients are kept in mind. One that is forgotten gets a new file.
const MOST_CLIENTS: usize = 10_000;

/// Records what clients do.
#[derive(Debug)]
pub struct Recorder {
    folder: PathBuf,
    limits: RecordLimits,
    /// The file of each client, and how large it is.
    files: HashMap<String, (PathBuf, u64)>,
    /// How much was added since the folder was last looked through.
    added: u64,
    /// How many files were made since.
    made: usize,
    swept: SystemTime,
}

impl Recorder {
    /// Records into this folder, which is made where there is none.
    pub fn open(folder: &Path, limits: RecordLimits) -> io::Result<Self> {
        match DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let swept = SystemTime::UNIX_EPOCH;
        let (folder, files) = (folder.to_owned(), HashMap::new());
        let mut recorder = Self { folder, limits, files, added: 0, made: 0, swept };
        recorder.sweep(SystemTime::now())?;
        Ok(recorder)
    }

    /// Adds lines, each with its line end, to the file of a client. `stamp` says when, such as
    /// `20260131T120000Z`: it stands in the name of a new file.
    pub fn write(&mut self, client: &str, stamp: &str, lines: &[u8]) -> io::Result<()> {
        let size = lines.len() as u64;
        let full = |(_, has): &(PathBuf, u64)| self.limits.largest < has + size;
        if self.files.get(client).is_some_and(full) {
            self.files.remove(client);
        }
        if MOST_CLIENTS <= self.files.len() {
            self.files.clear();
        }
        if !self.files.contains_key(client) {
            let path = self.new_file(client, stamp)?;
            self.files.insert(client.to_owned(), (path, 0));
            self.made += 1;
        }
        let Some((path, has)) = self.files.get_mut(client) else { return Ok(()) };
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600);
        let written = opened(&options, path);
        if let Err(error) = written.and_then(|mut it| it.write_all(lines)) {
            // Half a line may be there; what comes next must not be glued to it.
            self.files.remove(client);
            return Err(error);
        }
        *has += size;
        self.added += size;
        let now = SystemTime::now();
        let hour = now.duration_since(self.swept).is_ok_and(|it| 3600 <= it.as_secs());
        let many = self.limits.files / 16 < self.made;
        if hour || many || self.limits.quota / 16 < self.added {
            self.sweep(now)?;
        }
        Ok(())
    }

    /// A name that no file has, made ours by making the file.
    fn new_file(&self, client: &str, stamp: &str) -> io::Result<PathBuf> {
        let plain = |text: &str| {
            let plain = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
            plain.take(64).collect::<String>()
        };
        let begin = format!("{}-{}", plain(stamp), plain(client));
        for number in 1..10_000 {
            let more = if number == 1 { String::new() } else { format!("-{number}") };
            let path = self.folder.join(format!("{begin}{more}.jsonl"));
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(0o600);
            match opened(&options, &path) {
                Ok(_) => return Ok(path),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("too many files of one second"))
    }

    /// Removes what is too old, and the oldest of what is too much. What cannot be removed stays, and is tried again
    /// the next time.
    pub fn sweep(&mut self, now: SystemTime) -> io::Result<()> {
        (self.added, self.made, self.swept) = (0, 0, now);
        let entries = match fs::read_dir(&self.folder) {
            // Somebody has removed it; it is made again when there is something to write.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry?;
            let ours = entry.path().extension().is_some_and(|it| it == "jsonl");
            let Ok(about) = entry.metadata() else { continue };
            if ours && about.is_file() {
                let time = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                found.push((time, entry.path(), about.len()));
            }
        }
        found.sort();
        let mut total: u64 = found.iter().map(|(_, _, size)| size).sum();
        let mut count = found.len();
        for (time, path, size) in found {
            let old = now.duration_since(time).is_ok_and(|it| self.limits.keep < it);
            if !old && total <= self.limits.quota && count <= self.limits.files {
                break;
            }
            let gone = match fs::remove_file(&path) {
                Err(error) => error.kind() == io::ErrorKind::NotFound,
                Ok(()) => true,
            };
            if gone {
                total -= size;
                count -= 1;
                self.files.retain(|_, (it, _)| *it != path);
            }
        }
        Ok(())
    }
}

/// Opens a file; where somebody has removed the folder, that is made again first.
fn opened(options: &OpenOptions, path: &Path) -> io::Result<File> {
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Some(folder) = path.parent() {
                DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            }
            options.open(path)
        }
        opened => opened,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("toolcrib-{name}-{}", std::process::id()));
        fs::remove_dir_all(&path).ok();
        path
    }

    fn files(folder: &Path) -> Vec<(String, u64)> {
        let all = fs::read_dir(folder).unwrap().map(|it| it.unwrap());
        let mut all: Vec<_> = all
            .map(|it| (it.file_name().into_string().unwrap(), it.metadata().unwrap().len()))
            .collect();
        all.sort();
        all
    }

    #[test]
    fn each_client_has_a_file_of_its_own_and_a_second_when_it_is_full() {
        let folder = folder("recorder");
        let limits = RecordLimits { largest: 10, ..RecordLimits::default() };
        let mut recorder = Recorder::open(&folder, limits).unwrap();
        recorder.write("a", "t", b"123456\n").unwrap();
        recorder.write("../b", "t", b"1\n").unwrap();
        recorder.write("a", "t", b"89\n").unwrap();
        recorder.write("a", "t", b"next\n").unwrap();
        let names = ["t----b.jsonl", "t-a-2.jsonl", "t-a.jsonl"];
        let expected: Vec<_> = names.into_iter().map(str::to_owned).zip([2, 5, 10]).collect();
        assert_eq!(files(&folder), expected);
        fs::remove_file(folder.join("t-a-2.jsonl")).unwrap();
        recorder.write("a", "t", b"again\n").unwrap();
        assert_eq!(fs::read_to_string(folder.join("t-a-2.jsonl")).unwrap(), "again\n");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_too_old_or_too_much_goes() {
        let folder = folder("recorder-sweep");
        let limits = RecordLimits {
            quota: 100,
            keep: Duration::from_secs(60),
            largest: 1000,
            ..RecordLimits::default()
        };
        let mut recorder = Recorder::open(&folder, limits).unwrap();
        fs::write(folder.join("notes.txt"), [b'x'; 500]).unwrap();
        for (number, client) in ["a", "b", "c"].into_iter().enumerate() {
            recorder.write(client, "t", &[b'x'; 40]).unwrap();
            let time = SystemTime::now() - Duration::from_secs(30 - 10 * number as u64);
            let file =
                OpenOptions::new().append(true).open(folder.join(format!("t-{client}.jsonl")));
            file.unwrap().set_modified(time).unwrap();
        }
        recorder.sweep(SystemTime::now()).unwrap();
        let names = |it: &[(String, u64)]| it.iter().map(|(it, _)| it.clone()).collect::<Vec<_>>();
        assert_eq!(names(&files(&folder)), ["notes.txt", "t-b.jsonl", "t-c.jsonl"]);
        recorder.sweep(SystemTime::now() + Duration::from_secs(45)).unwrap();
        assert_eq!(names(&files(&folder)), ["notes.txt", "t-c.jsonl"]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_folder_that_was_removed_is_made_again() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = folder("recorder-again");
        let mut recorder = Recorder::open(&folder, RecordLimits::default()).unwrap();
        recorder.write("a", "t", b"1\n").unwrap();
        fs::remove_dir_all(&folder).unwrap();
        recorder.sweep(SystemTime::now()).unwrap();
        assert!(!folder.exists());
        // For a client that is known, and for a new one.
        recorder.write("a", "t", b"2\n").unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        fs::remove_dir_all(&folder).unwrap();
        recorder.write("b", "t", b"3\n").unwrap();
        assert_eq!(files(&folder), [("t-b.jsonl".to_owned(), 2)]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn there_are_only_so_many_files() {
        let folder = folder("recorder-many");
        let limits = RecordLimits { files: 20, ..RecordLimits::default() };
        let mut recorder = Recorder::open(&folder, limits).unwrap();
        for client in 0..50 {
            recorder.write(&format!("c{client}"), "t", b"1\n").unwrap();
            assert!(files(&folder).len() <= 22, "{}", files(&folder).len());
        }
        assert!(files(&folder).iter().any(|(name, _)| name == "t-c49.jsonl"));
        assert!(!files(&folder).iter().any(|(name, _)| name == "t-c0.jsonl"));
        fs::remove_dir_all(folder).unwrap();
    }
}
