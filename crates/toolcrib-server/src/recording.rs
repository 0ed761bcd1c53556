//! Recording what clients call, as session lines that can be packed afterwards. Secrets are masked before anything is
//! written: configured values, what looks like a token, and what stands under a name that sounds secret.
//!
//! A call waits for none of this: what is to be recorded goes into a queue as it is, and is read, masked and
//! written elsewhere. Where more comes than can be written, the rest is dropped and counted, and the log says so.

use std::{
    borrow::Cow,
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolcrib_bus::{now_ms, rfc3339};
use toolcrib_context::{ContextItem, Recorder, write_line};
use toolcrib_wire::{json::member, text::Masker};

use crate::{access::Caller, gateway::Gateway};

/// How many lines may wait to be written, and how large they may be together.
const QUEUE: usize = 1024;
const WAITING: usize = 64 * 1024 * 1024;

/// How much of a text is recorded.
const MOST_TEXT: usize = 256 * 1024;

/// How much of a name is.
const MOST_NAME: usize = 200;

/// The largest value that is looked into.
const MOST_READ: usize = 4 * 1024 * 1024;

/// Where lines go.
#[derive(Debug)]
pub(crate) struct Recording {
    lines: mpsc::Sender<Line>,
    masker: Arc<ArcSwap<Masker>>,
    /// Makes marks of callers say nothing to others.
    salt: [u8; 32],
    lost: AtomicU64,
    waiting: Arc<AtomicUsize>,
}

/// Something that happened.
struct Line {
    client: String,
    /// The call.
    id: String,
    tool: String,
    at: u64,
    what: What,
}

enum What {
    Call { arguments: Bytes, group: Arc<str> },
    Result { result: Bytes, took: u64 },
    Nothing { cause: String, took: u64 },
}

/// A call that is being recorded.
#[derive(Debug)]
pub(crate) struct Call {
    recording: Arc<Recording>,
    client: String,
    pub(crate) id: String,
    tool: String,
    begin: u64,
    ended: AtomicBool,
}

impl Recording {
    /// Records until the last call has ended.
    pub(crate) fn start(gateway: &Gateway, recorder: Recorder, masker: Masker) -> Arc<Self> {
        let (lines, mut coming) = mpsc::channel::<Line>(QUEUE);
        let mut salt = [0; 32];
        // Without it marks are merely guessable, by whoever can read the files anyway.
        getrandom::fill(&mut salt).ok();
        let recorder = Arc::new(Mutex::new(recorder));
        let masker = Arc::new(ArcSwap::from_pointee(masker));
        let waiting = Arc::new(AtomicUsize::new(0));
        let (begin, known, load) = (stamp(), Arc::clone(&masker), Arc::clone(&waiting));
        gateway.tasks.spawn(async move {
            let mut batch = Vec::new();
            while 0 < coming.recv_many(&mut batch, 64).await {
                let (recorder, lines) = (Arc::clone(&recorder), std::mem::take(&mut batch));
                let (begin, masker) = (begin.clone(), known.load_full());
                let size: usize = lines.iter().map(Line::size).sum();
                let write = move || write(&mut recorder.lock(), &begin, &lines, &masker);
                if let Ok(Err(error)) = tokio::task::spawn_blocking(write).await {
                    tracing::warn!(%error, "calls could not be recorded");
                }
                load.fetch_sub(size, Ordering::Relaxed);
            }
        });
        Arc::new(Self { lines, masker, salt, lost: AtomicU64::new(0), waiting })
    }

    /// Takes these secrets out too from now on.
    pub(crate) fn set_masker(&self, masker: &Masker) {
        self.masker.rcu(|known| Masker::clone(known).and(masker.clone()));
    }

    /// A call begins.
    pub(crate) fn call(
        self: &Arc<Self>,
        caller: &Caller,
        visit: Option<u64>,
        tool: &str,
        params: &Bytes,
        id: &str,
    ) -> Call {
        let client = match visit {
            Some(key) => format!("{}-{key}", caller.group),
            None => format!("{}-{}", caller.group, caller.mark(&self.salt)),
        };
        let id = id.to_owned();
        let tool = tool.chars().take(MOST_NAME).collect();
        let (recording, ended) = (Arc::clone(self), AtomicBool::new(false));
        let call = Call { recording, client, id, tool, begin: now_ms(), ended };
        let arguments = member(params, "arguments");
        let arguments = arguments.map_or(Bytes::from_static(b"{}"), |at| params.slice(at));
        call.put(What::Call { arguments, group: Arc::clone(&caller.group) });
        call
    }

    fn put(&self, line: Line) {
        let size = line.size();
        let full = WAITING < self.waiting.fetch_add(size, Ordering::Relaxed) + size;
        if full || self.lines.try_send(line).is_err() {
            self.waiting.fetch_sub(size, Ordering::Relaxed);
            let lost = self.lost.fetch_add(1, Ordering::Relaxed) + 1;
            if lost.is_power_of_two() {
                tracing::warn!(lost, "calls come faster than they can be recorded");
            }
        }
    }
}

impl Call {
    /// It brought a result.
    pub(crate) fn ended(&self, result: &Bytes) {
        self.ended.store(true, Ordering::Relaxed);
        self.put(What::Result { result: result.clone(), took: self.took() });
    }

    /// It brought none.
    pub(crate) fn failed(&self, cause: &str) {
        self.ended.store(true, Ordering::Relaxed);
        self.put(What::Nothing { cause: cause.to_owned(), took: self.took() });
    }

    fn took(&self) -> u64 {
        now_ms().saturating_sub(self.begin)
    }

    fn put(&self, what: What) {
        let (client, id, tool) = (self.client.clone(), self.id.clone(), self.tool.clone());
        self.recording.put(Line { client, id, tool, at: now_ms(), what });
    }
}

impl Drop for Call {
    /// A call that is taken back has a result too: packs keep the two together.
    fn drop(&mut self) {
        if !self.ended.load(Ordering::Relaxed) {
            self.failed("the call was cancelled");
        }
    }
}

impl Line {
    /// What it takes while it waits.
    fn size(&self) -> usize {
        let what = match &self.what {
            What::Call { arguments: bytes, .. } | What::Result { result: bytes, .. } => bytes.len(),
            What::Nothing { cause, .. } => cause.len(),
        };
        what + self.tool.len() + 256
    }

    /// As it is written, without secrets.
    fn item(&self, masker: &Masker) -> ContextItem {
        let tool = masker.mask(&self.tool);
        let about = |failed: bool, took: u64| {
            let about = [
                ("tool_name", json!(tool)),
                ("is_error", json!(failed)),
                ("duration_ms", json!(took)),
            ];
            about.map(|(key, value)| (key.to_owned(), value))
        };
        let id = format!("{}-result", self.id);
        let mut item = match &self.what {
            What::Call { arguments, group } => {
                let mut item = ContextItem::tool_call(&self.id, &tool, masked(arguments, masker));
                item.metadata.insert("group".to_owned(), group.to_string().into());
                item
            }
            What::Result { result, took } => {
                let (text, failed) = told(result, masker);
                let mut item = ContextItem::tool_result(id, &self.id, text);
                item.metadata.extend(about(failed, *took));
                item
            }
            What::Nothing { cause, took } => {
                let mut item = ContextItem::tool_result(id, &self.id, cause.as_str());
                item.metadata.extend(about(true, *took));
                item
            }
        };
        item.text = shortened(&item.text, masker);
        item.at(rfc3339(self.at))
    }
}

/// Writes lines, each client's to its own file. What goes wrong with one does not keep the others.
fn write(
    recorder: &mut Recorder,
    stamp: &str,
    lines: &[Line],
    masker: &Masker,
) -> std::io::Result<()> {
    let mut first_error = Ok(());
    for lines in lines.chunk_by(|one, other| one.client == other.client) {
        let mut text = Vec::new();
        let mut written = Ok(());
        for line in lines {
            written = written.and_then(|()| write_line(&mut text, &line.item(masker)));
        }
        let written = written.and_then(|()| recorder.write(&lines[0].client, stamp, &text));
        first_error = first_error.and(written);
    }
    first_error
}

/// `20260131T120000Z`.
fn stamp() -> String {
    let now = rfc3339(now_ms());
    let plain: String = now.chars().filter(char::is_ascii_alphanumeric).collect();
    plain.get(..15).unwrap_or_default().to_owned() + "Z"
}

/// A value without secrets. One that is too large is not looked into.
fn masked(raw: &[u8], masker: &Masker) -> Value {
    if MOST_TEXT < raw.len() {
        return json!({ "(bytes)": raw.len() });
    }
    let text = String::from_utf8_lossy(raw);
    serde_json::from_str(&masker.mask_json(&text)).unwrap_or_default()
}

/// What a result says, and whether it says that it failed.
fn told(result: &[u8], masker: &Masker) -> (String, bool) {
    let mut text = String::new();
    if MOST_READ < result.len() {
        write!(text, "(a result of {} bytes)", result.len()).ok();
        return (text, false);
    }
    let value: Value = serde_json::from_slice(result).unwrap_or_default();
    for part in value["content"].as_array().into_iter().flatten() {
        say(&mut text, part, masker);
    }
    let structure = &value["structuredContent"];
    if text.is_empty() && !structure.is_null() {
        text = masker.mask_json(&structure.to_string()).into_owned();
    }
    (text, value["isError"] == true)
}

fn shortened(text: &str, masker: &Masker) -> String {
    let masked = masker.mask(text);
    if masked.len() <= MOST_TEXT {
        return masked.into_owned();
    }
    let (begin, rest) = masked.split_at(masked.floor_char_boundary(MOST_TEXT));
    format!("{begin}… ({} more bytes were not recorded)", rest.len())
}

/// Adds what a part of a result says.
fn say(text: &mut String, part: &Value, masker: &Masker) {
    let said: Cow<'_, str> = match part["type"].as_str().unwrap_or_default() {
        "text" => part["text"].as_str().unwrap_or_default().into(),
        "resource" if part["resource"]["text"].is_string() => {
            part["resource"]["text"].as_str().unwrap_or_default().into()
        }
        "resource_link" => format!("[{}]", part["uri"].as_str().unwrap_or_default()).into(),
        kind => {
            let media = part["mimeType"].as_str().unwrap_or_default();
            format!("[{kind} {media}]").replace(" ]", "]").into()
        }
    };
    if !text.is_empty() {
        text.push('\n');
    }
    // Much of what is said as text is JSON, in which names say what is secret.
    if said.trim_start().starts_with(['{', '[']) {
        text.push_str(&masker.mask_json(&said));
    } else {
        text.push_str(&said);
    }
}
