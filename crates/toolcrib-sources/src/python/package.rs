//! Our side of Python, which is part of the binary and put on disk where a process can import it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Every file of the package.
const FILES: [(&str, &str); 30] = [
    ("openagents/__init__.py", include_str!("../../python/openagents/__init__.py")),
    ("openagents/core/__init__.py", include_str!("../../python/openagents/core/__init__.py")),
    ("openagents/core/base_mod.py", include_str!("../../python/openagents/core/base_mod.py")),
    (
        "openagents/core/tool_decorator.py",
        include_str!("../../python/openagents/core/tool_decorator.py"),
    ),
    ("openagents/models/__init__.py", include_str!("../../python/openagents/models/__init__.py")),
    ("openagents/models/tool.py", include_str!("../../python/openagents/models/tool.py")),
    (
        "openagents/workspace/__init__.py",
        include_str!("../../python/openagents/workspace/__init__.py"),
    ),
    (
        "openagents/workspace/tool_decorator.py",
        include_str!("../../python/openagents/workspace/tool_decorator.py"),
    ),
    ("toolcrib/__init__.py", include_str!("../../python/toolcrib/__init__.py")),
    ("toolcrib/_annotations.py", include_str!("../../python/toolcrib/_annotations.py")),
    ("toolcrib/_async.py", include_str!("../../python/toolcrib/_async.py")),
    ("toolcrib/_channel.py", include_str!("../../python/toolcrib/_channel.py")),
    ("toolcrib/_context.py", include_str!("../../python/toolcrib/_context.py")),
    ("toolcrib/_convert.py", include_str!("../../python/toolcrib/_convert.py")),
    ("toolcrib/_docstring.py", include_str!("../../python/toolcrib/_docstring.py")),
    ("toolcrib/_importing.py", include_str!("../../python/toolcrib/_importing.py")),
    ("toolcrib/_loading.py", include_str!("../../python/toolcrib/_loading.py")),
    ("toolcrib/_mods.py", include_str!("../../python/toolcrib/_mods.py")),
    ("toolcrib/_output.py", include_str!("../../python/toolcrib/_output.py")),
    ("toolcrib/_plain.py", include_str!("../../python/toolcrib/_plain.py")),
    ("toolcrib/_records.py", include_str!("../../python/toolcrib/_records.py")),
    ("toolcrib/_results.py", include_str!("../../python/toolcrib/_results.py")),
    ("toolcrib/_sandbox.py", include_str!("../../python/toolcrib/_sandbox.py")),
    ("toolcrib/_schema.py", include_str!("../../python/toolcrib/_schema.py")),
    ("toolcrib/_served.py", include_str!("../../python/toolcrib/_served.py")),
    ("toolcrib/_signature.py", include_str!("../../python/toolcrib/_signature.py")),
    ("toolcrib/_sync.py", include_str!("../../python/toolcrib/_sync.py")),
    ("toolcrib/_tool.py", include_str!("../../python/toolcrib/_tool.py")),
    ("toolcrib/_values.py", include_str!("../../python/toolcrib/_values.py")),
    ("toolcrib/_worker.py", include_str!("../../python/toolcrib/_worker.py")),
];

/// Puts the package under `home`, unless it is there already, and says where. Another version of it has
/// another folder, so nobody ever sees half of one.
pub(super) fn unpack(home: &Path) -> io::Result<PathBuf> {
    let folder = home.join(digest());
    unpack_at(&folder)?;
    Ok(folder)
}

/// Puts the package into this folder, unless it is there already.
pub(super) fn unpack_at(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let home = folder.parent().unwrap_or(folder);
    let beside = home.join(format!(".{}-{}", digest(), fastrand::u64(..)));
    for (name, text) in FILES {
        let path = beside.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&beside))?;
        fs::write(path, text)?;
    }
    match fs::rename(&beside, folder) {
        Ok(()) => Ok(()),
        // Somebody else was quicker.
        Err(_) if folder.is_dir() => {
            fs::remove_dir_all(&beside).ok();
            Ok(())
        }
        Err(error) => {
            fs::remove_dir_all(&beside).ok();
            Err(error)
        }
    }
}

/// A short name for what is in the package.
fn digest() -> String {
    let mut hasher = blake3::Hasher::new();
    for (name, text) in FILES {
        hasher.update(name.as_bytes()).update(&[0]).update(text.as_bytes()).update(&[0]);
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() && entry.file_name() != "__pycache__" {
                walk(&path, found);
            } else if path.extension().is_some_and(|it| it == "py") {
                found.push(path);
            }
        }
    }

    #[test]
    fn every_file_is_part_of_the_binary() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
        let mut found = Vec::new();
        walk(&root, &mut found);
        let mut found: Vec<String> =
            found.iter().map(|it| it.strip_prefix(&root).unwrap().display().to_string()).collect();
        found.sort();
        assert_eq!(found, FILES.map(|(name, _)| name.to_owned()));
    }

    #[test]
    fn the_package_is_put_down_once() {
        let home = std::env::temp_dir().join(format!("toolcrib-package-{}", fastrand::u64(..)));
        let first = unpack(&home).unwrap();
        assert!(first.join("toolcrib/__init__.py").is_file());
        assert_eq!(unpack(&home).unwrap(), first);
        assert_eq!(fs::read_dir(&home).unwrap().count(), 1);
        fs::remove_dir_all(home).unwrap();
    }
}
