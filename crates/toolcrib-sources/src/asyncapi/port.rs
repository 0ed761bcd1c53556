//! Event tools, seen through the port of the catalogue: a call appends an event, and may wait for its reply.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwap;
use serde_json::{Value, json};
use tokio::sync::watch;
use toolcrib_bus::{Bus, BusError, Draft, Filter, Follow, Receipt, Record, Start};
use toolcrib_catalogue::{
    BoxFuture, CallContext, CallError, Emits, Json, Offers, Problem, Source, SourceState, Tool,
    Validator,
};
use toolcrib_wire::json::member;

use super::{Care, EventTool, Fingerprint, Loaded, files::documents, fingerprint, load_with};

/// The tools in a workspace's `events/`.
#[derive(Debug)]
pub struct EventSource {
    workspace: PathBuf,
    /// Where events go, or why they cannot.
    bus: Result<Arc<dyn Bus>, String>,
    listed: ArcSwap<Listed>,
    version: watch::Sender<u64>,
}

/// What was found when the files were last read.
#[derive(Debug, Default)]
struct Listed {
    tools: Arc<[Arc<Tool>]>,
    by_name: HashMap<String, Arc<Known>>,
    emits: Arc<[Emits]>,
    problems: Vec<Problem>,
    referenced: Vec<PathBuf>,
}

/// A tool, and what its replies are held against.
#[derive(Debug)]
struct Known {
    tool: Arc<EventTool>,
    replies: Option<Validator>,
}

impl EventSource {
    /// Reads the files of a workspace. Takes its time.
    pub fn load(workspace: &Path, bus: Result<Arc<dyn Bus>, String>, care: Care) -> Arc<Self> {
        let listed = ArcSwap::from_pointee(Listed::of(load_with(workspace, care)));
        let version = watch::Sender::new(1);
        Arc::new(Self { workspace: workspace.to_owned(), bus, listed, version })
    }

    /// Whether there is anything to read.
    pub fn is_needed(workspace: &Path) -> bool {
        let (paths, problems) = documents(workspace);
        !paths.is_empty() || !problems.is_empty()
    }

    /// Reads the files again: first what tools are made of, so that nobody waits for the rest.
    pub(super) fn reload(&self) {
        for care in [Care::Tools, Care::Official] {
            let mut loaded = load_with(&self.workspace, care);
            // Of a file that is broken just now, the tools stay as they were: whoever edits it goes on in a
            // moment, and those who read its events are not to miss any.
            let before = self.listed.load();
            let broken = |it: &&Arc<Known>| loaded.broken.contains(&it.tool.file);
            let kept: Vec<_> =
                before.by_name.values().filter(broken).map(|it| Arc::clone(&it.tool)).collect();
            loaded.tools.extend(kept);
            loaded.tools.sort_by(|a, b| (&a.file, &a.name).cmp(&(&b.file, &b.name)));
            self.take(Listed::of(loaded));
        }
    }

    fn take(&self, listed: Listed) {
        let before = self.listed.load();
        let same = before.tools == listed.tools
            && before.problems == listed.problems
            && before.emits == listed.emits;
        self.listed.store(Arc::new(listed));
        if !same {
            self.version.send_modify(|it| *it += 1);
        }
    }

