//! Which records are let go: those that are too old, and the oldest where all together are too large.

use std::{fs, io, path::PathBuf, time::SystemTime};

use toolcrib_bus::{now_ms, rfc3339};

use super::{
    chain::{First, Head, Place, hex, segments},
    read::{Lines, Next},
    record::EventRecord,
    writer::Writer,
};

impl Writer {
    /// Lets go of files that are too old, a tenth at a time, so that a clock that jumped does not take all; and of the
    /// oldest where all together are too large.
    pub(super) fn sweep(&mut self) -> io::Result<()> {
        let found = segments(&self.folder)?;
        let gone = found.iter().filter(|(it, _)| *it < self.number);
        let gone: Vec<_> = gone.take(self.aged(&found).max(self.excess(&found))).collect();
        let Some((last, _)) = gone.last() else { return Ok(()) };
        let Some((number, path)) = found.iter().find(|(it, _)| last < it) else { return Ok(()) };
        let mut lines = Lines::open(path)?;
        let Next::Line(line) = lines.next()? else { return Ok(()) };
        let Some(place) = Place::read(line) else { return Ok(()) };
        // That they go is on record before they do, in the chain: else whoever cut it could say the same.
        let cause = format!("{} files up to record {} were let go", gone.len(), place.seq - 1);
        let record = EventRecord {
            event: "retain",
            cause: Some(&cause),
            before: Some(&hex(&place.prev)),
            ..EventRecord::default()
        };
        record.write(rfc3339(now_ms()).as_bytes(), &mut self.batch);
        self.batch.push(b'\n');
        self.chain();
        self.flush(true)?;
        self.write_head()?;
        // Then the head: files that are there and not spoken of do no harm.
        let first = First { file: *number, seq: place.seq, prev: place.prev };
        let head = Head { first, ..self.head.clone() };
        head.write(&self.folder)?;
        self.head = head;
        for (_, path) in &gone {
            fs::remove_file(path)?;
            fs::remove_file(path.with_extension("torn")).ok();
        }
        Ok(())
    }

    /// How many files, from the oldest on, are too old.
    fn aged(&self, found: &[(u64, PathBuf)]) -> usize {
        let now = SystemTime::now();
        let old = |path: &PathBuf| {
            let modified = fs::metadata(path).and_then(|it| it.modified());
            let age = modified.ok().and_then(|it| now.duration_since(it).ok());
            age.is_some_and(|it| self.keeping.retain < it)
        };
        let old = found.iter().take_while(|(it, path)| *it < self.number && old(path)).count();
        old.min(found.len().div_ceil(10))
    }

    /// How many are too many.
    fn excess(&self, found: &[(u64, PathBuf)]) -> usize {
        let size = |path: &PathBuf| fs::metadata(path).map_or(0, |it| it.len());
        let sizes: Vec<u64> = found.iter().map(|(_, path)| size(path)).collect();
        let mut all: u64 = sizes.iter().sum();
        let goes = |it: &&u64| {
            let goes = self.keeping.most < all;
            all -= **it;
            goes
        };
        sizes.iter().take_while(goes).count()
    }
}
