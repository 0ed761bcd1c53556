//! A program that writes events and says of each when it is safe, for tests that kill it, trace it, or
//! take its disk away.

use std::{
    collections::HashMap,
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use toolcrib_bus::{Bus, Draft, Embedded, Filter, Settings, Start, Synchronous, Verified};

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let text: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match text.as_slice() {
        ["append", folder, count, flags @ ..] => append(folder, count, flags).await,
        ["read", folder] => read(folder, false).await,
        ["read", folder, "--digest"] => read(folder, true).await,
        ["verify", folder] => verify(folder),
        ["flips", folder, count, seed] => flips(folder, count, seed).await,
        _ => {
            say(
                "append DIR COUNT [--callers N] [--size B] [--checkpoint N] [--synchronous normal] [--early] | read DIR [--digest] | verify DIR | flips DIR COUNT SEED",
            );
            ExitCode::from(2)
        }
    }
}

/// One line, with one write.
fn say(text: &str) {
    std::io::stdout().write_all(format!("{text}\n").as_bytes()).ok();
}

fn file(folder: &str) -> PathBuf {
    Path::new(folder).join("events.db")
}

fn flag(flags: &[&str], name: &str) -> Option<usize> {
    let at = flags.iter().position(|it| *it == name)?;
    flags.get(at + 1)?.parse().ok()
}

async fn append(folder: &str, count: &str, flags: &[&str]) -> ExitCode {
    let count: usize = count.parse().unwrap_or_default();
    let callers = flag(flags, "--callers").unwrap_or(1);
    let size = flag(flags, "--size").unwrap_or(200);
    let mut settings = Settings::default();
    if let Some(pages) = flag(flags, "--checkpoint") {
        settings.checkpoint = u32::try_from(pages).unwrap_or(u32::MAX);
    }
    if flags.contains(&"--synchronous") {
        settings.synchronous = Synchronous::Normal;
    }
    let early = flags.contains(&"--early");
    let bus = match Embedded::open(&file(folder), settings) {
        Ok(bus) => Arc::new(bus),
        Err(error) => {
            say(&format!("cannot open: {error}"));
            return ExitCode::from(4);
        }
    };
    let mut tasks = tokio::task::JoinSet::new();
    for caller in 0..callers {
        let bus = Arc::clone(&bus);
        tasks.spawn(async move {
            for n in (caller..count).step_by(callers) {
                one(&*bus, n, size, early).await;
            }
        });
    }
    while tasks.join_next().await.is_some() {}
    bus.close().await;
    say("done");
    ExitCode::SUCCESS
}

async fn one(bus: &dyn Bus, n: usize, size: usize, early: bool) {
    let data = format!(r#"{{"n":{n},"fill":"{}"}}"#, "x".repeat(size));
    let Ok(event) = Draft::new("probe.event", data).event() else { return };
    let id = event.id().to_owned();
    if early {
        say(&format!("acked ? {id}"));
    }
    match bus.append(event).await {
        Ok(receipt) if !early => say(&format!("acked {} {id}", receipt.seq)),
        Ok(_) => {}
        Err(error) => {
            say(&format!("failed {error}"));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

async fn read(folder: &str, digest: bool) -> ExitCode {
    let begin = Instant::now();
    let bus = match Embedded::open(&file(folder), Settings::default()) {
        Ok(bus) => bus,
        Err(error) => {
            say(&format!("cannot open: {error}"));
            return ExitCode::from(4);
        }
    };
    let opened = begin.elapsed();
    let last = bus.state().last;
    let mut damaged = false;
    let mut text = String::new();
    if 0 < last {
        let Ok(mut follower) = bus.follow(Filter::all(), Start::First).await else {
            return ExitCode::from(4);
        };
        loop {
            match follower.next().await {
                Ok(batch) => {
                    for record in &batch.records {
                        let digest = if digest { digest_of(&record.text) } else { String::new() };
                        text.push_str(&format!("event {} {}{digest}\n", record.seq, record.id));
                    }
                    for places in &batch.damaged {
                        text.push_str(&format!("damaged {places:?}\n"));
                        damaged = true;
                    }
                    if last <= batch.passed {
                        break;
                    }
                }
                Err(error) => {
                    text.push_str(&format!("damaged {error}\n"));
                    damaged = true;
                    break;
                }
            }
        }
    }
    say(&format!("{text}opened in {} ms", opened.as_millis()));
    bus.close().await;
    if damaged { ExitCode::from(3) } else { ExitCode::SUCCESS }
}

/// What an event says, in short.
fn digest_of(text: &str) -> String {
    let add = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!(" {:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, add))
}

fn verify(folder: &str) -> ExitCode {
    match Verified::of(&file(folder)) {
        Ok(found) if found.is_good() => {
            say(&format!("good: {} events", found.events));
            ExitCode::SUCCESS
        }
        Ok(found) => {
            say(&format!("damaged {:?} {:?}", found.damaged, found.faults));
            ExitCode::from(3)
        }
        Err(error) => {
            say(&format!("cannot open: {error}"));
            ExitCode::from(4)
        }
    }
}

/// Turns one bit at a time in a copy of a store that was closed, and reads it: nothing may come out that
/// never went in, and what is missing must be found by `verify`.
async fn flips(folder: &str, count: &str, seed: &str) -> ExitCode {
    let count: usize = count.parse().unwrap_or_default();
    let mut random: u64 = seed.parse::<u64>().unwrap_or_default() | 1;
    let Ok(good) = std::fs::read(file(folder)) else { return ExitCode::from(4) };
    let Ok(written) = everything(&file(folder)).await else { return ExitCode::from(4) };
    let copy = Path::new(folder).join("flipped");
    let (mut wrong, mut unseen, mut hurt) = (0, 0, 0);
    for _ in 0..count {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let bit = usize::try_from(random).unwrap_or_default() % (good.len() * 8);
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        std::fs::remove_dir_all(&copy).ok();
        if std::fs::create_dir(&copy)
            .and_then(|()| std::fs::write(copy.join("events.db"), bad))
            .is_err()
        {
            return ExitCode::from(4);
        }
        // Looked at before it is opened to be written, as somebody would who doubts it.
        let found = Verified::of(&copy.join("events.db")).is_ok_and(|it| it.is_good());
        let read = everything(&copy.join("events.db")).await.unwrap_or_default();
        wrong += read.iter().filter(|(seq, text)| written.get(seq) != Some(text)).count();
        if read.len() < written.len() {
            hurt += 1;
            unseen += usize::from(found);
        }
    }
    std::fs::remove_dir_all(&copy).ok();
    say(&format!("flips {count} hurt {hurt} unseen {unseen} wrong {wrong}"));
    if wrong + unseen == 0 { ExitCode::SUCCESS } else { ExitCode::from(3) }
}

/// All events of a file.
async fn everything(path: &Path) -> Result<HashMap<u64, String>, toolcrib_bus::BusError> {
    let bus = Embedded::open(path, Settings::default())?;
    let last = bus.state().last;
    let mut found = HashMap::new();
    let mut follower = bus.follow(Filter::all(), Start::First).await?;
    let mut passed = 0;
    while passed < last {
        let Ok(Ok(batch)) = tokio::time::timeout(Duration::from_secs(5), follower.next()).await
        else {
            break;
        };
        passed = batch.passed;
        found.extend(batch.records.iter().map(|it| (it.seq, it.cloud_event())));
    }
    bus.close().await;
    Ok(found)
}
