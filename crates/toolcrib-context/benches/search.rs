//! What it costs to index 100,000 tools, to search them, and to add one, in CPU time.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark speaks on stdout")]

use std::{fmt::Write, sync::Arc, time::Duration};

use rustix::time::{ClockId, clock_gettime};
use toolcrib_context::search::{Document, Index};

// As in the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TOOLS: usize = 100_000;
const SERVERS: u64 = 1000;
const ROUNDS: usize = 10;
const QUERIES: usize = 500;

/// Words that tools are really made of come first, and often; the rest are made up.
const COMMON: &str = "get list create update delete search find user file message issue project data query \
    send read write repository event name status report account team document page channel image customer \
    order payment invoice table record key value branch commit comment log metric alert dashboard task time \
    date text email calendar contact token secret deploy service cluster pod volume bucket region instance";

fn main() {
    let words = vocabulary();
    let mut dice = Dice(7);
    let tools: Vec<Made> = (0..TOOLS).map(|at| Made::new(at, &words, &mut dice)).collect();
    let mut builds: Vec<Duration> = Vec::new();
    let mut index = Index::default();
    for _ in 0..ROUNDS {
        index = Index::default();
        let begin = cpu_time();
        for tool in &tools {
            index.set(Arc::clone(&tool.key), &tool.document());
        }
        builds.push(cpu_time() - begin);
    }
    assert_eq!(index.len(), TOOLS);
    tell("index 100,000 tools", &mut builds, "1 s");
    println!("resident afterwards: {} MB", resident() / 1_000_000);

    let mut plain: Vec<Duration> = Vec::new();
    let mut slips: Vec<Duration> = Vec::new();
    for _ in 0..QUERIES {
        let query = dice.query(&words);
        plain.push(time(|| assert!(index.search(&query, 5).len() <= 5)));
        let slip = format!("{query} dashbaord qwzzkjh");
        slips.push(time(|| assert!(index.search(&slip, 5).len() <= 5)));
    }
    tell("search", &mut plain, "1 ms");
    tell("search with slips of the pen", &mut slips, "1 ms");

    let mut adds: Vec<Duration> = Vec::new();
    let mut replaces: Vec<Duration> = Vec::new();
    let mut removes: Vec<Duration> = Vec::new();
    for at in 0..QUERIES {
        let new = Made::new(TOOLS + at, &words, &mut dice);
        adds.push(time(|| index.set(Arc::clone(&new.key), &new.document())));
        let old = &tools[at * 193 % TOOLS];
        replaces.push(time(|| index.set(Arc::clone(&old.key), &new.document())));
        removes.push(time(|| assert!(index.remove(&old.key))));
    }
    tell("add one", &mut adds, "100 µs");
    tell("replace one", &mut replaces, "100 µs");
    tell("remove one", &mut removes, "100 µs");
}

fn time(what: impl FnOnce()) -> Duration {
    let begin = cpu_time();
    what();
    cpu_time() - begin
}

fn tell(what: &str, times: &mut [Duration], goal: &str) {
    times.sort();
    let at = |share: usize| times[(times.len() - 1) * share / 100];
    println!(
        "{what}: median {:.1?}, p95 {:.1?}, worst {:.1?} of CPU time (goal: {goal})",
        at(50),
        at(95),
        at(100)
    );
}

/// A tool, made up.
struct Made {
    key: Arc<str>,
    name: String,
    server: String,
    description: String,
    schema: String,
}

impl Made {
    fn new(at: usize, words: &[String], dice: &mut Dice) -> Self {
        let name = format!("{}_{}", dice.word(words), dice.word(words));
        let server = format!("{}-{}", words[dice.below(60)], dice.below(SERVERS));
        let length = 6 + dice.below(14);
        let description: Vec<&str> = (0..length).map(|_| dice.word(words)).collect();
        let mut schema = String::from(r#"{"type":"object","properties":{"#);
        for number in 0..1 + dice.below(4) {
            let (name, about) = (dice.word(words), [dice.word(words), dice.word(words)].join(" "));
            let comma = if number == 0 { "" } else { "," };
            write!(schema, r#"{comma}"{name}":{{"type":"string","description":"The {about}"}}"#)
                .unwrap();
        }
        schema.push_str("}}");
        Self {
            key: format!("mcp__{server}__{name}_{at}").into(),
            name,
            server,
            description: description.join(" "),
            schema,
        }
    }

    fn document(&self) -> Document<'_> {
        Document {
            name: &self.name,
            description: &self.description,
            server: &self.server,
            schema: Some(&self.schema),
            ..Document::default()
        }
    }
}

fn vocabulary() -> Vec<String> {
    let mut words: Vec<String> = COMMON.split_whitespace().map(str::to_owned).collect();
    let mut dice = Dice(3);
    let syllables =
        ["ba", "cor", "di", "fen", "gu", "hal", "jo", "kir", "lem", "mo", "nar", "pi", "ros", "tu"];
    while words.len() < 20_000 {
        let length = 2 + dice.below(3);
        words.push((0..length).map(|_| syllables[dice.below(syllables.len() as u64)]).collect());
    }
    words
}

/// Numbers that are the same in every run (splitmix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut it = self.0;
        it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        it ^ (it >> 31)
    }

    fn below(&mut self, end: u64) -> usize {
        usize::try_from(self.next() % end).unwrap()
    }

    /// Words are as frequent as in texts: the hundredth a hundredth as frequent as the first.
    fn word<'a>(&mut self, words: &'a [String]) -> &'a str {
        #[expect(clippy::cast_precision_loss, reason = "53 bits are enough to roll a dice")]
        let share = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        #[expect(clippy::cast_precision_loss, reason = "twenty thousand is little")]
        let rank = (words.len() as f64).powf(share) - 1.0;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a rank")]
        let rank = rank as usize;
        &words[rank.min(words.len() - 1)]
    }

    fn query(&mut self, words: &[String]) -> String {
        let length = 3 + self.below(5);
        let said: Vec<&str> = (0..length).map(|_| self.word(words)).collect();
        said.join(" the ")
    }
}

/// How much memory the process has, where that can be told.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|it| it.parse::<usize>().ok()).unwrap_or_default() * 4096
}

fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap())
}
