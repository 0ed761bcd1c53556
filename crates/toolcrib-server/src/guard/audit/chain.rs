//! How records hang together: each names the hash of the one before it, and a head record beside the files
//! names the last.
//!
//! A line is `{"seq":N,"prev":"HASH",…}`; its hash is BLAKE3 over the hash before it and its bytes. Whoever changes,
//! removes or adds a line would have to write all later ones anew, and the head. The head is written after the
//! lines that it speaks of are on disk, so it may be behind them, and never before them: files that are shorter
//! than it says were cut.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

/// The hash of a record.
pub(crate) type Hash = [u8; 32];

/// What the first record of all comes after.
pub(crate) const NONE: Hash = [0; 32];

/// The largest line. What is longer is none of ours.
pub(crate) const MOST_LINE: usize = 1 << 20;

/// The largest head record.
const MOST_HEAD: u64 = 4096;

const HEAD: &str = "head.json";

/// The hash of a line, without its line end.
pub(crate) fn link(prev: &Hash, line: &[u8]) -> Hash {
    *blake3::Hasher::new().update(prev).update(line).finalize().as_bytes()
}

/// The hash as it is written.
pub(crate) fn hex(hash: &Hash) -> String {
    blake3::Hash::from_bytes(*hash).to_hex().to_string()
}

/// The name of a file of records.
pub(crate) fn segment_name(number: u64) -> String {
    format!("audit-{number:06}.jsonl")
}

/// The files of records in a folder, by number.
pub(crate) fn segments(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|it| it.strip_prefix("audit-")?.strip_suffix(".jsonl"));
        let number = number.and_then(|it| it.parse::<u64>().ok());
        if let Some(number) = number.filter(|it| *name == *segment_name(*it)) {
            found.push((number, entry.path()));
        }
    }
    found.sort();
    Ok(found)
}

/// Where a record stands in the chain, as its line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) seq: u64,
    pub(crate) prev: Hash,
}

impl Place {
    /// Reads the beginning of a line.
    pub(crate) fn read(line: &[u8]) -> Option<Self> {
        let rest = line.strip_prefix(br#"{"seq":"#)?;
        let end = rest.iter().take(21).position(|it| *it == b',')?;
        let (digits, rest) = rest.split_at(end);
        let seq: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
        let rest = rest.strip_prefix(br#","prev":""#)?;
        let (hash, rest) = rest.split_at_checked(64)?;
        let prev = blake3::Hash::from_hex(hash).ok()?;
        // `+7`, `007` and capitals would be other bytes for the same place.
        let same = seq.to_string().as_bytes() == digits && prev.to_hex().as_bytes() == hash;
        (same && rest.starts_with(b"\",")).then_some(Self { seq, prev: *prev.as_bytes() })
    }

    /// Begins a line.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"seq":"#);
        super::record::number(out, self.seq);
        out.extend_from_slice(br#","prev":""#);
        out.extend_from_slice(blake3::Hash::from_bytes(self.prev).to_hex().as_bytes());
        out.extend_from_slice(b"\",");
    }
}

/// The head record: how far the chain goes, and where it begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    /// The last record that is surely on disk.
    pub(crate) seq: u64,
    #[serde(with = "hash")]
    pub(crate) hash: Hash,
    /// The file it is in.
    pub(crate) file: u64,
    /// The oldest that is kept.
    pub(crate) first: First,
}

/// Where a chain begins whose older files were let go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct First {
    pub(crate) file: u64,
    pub(crate) seq: u64,
    #[serde(with = "hash")]
    pub(crate) prev: Hash,
}

mod hash {
    //! A hash as text.
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(hash: &super::Hash, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&super::hex(hash))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<super::Hash, D::Error> {
        let text = String::deserialize(from)?;
        blake3::Hash::from_hex(text).map(|it| *it.as_bytes()).map_err(D::Error::custom)
    }
}

impl Head {
    /// The head of a chain that has not begun.
    pub(crate) fn new() -> Self {
        let first = First { file: 1, seq: 1, prev: NONE };
        Self { seq: 0, hash: NONE, file: 1, first }
    }

    /// The head of the records in a folder; nothing where there is none.
    pub(crate) fn read(folder: &Path) -> io::Result<Option<Self>> {
        let file = match File::open(folder.join(HEAD)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let mut text = Vec::new();
        file.take(MOST_HEAD).read_to_end(&mut text)?;
        let read = serde_json::from_slice(&text);
        read.map(Some).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Puts it in the place of the one before, whole or not at all.
    pub(crate) fn write(&self, folder: &Path) -> io::Result<()> {
        let aside = folder.join("head.json.new");
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
        let mut text = serde_json::to_vec(self)?;
        text.push(b'\n');
        file.write_all(&text)?;
        file.sync_data()?;
        fs::rename(aside, folder.join(HEAD))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_one_way_to_be_written() {
        let place = Place { seq: 7, prev: link(&NONE, b"x") };
        let mut line = Vec::new();
        place.write(&mut line);
        assert_eq!(Place::read(&line), Some(place));
        let text = String::from_utf8(line).unwrap();
        for bad in [
            text.replace(":7,", ":07,"),
            text.replace(":7,", ":+7,"),
            text.replace(":7,", ": 7,"),
            text.replace(":7,", ":18446744073709551616,"),
            text.replace("prev\":\"", "prev\":\"F"),
            text.to_uppercase(),
            text[..text.len() - 2].to_owned(),
            String::new(),
        ] {
            assert_eq!(Place::read(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_hash_is_of_all_that_came_before() {
        assert_ne!(link(&NONE, b"ab"), link(&link(&NONE, b"a"), b"b"));
        assert_ne!(link(&NONE, b"a"), link(&[1; 32], b"a"));
    }
}
