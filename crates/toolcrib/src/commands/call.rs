//! `toolcrib call`: one tool, once.

use std::{
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Map, Value, json};
use toolcrib::{Network, Own, Workspace, environment};
use toolcrib_bus::Bus;
use toolcrib_catalogue::{
    Blame, CallContext, CallError, Catalogue, Checked, Faults, Json, Listener, Look, OnFault,
    Outcome, Part, PartKind, Source, SourceState, Tool, nearest,
};
use toolcrib_server::{Access, AccessSettings, Gateway, Settings};
use toolcrib_sources::asyncapi::Care;

use super::{Failure, reach::Later};
use crate::terminal;

/// What was asked for.
#[derive(Debug)]
pub(crate) struct Asked {
    name: String,
    /// `--args`.
    object: Map<String, Value>,
    /// `key=value`, not yet read: the schema says how.
    single: Vec<(String, String)>,
    timeout: Option<Duration>,
}

impl Asked {
    pub(crate) fn read(
        name: &str,
        arguments: &[String],
        args: Option<&str>,
        timeout: Option<f64>,
    ) -> Result<Self, Failure> {
        let object = match args.map(serde_json::from_str) {
            None => Map::new(),
            Some(Ok(Value::Object(object))) => object,
            Some(Ok(_)) => return Err(Failure::unusable("--args must be a JSON object")),
            Some(Err(error)) => {
                return Err(Failure::unusable(format!("--args is not JSON: {error}")));
            }
        };
        let mut single = Vec::new();
        for argument in arguments {
            let Some((key, value)) = argument.split_once('=') else {
                let hint = format!("write {argument}=VALUE, or use --args");
                let message = format!("`{argument}` is not KEY=VALUE");
                return Err(Failure::unusable(message).hint(Some(hint)));
            };
            single.push((key.to_owned(), value.to_owned()));
        }
        let legal = |&it: &f64| 0.0 < it && it <= 86_400.0;
        let seconds = timeout.map(|it| Some(it).filter(legal).ok_or(it)).transpose();
        let seconds = seconds.map_err(|it| {
            Failure::unusable(format!("--timeout takes up to 86400 seconds, not {it}"))
        })?;
        let timeout = seconds.map(Duration::from_secs_f64);
        Ok(Self { name: name.to_owned(), object, single, timeout })
    }

    /// The arguments as the tool's schema wants them; none where there are none.
    fn arguments(&self, tool: &Tool) -> Result<Option<Json>, Failure> {
        let schema: Value = tool.input_schema.as_ref().and_then(Json::get).unwrap_or(Value::Null);
        let mut object = self.object.clone();
        for (key, text) in &self.single {
            let property = schema.get("properties").and_then(|it| it.get(key));
            let value = read_value(text, property).map_err(|expected| {
                Failure::unusable(format!("`{key}` must be {expected}, not `{text}`"))
            })?;
            object.insert(key.clone(), value);
        }
        if object.is_empty() {
            return Ok(None);
        }
        let json = Json::of(&object);
        json.map(Some).map_err(|error| Failure::unusable(error.to_string()))
    }
}

/// Reads `text` as a property's type. Where nothing is said, JSON if it is JSON, else text.
fn read_value(text: &str, property: Option<&Value>) -> Result<Value, &'static str> {
    let parsed: Option<Value> = serde_json::from_str(text).ok();
    let types: Vec<&str> = match property.and_then(|it| it.get("type")) {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if types.is_empty() {
        return Ok(parsed.unwrap_or_else(|| text.into()));
    }
    let fits = |value: &Value, kind: &str| match kind {
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => false,
    };
    if let Some(value) = parsed.filter(|it| types.iter().any(|kind| fits(it, kind))) {
        return Ok(value);
    }
    if types.contains(&"string") {
        return Ok(text.into());
    }
    Err(match types[0] {
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        "array" => "a JSON list",
        "object" => "a JSON object",
        _ => "null",
    })
}

