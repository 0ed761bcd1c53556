//! The file: one SQLite database in WAL mode. Every row carries a checksum over all it says, so that what
//! a disk changed is never served.

use std::{
    fs::OpenOptions,
    io::{self, Read, Seek, Write},
    ops::RangeInclusive,
    path::Path,
};

use rusqlite::{Connection, ErrorCode, OptionalExtension, Transaction, params};

use crate::{BusError, Event, Receipt, Record, embedded::Synchronous, tail::PIECE};

/// What this code reads and writes. A file of a later one is left alone.
const VERSION: i64 = 1;

const TABLES: &str = "
    CREATE TABLE events(
        seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, at INTEGER NOT NULL,
        event TEXT NOT NULL, crc INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE consumers(
        name TEXT PRIMARY KEY, filter TEXT NOT NULL, cursor INTEGER NOT NULL, missed INTEGER NOT NULL,
        seen INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE pending(
        consumer TEXT NOT NULL, seq INTEGER NOT NULL, attempts INTEGER NOT NULL, due INTEGER NOT NULL,
        PRIMARY KEY (consumer, seq)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE dead(
        consumer TEXT NOT NULL, seq INTEGER NOT NULL, attempts INTEGER NOT NULL, reason TEXT NOT NULL,
        at INTEGER NOT NULL, PRIMARY KEY (consumer, seq)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE marks(
        name TEXT PRIMARY KEY, value INTEGER NOT NULL, crc INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
";

/// How far the numbering has come, even where nothing is kept.
const LAST: &str = "last";

/// Which is the oldest that was not removed.
const FIRST: &str = "first";

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("{0}")]
    Sql(#[from] rusqlite::Error),
    #[error("{0}")]
    Log(#[from] io::Error),
    #[error("another program is using the file")]
    InUse,
    #[error("the file is of version {0}; this toolcrib knows version {VERSION} and older")]
    Version(i64),
}

/// Opens the file to change it; makes it where there is none.
pub(crate) fn open(path: &Path, synchronous: Synchronous) -> Result<Connection, OpenError> {
    write_log_again(path)?;
    let mut connection = Connection::open(path)?;
    set_up(&connection)?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    let synchronous = match synchronous {
        Synchronous::Full => "FULL",
        Synchronous::Normal => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    // On macOS only this reaches the disk.
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    // The writer does it itself, so that it hears how it went.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "journal_size_limit", 64 * 1024 * 1024)?;
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    match version {
        0 => {
            let change = connection.transaction()?;
            change.execute_batch(TABLES)?;
            set_mark(&change, FIRST, 1)?;
            change.pragma_update(None, "user_version", VERSION)?;
            change.commit()?;
        }
        VERSION => {}
        later => return Err(OpenError::Version(later)),
    }
    Ok(connection)
}

/// Writes the log that a process before us left once more, as it is, and waits for the disk. A sync that failed
/// may have left pages which are in memory and on no disk, and which no later sync brings there: only what is
/// written again is. Otherwise what is built on them falls with the next power cut.
fn write_log_again(path: &Path) -> io::Result<()> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let mut log = match OpenOptions::new().read(true).write(true).open(Path::new(&log)) {
        Ok(log) => log,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut piece = vec![0; 1 << 20];
    let mut at = 0;
    loop {
        let count = log.read(&mut piece)?;
        if count == 0 {
            break;
        }
        log.seek(io::SeekFrom::Start(at))?;
        log.write_all(&piece[..count])?;
        at += count as u64;
    }
    if 0 < at { log.sync_data() } else { Ok(()) }
}

/// Opens the file to read it.
pub(crate) fn open_to_read(path: &Path) -> Result<Connection, OpenError> {
    let flags =
        rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY | rusqlite::OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    set_up(&connection)?;
    Ok(connection)
}

fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    connection.set_prepared_statement_cache_capacity(32);
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", -2000)
}

/// The place of the last event that ever was, and of the oldest that is kept.
pub(crate) fn ends(connection: &Connection) -> rusqlite::Result<(u64, u64)> {
    // Two questions: asked as one they read the whole table.
    let query = "SELECT (SELECT min(seq) FROM events), (SELECT max(seq) FROM events)";
    let (first, last): (Option<u64>, Option<u64>) =
        connection.prepare_cached(query)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let last = last.unwrap_or_default().max(mark(connection, LAST)?);
    let first = match (first, mark(connection, FIRST)?) {
        (None, _) => last.saturating_add(1),
        // A file of a version that did not keep it, or a mark that is damaged.
        (Some(found), 0) => found,
        // What was never removed and is not there is lost, however the file looks from the front.
        (Some(_), kept) => kept,
    };
    Ok((first, last))
}

/// A number that is kept under a name; 0 where there is none, or it is not what was written.
pub(crate) fn mark(connection: &Connection, name: &str) -> rusqlite::Result<u64> {
    let mut query = connection.prepare_cached("SELECT value, crc FROM marks WHERE name = ?1")?;
    let found: Option<(u64, u32)> =
        query.query_row([name], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    Ok(found.filter(|(value, crc)| mark_crc(name, *value) == *crc).unwrap_or_default().0)
}

fn mark_crc(name: &str, value: u64) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(name.as_bytes()), &value.to_le_bytes())
}

/// What is wrong with everything but the events: what the tables are, and what is kept beside them.
pub(crate) fn faults(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let read = |connection: &Connection| -> rusqlite::Result<Vec<[Option<String>; 4]>> {
        let query = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name";
        let row =
            |row: &rusqlite::Row<'_>| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]);
        connection.prepare(query)?.query_map([], row)?.collect()
    };
    let fresh = Connection::open_in_memory()?;
    fresh.execute_batch(TABLES)?;
    let mut faults = Vec::new();
    if read(connection)? != read(&fresh)? {
        faults.push("the tables are not as they were made".to_owned());
    }
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version != VERSION {
        faults.push(format!("the version is {version} and not {VERSION}"));
    }
    let mut query = connection.prepare("SELECT name, value, crc FROM marks")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let (name, value, crc): (String, u64, u32) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if mark_crc(&name, value) != crc {
            faults.push(format!("the mark `{}` is not as it was written", name.escape_debug()));
        }
    }
    Ok(faults)
}

/// Keeps a number under a name.
pub(crate) fn set_mark(change: &Connection, name: &str, value: u64) -> rusqlite::Result<()> {
    let text = "INSERT INTO marks VALUES (?1, ?2, ?3)
                ON CONFLICT(name) DO UPDATE SET value = excluded.value, crc = excluded.crc";
    change.prepare_cached(text)?.execute(params![name, value, mark_crc(name, value)]).map(drop)
}

/// Keeps how far the numbering has come.
pub(crate) fn set_last(change: &Connection, last: u64) -> rusqlite::Result<()> {
    set_mark(change, LAST, last)
}

/// Appends an event at a place, unless it is there already.
pub(crate) fn append(
    change: &Transaction<'_>,
    event: &Event,
    seq: u64,
) -> rusqlite::Result<Result<Receipt, BusError>> {
    let receipt = |seq, again| Receipt { seq, id: event.id.clone(), again };
    let crc = checksum(seq, &event.id, &event.name, event.at, &event.text);
    let insert = "INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT(id) DO NOTHING";
    let values = params![seq, event.id, event.name, event.at, event.text, crc];
    if change.prepare_cached(insert)?.execute(values)? == 1 {
        return Ok(Ok(receipt(seq, false)));
    }
    let query = "SELECT seq, name, event FROM events WHERE id = ?1";
    let (there, name, text): (u64, String, String) = change
        .prepare_cached(query)?
        .query_row([&event.id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok(if event.says_as(&name, &text) {
        Ok(receipt(there, true))
    } else {
        Err(BusError::IdTaken(event.id.clone()))
    })
}

/// A stretch of the log as it was found.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) records: Vec<Record>,
    /// Places where there should be an event and is none that can be trusted.
    pub(crate) damaged: Vec<RangeInclusive<u64>>,
    /// How far it was looked.
    pub(crate) passed: u64,
}

impl Page {
    fn damage(&mut self, from: u64, to: u64) {
        match self.damaged.last_mut() {
            _ if to < from => {}
            Some(last) if last.end().saturating_add(1) == from => *last = *last.start()..=to,
            _ => self.damaged.push(from..=to),
        }
    }
}

/// Reads so many events behind a place, up to another; fewer where they are large.
pub(crate) fn read(
    connection: &Connection,
    after: u64,
    upto: u64,
    limit: usize,
) -> rusqlite::Result<Page> {
    let query = "SELECT seq, id, name, at, event, crc FROM events WHERE seq > ?1 AND seq <= ?2
                 ORDER BY seq LIMIT ?3";
    let mut query = connection.prepare_cached(query)?;
    let mut rows = query.query(params![after, upto, limit])?;
    let mut page = Page { passed: after, ..Page::default() };
    let (mut found, mut bytes) = (0, 0);
    while let Some(row) = rows.next()? {
        found += 1;
        let seq: u64 = row.get(0)?;
        // They count up by one, so whatever is missing between two was lost.
        page.damage(page.passed.saturating_add(1), seq.saturating_sub(1));
        page.passed = seq;
        match record(row) {
            Some(record) => {
                bytes += record.text.len();
                page.records.push(record);
            }
            None => page.damage(seq, seq),
        }
        if PIECE <= bytes {
            return Ok(page);
        }
    }
    if found < limit {
        page.damage(page.passed.saturating_add(1), upto);
        page.passed = upto.max(page.passed);
    }
    Ok(page)
}

/// Reads so many events behind a place, as the file is at one moment; and says what is kept at all.
pub(crate) fn page(
    connection: &Connection,
    after: u64,
    limit: usize,
) -> rusqlite::Result<(Page, u64)> {
    let moment = connection.unchecked_transaction()?;
    let (first, last) = ends(&moment)?;
    let page = read(&moment, after.max(first.saturating_sub(1)), last, limit)?;
    moment.commit()?;
    Ok((page, first))
}

/// One event.
pub(crate) fn one(connection: &Connection, seq: u64) -> rusqlite::Result<Option<Record>> {
    let query = "SELECT seq, id, name, at, event, crc FROM events WHERE seq = ?1";
    let found =
        connection.prepare_cached(query)?.query_row([seq], |row| Ok(record(row))).optional()?;
    Ok(found.flatten())
}

/// The event of a row, if it is what was written.
fn record(row: &rusqlite::Row<'_>) -> Option<Record> {
    let seq: u64 = row.get(0).ok()?;
    let id: String = row.get(1).ok()?;
    let name: String = row.get(2).ok()?;
    let at: u64 = row.get(3).ok()?;
    let text: String = row.get(4).ok()?;
    let crc: u32 = row.get(5).ok()?;
    (crc == checksum(seq, &id, &name, at, &text)).then_some(Record { seq, name, id, at, text })
}

fn checksum(seq: u64, id: &str, name: &str, at: u64, text: &str) -> u32 {
    let mut crc = crc32c::crc32c(&seq.to_le_bytes());
    for part in [id.as_bytes(), name.as_bytes(), &at.to_le_bytes(), text.as_bytes()] {
        // Its length too: what moves from one part to the next is another row.
        crc = crc32c::crc32c_append(crc, &part.len().to_le_bytes());
        crc = crc32c::crc32c_append(crc, part);
    }
    crc
}

/// More than this are not removed in one go: others wait meanwhile.
const REMOVED: u64 = 20_000;

/// Removes what is older than a time, or too much, up to a place that must stay; returns how many, and whether
/// there is more to remove. Costs as much as it removes, however much there is.
pub(crate) fn retain(
    change: &Transaction<'_>,
    before_ms: u64,
    max_bytes: u64,
    upto: u64,
) -> rusqlite::Result<(usize, bool)> {
    let (first, last) = ends(change)?;
    let cut = too_old(change, before_ms, last)?.max(too_much(change, max_bytes)?).min(upto);
    if cut < first {
        return Ok((0, false));
    }
    let (cut, more) = (cut.min(first + REMOVED), first + REMOVED < cut);
    remove(change, first, last, cut).map(|gone| (gone, more))
}

/// The last of the oldest that are older than a time.
fn too_old(change: &Transaction<'_>, before_ms: u64, last: u64) -> rusqlite::Result<u64> {
    let young = "SELECT seq FROM events WHERE at >= ?1 ORDER BY seq LIMIT 1";
    let young: Option<u64> = change.query_row(young, [before_ms], |row| row.get(0)).optional()?;
    Ok(young.map_or(last, |it| it.saturating_sub(1)))
}

/// The last of the oldest that have to go so that the rest has room.
fn too_much(change: &Transaction<'_>, max_bytes: u64) -> rusqlite::Result<u64> {
    let pragma = |name: &str| change.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
    let used =
        pragma("page_count")?.saturating_sub(pragma("freelist_count")?) * pragma("page_size")?;
    let mut over = used.saturating_sub(max_bytes);
    let mut cut = 0;
    let mut query =
        change.prepare_cached("SELECT seq, octet_length(event) FROM events ORDER BY seq")?;
    let mut rows = query.query([])?;
    while let (true, Some(row)) = (0 < over, rows.next()?) {
        cut = row.get(0)?;
        over = over.saturating_sub(row.get::<_, u64>(1)? + 128);
    }
    Ok(cut)
}

fn remove(change: &Transaction<'_>, first: u64, last: u64, cut: u64) -> rusqlite::Result<usize> {
    set_mark(change, LAST, last)?;
    set_mark(change, FIRST, cut.saturating_add(1))?;
    let counts = "UPDATE consumers SET missed = missed + max(0, ?1 - max(cursor, ?2 - 1))
                  + (SELECT count(*) FROM pending WHERE consumer = consumers.name AND seq <= ?1),
                  cursor = max(cursor, ?1)
                  WHERE cursor < ?1 OR EXISTS (SELECT 1 FROM pending WHERE consumer = name AND seq <= ?1)";
    change.execute(counts, params![cut, first])?;
    change.execute("DELETE FROM pending WHERE seq <= ?1", [cut])?;
    change.execute("DELETE FROM dead WHERE seq <= ?1", [cut])?;
    change.execute("DELETE FROM events WHERE seq <= ?1", [cut])
}

/// Whether an error says that the disk is full, which passes, or that the file cannot be trusted any more
/// until it has been opened anew.
pub(crate) fn is_full(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
}

/// What an error means to somebody who does not know SQLite.
pub(crate) fn said(error: &rusqlite::Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "the disk is full".to_owned(),
        Some(ErrorCode::ReadOnly) => "the file cannot be written".to_owned(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            "the file is damaged; `toolcrib events verify` says where".to_owned()
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program holds the file".to_owned()
        }
        Some(ErrorCode::SystemIoFailure) => format!("the disk failed: {error}"),
        _ => error.to_string(),
    }
}
