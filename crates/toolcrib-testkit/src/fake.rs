//! The fake server itself, whatever it is reached over.

use std::{
    collections::HashMap,
    fs::OpenOptions,
    io::Write,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use toolcrib_wire::{
    Frame, Id, RpcError,
    frame::{notification, request, response},
    json,
};

use crate::plan::{Act, Fault, Plan, PlanTool, Speaks};

/// What to do after a message.
pub(crate) enum Reaction {
    /// Nothing.
    Nothing,
    /// Send this.
    Send(Bytes),
    /// Send these bytes, message or not.
    SendRaw(Vec<u8>),
    /// Send these bytes, and then never the rest.
    Begin(Vec<u8>),
    /// Send these bytes, then end.
    SendAndEnd(Vec<u8>),
    /// Never answer.
    Silence,
}

pub(crate) struct Fake {
    pub(crate) plan: Plan,
    tools: Mutex<Vec<PlanTool>>,
    greeted: Mutex<bool>,
    /// What it has asked, and who waits for the answer.
    asked: Mutex<HashMap<u64, oneshot::Sender<Value>>>,
    count: AtomicU64,
}

impl Fake {
    pub(crate) fn new(plan: Plan) -> Arc<Self> {
        let tools = Mutex::new(plan.tools.clone());
        let (asked, count) = (Mutex::default(), AtomicU64::new(0));
        Arc::new(Self { plan, tools, greeted: Mutex::new(false), asked, count })
    }

    /// Takes a message. What the server says of its own accord goes to `aside`.
    pub(crate) async fn take(
        &self,
        text: &Bytes,
        headers: &Value,
        aside: &mpsc::Sender<Bytes>,
    ) -> Reaction {
        let frame = Frame::read(text).unwrap();
        self.note(text);
        let (id, method, params) = match frame {
            Frame::Request { id, method, params } => (id, method, params),
            Frame::Response { id, answer } => {
                self.answered(id.as_ref(), answer);
                return Reaction::Nothing;
            }
            Frame::Notification { .. } => return Reaction::Nothing,
        };
        let params: Value =
            params.map(|it| serde_json::from_slice(&it).unwrap()).unwrap_or_else(|| json!({}));
        let known = match self.plan.speaks {
            Speaks::Legacy => method != "server/discover" && method != "subscriptions/listen",
            Speaks::Modern => method != "initialize",
        };
        if !known {
            return self.unknown(&id, &method);
        }
        match method.as_str() {
            "initialize" if self.plan.has(&Fault::Stalls) => Reaction::Silence,
            "initialize" => {
                *self.greeted.lock() = true;
                answer(&id, &self.initialized())
            }
            "server/discover" => answer(&id, &discovered()),
            "subscriptions/listen" => {
                let acknowledged = json!({ "notifications": { "toolsListChanged": true },
                    "_meta": { "io.modelcontextprotocol/subscriptionId": id.to_string() } });
                let text = acknowledged.to_string();
                let method = "notifications/subscriptions/acknowledged";
                aside.send(notification(method, Some(text.as_bytes()))).await.ok();
                Reaction::Silence
            }
            "logging/setLevel" => answer(&id, &json!({})),
            "tools/list" => self.list(&id, &params),
            "tools/call" => self.call(&id, &params, headers, aside, text).await,
            _ => self.unknown(&id, &method),
        }
    }

    fn answered(&self, id: Option<&Id>, answer: Result<Bytes, RpcError>) {
        let waiting = id.and_then(Id::as_number).and_then(|id| self.asked.lock().remove(&id));
        let answer = match answer {
            Ok(result) => serde_json::from_slice(&result).unwrap(),
            Err(error) => json!(format!("{} {}", error.code, error.message)),
        };
        if let Some(waiting) = waiting {
            waiting.send(answer).ok();
        }
    }

    /// Asks the client something.
    async fn ask(&self, method: &str, params: &str, aside: &mpsc::Sender<Bytes>) -> Value {
        let id = 100 + self.count.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        self.asked.lock().insert(id, sender);
        let text = request(&Id::number(id), method, Some(params.as_bytes()));
        aside.send(text).await.ok();
        receiver.await.unwrap_or_default()
    }

    /// Says how a call goes on.
    async fn say(&self, steps: usize, params: &Value, aside: &mpsc::Sender<Bytes>) {
        for step in 0..steps {
            let told = json!({ "level": "info", "logger": "fake", "data": step }).to_string();
            aside.send(notification("notifications/message", Some(told.as_bytes()))).await.ok();
            if let Some(token) = params["_meta"].get("progressToken") {
                let told = json!({ "progressToken": token, "progress": step }).to_string();
                let note = notification("notifications/progress", Some(told.as_bytes()));
                aside.send(note).await.ok();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn note(&self, text: &[u8]) {
        let Some(path) = &self.plan.notes else { return };
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(&[text, b"\n"].concat()).unwrap();
    }

    fn unknown(&self, id: &Id, method: &str) -> Reaction {
        if self.plan.has(&Fault::DiesOfUnknown) {
            return Reaction::SendAndEnd(Vec::new());
        }
        if self.plan.has(&Fault::DiesAfterUnknown) {
            let error = RpcError { code: -32600, message: "not yet".to_owned(), data: None };
            let mut text = response(id, Err(&error)).to_vec();
            text.push(b'\n');
            return Reaction::SendAndEnd(text);
        }
        if self.plan.has(&Fault::SwallowsUnknown) {
            return Reaction::Silence;
        }
        refuse(id, -32601, &format!("no such method: {method}"))
    }

    fn initialized(&self) -> Value {
        json!({
            "protocolVersion": self.plan.revision,
            "capabilities": { "tools": { "listChanged": true }, "logging": {} },
            "serverInfo": { "name": "fake", "version": "1" },
        })
    }

    fn list(&self, id: &Id, params: &Value) -> Reaction {
        if self.plan.has(&Fault::NoList) {
            return refuse(id, -32603, "the list is lost");
        }
        if let Some(file) = &self.plan.listed {
            let tools = std::fs::read_to_string(file).unwrap();
            let tools: Box<serde_json::value::RawValue> = serde_json::from_str(&tools).unwrap();
            let end = self.dated(json!({})).to_string();
            let comma = if end == "{}" { "" } else { "," };
            let result = format!(r#"{{"tools":{}{comma}{}"#, tools.get(), &end[1..]);
            return Reaction::Send(response(id, Ok(result.as_bytes())));
        }
        let tools = self.tools.lock();
        let begin: usize = params["cursor"].as_str().map_or(0, |it| it.parse().unwrap());
        let size = self.plan.page_size.unwrap_or(usize::MAX);
        let page: Vec<Value> = tools.iter().skip(begin).take(size).map(definition).collect();
        let next = begin.saturating_add(size);
        let mut result = json!({ "tools": page });
        if self.plan.has(&Fault::EndlessList) {
            result["nextCursor"] = json!(begin.to_string());
        } else if next < tools.len() {
            result["nextCursor"] = json!(next.to_string());
        }
        answer(id, &self.dated(result))
    }

    /// A result as the era wants it.
    fn dated(&self, mut result: Value) -> Value {
        if self.plan.speaks == Speaks::Modern {
            result["resultType"] = json!("complete");
            result["ttlMs"] = json!(0);
            result["cacheScope"] = json!("private");
        }
        result
    }

    fn fail(&self, id: &Id) -> Reaction {
        let text = json!([{ "type": "text", "text": "it did not work" }]);
        answer(id, &self.dated(json!({ "content": text, "isError": true })))
    }

    async fn call(
        &self,
        id: &Id,
        params: &Value,
        headers: &Value,
        aside: &mpsc::Sender<Bytes>,
        raw: &Bytes,
    ) -> Reaction {
        let name = params["name"].as_str().unwrap_or_default();
        let tool = self.tools.lock().iter().find(|it| it.name == name).cloned();
        let act = match tool {
            Some(tool) => tool.act,
            None if self.plan.listed.is_some() => Act::Echo,
            None => return refuse(id, -32602, &format!("no such tool: {name}")),
        };
        let echo = params.get("arguments").cloned().unwrap_or(json!({})).to_string();
        match act {
            Act::Echo => self.text(id, &echo),
            Act::Result(result) => Reaction::Send(response(id, Ok(result.as_bytes()))),
            Act::Line(line) => Reaction::SendRaw(line.replace("$ID", &id.to_string()).into_bytes()),
            Act::Fail => self.fail(id),
            Act::Error(code) => refuse(id, code, "no"),
            Act::Sleep(time) => {
                tokio::time::sleep(Duration::from_millis(time)).await;
                self.text(id, &echo)
            }
            Act::Hang => Reaction::Silence,
            Act::Crash => Reaction::SendAndEnd(Vec::new()),
            Act::CrashOnce(file) => {
                if file.exists() {
                    return self.text(id, &echo);
                }
                std::fs::write(file, "crashed").unwrap();
                Reaction::SendAndEnd(Vec::new())
            }
            Act::HalfFrame => {
                let Reaction::Send(whole) = self.text(id, &echo) else { return Reaction::Nothing };
                Reaction::SendAndEnd(whole[..whole.len() / 2].to_vec())
            }
            Act::Garbage(lines) => {
                let mut text = "garbage \u{1b}[31m{]\n\n".repeat(lines).into_bytes();
                if let Reaction::Send(answer) = self.text(id, &echo) {
                    text.extend_from_slice(&answer);
                }
                Reaction::SendRaw(text)
            }
            Act::Big(size) => self.text(id, &"x".repeat(size)),
            Act::Rows(size) => self.rows(id, size),
            Act::Stall(size) => self.stall(id, size),
            Act::Env => {
                let mut names: Vec<String> =
                    std::env::vars().map(|(name, value)| format!("{name}={value}")).collect();
                names.sort();
                self.text(id, &names.join("\n"))
            }
            Act::Headers => self.text(id, &headers.to_string()),
            Act::Add(name) => {
                let (act, read_only, schema) = (Act::Echo, false, None);
                self.tools.lock().push(PlanTool { name, act, read_only, schema });
                changed(aside).await;
                self.text(id, &echo)
            }
            Act::Changed => {
                changed(aside).await;
                self.text(id, &echo)
            }
            Act::Stderr(text) => {
                std::io::stderr().write_all(format!("{text}\n").as_bytes()).unwrap();
                self.text(id, &echo)
            }
            Act::Ask(method, asked) => {
                let answer = self.ask(&method, &asked, aside).await;
                self.text(id, &answer.to_string())
            }
            Act::Say(steps) => {
                self.say(steps, params, aside).await;
                self.text(id, &echo)
            }
            Act::Mirror => self.mirror(id, raw),
            Act::Count => {
                self.text(id, &(self.count.fetch_add(1, Ordering::Relaxed) + 1).to_string())
            }
            Act::Family => self.text(id, &format!("{} {}", std::process::id(), stubborn_child())),
        }
    }

    fn rows(&self, id: &Id, size: usize) -> Reaction {
        let more = match self.plan.speaks {
            Speaks::Modern => r#","resultType":"complete""#,
            Speaks::Legacy => "",
        };
        let result = format!(r#"{{"content":[],"structuredContent":{}{more}}}"#, rows(size));
        Reaction::Send(response(id, Ok(result.as_bytes())))
    }

    fn stall(&self, id: &Id, size: usize) -> Reaction {
        let Reaction::Send(whole) = self.text(id, &"x".repeat(size)) else {
            return Reaction::Nothing;
        };
        Reaction::Begin(whole[..size.min(whole.len())].to_vec())
    }

    /// Arguments as they came, which no reader of JSON has touched.
    fn mirror(&self, id: &Id, raw: &Bytes) -> Reaction {
        let part = |text: &Bytes, key: &str| text.slice(json::member(text, key).unwrap());
        let arguments = part(&part(raw, "params"), "arguments");
        let value = part(&arguments, "v");
        let modern: &[u8] = match self.plan.speaks {
            Speaks::Modern => br#","resultType":"complete""#,
            Speaks::Legacy => b"",
        };
        let begin = br#"{"content":[],"structuredContent":"#;
        let result = [begin, &*arguments, br#","x-more":"#, &*value, modern, b"}"].concat();
        Reaction::Send(response(id, Ok(&result)))
    }

    fn text(&self, id: &Id, text: &str) -> Reaction {
        let result = json!({ "content": [{ "type": "text", "text": text }], "isError": false });
        answer(id, &self.dated(result))
    }
}

/// A JSON object with rows in it, of about so many bytes.
pub fn rows(size: usize) -> String {
    let mut text = r#"{"rows":["#.to_owned();
    for row in 0.. {
        text.push_str(&format!(
            r#"{{"id":{row},"name":"row \"{row}\" \u00e9 é","price":{row}.50,"tags":["a","b\n"]}}"#
        ));
        if size <= text.len() {
            break;
        }
        text.push(',');
    }
    text.push_str("]}");
    text
}

/// Starts a process that does not want to end.
fn stubborn_child() -> u32 {
    let mut child = Command::new("sh");
    child.args(["-c", "trap '' TERM HUP INT; while :; do sleep 1; done"]);
    child.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
    child.spawn().unwrap().id()
}

fn discovered() -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": { "tools": { "listChanged": true } },
        "ttlMs": 0,
        "cacheScope": "public",
        "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "fake", "version": "1" } },
    })
}

fn definition(tool: &PlanTool) -> Value {
    json!({
        "name": tool.name,
        "description": format!("{} of the fake", tool.name),
        "inputSchema": tool.schema.as_deref().map_or_else(
            || json!({ "type": "object" }),
            |it| serde_json::from_str(it).unwrap(),
        ),
        "annotations": { "readOnlyHint": tool.read_only },
    })
}

fn answer(id: &Id, result: &Value) -> Reaction {
    Reaction::Send(response(id, Ok(result.to_string().as_bytes())))
}

fn refuse(id: &Id, code: i64, message: &str) -> Reaction {
    let error = RpcError { code, message: message.to_owned(), data: None };
    Reaction::Send(response(id, Err(&error)))
}

/// Says that the list has changed.
async fn changed(aside: &mpsc::Sender<Bytes>) {
    aside.send(notification("notifications/tools/list_changed", None)).await.ok();
}
