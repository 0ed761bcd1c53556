//! Tokens that `toolcrib token new` made: of each only the digest is kept, in `.toolcrib/tokens.json`.
//!
//! They are 256 random bits, so that a digest without salt gives nothing away. As long as the file is there a token is
//! needed, also when the last one was taken back: what takes a right away must not open the door to everybody.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use toolcrib_bus::{now_ms, rfc3339};
use toolcrib_catalogue::Problem;
use toolcrib_server::{AccessSettings, GroupSettings};

use crate::data;

/// Where tokens are kept, seen from the workspace.
pub const TOKENS_FILE: &str = ".toolcrib/tokens.json";

/// The largest file that is read.
const MAX_FILE: u64 = 16 << 20;

/// All tokens of a workspace that were made and not taken back.
#[derive(Debug, Clone, Default)]
pub struct Tokens {
    /// They, in the order in which they were made.
    pub list: Vec<MadeToken>,
    /// Some have been made, now or before.
    there: bool,
}

/// A token, without itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MadeToken {
    /// By which one speaks of it: the beginning of its digest.
    pub id: String,
    /// Whom it makes of its holder.
    pub group: String,
    /// Whose it is, or what for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// When it was made.
    pub created: String,
    /// Of its bytes.
    digest: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    version: u32,
    tokens: Vec<MadeToken>,
}

impl Tokens {
    /// Reads those of a workspace; none where none were made. What cannot be read is said, and lets nobody in.
    pub fn read(workspace: &Path) -> Result<Self, String> {
        let path = workspace.join(TOKENS_FILE);
        let is_none = |it: &io::Error| {
            // Where the folder is no folder there is no file in it either.
            matches!(it.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        };
        match fs::metadata(&path) {
            Err(error) if is_none(&error) => return Ok(Self::default()),
            Err(error) => return Err(error.to_string()),
            Ok(it) if !it.is_file() => return Err("it is not a file".to_owned()),
            Ok(it) if MAX_FILE < it.len() => return Err(format!("it has {} bytes", it.len())),
            Ok(_) => {}
        }
        let text = fs::read(&path).map_err(|error| error.to_string())?;
        let written: Written = serde_json::from_slice(&text)
            .map_err(|_not_ours| "it cannot be understood".to_owned())?;
        if written.version != 1 {
            return Err(format!("it is of version {}, and we know 1", written.version));
        }
        if let Some(bad) = written.tokens.iter().find(|it| read_digest(&it.digest).is_none()) {
            return Err(format!("token `{}` has no digest", bad.id.escape_debug()));
        }
        Ok(Self { list: written.tokens, there: true })
    }

    /// Whether any token has been made, be it that it was taken back.
    pub fn made_any(&self) -> bool {
        self.there
    }

    /// Makes a token for a group, and returns it: the only time that it is there to be seen.
    pub fn make(workspace: &Path, group: &str, note: &str) -> io::Result<(String, MadeToken)> {
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
        let token = format!("tc_{}", URL_SAFE_NO_PAD.encode(random));
        let digest = blake3::hash(token.as_bytes()).to_hex();
        let made = MadeToken {
            id: digest[..8].to_owned(),
            group: group.to_owned(),
            note: note.to_owned(),
            created: rfc3339(now_ms()),
            digest: format!("blake3:{digest}"),
        };
        let _alone = alone(workspace)?;
        let mut tokens = Self::read(workspace).map_err(io::Error::other)?;
        tokens.list.push(made.clone());
        tokens.write(workspace)?;
        Ok((token, made))
    }

    /// Takes a token back; returns it, or nothing where there is none of this id.
    pub fn revoke(workspace: &Path, id: &str) -> io::Result<Option<MadeToken>> {
        let _alone = alone(workspace)?;
        let mut tokens = Self::read(workspace).map_err(io::Error::other)?;
        let Some(at) = tokens.list.iter().position(|it| it.id == id) else { return Ok(None) };
        let gone = tokens.list.remove(at);
        tokens.write(workspace)?;
        Ok(Some(gone))
    }

    fn write(&self, workspace: &Path) -> io::Result<()> {
        let path = workspace.join(TOKENS_FILE);
        let new = path.with_extension("new");
        let written = Written { version: 1, tokens: self.list.clone() };
        let write = || {
            let mut options = OpenOptions::new();
            let mut file =
                options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
            file.write_all(format!("{}\n", serde_json::to_string_pretty(&written)?).as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, &path)
        };
        write().inspect_err(|_| drop(fs::remove_file(&new)))
    }

    /// Lets their holders in. A token of a group that is no more lets nobody in, and is told.
    pub(crate) fn join(&self, access: &mut AccessSettings) -> Vec<Problem> {
        access.closed |= self.there;
        let mut problems = Vec::new();
        for token in &self.list {
            let known = access.groups.iter().position(|it| it.name == token.group);
            let at = match known {
                Some(at) => at,
                None if token.group == access.default_group => {
                    let name = token.group.clone();
                    access.groups.push(GroupSettings { name, ..GroupSettings::default() });
                    access.groups.len() - 1
                }
                None => {
                    let message = format!("there is no group `{}`", token.group.escape_debug());
                    let place = format!("{TOKENS_FILE}: {}", token.id.escape_debug());
                    let hint = format!("take it back: `toolcrib token revoke {}`", token.id);
                    problems.push(Problem::warning(place, message).hint(hint));
                    continue;
                }
            };
            access.groups[at].digests.extend(read_digest(&token.digest));
        }
        problems
    }
}

/// `blake3:` and 64 hexadecimal digits.
pub(crate) fn read_digest(text: &str) -> Option<[u8; 32]> {
    let hash = blake3::Hash::from_hex(text.strip_prefix("blake3:")?).ok()?;
    Some(*hash.as_bytes())
}

/// Nobody else changes the tokens while this is held.
fn alone(workspace: &Path) -> io::Result<File> {
    let folder: PathBuf = workspace.join(".toolcrib");
    data::make(&folder)?;
    let mut options = OpenOptions::new();
    let path = folder.join("tokens.lock");
    let lock = options.write(true).create(true).truncate(false).mode(0o600).open(path)?;
    lock.lock()?;
    Ok(lock)
}
