//! What pins cost, in CPU time: the hash of a typical definition, a verdict, a file of 1,000 tools.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark speaks on stdout")]

use std::{hint::black_box, sync::Arc, time::Duration};

use rustix::time::{ClockId, clock_gettime};
use toolcrib_catalogue::{
    Json, Origin, Tool,
    lock::{Lock, Now, Pinned, Place, ToolHash, Verdict, compare, hash},
};

const TOOLS: u32 = 1000;
const ROUNDS: usize = 15;

fn main() {
    let place = Place::of(&Origin::Upstream("mail".to_owned()));
    let tools: Vec<Arc<Tool>> = (0..TOOLS).map(tool).collect();
    let hashes: Vec<ToolHash> = tools.iter().map(|it| hash(it)).collect();
    let mut lock = Lock::default();
    lock.pin(place.clone(), None, tools.iter().map(|it| &**it));
    let text = lock.write();
    let pinned = Pinned::new(&lock);
    println!(
        "a definition of {} bytes, {TOOLS} tools, {} bytes of lock",
        tools[0].raw.as_bytes().len(),
        text.len()
    );
    measure("hash of one definition", TOOLS, || {
        assert!(tools.iter().zip(&hashes).all(|(tool, before)| hash(black_box(tool)) == *before));
    });
    measure("verdict on one tool (goal: 1 µs)", TOOLS, || {
        for (tool, hash) in tools.iter().zip(&hashes) {
            assert_eq!(pinned.verdict(&place, &tool.name, hash), Verdict::Same);
        }
    });
    measure("read the file", 1, || assert_eq!(black_box(Lock::read(&text)).1, []));
    measure("write the file", 1, || drop(black_box(lock.write())));
    measure("compare all tools", 1, || {
        let now = [Now { place: place.clone(), way: None, tools: Some(&tools) }];
        assert_eq!(compare(&lock, &now), []);
    });
}

fn tool(number: u32) -> Arc<Tool> {
    let raw = serde_json::json!({
        "name": format!("send_mail_{number}"),
        "title": "Send mail",
        "description": "Sends a mail to the people you name.\n\nArgs:\n  to: who gets it\n  subject: one line\n  body: the text",
        "inputSchema": {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "required": ["to", "subject", "body"],
            "additionalProperties": false,
            "properties": {
                "to": { "type": "array", "items": { "type": "string", "format": "email" }, "description": "Who gets it" },
                "subject": { "type": "string", "maxLength": 200, "description": "One line" },
                "body": { "type": "string", "description": "The text, in \"plain\" words" },
                "priority": { "type": "integer", "minimum": 1, "maximum": 5, "default": 3 }
            }
        },
        "annotations": { "readOnlyHint": false, "destructiveHint": false, "openWorldHint": true }
    });
    Arc::new(Tool::read(Json::of(&raw).unwrap()).unwrap())
}

fn measure(what: &str, times: u32, mut run: impl FnMut()) {
    let mut rounds: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let begin = cpu_time();
            run();
            (cpu_time() - begin) / times
        })
        .collect();
    rounds.sort();
    println!("{what}: median {:.2?}, worst {:.2?}", rounds[ROUNDS / 2], rounds[ROUNDS - 1]);
}

fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap())
}
