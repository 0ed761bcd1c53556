//! Files of other programs: read with care, and changed all at once or not at all.

use std::{
    fs::{self, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// The largest file that is read: Claude Code keeps much else in its file.
const MAX_FILE: u64 = 64 << 20;

/// The text of a file; none where there is none.
pub(crate) fn read_text(path: &Path) -> io::Result<Option<String>> {
    let about = match fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(None),
        Err(error) => return Err(error),
    };
    // A pipe would wait for ever, a device would never end.
    if !about.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = Vec::new();
    fs::File::open(path)?.take(MAX_FILE + 1).read_to_end(&mut text)?;
    if MAX_FILE < text.len() as u64 {
        return Err(io::Error::other(format!("it is larger than {} MB", MAX_FILE >> 20)));
    }
    let text = String::from_utf8(text);
    text.map(Some).map_err(|_not_utf8| io::Error::other("it is not UTF-8"))
}

/// Writes a file anew: whoever reads it finds the old text or the new one. A link stays one, and who may read the file
/// stays as it was; a new file is for its owner alone.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mode = fs::metadata(&path).map_or(0o600, |it| it.permissions().mode() & 0o777);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let new = folder.join(format!(".{name}.toolcrib-{}", std::process::id()));
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&new)?;
        file.write_all(text.as_bytes())?;
        // What is subtracted from the rights of new files does not belong here.
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.sync_all()?;
        fs::rename(&new, &path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&new)))
}

/// Where the text is kept that a file had before us.
pub(crate) fn backup_of(path: &Path) -> PathBuf {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{name}.before-toolcrib"))
}

/// Removes a file, if it is there.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
