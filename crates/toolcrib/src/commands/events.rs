//! `toolcrib events`: a look into the bus.
//!
//! Where a gateway runs, it is asked; where none does, the file is opened here.

use std::{path::Path, process::ExitCode, sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolcrib::{Owner, Remote, Workspace, environment};
use toolcrib_bus::{
    Batch, Bus, BusError, ConsumerName, ConsumerState, DeadLetter, Draft, Filter, Record, Start,
    Verified, now_ms, rfc3339,
};
use toolcrib_sources::mcp::Lists;

use super::{
    Failure,
    reach::{LOOK, Reached},
};
use crate::{
    cli::{EventsCommand, Publish, Tail},
    terminal::{self, BOLD, CYAN, DIM, GREEN, RED, YELLOW, styled},
};

/// How many dead letters are shown.
const MAX_DEAD: usize = 1000;

/// How long what is there may take to come.
const HISTORY: Duration = Duration::from_secs(10);

impl From<BusError> for Failure {
    fn from(error: BusError) -> Self {
        match error {
            BusError::Refused(_) | BusError::TooLarge { .. } => Self::unusable(error.to_string()),
            error => Self::said_no(error.to_string()),
        }
    }
}

pub(crate) async fn run(command: EventsCommand) -> Result<ExitCode, Failure> {
    match command {
        EventsCommand::Tail(asked) => tail(&folder(&asked.workspace)?, &asked).await,
        EventsCommand::Publish(asked) => publish(&folder(&asked.workspace)?, &asked).await,
        EventsCommand::Consumers { name, revive, forget, json, workspace } => {
            let reached = Reached::of(&folder(&workspace)?).await?;
            let done = match name {
                None => list(reached.bus(), json).await,
                Some(name) => one(reached.bus(), &name, revive, forget, json).await,
            };
            reached.close().await;
            done
        }
        EventsCommand::Verify { json, workspace } => verify(&folder(&workspace)?, json),
    }
}

fn folder(path: &Path) -> Result<std::path::PathBuf, Failure> {
    Ok(Workspace::open(path, &environment, Lists::Tools)?.folder)
}

async fn publish(folder: &Path, asked: &Publish) -> Result<ExitCode, Failure> {
    let mut draft = Draft::new(&asked.name, asked.data.as_deref().unwrap_or("null"));
    draft.source = Some("/toolcrib/cli".to_owned());
    (draft.id, draft.subject) = (asked.id.clone(), asked.subject.clone());
    if let Some(id) = &asked.correlation_id {
        draft = draft.with("correlationid", id.as_str());
    }
    let event = draft.event()?;
    let reached = Reached::of(folder).await?;
    let appended = reached.bus().append(event).await;
    reached.close().await;
    let receipt = appended?;
    let text = if asked.json {
        format!(
            "{}\n",
            json!({ "id": receipt.id, "sequence": receipt.seq, "again": receipt.again })
        )
    } else {
        let again = if receipt.again { "; it was there already" } else { "" };
        let name = terminal::clean(&asked.name);
        format!("Event emitted: {name} (id {}, sequence {}{again})\n", receipt.id, receipt.seq)
    };
    terminal::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Shows what there is, and what comes. A gateway that ends is waited for.
async fn tail(folder: &Path, asked: &Tail) -> Result<ExitCode, Failure> {
    let filter = Filter::of(asked.patterns.iter().map(String::as_str))
        .map_err(|error| Failure::unusable(error.to_string()))?;
    let start = match asked.from.as_deref() {
        None => None,
        Some("first") => Some(Start::First),
        Some("new") => Some(Start::New),
        Some(number) => Some(Start::At(number.parse().map_err(|_not_one| {
            Failure::unusable(format!("--from takes first, new or a sequence, not `{number}`"))
        })?)),
    };
    let mut shown = Shown { json: asked.json, left: asked.count, passed: None };
    let reached = Reached::of(folder).await?;
    let last = reached.bus().state().last;
    let start = start.unwrap_or(Start::At((last + 1).saturating_sub(asked.lines)));
    let ours = reached.is_ours();
    // Where nobody else serves, nothing can come: what there is, and no more.
    if ours || asked.no_follow {
        shown.history(reached.bus(), &filter, start, last).await?;
    } else {
        let mut follower = reached.bus().follow(filter.clone(), start).await?;
        while let Ok(batch) = follower.next().await {
            if shown.print(&batch, &filter)? {
                break;
            }
        }
    }
    if shown.left == Some(0) {
        reached.close().await;
        return Ok(ExitCode::SUCCESS);
    }
    shown.passed.get_or_insert(last);
    reached.close().await;
    if asked.no_follow {
        return Ok(ExitCode::SUCCESS);
    }
    if ours {
        terminal::remark("no gateway serves this workspace yet; waiting for one");
    }
    wait_and_follow(folder, &filter, shown).await
}

/// Follows whatever gateway serves the workspace, one after the other. Ends only when enough was shown.
async fn wait_and_follow(
    folder: &Path,
    filter: &Filter,
    mut shown: Shown,
) -> Result<ExitCode, Failure> {
    loop {
        tokio::time::sleep(LOOK).await;
        let Ok(remote) = Remote::connect(Owner::of(folder)).await else { continue };
        let start = Start::At(shown.passed.unwrap_or_default() + 1);
        let Ok(mut follower) = remote.follow(filter.clone(), start).await else { continue };
        while let Ok(batch) = follower.next().await {
            if shown.print(&batch, filter)? {
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
}

/// What has been shown.
struct Shown {
    json: bool,
    left: Option<u64>,
    /// The last place.
    passed: Option<u64>,
}

impl Shown {
    /// Prints what there is up to a place. All of it is looked at, so that there is an end.
    async fn history(
        &mut self,
        bus: &Arc<dyn Bus>,
        filter: &Filter,
        start: Start,
        last: u64,
    ) -> Result<(), Failure> {
        let begins_later = matches!(start, Start::At(seq) if last < seq) || start == Start::New;
        if last == 0 || begins_later {
            return Ok(());
        }
        let mut follower = bus.follow(Filter::all(), start).await?;
        loop {
            let Ok(next) = tokio::time::timeout(HISTORY, follower.next()).await else { break };
            let batch = next?;
            if self.print(&batch, filter)? || last <= batch.passed {
                break;
            }
        }
        Ok(())
    }

    /// Prints events; whether that was enough.
    fn print(&mut self, batch: &Batch, filter: &Filter) -> Result<bool, Failure> {
        if 0 < batch.missed {
            terminal::remark(&format!("{} older events are no longer kept", batch.missed));
        }
        for places in &batch.damaged {
            let (from, to) = (places.start(), places.end());
            terminal::remark(&format!("{from} to {to} are damaged on disk and left out"));
        }
        for record in batch.records.iter().filter(|it| filter.matches(&it.name)) {
            let text = if self.json { format!("{}\n", record.cloud_event()) } else { line(record) };
            terminal::print(&text)?;
            self.passed = Some(record.seq);
            if let Some(left) = &mut self.left {
                *left = left.saturating_sub(1);
                if *left == 0 {
                    return Ok(true);
                }
            }
        }
        Ok(self.left == Some(0))
    }
}

/// An event on one line: when, which, what it is called, what it says.
fn line(record: &Record) -> String {
    let time = record.attribute("time").unwrap_or_default();
    let clock = time.get(11..19).unwrap_or("        ");
    let data = record.data().map(|it| it.get().to_owned()).unwrap_or_default();
    let mut more = String::new();
    for (key, what) in [("subject", "subject"), ("tool", "tool"), ("correlationid", "answers")] {
        if let Some(value) = record.attribute(key) {
            more.push_str(&format!(" {what} {}", terminal::clean(&value)));
        }
    }
    format!(
        "{} {} {}{} {}\n",
        styled(DIM, clock),
        styled(CYAN, &format!("#{}", record.seq)),
        styled(BOLD, &terminal::clean(&record.name)),
        styled(DIM, &more),
        terminal::clean(&data),
    )
}

async fn list(bus: &Arc<dyn Bus>, as_json: bool) -> Result<ExitCode, Failure> {
    let all = bus.consumers().await?;
    if as_json {
        let all: Vec<Value> = all.iter().map(described).collect();
        terminal::print(&format!("{:#}\n", Value::from(all)))?;
        return Ok(ExitCode::SUCCESS);
    }
    if all.is_empty() {
        terminal::print("no consumers\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<[String; 3]> = all
        .iter()
        .map(|it| {
            let asked: Vec<&str> =
                it.filter.asked.iter().map(toolcrib_bus::Pattern::as_str).collect();
            let asked = if asked.is_empty() { "*".to_owned() } else { asked.join(", ") };
            [terminal::clean(&it.name), terminal::clean(&asked), told(it)]
        })
        .collect();
    terminal::print(&terminal::table(["CONSUMER", "EVENTS", "STATE"], &rows))?;
    Ok(ExitCode::SUCCESS)
}

/// How a consumer is, in words.
fn told(state: &ConsumerState) -> String {
    let mut parts = vec![match state.behind {
        0 => styled(GREEN, "up to date"),
        behind => styled(YELLOW, &format!("{behind} behind")),
    }];
    if 0 < state.pending {
        parts.push(format!("{} not settled", state.pending));
    }
    if 0 < state.dead {
        parts.push(styled(RED, &format!("{} dead", state.dead)));
    }
    if 0 < state.missed {
        parts.push(styled(RED, &format!("{} missed", state.missed)));
    }
    parts.push(format!("seen {} ago", age(now_ms().saturating_sub(state.seen))));
    parts.join(", ")
}

fn age(ms: u64) -> String {
    match ms / 1000 {
        seconds @ 0..=119 => format!("{seconds} s"),
        seconds @ 120..=7199 => format!("{} min", seconds / 60),
        seconds @ 7200..=172_799 => format!("{} h", seconds / 3600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

fn described(state: &ConsumerState) -> Value {
    json!({
        "name": state.name, "match": state.filter.asked, "cursor": state.cursor,
        "behind": state.behind, "pending": state.pending, "dead": state.dead,
        "missed": state.missed, "seen": rfc3339(state.seen),
    })
}

/// One consumer: what it gave up, and what is to become of that.
async fn one(
    bus: &Arc<dyn Bus>,
    name: &str,
    revive: bool,
    forget: bool,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    let (owner, short) = ConsumerName::parts(name);
    let consumer = ConsumerName::new(owner, short)
        .map_err(|error| Failure::unusable(format!("`{name}`: {error}")))?;
    let all = bus.consumers().await?;
    if !all.iter().any(|it| it.name == consumer.as_str()) {
        let known: Vec<&str> = all.iter().map(|it| it.name.as_str()).collect();
        let hint = toolcrib_catalogue::nearest(name, known.iter().copied()).map_or_else(
            || format!("there are: {}", known.join(", ")),
            |it| format!("did you mean `{it}`?"),
        );
        return Err(Failure::said_no(format!("there is no consumer `{name}`")).hint(Some(hint)));
    }
    let text = if revive {
        format!("{} delivered again\n", bus.revive(&consumer).await?)
    } else if forget {
        bus.forget(&consumer).await?;
        format!("{} is forgotten\n", terminal::clean(name))
    } else {
        let letters = bus.dead(&consumer, MAX_DEAD).await?;
        if as_json { letters_listed(&letters) } else { letters_shown(&letters) }
    };
    terminal::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn letters_listed(letters: &[DeadLetter]) -> String {
    let one = |it: &DeadLetter| {
        let event =
            it.record.as_ref().and_then(|it| serde_json::from_str::<Value>(&it.cloud_event()).ok());
        json!({
            "sequence": it.seq, "attempts": it.attempts, "reason": it.reason, "time": rfc3339(it.at),
            "event": event,
        })
    };
    format!("{:#}\n", Value::from(letters.iter().map(one).collect::<Vec<_>>()))
}

fn letters_shown(letters: &[DeadLetter]) -> String {
    if letters.is_empty() {
        return "nothing was given up\n".to_owned();
    }
    let one = |it: &DeadLetter| {
        let event = it.record.as_ref().map_or_else(|| "no longer kept\n".to_owned(), |it| line(it));
        let why = terminal::clean(&it.reason);
        format!("{} after {} deliveries: {why}\n   {event}", styled(RED, "dead"), it.attempts)
    };
    letters.iter().map(one).collect()
}

fn verify(folder: &Path, as_json: bool) -> Result<ExitCode, Failure> {
    let file = folder.join(".toolcrib").join("events.db");
    if !file.is_file() {
        let text = if as_json { "{\"events\":0,\"good\":true}\n" } else { "there are no events\n" };
        terminal::print(text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let found = Verified::of(&file)?;
    let places: Vec<String> = found
        .damaged
        .iter()
        .map(|it| {
            if it.start() == it.end() {
                it.start().to_string()
            } else {
                format!("{}-{}", it.start(), it.end())
            }
        })
        .collect();
    let text = if as_json {
        let report = json!({
            "good": found.is_good(), "events": found.events, "first": found.first,
            "last": found.last, "damaged": places, "faults": found.faults,
        });
        format!("{report:#}\n")
    } else {
        let range = if found.events == 0 {
            String::new()
        } else {
            format!(", {} to {}", found.first, found.last)
        };
        let mut text = format!("{} events as they were written{range}\n", found.events);
        for place in &places {
            text.push_str(&format!("{} {place}\n", styled(RED, "damaged")));
        }
        for fault in &found.faults {
            text.push_str(&format!("{} {}\n", styled(RED, "fault"), terminal::clean(fault)));
        }
        text
    };
    terminal::print(&text)?;
    Ok(if found.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
