//! One call of a Python tool: what is said to the process, who hears how it goes on, and whom it may ask.

use std::{sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use bytes::Bytes;
use serde_json::{Value, json, value::RawValue};
use tokio::time::timeout;
use toolcrib_catalogue::{CallContext, CallError, Json, Keep};
use toolcrib_wire::{
    json::{member, scan},
    text::Masker,
};

use super::{
    Settings,
    frames::{Words, frame},
};

/// How long a person may think about what a tool asks.
const THINKING: Duration = Duration::from_secs(600);

/// One call.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: u64,
    pub(super) tool: Arc<str>,
    /// What is written to the process.
    pub(super) frame: Vec<u8>,
    context: CallContext,
    /// What the client calls its progress.
    token: Option<Bytes>,
    settings: Arc<Settings>,
}

impl Call {
    /// The call that `params` of `tools/call` ask for.
    pub(super) fn new(
        id: u64,
        tool: &Arc<str>,
        params: &Json,
        context: CallContext,
        settings: &Arc<Settings>,
    ) -> Self {
        let params = params.as_bytes();
        let arguments = member(params, "arguments").map(|at| &params[at]);
        let arguments = arguments.filter(|it| it.first() == Some(&b'{')).unwrap_or(b"{}");
        let token = member(params, "_meta").and_then(|at| {
            let meta = &params[at];
            Some(Bytes::copy_from_slice(&meta[member(meta, "progressToken")?]))
        });
        let mut text = Vec::with_capacity(arguments.len() + 128);
        text.extend_from_slice(&[0; 4]);
        text.extend_from_slice(format!(r#"{{"op":"call","id":{id},"tool":"#).as_bytes());
        text.extend_from_slice(quoted(tool).as_bytes());
        text.extend_from_slice(br#","group":"#);
        let group = context.group.as_deref().map_or_else(|| "null".to_owned(), quoted);
        text.extend_from_slice(group.as_bytes());
        let progress = token.is_some() && context.listener.is_some();
        text.extend_from_slice(format!(r#","progress":{progress},"args":"#).as_bytes());
        text.extend_from_slice(arguments);
        text.push(b'}');
        let length = u32::try_from(text.len() - 4).unwrap_or(u32::MAX);
        text[..4].copy_from_slice(&length.to_le_bytes());
        let settings = Arc::clone(settings);
        Self { id, tool: Arc::clone(tool), frame: text, context, token, settings }
    }

    /// Hands on what the tool says while it runs.
    pub(super) fn heard(&self, words: &Words<'_>) {
        let Some(listener) = &self.context.listener else { return };
        let note = match words.op.as_str() {
            "progress" => self.progress(words).map(|it| ("notifications/progress", it)),
            "log" => self.message(words).map(|it| ("notifications/message", it)),
            _ => None,
        };
        // What cannot be read is left out: a tool may say anything, as deep as it likes.
        if let Some((method, params)) = note
            && let Ok(params) = Json::of(&params)
        {
            listener.notified(method, Some(params));
        }
    }

    fn progress(&self, words: &Words<'_>) -> Option<Value> {
        let number = |it: &RawValue| serde_json::from_str::<Value>(it.get()).ok();
        let token: Value = serde_json::from_slice(self.token.as_ref()?).ok()?;
        let done = words.progress.and_then(number).filter(Value::is_number)?;
        let mut params = json!({ "progressToken": token, "progress": done });
        if let Some(total) = words.total.and_then(number).filter(Value::is_number) {
            params["total"] = total;
        }
        if let Some(Value::String(message)) = &words.message {
            params["message"] = json!(self.settings.masker.mask_known(message));
        }
        Some(params)
    }

    fn message(&self, words: &Words<'_>) -> Option<Value> {
        let text = |it: &Option<Value>| it.as_ref().and_then(Value::as_str).map(ToOwned::to_owned);
        let mut data: Value = serde_json::from_str(words.data?.get()).ok()?;
        mask_values(&mut data, &self.settings.masker);
        let level = text(&words.level).filter(|it| LEVELS.contains(&it.as_str()));
        let logger = text(&words.logger).unwrap_or_else(|| self.tool.to_string());
        let level = level.unwrap_or_else(|| "info".to_owned());
        Some(json!({ "level": level, "logger": logger, "data": data }))
    }

    /// What the tool asks meanwhile, answered: the frame that goes back to it.
    pub(super) async fn answer(&self, question: Question) -> Vec<u8> {
        let Question { ask, method, params } = question;
        let answer = match method.as_str() {
            "tools/call" => self.call_other(params).await,
            "events/emit" => self.emit(params).await,
            "artifacts/store" => self.store(params).await,
            "elicitation/create" => self.ask_client(&method, params).await,
            _ => Err(format!("`{method}` is not to be had here")),
        };
        let id = self.id;
        let (key, value) = match answer {
            Ok(result) => ("result", result.to_string()),
            Err(message) => ("error", json!({ "message": message }).to_string()),
        };
        let text = format!(r#"{{"op":"reply","id":{id},"ask":{ask},"{key}":{value}}}"#);
        frame(text.as_bytes())
    }

    async fn call_other(&self, params: Json) -> Result<Json, String> {
        let text = params.as_bytes();
        let name: Option<String> =
            member(text, "name").and_then(|at| serde_json::from_slice(&text[at]).ok());
        let name = name.ok_or("a tool is called by its name")?;
        let others = self.context.others.as_ref().ok_or("no other tool can be called here")?;
        let arguments = member(text, "arguments").map(|at| Bytes::copy_from_slice(&text[at]));
        let called = others.call(&name, arguments.map(Json::from_scanned)).await;
        called.map_err(|error| said(&error))
    }

    async fn emit(&self, params: Json) -> Result<Json, String> {
        let text = params.as_bytes();
        let name: Option<String> =
            member(text, "name").and_then(|at| serde_json::from_slice(&text[at]).ok());
        let name = name.ok_or("an event is emitted by its name")?;
        let others = self.context.others.as_ref().ok_or("no event can be emitted here")?;
        let data = member(text, "data").map_or(&b"null"[..], |at| &text[at]);
        let data = Json::from_scanned(Bytes::copy_from_slice(data));
        others.emit(&name, data).await.map_err(|error| said(&error))
    }

    async fn store(&self, params: Json) -> Result<Json, String> {
        let text = params.as_bytes();
        let string = |key: &str| {
            member(text, key).and_then(|at| serde_json::from_slice::<String>(&text[at]).ok())
        };
        let content: Bytes = match (string("text"), string("data")) {
            (Some(text), _) => text.into(),
            (None, Some(data)) => BASE64.decode(data).map_err(|error| error.to_string())?.into(),
            (None, None) => return Err("there is nothing to store".to_owned()),
        };
        let others = self.context.others.as_ref().ok_or("nothing can be stored here")?;
        let keep = Keep { content, media_type: string("mediaType"), label: string("label") };
        others.store(keep).await.map_err(|error| said(&error))
    }

    async fn ask_client(&self, method: &str, params: Json) -> Result<Json, String> {
        let listener = self.context.listener.as_ref();
        let answering = listener.and_then(|it| it.asked(method, Some(params)));
        let answering = answering.ok_or("the client that called cannot be asked")?;
        match timeout(THINKING, answering).await {
            Ok(answer) => answer.map_err(|error| said(&error)),
            Err(_) => Err(format!("nobody answered within {} minutes", THINKING.as_secs() / 60)),
        }
    }
}

/// The levels of log messages that there are.
const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// Takes configured secrets out of the texts in a value, which goes to clients. Keys stay: they are not what a value says.
pub(super) fn mask_values(value: &mut Value, masker: &Masker) {
    match value {
        Value::String(text) => {
            if let std::borrow::Cow::Owned(masked) = masker.mask_known(text) {
                *text = masked;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|it| mask_values(it, masker)),
        Value::Object(members) => members.values_mut().for_each(|it| mask_values(it, masker)),
        _ => {}
    }
}

fn said(error: &CallError) -> String {
    match error {
        CallError::Rpc { message, .. } => message.clone(),
        error => error.to_string(),
    }
}

/// Something a tool asks while it runs.
#[derive(Debug)]
pub(super) struct Question {
    ask: u64,
    method: String,
    params: Json,
}

impl Question {
    pub(super) fn read(words: &Words<'_>) -> Option<Self> {
        let params = words.params.map(|it| it.get().to_owned())?;
        // It goes on to others, so it is read as strictly as what clients send.
        scan(params.as_bytes(), |_, _| ()).ok()?;
        let params = Json::parse(params).ok()?;
        Some(Self { ask: words.ask?, method: words.method.clone(), params })
    }

    /// Whether a person thinks about it: then the clock stands still.
    pub(super) fn is_for_a_person(&self) -> bool {
        self.method == "elicitation/create"
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
