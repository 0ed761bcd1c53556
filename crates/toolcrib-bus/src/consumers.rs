//! Durable consumers. One is a cursor, before which everything was delivered or not asked for, and the
//! few events that were delivered and are not settled.

use std::{sync::Arc, time::Duration};

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::{
    BusError, ConsumerName, ConsumerState, DeadLetter, Delivery, Filter, Outcome, Settled, Start,
    Wish, event::now_ms, store,
};

/// More consumers than this are not made, for all and for one owner.
const MAX_CONSUMERS: u64 = 10_000;
const MAX_OF_ONE: u64 = 1000;

/// More events than this are not out with one consumer at a time.
const MAX_PENDING: usize = 1000;

/// A time by the wall's clock, in the column where times by the writer's stand: a delay that was asked for outlives
/// a restart, while whoever had fetched something does not.
const WALL: u64 = 1 << 60;

/// More bytes of dead letters than this are not shown.
const MAX_SHOWN: usize = 8 << 20;

/// So many are read at a time.
const PAGE: usize = 100;

/// So many events are looked at in one go; whoever asks for few among many asks again.
const LOOKED_AT: usize = 2000;

/// A consumer that only looks is noted as often as this.
const SEEN_MS: u64 = 3_600_000;

/// The longest reason.
const MAX_REASON: usize = 500;

/// A consumer, as it is on disk.
struct Consumer {
    filter: Filter,
    cursor: u64,
}

/// What a consumer gets, and when to look again where that is nothing.
#[derive(Debug, Default)]
pub(crate) struct Fetched {
    pub(crate) deliveries: Vec<Delivery>,
    /// There is more to look at.
    pub(crate) more: bool,
    /// When the next that is out comes back, by the writer's clock.
    pub(crate) due: Option<u64>,
    /// Up to where was looked.
    pub(crate) cursor: u64,
}

/// Takes a consumer's next events: those that come again first.
pub(crate) fn fetch(
    change: &Transaction<'_>,
    wish: &Wish,
    clock: u64,
) -> rusqlite::Result<Result<Fetched, BusError>> {
    let consumer = match ensure(change, wish)? {
        Ok(consumer) => consumer,
        Err(error) => return Ok(Err(error)),
    };
    let name = wish.consumer.as_str();
    let due = clock + u64::try_from(wish.patience.as_millis()).unwrap_or(u64::MAX / 4);
    let mut fetched = Fetched { cursor: consumer.cursor, ..Fetched::default() };
    again(change, wish, clock, due, &mut fetched)?;
    let out: usize = change
        .prepare_cached("SELECT count(*) FROM pending WHERE consumer = ?1")?
        .query_row([name], |row| row.get(0))?;
    let room =
        wish.max.saturating_sub(fetched.deliveries.len()).min(MAX_PENDING.saturating_sub(out));
    if 0 < room {
        fresh(change, wish, &consumer, due, room, &mut fetched)?;
    } else {
        // Too much is out: only what is settled or due makes room, not what comes.
        fetched.cursor = u64::MAX;
    }
    if fetched.deliveries.is_empty() {
        let next =
            "SELECT min(iif(due < ?2, due, due - ?2 - ?3 + ?4)) FROM pending WHERE consumer = ?1";
        let times = params![name, WALL, now_ms(), clock];
        let due: Option<i64> = change.prepare_cached(next)?.query_row(times, |row| row.get(0))?;
        fetched.due = due.map(|it| u64::try_from(it).unwrap_or_default());
    }
    Ok(Ok(fetched))
}