    /// How the files look just now.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        fingerprint(&self.workspace, &self.listed.load().referenced)
    }

    pub(super) fn workspace(&self) -> &Path {
        &self.workspace
    }

    async fn call(&self, params: &Json, context: &CallContext) -> Result<Json, CallError> {
        let text = params.as_bytes();
        let name: Option<String> =
            member(text, "name").and_then(|at| serde_json::from_slice(&text[at]).ok());
        let name = name.unwrap_or_default();
        let known = self.listed.load().by_name.get(&name).cloned();
        let Some(known) = known else {
            let message = format!("Unknown tool: {}", name.escape_debug());
            return Err(CallError::Rpc { code: -32602, message, data: None });
        };
        let arguments = member(text, "arguments").map(|at| &text[at]);
        let arguments = arguments.filter(|it| it.first() == Some(&b'{')).unwrap_or(b"{}");
        let arguments = Json::from_scanned(bytes::Bytes::copy_from_slice(arguments));
        let emitted = match known.tool.emission(&arguments) {
            Ok(emission) => {
                let mut draft = Draft::new(emission.name, emission.data.as_str());
                draft.source = Some(format!("/tools/{}", known.tool.name));
                draft.group = context.group.as_deref().map(str::to_owned);
                draft.id = context.once.as_deref().map(str::to_owned);
                draft = draft.with("tool", known.tool.name.as_str());
                if let Some(headers) = emission.headers {
                    draft = draft.with("messageheaders", headers.as_str());
                }
                self.emit(&known, with_trace(draft, text), context).await
            }
            Err(faults) => Err(faults),
        };
        Ok(emitted.unwrap_or_else(|cause| failure(&cause)))
    }

    async fn emit(
        &self,
        known: &Known,
        draft: Draft,
        context: &CallContext,
    ) -> Result<Json, String> {
        let bus =
            self.bus.as_ref().map_err(|cause| format!("The event was not emitted: {cause}"))?;
        let not = |error: BusError| format!("The event was not emitted: {error}");
        let event = draft.event().map_err(not)?;
        let name = event.name().to_owned();
        let reply = known.tool.reply.as_ref().and_then(|it| Some((it, it.wait?)));
        let Some((reply, wait)) = reply else {
            return Ok(emitted(&name, &bus.append(event).await.map_err(not)?));
        };
        let wait = context.attempt.map_or(wait, |it| it.min(wait));
        // Before the event is there: whoever answers may be quick.
        let filter = match reply.pattern() {
            Some(pattern) => Filter::of([pattern.as_str()]).map_err(|error| error.to_string())?,
            None => Filter::all(),
        };
        let follower = bus.follow(filter.clone(), Start::New).await.map_err(not)?;
        let receipt = bus.append(event).await.map_err(not)?;
        // What was sent before may have been answered before.
        let follower = match receipt.again {
            true => bus.follow(filter, Start::At(receipt.seq)).await.map_err(not)?,
            false => follower,
        };
        match tokio::time::timeout(wait, answer_to(follower, &receipt.id)).await {
            Ok(Ok(record)) => replied(&name, &receipt, &record, known.replies.as_ref()),
            Ok(Err(error)) => Err(unanswered(&name, &receipt, &error.to_string())),
            Err(_) => {
                let cause = format!("nobody answered within {}", shown(wait));
                Err(unanswered(&name, &receipt, &cause))
            }
        }
    }
}

impl Listed {
    fn of(loaded: Loaded) -> Self {
        let tools: Arc<[Arc<Tool>]> = loaded.tools.iter().filter_map(|it| definition(it)).collect();
        let emits = loaded.tools.iter().flat_map(|it| {
            let names = [Some(it.pattern()), it.reply.as_ref().and_then(super::Reply::pattern)];
            let tool = it.name.clone();
            names.into_iter().flatten().map(move |pattern| Emits { tool: tool.clone(), pattern })
        });
        let emits = emits.collect();
        let known = |tool: Arc<EventTool>| {
            let schema = tool.reply.as_ref().and_then(|it| it.schema.as_ref());
            let replies = schema.and_then(|it| Validator::new(&Json::of(it).ok()?).ok());
            (tool.name.clone(), Arc::new(Known { tool, replies }))
        };
        let by_name = loaded.tools.into_iter().map(known).collect();
        let (problems, referenced) = (loaded.problems, loaded.referenced);
        Self { tools, by_name, emits, problems, referenced }
    }
}

/// A tool as MCP describes it.
fn definition(tool: &EventTool) -> Option<Arc<Tool>> {
    let mut definition = json!({
        "name": tool.name, "description": tool.description, "inputSchema": tool.input_schema,
        "annotations": { "readOnlyHint": false, "destructiveHint": false, "idempotentHint": false },
    });
    let reply = tool.reply.as_ref().filter(|it| it.wait.is_some());
    if let Some(schema) = reply.and_then(|it| it.schema.as_ref()) {
        definition["outputSchema"] = schema.clone();
    }
    Tool::read(Json::of(&definition).ok()?).ok().map(Arc::new)
}

/// The trace that the call belongs to goes on with the event.
fn with_trace(mut draft: Draft, params: &[u8]) -> Draft {
    let Some(meta) = member(params, "_meta").map(|at| &params[at]) else { return draft };
    for key in ["traceparent", "tracestate"] {
        let text =
            member(meta, key).and_then(|at| serde_json::from_slice::<String>(&meta[at]).ok());
        if let Some(text) = text {
            draft = draft.with(key, text);
        }
    }
    draft
}

