//! What lies in the folder of a store when it is opened, and what is done about what is not as it should be.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Read},
    path::Path,
    str::FromStr,
};

use super::{Artifact, ArtifactId};

/// The largest file with what is known of an artifact that is read.
const MAX_META: u64 = 64 * 1024;

/// What lies in the folder, by what it looks like.
#[derive(Default)]
pub(super) struct Found {
    pub(super) metas: BTreeSet<ArtifactId>,
    pub(super) datas: Vec<ArtifactId>,
    pub(super) parts: Vec<String>,
    pub(super) foreign: Vec<String>,
}

impl Found {
    pub(super) fn sort_in(&mut self, entry: &fs::DirEntry) {
        let name = entry.file_name();
        let shown = name.to_string_lossy().into_owned();
        // A link could lead anywhere.
        let file = entry.file_type().is_ok_and(|it| it.is_file());
        let parts = shown.split_once('.').filter(|_| file);
        let ours = parts.and_then(|(id, kind)| Some((ArtifactId::from_str(id).ok()?, kind)));
        match ours {
            Some((id, "json")) => {
                self.metas.insert(id);
            }
            Some((id, "data")) => self.datas.push(id),
            Some((_, "data.part" | "json.part")) => self.parts.push(shown),
            // Put there by ourselves, see `set_aside`.
            Some((_, "damaged")) => {}
            _ => self.foreign.push(shown.chars().take(100).collect()),
        }
    }
}

/// Why something in the folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Damage {
    #[error("its content is gone")]
    Gone,
    #[error("its content has {found} bytes instead of {expected}")]
    Size { found: u64, expected: u64 },
    #[error("what is known of it cannot be read")]
    Unreadable,
}

pub(super) fn read_meta(folder: &Path, id: &ArtifactId) -> Result<Artifact, Damage> {
    let mut text = Vec::new();
    let read = File::open(folder.join(format!("{id}.json")))
        .and_then(|file| file.take(MAX_META).read_to_end(&mut text));
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Damage::Gone),
        Err(_) => return Err(Damage::Unreadable),
        Ok(_) => {}
    }
    let artifact: Artifact = serde_json::from_slice(&text).map_err(|_why| Damage::Unreadable)?;
    if artifact.id != *id {
        return Err(Damage::Unreadable);
    }
    let data = fs::symlink_metadata(folder.join(format!("{id}.data")));
    let data = data.map_err(|_why| Damage::Gone)?;
    let (found, expected) = (data.len(), artifact.size_bytes);
    if !data.is_file() {
        return Err(Damage::Gone);
    }
    if found == expected { Ok(artifact) } else { Err(Damage::Size { found, expected }) }
}

/// Removes what has no content any more; what has some is kept under another name, for whoever wants to see it.
pub(super) fn set_aside(folder: &Path, id: &ArtifactId, damage: &Damage, writable: bool) -> String {
    if !writable {
        return format!("`{id}`: {damage}");
    }
    let (meta, data) = (folder.join(format!("{id}.json")), folder.join(format!("{id}.data")));
    let done =
        match damage {
            Damage::Gone => fs::remove_file(meta).map(|()| "removed".to_owned()),
            Damage::Size { .. } | Damage::Unreadable => {
                fs::rename(data, folder.join(format!("{id}.damaged")))
                    .or_else(|error| {
                        if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
                    })
                    .and_then(|()| fs::remove_file(meta))
                    .map(|()| format!("set aside as `{id}.damaged`"))
            }
        };
    match done {
        Ok(done) => format!("`{id}`: {damage}: {done}"),
        Err(error) => format!("`{id}`: {damage}; cannot be set aside: {error}"),
    }
}