/// Finds the consumer, or makes it.
fn ensure(change: &Transaction<'_>, wish: &Wish) -> rusqlite::Result<Result<Consumer, BusError>> {
    let name = wish.consumer.as_str();
    let query = "SELECT filter, cursor, seen FROM consumers WHERE name = ?1";
    let found: Option<(String, u64, u64)> = change
        .prepare_cached(query)?
        .query_row([name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let written = |filter: &Filter| serde_json::to_string(filter).unwrap_or_default();
    let Some((text, cursor, seen)) = found else {
        if let Some(full) = too_many(change, &wish.consumer)? {
            return Ok(Err(BusError::Refused(full)));
        }
        let (first, last) = store::ends(change)?;
        let cursor = match wish.start {
            Start::First => first.saturating_sub(1),
            Start::At(seq) => seq.saturating_sub(1).max(first.saturating_sub(1)).min(last),
            Start::New => last,
        };
        let filter = wish.filter.clone().unwrap_or_default();
        let insert = "INSERT INTO consumers VALUES (?1, ?2, ?3, 0, ?4)";
        change.execute(insert, params![name, written(&filter), cursor, now_ms()])?;
        return Ok(Ok(Consumer { filter, cursor }));
    };
    if seen + SEEN_MS < now_ms() {
        let update = "UPDATE consumers SET seen = ?2 WHERE name = ?1";
        change.prepare_cached(update)?.execute(params![name, now_ms()])?;
    }
    let stored: Filter = serde_json::from_str(&text).unwrap_or_default();
    let filter = match &wish.filter {
        Some(filter) if *filter != stored => {
            let update = "UPDATE consumers SET filter = ?2 WHERE name = ?1";
            change.prepare_cached(update)?.execute(params![name, written(filter)])?;
            filter.clone()
        }
        _ => stored,
    };
    Ok(Ok(Consumer { filter, cursor }))
}

/// Why no further consumer is made; nothing where one is.
fn too_many(change: &Transaction<'_>, consumer: &ConsumerName) -> rusqlite::Result<Option<String>> {
    let owner = format!("{}/", ConsumerName::parts(consumer.as_str()).0);
    let query =
        "SELECT count(*), coalesce(sum(substr(name, 1, length(?1)) = ?1), 0) FROM consumers";
    let (all, own): (u64, u64) =
        change.query_row(query, [owner], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let most = if MAX_OF_ONE <= own { MAX_OF_ONE } else { MAX_CONSUMERS };
    let full = MAX_OF_ONE <= own || MAX_CONSUMERS <= all;
    Ok(full.then(|| format!("there are {most} consumers already: remove those that nobody uses")))
}

/// What was delivered, was not settled, and is due.
fn again(
    change: &Transaction<'_>,
    wish: &Wish,
    clock: u64,
    due: u64,
    fetched: &mut Fetched,
) -> rusqlite::Result<()> {
    let name = wish.consumer.as_str();
    let query = "SELECT seq, attempts FROM pending WHERE consumer = ?1
                 AND (due <= ?2 OR due BETWEEN ?4 AND ?5) ORDER BY seq LIMIT ?3";
    let late: Vec<(u64, u32)> = change
        .prepare_cached(query)?
        .query_map(params![name, clock, wish.max, WALL, WALL + now_ms()], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?
        .collect::<rusqlite::Result<_>>()?;
    for (seq, attempts) in late {
        if wish.attempts <= attempts {
            let reason = format!("not settled after {attempts} deliveries");
            bury(change, name, seq, attempts, &reason)?;
            continue;
        }
        let Some(record) = store::one(change, seq)? else {
            bury(change, name, seq, attempts, "damaged on disk")?;
            continue;
        };
        let update = "UPDATE pending SET attempts = ?3, due = ?4 WHERE consumer = ?1 AND seq = ?2";
        change.prepare_cached(update)?.execute(params![name, seq, attempts + 1, due])?;
        fetched.deliveries.push(Delivery { record: Arc::new(record), attempt: attempts + 1 });
    }
    Ok(())
}

/// What has not been delivered yet.
fn fresh(
    change: &Transaction<'_>,
    wish: &Wish,
    consumer: &Consumer,
    due: u64,
    room: usize,
    fetched: &mut Fetched,
) -> rusqlite::Result<()> {
    let name = wish.consumer.as_str();
    let (_, last) = store::ends(change)?;
    let (mut cursor, mut taken, mut looked) = (consumer.cursor, 0, 0);
    let insert = "INSERT OR IGNORE INTO pending VALUES (?1, ?2, 1, ?3)";
    while cursor < last && taken < room && looked < LOOKED_AT {
        let page = store::read(change, cursor, last, PAGE)?;
        cursor = page.passed;
        looked += page.records.len().max(1);
        for record in page.records {
            if !consumer.filter.matches(&record.name) || !wish.allows(&record.name) {
                continue;
            }
            if taken == room {
                cursor = record.seq - 1;
                break;
            }
            taken += 1;
            change.prepare_cached(insert)?.execute(params![name, record.seq, due])?;
            fetched.deliveries.push(Delivery { record: Arc::new(record), attempt: 1 });
        }
        for places in page.damaged.iter().filter(|it| *it.end() <= cursor) {
            let (from, to) = (*places.start(), *places.end());
            bury(change, name, from, 0, &format!("damaged on disk: {from} to {to}"))?;
        }
    }
    if cursor != consumer.cursor {
        let update = "UPDATE consumers SET cursor = ?2, seen = ?3 WHERE name = ?1";
        change.prepare_cached(update)?.execute(params![name, cursor, now_ms()])?;
    }
    fetched.cursor = cursor;
    fetched.more = cursor < last;
    Ok(())
}

fn bury(
    change: &Connection,
    name: &str,
    seq: u64,
    attempts: u32,
    reason: &str,
) -> rusqlite::Result<()> {
    let reason: String = reason.chars().take(MAX_REASON).collect();
    change
        .prepare_cached("DELETE FROM pending WHERE consumer = ?1 AND seq = ?2")?
        .execute(params![name, seq])?;
    change
        .prepare_cached("INSERT OR REPLACE INTO dead VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![name, seq, attempts, reason, now_ms()])
        .map(drop)
}

/// Notes what became of deliveries.
pub(crate) fn settle(
    change: &Transaction<'_>,
    consumer: &ConsumerName,
    outcomes: &[(u64, Outcome)],
    clock: u64,
) -> rusqlite::Result<Settled> {
    let name = consumer.as_str();
    let mut settled = Settled::default();
    let later = |delay: &Duration| match u64::try_from(delay.as_millis()) {
        Ok(0) => clock,
        delay => WALL + now_ms() + delay.unwrap_or(WALL / 2).min(WALL / 2),
    };
    for (seq, outcome) in outcomes {
        if i64::try_from(*seq).is_err() {
            settled.unknown.push(*seq);
            continue;
        }
        let key = params![name, seq];
        let count = match outcome {
            Outcome::Done => change
                .prepare_cached("DELETE FROM pending WHERE consumer = ?1 AND seq = ?2")?
                .execute(key)?,
            Outcome::Again(delay) => {
                let update = "UPDATE pending SET due = ?3 WHERE consumer = ?1 AND seq = ?2";
                change.prepare_cached(update)?.execute(params![name, seq, later(delay)])?
            }
            Outcome::Unseen => {
                let update = "UPDATE pending SET due = 0, attempts = max(0, attempts - 1)
                              WHERE consumer = ?1 AND seq = ?2";
                change.prepare_cached(update)?.execute(key)?
            }
            Outcome::Dead(reason) => {
                let query = "SELECT attempts FROM pending WHERE consumer = ?1 AND seq = ?2";
                let found =
                    change.prepare_cached(query)?.query_row(key, |row| row.get(0)).optional()?;
                if let Some(attempts) = found {
                    bury(change, name, *seq, attempts, reason)?;
                }
                usize::from(found.is_some())
            }
        };
        if 0 < count {
            settled.settled.push(*seq);
        } else {
            settled.unknown.push(*seq);
        }
    }
    if !settled.settled.is_empty() {
        let update = "UPDATE consumers SET seen = ?2 WHERE name = ?1";
        change.prepare_cached(update)?.execute(params![name, now_ms()])?;
    }
    Ok(settled)
}

/// All consumers.
pub(crate) fn all(connection: &Connection) -> rusqlite::Result<Vec<ConsumerState>> {
    let (_, last) = store::ends(connection)?;
    let query = "SELECT name, filter, cursor, missed, seen,
                 (SELECT count(*) FROM pending WHERE consumer = name),
                 (SELECT count(*) FROM dead WHERE consumer = name) FROM consumers ORDER BY name";
    let mut query = connection.prepare_cached(query)?;
    let state = |row: &rusqlite::Row<'_>| {
        let filter: String = row.get(1)?;
        let cursor: u64 = row.get(2)?;
        Ok(ConsumerState {
            name: row.get(0)?,
            filter: serde_json::from_str(&filter).unwrap_or_default(),
            cursor,
            behind: last.saturating_sub(cursor),
            missed: row.get(3)?,
            seen: row.get(4)?,
            pending: row.get(5)?,
            dead: row.get(6)?,
        })
    };
    query.query_map([], state)?.collect()
}

/// What a consumer could not deal with.
pub(crate) fn dead(
    connection: &Connection,
    consumer: &ConsumerName,
    limit: usize,
) -> rusqlite::Result<Vec<DeadLetter>> {
    let query =
        "SELECT seq, attempts, reason, at FROM dead WHERE consumer = ?1 ORDER BY seq LIMIT ?2";
    let mut query = connection.prepare_cached(query)?;
    let mut rows = query.query(params![consumer.as_str(), limit])?;
    let mut letters = Vec::new();
    let mut bytes = 0;
    while let (true, Some(row)) = (bytes < MAX_SHOWN, rows.next()?) {
        let seq = row.get(0)?;
        let record = store::one(connection, seq)?.map(Arc::new);
        bytes += record.as_ref().map_or(0, |it| it.text.len());
        let (attempts, reason, at) = (row.get(1)?, row.get(2)?, row.get(3)?);
        letters.push(DeadLetter { record, seq, attempts, reason, at });
    }
    Ok(letters)
}

/// Delivers what was given up again.
pub(crate) fn revive(change: &Transaction<'_>, consumer: &ConsumerName) -> rusqlite::Result<usize> {
    let name = consumer.as_str();
    let insert = "INSERT OR IGNORE INTO pending SELECT consumer, seq, 0, 0 FROM dead
                  WHERE consumer = ?1 AND EXISTS (SELECT 1 FROM events WHERE events.seq = dead.seq)";
    let count = change.execute(insert, [name])?;
    change.execute("DELETE FROM dead WHERE consumer = ?1", [name])?;
    Ok(count)
}

/// Removes a consumer.
pub(crate) fn forget(change: &Transaction<'_>, consumer: &ConsumerName) -> rusqlite::Result<bool> {
    let name = consumer.as_str();
    change.execute("DELETE FROM pending WHERE consumer = ?1", [name])?;
    change.execute("DELETE FROM dead WHERE consumer = ?1", [name])?;
    Ok(0 < change.execute("DELETE FROM consumers WHERE name = ?1", [name])?)
}

/// Removes consumers that have not been heard of since a time.
pub(crate) fn forget_idle(change: &Transaction<'_>, before_ms: u64) -> rusqlite::Result<usize> {
    let idle = "SELECT name FROM consumers WHERE seen < ?1";
    for table in ["pending", "dead"] {
        change.execute(&format!("DELETE FROM {table} WHERE consumer IN ({idle})"), [before_ms])?;
    }
    change.execute("DELETE FROM consumers WHERE seen < ?1", [before_ms])
}

/// Whoever had fetched something is gone: it can be had again. A delay that was asked for stays.
pub(crate) fn give_all_back(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute("UPDATE pending SET due = 0 WHERE due < ?1", [WALL]).map(drop)
}
