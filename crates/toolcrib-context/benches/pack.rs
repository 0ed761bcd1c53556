//! What a build costs, in CPU time.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark speaks on stdout")]

use std::{hint::black_box, time::Duration};

use rustix::time::{ClockId, clock_gettime};
use toolcrib_context::{ContextItem, ContextManager, Counter, ItemKind, ManagerOptions, Phase};

const ROUNDS: usize = 15;

fn main() {
    for (count, goal) in [(100, "-"), (1000, "5 ms"), (10_000, "50 ms")] {
        let begin = cpu_time();
        let manager = filled(session(count), Counter::Heuristic);
        let ingest = cpu_time() - begin;
        let query = "what is the status of the invoice for the customer";
        let mut times = median(|| manager.build_sync(Phase::Answer, query).unwrap());
        times.sort();
        let pack = manager.build_sync(Phase::Answer, query).unwrap();
        println!(
            "build over {count} items: median {:.2?}, worst {:.2?} of CPU time (goal: {goal}); {} in, {:?} out; ingest {ingest:.2?}",
            times[ROUNDS / 2],
            times[ROUNDS - 1],
            pack.stats.included_count,
            pack.stats.dropped_reasons,
        );
    }
    for (name, items) in odd_sessions() {
        let manager = filled(items, Counter::Heuristic);
        let times = median(|| manager.build_sync(Phase::Answer, "word1 word2").unwrap());
        println!("build over 10,000 items, {name}: median {:.2?}", times[ROUNDS / 2]);
    }
    let text: String = session(1000).into_iter().map(|it| it.text + "\n").collect();
    for counter in Counter::ALL {
        let begin = cpu_time();
        counter.count("wake up");
        let first = cpu_time() - begin;
        let times = median(|| counter.count(&text));
        let tokens = counter.count(&text);
        println!(
            "{counter}: first use {first:.2?}, {tokens} tokens of {} bytes in {:.2?}",
            text.len(),
            times[ROUNDS / 2]
        );
    }
}

fn median<T>(mut work: impl FnMut() -> T) -> Vec<Duration> {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let begin = cpu_time();
            black_box(work());
            cpu_time() - begin
        })
        .collect();
    times.sort();
    times
}

fn filled(items: Vec<ContextItem>, counter: Counter) -> ContextManager {
    let mut manager = ContextManager::with(ManagerOptions { counter, ..ManagerOptions::default() });
    for item in items {
        manager.ingest(item).unwrap();
    }
    manager
}

/// Questions, calls, results and answers, some of them again and again, in words as common as words are.
fn session(count: usize) -> Vec<ContextItem> {
    let mut random = Random(42);
    let mut items: Vec<ContextItem> = Vec::with_capacity(count);
    while items.len() < count {
        let at = items.len();
        let (kind, length) = match at % 4 {
            0 => (ItemKind::UserTurn, 12),
            1 => (ItemKind::ToolCall, 8),
            2 => (ItemKind::ToolResult, 60),
            _ => (ItemKind::AgentMsg, 30),
        };
        let again = 4 < at && random.below(10) == 0;
        let text = if again { items[at - 4].text.clone() } else { text(&mut random, length) };
        let parent = (!at.is_multiple_of(4)).then(|| items[at - 1].id.clone());
        items.push(ContextItem {
            parent_id: parent,
            ..ContextItem::new(format!("i{at}"), kind, text)
        });
    }
    items
}

/// Sessions that nobody has, but somebody may make.
fn odd_sessions() -> Vec<(&'static str, Vec<ContextItem>)> {
    let items = |make: &dyn Fn(usize) -> ContextItem| (0..10_000).map(make).collect();
    let chained = |at: usize| ContextItem {
        parent_id: at.checked_sub(1).map(|it| format!("i{it}")),
        ..ContextItem::new(format!("i{at}"), ItemKind::AgentMsg, format!("step{at} of a chain"))
    };
    let results = |at: usize| {
        let kind = if at == 0 { ItemKind::ToolCall } else { ItemKind::ToolResult };
        let parent_id = (at != 0).then(|| "i0".to_owned());
        ContextItem { parent_id, ..ContextItem::new(format!("i{at}"), kind, format!("result{at}")) }
    };
    let equal =
        |at: usize| ContextItem::new(format!("i{at}"), ItemKind::UserTurn, "one and the same text");
    // Few words, and no two texts with the same ones: nothing is rare.
    let few_words = |at: usize| {
        let words: Vec<String> =
            (0..14).filter(|it| at >> it & 1 == 1).map(|it| format!("word{it}")).collect();
        ContextItem::new(format!("i{at}"), ItemKind::DocSnippet, words.join(" "))
    };
    vec![
        ("one chain", items(&chained)),
        ("results of one call", items(&results)),
        ("all equal", items(&equal)),
        ("of few words", items(&few_words)),
    ]
}

fn text(random: &mut Random, length: usize) -> String {
    let mut text = String::new();
    for _ in 0..length / 2 + random.below(length) {
        // The square makes low numbers, and so some words, far commoner than others.
        let word = random.below(70) * random.below(70);
        text.push_str(&format!("word{word} "));
    }
    text
}

/// The same numbers on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap())
}
