//! What the bus costs, beside what the same disk and the same SQLite do without it: ratios in one run, in rounds
//! that take turns.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark speaks on stdout")]

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use toolcrib_bus::{Bus, Draft, Embedded, Filter, Settings, Start};

const ROUNDS: usize = 10;
const CALLERS: usize = 64;
const EVENTS: usize = 64 * 60;
const RECORD: usize = 512;

fn main() {
    let folder =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("bus-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        appends(&folder).await;
        latency(&folder).await;
        replay(&folder).await;
    });
    fs::remove_dir_all(&folder).unwrap();
}

/// An event whose envelope has as many bytes as the records it is compared with.
fn event(n: usize) -> toolcrib_bus::Event {
    let empty = Draft::new("bench.event", "\"\"").event().unwrap().text().len();
    let fill = "x".repeat(RECORD - empty - 8);
    Draft::new("bench.event", format!("\"{n:08}{fill}\"")).event().unwrap()
}

/// Durable appends of 64 callers, beside batches of 64 records that one writer writes and syncs.
async fn appends(folder: &Path) {
    let (mut ratios, mut ours, mut raws) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let raw = || raw_writes(&folder.join(format!("raw-{round}")));
        let path = folder.join(format!("append-{round}.db"));
        // Which comes first takes turns.
        let (own, raw) = if round % 2 == 0 {
            (bus_appends(&path).await, raw())
        } else {
            let raw = raw();
            (bus_appends(&path).await, raw)
        };
        ratios.push(own / raw);
        ours.push(own);
        raws.push(raw);
    }
    println!(
        "durable appends, {CALLERS} callers: {:.0}/s; raw batches of 64 with fdatasync: {:.0}/s; ratio {} (goal 0.8)",
        median(&mut ours),
        median(&mut raws),
        spread(&mut ratios),
    );
}

fn raw_writes(path: &Path) -> f64 {
    let mut file = File::create(path).unwrap();
    let batch = vec![b'x'; RECORD * CALLERS];
    let begin = Instant::now();
    for _ in 0..EVENTS / CALLERS {
        file.write_all(&batch).unwrap();
        file.sync_data().unwrap();
    }
    EVENTS as f64 / begin.elapsed().as_secs_f64()
}

async fn bus_appends(path: &Path) -> f64 {
    let bus = Arc::new(Embedded::open(path, Settings::default()).unwrap());
    // The first transaction of a file makes its log.
    bus.append(event(0)).await.unwrap();
    let mut events: Vec<_> = (0..EVENTS).map(event).collect();
    let begin = Instant::now();
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..CALLERS {
        let bus = Arc::clone(&bus);
        // What it costs to write an envelope is not what it costs to append it.
        let events = events.split_off(events.len() - EVENTS / CALLERS);
        callers.spawn(async move {
            for event in events {
                bus.append(event).await.unwrap();
            }
        });
    }
    while callers.join_next().await.is_some() {}
    let rate = EVENTS as f64 / begin.elapsed().as_secs_f64();
    bus.close().await;
    rate
}

/// From the answer to an append to the event at somebody who waits for it, alone and among a thousand.
async fn latency(folder: &Path) {
    for followers in [1, 1000] {
        let bus = Arc::new(
            Embedded::open(&folder.join(format!("latency-{followers}.db")), Settings::default())
                .unwrap(),
        );
        let begin = Instant::now();
        let (seen, sum) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let mut tasks = tokio::task::JoinSet::new();
        let rounds = if followers == 1 { 300 } else { 40 };
        for _ in 0..followers {
            let mut follower = bus.follow(Filter::all(), Start::New).await.unwrap();
            let (seen, sum) = (Arc::clone(&seen), Arc::clone(&sum));
            tasks.spawn(async move {
                for _ in 0..rounds {
                    follower.next().await.unwrap();
                    let at = u64::try_from(begin.elapsed().as_nanos()).unwrap();
                    sum.fetch_max(at, Ordering::Relaxed);
                    seen.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut times = Vec::new();
        for round in 0..rounds {
            bus.append(event(round)).await.unwrap();
            let answered = begin.elapsed().as_nanos() as f64;
            let all = (followers * (round + 1)) as u64;
            while seen.load(Ordering::Relaxed) < all {
                tokio::task::yield_now().await;
            }
            let last = sum.load(Ordering::Relaxed) as f64;
            times.push((last - answered).max(0.0) / 1e3);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        while tasks.join_next().await.is_some() {}
        println!(
            "a committed event at the last of {followers} followers: p50 {:.0} µs after the append was answered{}",
            median(&mut times),
            if followers == 1 { " (goal 1000)" } else { "" }
        );
        bus.close().await;
    }
}

/// All events from the first on through the port, beside plain SQL that reads the same rows.
async fn replay(folder: &Path) {
    let path = folder.join("replay.db");
    let bus = Arc::new(Embedded::open(&path, Settings::default()).unwrap());
    let count = 100_000;
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..256 {
        let bus = Arc::clone(&bus);
        callers.spawn(async move {
            for n in (caller..count).step_by(256) {
                bus.append(event(n)).await.unwrap();
            }
        });
    }
    while callers.join_next().await.is_some() {}
    bus.close().await;
    let (mut ratios, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        // Opened anew, so that nothing of it is in memory.
        let bus = Embedded::open(&path, Settings::default()).unwrap();
        let begin = Instant::now();
        let mut follower = bus.follow(Filter::all(), Start::First).await.unwrap();
        let mut read = 0;
        while read < count {
            read += follower.next().await.unwrap().records.len();
        }
        let own = begin.elapsed().as_secs_f64();
        bus.close().await;
        let sql = plain_sql(&path, count);
        ratios.push(sql / own);
        ours.push(count as f64 / own);
    }
    println!(
        "replay of {count} events: {:.0}/s; beside plain SQL {} (goal 0.5)",
        median(&mut ours),
        spread(&mut ratios)
    );
}

fn plain_sql(path: &Path, count: usize) -> f64 {
    let connection = rusqlite::Connection::open(path).unwrap();
    let begin = Instant::now();
    let mut query =
        connection.prepare("SELECT seq, id, name, at, event FROM events ORDER BY seq").unwrap();
    let mut rows = query.query([]).unwrap();
    let mut read = 0;
    while let Some(row) = rows.next().unwrap() {
        let row: (i64, String, String, i64, String) = (
            row.get(0).unwrap(),
            row.get(1).unwrap(),
            row.get(2).unwrap(),
            row.get(3).unwrap(),
            row.get(4).unwrap(),
        );
        assert!(!row.4.is_empty());
        read += 1;
    }
    assert_eq!(read, count);
    begin.elapsed().as_secs_f64()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn spread(values: &mut [f64]) -> String {
    let middle = median(values);
    format!("{middle:.2} ({:.2} to {:.2})", values[0], values[values.len() - 1])
}