/// Waits for the event that answers another.
async fn answer_to(mut follower: Box<dyn Follow>, id: &str) -> Result<Arc<Record>, BusError> {
    loop {
        let batch = follower.next().await?;
        // Cheap, and rarely wrong; then the envelope itself is asked.
        let mut hits = batch.records.into_iter().filter(|it| it.text.contains(id));
        if let Some(found) = hits.find(|it| it.attribute("correlationid").as_deref() == Some(id)) {
            return Ok(found);
        }
    }
}

fn emitted(name: &str, receipt: &Receipt) -> Json {
    let Receipt { id, seq, .. } = receipt;
    result(&json!({
        "content": [text(&format!("Event emitted: {name} (id {id}, sequence {seq})"))],
        "structuredContent": { "event": name, "id": id, "sequence": seq },
        "isError": false,
    }))
}

fn replied(
    name: &str,
    receipt: &Receipt,
    record: &Record,
    schema: Option<&Validator>,
) -> Result<Json, String> {
    let data =
        record.data().ok_or_else(|| unanswered(name, receipt, "the reply cannot be read"))?;
    let value: Value = serde_json::from_str(data.get()).unwrap_or_default();
    let faults = schema.map(|it| it.faults(&value)).unwrap_or_default();
    if !faults.is_empty() {
        let cause = format!(
            "the reply (id {}) is not as its schema says: {}. It says: {}",
            record.id,
            faults.join("; "),
            data.get()
        );
        return Err(unanswered(name, receipt, &cause));
    }
    let Receipt { id, seq, .. } = receipt;
    let said = format!(
        "Event emitted: {name} (id {id}, sequence {seq}), answered by {} (id {})",
        record.name, record.id
    );
    let content = json!([text(&said), text(data.get())]);
    // Written by hand: numbers stay as whoever answered wrote them.
    let structure = if value.is_object() {
        data.get().to_owned()
    } else {
        format!(r#"{{"reply":{}}}"#, data.get())
    };
    let whole =
        format!(r#"{{"content":{content},"structuredContent":{structure},"isError":false}}"#);
    Ok(Json::from_scanned(whole.into()))
}

/// What is told of an event that is on the bus, and of whose reply there is nothing.
fn unanswered(name: &str, receipt: &Receipt, cause: &str) -> String {
    let Receipt { id, seq, .. } = receipt;
    format!(
        "Event emitted: {name} (id {id}, sequence {seq}), but {cause}. Do not emit it again: the event is on \
         the bus, and its reply will carry the correlationid {id}."
    )
}

fn shown(time: Duration) -> String {
    if time.as_millis().is_multiple_of(1000) {
        format!("{} s", time.as_secs())
    } else {
        format!("{} ms", time.as_millis())
    }
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn failure(cause: &str) -> Json {
    result(&json!({ "content": [text(cause)], "isError": true }))
}

fn result(value: &Value) -> Json {
    Json::of(value).unwrap_or_else(|_| Json::empty_object())
}

impl Source for EventSource {
    fn label(&self) -> &str {
        "events"
    }

    fn state(&self) -> SourceState {
        SourceState::Ready
    }

    fn tools(&self) -> Arc<[Arc<Tool>]> {
        Arc::clone(&self.listed.load().tools)
    }

    fn offers(&self) -> Offers {
        Offers { events: Arc::clone(&self.listed.load().emits), ..Offers::default() }
    }

    fn problems(&self) -> Vec<Problem> {
        self.listed.load().problems.clone()
    }

    fn version(&self) -> u64 {
        *self.version.borrow()
    }

    fn changed_since(&self, version: u64) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut versions = self.version.subscribe();
            drop(versions.wait_for(|it| *it != version).await);
        })
    }

    fn calls_others(&self) -> bool {
        true
    }

    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Json,
        context: CallContext,
    ) -> BoxFuture<'a, Result<Json, CallError>> {
        Box::pin(async move {
            match method {
                "tools/call" => self.call(&params, &context).await,
                _ => Err(CallError::Rpc {
                    code: -32601,
                    message: "Method not found".to_owned(),
                    data: None,
                }),
            }
        })
    }
}
