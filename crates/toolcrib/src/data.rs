//! `.toolcrib/` in a workspace: data of ours, and who owns it.
//!
//! The first gateway of a workspace locks the folder and leaves a socket in it. A further gateway that a
//! client starts on its standard input talks to the owner through that socket instead of starting every
//! server a second time.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use tokio::net::{UnixListener, UnixStream};

/// The longest path that a socket can have, everywhere.
const MAX_SOCKET_PATH: usize = 100;

/// Who has the folder.
#[derive(Debug)]
pub enum Claim {
    /// We do, as long as this is held.
    Ours(Data),
    /// Another process does.
    Taken(Owner),
    /// Nobody can, such as where the workspace cannot be written.
    Unusable(String),
}

/// The folder, locked.
#[derive(Debug)]
pub struct Data {
    folder: PathBuf,
    /// Holds the lock.
    _lock: File,
}

/// Whoever else has the folder.
#[derive(Debug)]
pub struct Owner {
    /// The id of its process, if it could be read.
    pub process: Option<u32>,
    folder: PathBuf,
}

impl Data {
    /// Claims the folder of a workspace, and makes it where there is none.
    pub fn claim(workspace: &Path) -> Claim {
        let folder = workspace.join(".toolcrib");
        match claim(&folder) {
            Ok(claim) => claim,
            Err(error) => Claim::Unusable(format!("`{}`: {error}", folder.display())),
        }
    }

    /// A file in the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The socket for further gateways of this workspace.
    pub fn listen(&self) -> io::Result<UnixListener> {
        let path = self.file("socket");
        // Left behind by an owner that could not clean up: we have the lock, so nobody listens there.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = with_short_path(&path, |path| UnixListener::bind(path))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        Ok(listener)
    }
}

/// A folder for what can be made again: in `.toolcrib/`, or where the workspace cannot be written a fresh one
/// among the temporary files.
pub(crate) fn scratch(workspace: &Path, name: &str) -> PathBuf {
    let folder = workspace.join(".toolcrib");
    if make(&folder).is_ok() && writable(&folder) {
        return folder.join(name);
    }
    // What lies in there is run: a folder that somebody else has made beforehand will not do.
    let fresh = |number: u32| {
        let name = format!("toolcrib-{}-{number}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        DirBuilder::new().mode(0o700).create(&folder).is_ok().then_some(folder)
    };
    (0..100).find_map(fresh).unwrap_or_else(|| workspace.join(".toolcrib").join(name))
}

fn writable(folder: &Path) -> bool {
    let probe = folder.join(format!(".probe-{}", std::process::id()));
    let made = fs::write(&probe, "").is_ok();
    fs::remove_file(probe).ok();
    made
}

impl Owner {
    /// Whoever may own the folder of a workspace, or will.
    pub fn of(workspace: &Path) -> Self {
        Self { process: None, folder: workspace.join(".toolcrib") }
    }

    /// Connects to it.
    pub async fn connect(&self) -> io::Result<UnixStream> {
        let path = self.folder.join("socket");
        let connected =
            with_short_path(&path, |path| std::os::unix::net::UnixStream::connect(path))?;
        connected.set_nonblocking(true)?;
        UnixStream::from_std(connected)
    }
}

/// Makes the folder where there is none, for its owner alone.
pub(crate) fn make(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(folder)?;
    if !found.is_dir() {
        return Err(io::Error::other("it is no folder"));
    }
    // Whatever is in there is for its owner alone, also where somebody made the folder by hand.
    if found.mode() & 0o077 != 0 {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    }
    let ignore = folder.join(".gitignore");
    if !ignore.exists() {
        fs::write(ignore, "*\n")?;
    }
    Ok(())
}

fn claim(folder: &Path) -> io::Result<Claim> {
    make(folder)?;
    // A link would lead us to write into somebody's file.
    let lock = folder.join("lock");
    if fs::symlink_metadata(&lock).is_ok_and(|it| !it.is_file()) {
        return Err(io::Error::other("`lock` in it is no file"));
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut lock = options.open(lock)?;
    match lock.try_lock() {
        Ok(()) => {
            lock.set_len(0)?;
            lock.rewind()?;
            write!(lock, "{}", std::process::id())?;
            Ok(Claim::Ours(Data { folder: folder.to_owned(), _lock: lock }))
        }
        Err(TryLockError::WouldBlock) => {
            let mut process = String::new();
            lock.take(32).read_to_string(&mut process).ok();
            let process = process.trim().parse().ok();
            Ok(Claim::Taken(Owner { process, folder: folder.to_owned() }))
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The name of a socket may be short only. Where it is not, it is looked up from its folder.
fn with_short_path<T>(path: &Path, open: impl Fn(&Path) -> io::Result<T>) -> io::Result<T> {
    if path.as_os_str().len() <= MAX_SOCKET_PATH {
        return open(path);
    }
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return open(path) };
    let folder = File::open(folder)?;
    let number = std::os::fd::AsRawFd::as_raw_fd(&folder);
    open(&Path::new("/proc/self/fd").join(number.to_string()).join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_owner_and_a_way_to_it_however_long_the_path() {
        let unique = format!("toolcrib-data-{}", std::process::id());
        let workspace = std::env::temp_dir().join(unique).join("x".repeat(120));
        fs::create_dir_all(&workspace).unwrap();
        let Claim::Ours(data) = Data::claim(&workspace) else { panic!("not ours") };
        let listener = data.listen().unwrap();
        let Claim::Taken(owner) = Data::claim(&workspace) else { panic!("not taken") };
        assert_eq!(owner.process, Some(std::process::id()));
        owner.connect().await.unwrap();
        listener.accept().await.unwrap();
        let mode = |name: &str| fs::metadata(data.folder.join(name)).unwrap().mode() & 0o777;
        assert_eq!([mode("."), mode("lock"), mode("socket")], [0o700, 0o600, 0o600]);
        drop((listener, data));
        let Claim::Ours(data) = Data::claim(&workspace) else { panic!("still taken") };
        data.listen().unwrap();
        fs::remove_dir_all(workspace.parent().unwrap()).unwrap();
        let Claim::Unusable(_) = Data::claim(&workspace) else { panic!("there is no workspace") };
    }
}
