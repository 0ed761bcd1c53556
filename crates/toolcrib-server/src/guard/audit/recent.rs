//! The newest records, and those that come: for somebody who looks. Whoever calls notices nothing of it.

use std::{
    collections::VecDeque,
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::chain::segments;

/// How much of the files is read for the newest records.
const MOST_READ: u64 = 8 << 20;

/// What is read of a record, to know whose it is.
#[derive(Debug, Deserialize)]
pub(crate) struct Told<'a> {
    /// Absent where it is not of a call.
    #[serde(borrow)]
    pub(crate) call: Option<&'a str>,
    pub(crate) group: Option<String>,
    pub(crate) tool: Option<String>,
}

/// The newest records of calls that are wanted, oldest first.
pub(crate) fn recent_calls(
    folder: &Path,
    most: usize,
    wanted: impl Fn(&Told<'_>) -> bool,
) -> io::Result<Vec<String>> {
    let mut found = VecDeque::new();
    let mut left = MOST_READ;
    for (_, path) in segments_in(folder)?.iter().rev() {
        let mut file = open(path)?;
        let size = file.metadata()?.len();
        let begin = size.saturating_sub(left);
        file.seek(SeekFrom::Start(begin))?;
        let mut bytes = Vec::new();
        file.take(left).read_to_end(&mut bytes)?;
        left -= left.min(bytes.len() as u64);
        let mut lines: Vec<&[u8]> = bytes.split(|it| *it == b'\n').collect();
        // The last is empty, or not whole yet; the first may be the end of one.
        lines.pop();
        let whole = if 0 < begin { lines.get(1..).unwrap_or_default() } else { &lines };
        for line in whole.iter().rev() {
            if let Some(line) = call(line, &wanted) {
                found.push_front(line);
            }
            if found.len() == most {
                return Ok(found.into());
            }
        }
        if left == 0 {
            break;
        }
    }
    Ok(found.into())
}

/// The line, if it is the record of a call that is wanted.
fn call(line: &[u8], wanted: &impl Fn(&Told<'_>) -> bool) -> Option<String> {
    let told: Told<'_> = serde_json::from_slice(line).ok()?;
    told.call?;
    let line = wanted(&told).then_some(line)?;
    String::from_utf8(line.to_vec()).ok()
}

/// Follows the records from now on.
#[derive(Debug)]
pub(crate) struct Tail {
    folder: PathBuf,
    segment: u64,
    offset: u64,
}

impl Tail {
    /// Begins at the end of what there is.
    pub(crate) fn at_end(folder: &Path) -> io::Result<Self> {
        let last = segments_in(folder)?.pop();
        let (segment, offset) = match &last {
            Some((number, path)) => (*number, open(path)?.metadata()?.len()),
            None => (0, 0),
        };
        Ok(Self { folder: folder.to_owned(), segment, offset })
    }

    /// The records of calls that are wanted among those that came since. Of too many at once the oldest are passed
    /// over; how many bytes were is said too.
    pub(crate) fn more(
        &mut self,
        most: u64,
        wanted: impl Fn(&Told<'_>) -> bool,
    ) -> io::Result<(Vec<String>, u64)> {
        let (mut found, mut passed) = (Vec::new(), 0);
        for (number, path) in segments_in(&self.folder)? {
            if number < self.segment {
                continue;
            }
            if self.segment < number {
                (self.segment, self.offset) = (number, 0);
            }
            let mut file = open(&path)?;
            let size = file.metadata()?.len();
            let skipped = size.saturating_sub(self.offset).saturating_sub(most);
            self.offset += skipped;
            passed += skipped;
            file.seek(SeekFrom::Start(self.offset))?;
            let mut bytes = Vec::new();
            file.take(most).read_to_end(&mut bytes)?;
            let Some(end) = bytes.iter().rposition(|it| *it == b'\n') else { continue };
            self.offset += end as u64 + 1;
            let lines = bytes[..end].split(|it| *it == b'\n');
            // Where some were passed over the first is not whole, and no JSON.
            found.extend(lines.filter_map(|it| call(it, &wanted)));
        }
        Ok((found, passed))
    }
}

fn segments_in(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    match segments(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        found => found,
    }
}

/// Opens a file, which must be one: a pipe of that name would keep us waiting.
fn open(path: &Path) -> io::Result<File> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    File::open(path)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::{super::chain::segment_name, *};

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("recent-{}-{name}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn add(&self, segment: u64, text: &str) {
            let path = self.0.join(segment_name(segment));
            let mut file = File::options().create(true).append(true).open(path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).ok();
        }
    }

    fn line(id: &str, group: &str) -> String {
        format!("{{\"seq\":1,\"call\":\"{id}\",\"group\":\"{group}\",\"tool\":\"t\"}}\n")
    }

    fn ids(lines: &[String]) -> Vec<String> {
        let id = |it: &String| {
            let told: Told<'_> = serde_json::from_str(it).unwrap();
            told.call.unwrap().to_owned()
        };
        lines.iter().map(id).collect()
    }

    #[test]
    fn the_newest_come_from_all_files_oldest_first() {
        let folder = Folder::new("newest");
        folder.add(1, &format!("{}{}", line("a", "x"), line("b", "y")));
        folder.add(
            2,
            &format!("{}not json\n{{\"event\":\"start\"}}\n{}", line("c", "x"), line("d", "x")),
        );
        folder.add(2, "{\"seq\":9,\"call\":\"half");
        let recent = |most, group: &'static str| {
            let found = recent_calls(&folder.0, most, |it| it.group.as_deref() == Some(group));
            ids(&found.unwrap())
        };
        assert_eq!(recent(10, "x"), ["a", "c", "d"]);
        assert_eq!(recent(2, "x"), ["c", "d"]);
        assert_eq!(recent(10, "y"), ["b"]);
        let none = recent_calls(&folder.0.join("none"), 5, |_| true).unwrap();
        assert_eq!(none, Vec::<String>::new());
    }

    #[test]
    fn what_comes_is_told_once_and_only_when_it_is_whole() {
        let folder = Folder::new("tail");
        folder.add(1, &line("old", "x"));
        let mut tail = Tail::at_end(&folder.0).unwrap();
        let mut more = |most| {
            let (found, passed) = tail.more(most, |_| true).unwrap();
            (ids(&found), passed)
        };
        assert_eq!(more(1000), (Vec::new(), 0));
        let whole = line("a", "x");
        folder.add(1, &whole[..9]);
        assert_eq!(more(1000).0, Vec::<String>::new());
        folder.add(1, &whole[9..]);
        folder.add(2, &line("b", "x"));
        assert_eq!(more(1000), (vec!["a".to_owned(), "b".to_owned()], 0));
        assert_eq!(more(1000).0, Vec::<String>::new());
        // Too much at once: the newest are told.
        for id in ["c", "d", "e"] {
            folder.add(2, &line(id, "x"));
        }
        let (found, passed) = more(whole.len() as u64 + 4);
        assert_eq!(found, ["e"]);
        assert!(0 < passed);
    }
}