pub(crate) async fn run(
    workspace: &Workspace,
    asked: &Asked,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    let later = Arc::new(Later::new(&workspace.folder));
    let bus = Ok(Arc::clone(&later) as Arc<dyn Bus>);
    let own = workspace.start_own(false, bus, Care::Tools, &terminal::installing).await;
    terminal::wait_for_python(own.python.as_ref()).await;
    let called = if own.has(&asked.name) {
        call_own(workspace, &own, asked).await
    } else {
        call(workspace, &own, asked).await
    };
    workspace.close().await;
    own.close().await;
    let outcome = called?;
    if as_json {
        terminal::print_raw(&format!("{}\n", outcome.raw))?;
    } else {
        terminal::print_raw(&shown(&outcome))?;
    }
    Ok(if outcome.is_error { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Calls a tool of the workspace's own. It may call any other, so everything is at hand, as in a gateway.
async fn call_own(workspace: &Workspace, own: &Own, asked: &Asked) -> Result<Outcome, Failure> {
    let (catalogue, _, _) = workspace.catalogue(&[], own)?;
    let Some(entry) = catalogue.get(&asked.name) else {
        return Err(unknown(&catalogue, &asked.name));
    };
    let arguments = asked.arguments(&entry.tool)?.unwrap_or_else(Json::empty_object);
    let servers = workspace.start(&workspace.server_names());
    let default_group = Network::read(&workspace.folder, &environment)?.access.default_group;
    let access = Access::new(&AccessSettings { default_group, ..AccessSettings::default() });
    let caller = access.local(None).ok_or_else(|| unknown(&catalogue, &asked.name))?;
    let settings = Settings {
        name: "toolcrib".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        instructions: None,
        bus: own.bus.clone(),
        ..Settings::default()
    };
    let gateway = Gateway::start(workspace.inputs(&servers, own), access, settings);
    let params =
        json!({ "name": asked.name, "arguments": arguments, "_meta": { "progressToken": 0 } });
    let params = Json::of(&params).map_err(|error| Failure::unusable(error.to_string()))?;
    let listener = Arc::new(Said) as Arc<dyn Listener>;
    let called = gateway.call(caller, params, Some(listener), asked.timeout).await;
    gateway.stop();
    gateway.close().await;
    let result =
        called.map_err(|error| Failure::said_no(format!("{}: {}", asked.name, error.message)))?;
    Outcome::read(result).map_err(|fault| Failure::said_no(fault.to_string()))
}

/// What a tool says while it runs, said to whoever looks on.
#[derive(Debug)]
struct Said;

impl Listener for Said {
    fn notified(&self, method: &str, params: Option<Json>) {
        let params: Value = params.as_ref().and_then(Json::get).unwrap_or_default();
        let text = match method {
            "notifications/progress" => {
                let total = params.get("total").map(|it| format!("/{it}")).unwrap_or_default();
                let message = params["message"].as_str().unwrap_or_default();
                format!("{}{total} {message}", params["progress"])
            }
            "notifications/message" => {
                let data = &params["data"];
                data.as_str().map_or_else(|| data.to_string(), ToOwned::to_owned)
            }
            _ => return,
        };
        terminal::remark(&terminal::clean(text.trim_end()));
    }
}

async fn call(workspace: &Workspace, own: &Own, asked: &Asked) -> Result<Outcome, Failure> {
    let servers = workspace.start(&workspace.candidates(&asked.name));
    terminal::wait_for(&servers).await;
    let (catalogue, listings, problems) = workspace.catalogue(&servers, own)?;
    let Some(entry) = catalogue.get(&asked.name) else {
        let failed: Vec<_> =
            servers.iter().filter(|it| matches!(it.state(), SourceState::Failed { .. })).collect();
        if !failed.is_empty() || !own.sources().is_empty() {
            terminal::warn(&problems);
        }
        return Err(unknown(&catalogue, &asked.name));
    };
    let arguments = asked.arguments(&entry.tool)?;
    let toolcrib_catalogue::Origin::Upstream(server) = &listings[entry.listing].origin else {
        return Err(unknown(&catalogue, &asked.name));
    };
    let Some(connection) = servers.iter().find(|it| it.label() == server) else {
        return Err(unknown(&catalogue, &asked.name));
    };
    fits(&entry.tool, arguments.as_ref()).map_err(|faults| {
        let hint = "nothing was called; `toolcrib tools --json` shows what the tool takes";
        Failure::said_no(format!("{}: {faults}", asked.name)).hint(Some(hint.to_owned()))
    })?;
    let context = CallContext {
        deadline: asked.timeout.map(|it| Instant::now() + it),
        attempt: asked.timeout,
        ..CallContext::default()
    };
    let outcome = connection.call(&entry.tool.name, arguments.as_ref(), context).await;
    outcome.map_err(|error| failed(&asked.name, &error))
}

/// Holds arguments against the schema of a tool, as a gateway would.
fn fits(tool: &Arc<Tool>, arguments: Option<&Json>) -> Result<(), Faults> {
    match Look::at(tool, OnFault::default()).input {
        Checked::Strict(validator) => validator.check(arguments.unwrap_or(&Json::empty_object())),
        Checked::Permissive(_) | Checked::Refused(_) => Ok(()),
    }
}

fn failed(name: &str, error: &CallError) -> Failure {
    let hint = match (error.blame(), error) {
        (_, CallError::TimedOut { .. }) => {
            Some("give it more time with --timeout, or with `timeout` in mcp.json".to_owned())
        }
        (Blame::Caller, _) => Some("`toolcrib tools --json` shows what the tool takes".to_owned()),
        _ => None,
    };
    Failure::said_no(format!("{name}: {error}")).hint(hint)
}

fn unknown(catalogue: &Catalogue, name: &str) -> Failure {
    let names = catalogue.entries().iter();
    let own = names.clone().find(|it| it.tool.name == name).map(|it| &*it.name);
    let meant = own.or_else(|| nearest(name, names.map(|it| &*it.name)));
    let hint = match meant {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "`toolcrib tools` lists the tools, `toolcrib why NAME` says why one is missing"
            .to_owned(),
    };
    Failure::said_no(format!("there is no tool `{name}`")).hint(Some(hint))
}

/// The result as a person reads it.
fn shown(outcome: &Outcome) -> String {
    let mut text: String = outcome.parts.iter().map(|it| format!("{}\n", part(it))).collect();
    if outcome.parts.is_empty()
        && let Some(structured) = outcome.structured.as_ref().and_then(Json::get::<Value>)
    {
        text = format!("{structured:#}\n");
    }
    text
}

fn part(part: &Part) -> String {
    let size = |what: &str, mime: &str| match part.bytes() {
        Some(bytes) => format!("[{what}, {}, {} bytes]", terminal::clean(mime), bytes.len()),
        None => format!("[{what}, {}, not valid base64]", terminal::clean(mime)),
    };
    match &part.kind {
        PartKind::Text(text) => lines(text),
        PartKind::Image { mime_type, .. } => size("image", mime_type),
        PartKind::Audio { mime_type, .. } => size("audio", mime_type),
        PartKind::Resource { text: Some(text), .. } => lines(text),
        PartKind::Resource { uri, mime_type, .. } => {
            let mime = mime_type.as_deref().unwrap_or("bytes");
            size(&format!("resource {}", terminal::clean(uri)), mime)
        }
        PartKind::ResourceLink { uri, .. } => format!("[link {}]", terminal::clean(uri)),
        PartKind::Other => lines(part.raw.as_str()),
    }
}

/// Text of several lines, each fit for a terminal if it goes to one.
fn lines(text: &str) -> String {
    if !terminal::is_watched() {
        return text.to_owned();
    }
    text.lines().map(terminal::clean).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, property: &str, expected: &str) {
        let property: Value = serde_json::from_str(property).unwrap();
        let found =
            read_value(text, Some(&property)).map_or_else(ToOwned::to_owned, |it| it.to_string());
        assert_eq!(found, expected);
    }

    #[test]
    fn a_value_is_read_as_the_schema_says() {
        check("7", r#"{"type":"string"}"#, r#""7""#);
        check("7", r#"{"type":"integer"}"#, "7");
        check("7.5", r#"{"type":"integer"}"#, "a whole number");
        check("x", r#"{"type":"boolean"}"#, "true or false");
        check("[1]", r#"{"type":["array","string"]}"#, "[1]");
        check("[1", r#"{"type":["array","string"]}"#, r#""[1""#);
        check("7", "{}", "7");
        check("seven", "{}", r#""seven""#);
    }
}
