//! What it costs to keep and to read large results: time, and how much the process grows.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark speaks on stdout")]

use std::{
    fs,
    io::{Read, Write},
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};
use toolcrib_context::artifacts::{
    Artifact, Limits, New, ReadLimits, Selector, Store, describe, unescape_json_string,
};

const SIZE: usize = 100 << 20;

/// How much the process may grow, whatever is stored and read.
const MAX_GROWTH: u64 = 64 << 20;

fn main() {
    let folder = std::env::temp_dir().join(format!("toolcrib-artifacts-{}", std::process::id()));
    let (store, _) = Store::open(&folder, Limits::default()).unwrap();
    let before = resident();
    println!("resident at the beginning: {} kB", before / 1024);
    let json = step("store 100 MB of JSON as it comes", || put(&store, "application/json", json()));
    let text = step("store 100 MB of text as it comes", || put(&store, "text/plain", lines()));
    let table = step("store 100 MB of CSV as it comes", || put(&store, "text/csv", cells()));
    let string = escaped();
    let held = resident();
    let unescaped = step("store a JSON string of 100 MB without its escapes", || {
        let mut writer = store.begin(new("text/plain")).unwrap();
        unescape_json_string(&string, &mut writer).unwrap();
        writer.finish().unwrap()
    });
    let own = resident().saturating_sub(held);
    drop(string);
    println!("   and {} kB more than the string itself", own / 1024);
    let asked = [
        (&json, "path=$.rows[700000].name"),
        (&json, "path=$.rows[-1].id"),
        (&json, "path=$.rows[?@.id == 700000].name"),
        (&json, "path=$.rows[0:900000:100000].id"),
        (&json, "rows=700000:700010&path=$.rows"),
        (&json, "keys=$"),
        (&json, "sum=id&count=&path=$.rows"),
        (&json, "grep=row 700000\\b"),
        (&text, "lines=1000000:1000020"),
        (&text, "lines=-20:"),
        (&text, "grep=line 999999 "),
        (&table, "rows=1000000:1000010"),
        (&table, "count=&sum=price&group_by=city"),
        (&unescaped, "tail=200"),
    ];
    for (artifact, query) in asked {
        let selector = Selector::from_query(query).unwrap();
        step(&format!("read {query}"), || {
            store.read(artifact, &selector, &ReadLimits::default()).unwrap()
        });
    }
    for artifact in [&json, &text, &table] {
        let shape = step(&format!("describe {}", artifact.media_type), || {
            describe(&mut store.content(artifact).unwrap(), &artifact.media_type).unwrap()
        });
        println!("   {}", shape.line());
    }
    small(&store);
    fs::remove_dir_all(&folder).unwrap();
}

/// What many small ones cost.
fn small(store: &Store) {
    let mut times: Vec<Duration> = (0..100)
        .map(|_| {
            let begin = Instant::now();
            store.put(new("text/plain"), &[b'x'; 20_000]).unwrap();
            begin.elapsed()
        })
        .collect();
    times.sort();
    println!("store 20 kB, synced: median {:?}, of 100 the 90th {:?}", times[50], times[90]);
}

fn new(media_type: &str) -> New {
    New { owner: "bench".to_owned(), media_type: media_type.to_owned(), ..New::default() }
}

fn put(store: &Store, media_type: &str, pieces: impl Iterator<Item = String>) -> Artifact {
    let mut writer = store.begin(new(media_type)).unwrap();
    for piece in pieces {
        writer.write_all(piece.as_bytes()).unwrap();
    }
    writer.finish().unwrap()
}

fn json() -> impl Iterator<Item = String> {
    let row = |it: usize| {
        let comma = if it == 0 { "" } else { "," };
        format!(
            "{comma}\n{{\"id\": {it}, \"name\": \"row {it}\", \"city\": \"Berlin\", \"tags\": [\"a\", \"b\", null], \"price\": {it}.50}}"
        )
    };
    let rows = (0..SIZE / 105).map(row);
    ["{\"total\": 1, \"rows\": [".to_owned()].into_iter().chain(rows).chain(["]}".to_owned()])
}

fn lines() -> impl Iterator<Item = String> {
    (0..SIZE / 72)
        .map(|it| format!("line {it:>9} with some words that say nothing in particular at all.\n"))
}

fn cells() -> impl Iterator<Item = String> {
    let row = |it: usize| {
        format!(
            "{it},\"a name, quoted {it}\",{},{}.25,some more words here\n",
            ["Berlin", "Paris", "Rome"][it % 3],
            it % 1000
        )
    };
    ["id,name,city,price,note\n".to_owned()].into_iter().chain((0..SIZE / 66).map(row))
}

fn escaped() -> Vec<u8> {
    let piece = b"some words \\\"quoted\\\" and a line\\n \\u00e4 ";
    piece.iter().copied().cycle().take(SIZE / piece.len() * piece.len()).collect()
}

fn step<T>(what: &str, run: impl FnOnce() -> T) -> T {
    let (cpu, wall, before) = (cpu_time(), Instant::now(), resident());
    let fresh = reset_peak();
    let done = run();
    // Where the kernel does not forget the old peak, what is left at the end has to do.
    let grown = if fresh { peak() } else { resident() }.saturating_sub(before);
    let (cpu, wall) = ((cpu_time() - cpu).as_millis(), wall.elapsed().as_millis());
    println!("{what}: {cpu} ms CPU, {wall} ms in all, grows by {} kB at most", grown / 1024);
    assert!(grown <= MAX_GROWTH, "that is more than {MAX_GROWTH}");
    done
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

/// The largest that the process was counts from here on.
fn reset_peak() -> bool {
    fs::write("/proc/self/clear_refs", "5").is_ok()
}

fn resident() -> u64 {
    status("VmRSS:")
}

fn peak() -> u64 {
    status("VmHWM:")
}

fn status(name: &str) -> u64 {
    let mut text = String::new();
    fs::File::open("/proc/self/status").unwrap().read_to_string(&mut text).unwrap();
    let line = text.lines().find_map(|it| it.strip_prefix(name)).unwrap();
    1024 * line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
}
