//! What an entry of another client means, in the words of `mcp.json`.
//!
//! Clients agree on `command`, `args`, `env`, `url` and `headers`, and on little else. No key of one means something
//! else in another, so all are understood in every file.

use std::path::Path;

use serde_json::{Map, Value};

use super::gathering::Raw;
use crate::clients::Folders;

/// An entry as it will stand in `mcp.json`, and what is different about it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Meant {
    pub(super) entry: Map<String, Value>,
    pub(super) changes: Vec<String>,
}

/// What other clients write and we have no use for.
const NEEDLESS: [&str; 14] = [
    "autoApprove",
    "alwaysAllow",
    "description",
    "version",
    "icon",
    "name",
    "tags",
    "gallery",
    "source",
    "settings",
    "dev",
    "required",
    "type",
    "transport",
];

/// What an entry means; or why it is left out.
pub(super) fn meant(raw: &Raw, folders: &Folders) -> Result<Meant, String> {
    let legal = !raw.name.is_empty() && raw.name.len() <= 128;
    if !legal || raw.name.chars().any(char::is_control) {
        return Err("its name is empty, too long or holds control characters".to_owned());
    }
    let Some(written) = raw.value.as_object() else {
        return Err("its entry is no object".to_owned());
    };
    let written = unfolded(written);
    let mut reading = Reading { raw, folders, written: &written, changes: Vec::new() };
    let entry = reading.entry()?;
    if is_toolcrib(&entry) {
        return Err("it is toolcrib itself".to_owned());
    }
    Ok(Meant { entry, changes: reading.changes })
}

/// Zed once had the program and what belongs to it in an object of its own.
fn unfolded(written: &Map<String, Value>) -> Map<String, Value> {
    let mut written = written.clone();
    if let Some(Value::Object(command)) = written.get("command").cloned() {
        written.remove("command");
        for (key, value) in command {
            written.insert(if key == "path" { "command".to_owned() } else { key }, value);
        }
    }
    written
}

/// Whether an entry starts this program.
pub(in crate::commands) fn is_toolcrib(entry: &Map<String, Value>) -> bool {
    let command = entry.get("command").and_then(Value::as_str).unwrap_or_default();
    let program = command.rsplit(['/', '\\']).next().unwrap_or_default();
    let serves = |it: &Value| it.as_array().is_some_and(|it| it.contains(&Value::from("serve")));
    let program = program.strip_suffix(".exe").unwrap_or(program);
    program == "toolcrib" && entry.get("args").is_some_and(serves)
}

struct Reading<'a> {
    raw: &'a Raw,
    folders: &'a Folders,
    written: &'a Map<String, Value>,
    changes: Vec<String>,
}

impl Reading<'_> {
    fn entry(&mut self) -> Result<Map<String, Value>, String> {
        let mut entry = Map::new();
        let command = self.text(&["command"])?;
        let url = self.text(&["url", "serverUrl", "httpUrl"])?;
        match (&command, &url) {
            (None, None) if self.raw.client == Some(crate::clients::Client::Zed) => {
                return Err("an extension of Zed brings it along".to_owned());
            }
            (None, None) => return Err("it has neither a command nor an address".to_owned()),
            (Some(_), Some(_)) => return Err("it has a command and an address".to_owned()),
            _ => {}
        }
        if let Some(transport) = self.transport()? {
            entry.insert("type".to_owned(), transport.into());
        }
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                entry.insert(key.to_owned(), value);
            }
        };
        put("command", command.map(Value::from));
        put("args", self.texts(&["args"])?);
        put("url", url.map(Value::from));
        put("env", self.env()?);
        put("headers", self.headers()?);
        put("include", self.texts(&["enabled_tools", "includeTools"])?);
        put("exclude", self.texts(&["disabled_tools", "disabledTools", "excludeTools"])?);
        put("handshake_timeout", self.seconds("startup_timeout_sec", "startup_timeout_ms"));
        put("timeout", self.seconds("tool_timeout_sec", "tool_timeout_ms"));
        let off = self.written.get("disabled") == Some(&Value::Bool(true))
            || self.written.get("enabled") == Some(&Value::Bool(false));
        put("disabled", off.then_some(Value::Bool(true)));
        let folder = self.folder()?;
        put("cwd", folder.filter(|_| self.written.contains_key("command")).map(Value::from));
        self.tell_the_rest();
        Ok(entry)
    }

    fn get(&self, keys: &[&str]) -> Option<(String, &Value)> {
        let found = |key: &&str| Some(((*key).to_owned(), self.written.get(*key)?));
        keys.iter().find_map(found).filter(|(_, it)| !it.is_null())
    }

    fn text(&mut self, keys: &[&str]) -> Result<Option<String>, String> {
        let Some((key, value)) = self.get(keys) else { return Ok(None) };
        match value.as_str().map(str::to_owned) {
            Some(text) if text.is_empty() => Ok(None),
            Some(text) => Ok(Some(self.filled(&text))),
            None => Err(format!("its `{key}` is no text")),
        }
    }

    fn texts(&mut self, keys: &[&str]) -> Result<Option<Value>, String> {
        let Some((key, value)) = self.get(keys) else { return Ok(None) };
        let wrong = || format!("its `{key}` is no list of texts");
        let list = value.as_array().ok_or_else(wrong)?.clone();
        let text = |it: &Value| plain(it).ok_or_else(wrong);
        let texts: Vec<String> = list.iter().map(text).collect::<Result<_, _>>()?;
        if texts.is_empty() {
            return Ok(None);
        }
        Ok(Some(texts.iter().map(|it| self.filled(it)).collect()))
    }

    /// The pairs of an object of texts.
    fn pairs(&mut self, key: &str) -> Result<Map<String, Value>, String> {
        let Some((key, value)) = self.get(&[key]) else { return Ok(Map::new()) };
        let wrong = || format!("its `{key}` is no object of texts");
        let object = value.as_object().ok_or_else(wrong)?.clone();
        let mut pairs = Map::new();
        for (name, value) in &object {
            // One that is set to nothing is taken away, which it is here without a word.
            if value.is_null() {
                continue;
            }
            let text = plain(value).ok_or_else(wrong)?;
            pairs.insert(name.clone(), self.filled(&text).into());
        }
        Ok(pairs)
    }

    fn env(&mut self) -> Result<Option<Value>, String> {
        let mut env = self.pairs("env")?;
        let wrong = "its `env_vars` is no list of names";
        if let Some((_, forwarded)) = self.get(&["env_vars"]) {
            for name in forwarded.as_array().ok_or(wrong)? {
                // Codex also takes an object that says from where.
                let name = name.as_str().or_else(|| name.get("name")?.as_str()).ok_or(wrong)?;
                env.insert(name.to_owned(), format!("${{{name}}}").into());
            }
        }
        if let Some((_, file)) = self.get(&["envFile"]) {
            let file = file.as_str().unwrap_or("a file").to_owned();
            self.changes.push(format!("what stands in `{file}` is to be set in the environment"));
        }
        Ok((!env.is_empty()).then_some(Value::Object(env)))
    }

    fn headers(&mut self) -> Result<Option<Value>, String> {
        let mut headers = self.pairs("headers")?;
        headers.extend(self.pairs("http_headers")?);
        for (name, variable) in self.pairs("env_http_headers")? {
            let variable = variable.as_str().unwrap_or_default();
            headers.insert(name, format!("${{{variable}}}").into());
        }
        if let Some(variable) = self.text(&["bearer_token_env_var"])? {
            headers.insert("Authorization".to_owned(), format!("Bearer ${{{variable}}}").into());
        }
        Ok((!headers.is_empty()).then_some(Value::Object(headers)))
    }

    /// How it is spoken to, where that does not follow from the rest.
    fn transport(&self) -> Result<Option<&'static str>, String> {
        let Some((_, value)) = self.get(&["type", "transport"]) else { return Ok(None) };
        match value.as_str().unwrap_or_default() {
            "stdio" | "" => Ok(None),
            "http" | "streamable-http" | "streamable_http" | "streamableHttp" => Ok(Some("http")),
            "sse" => Ok(Some("sse")),
            other => Err(format!("toolcrib does not speak `{}`", crate::terminal::clean(other))),
        }
    }

    fn seconds(&self, in_seconds: &str, in_thousandths: &str) -> Option<Value> {
        let number = |key: &str| self.written.get(key)?.as_f64();
        let seconds = number(in_seconds).or_else(|| Some(number(in_thousandths)? / 1000.0))?;
        (0.0 < seconds && seconds < 1e6).then(|| format!("{seconds}s").into())
    }

    /// Where it runs: a server of a project runs in there, and not where our `mcp.json` lies.
    fn folder(&mut self) -> Result<Option<String>, String> {
        let base = self.raw.project.clone();
        let folder = match (self.text(&["cwd"])?, base) {
            (Some(cwd), base) => base.unwrap_or_else(|| self.folders.home.clone()).join(cwd),
            (None, Some(base)) => base,
            (None, None) => return Ok(None),
        };
        if self.written.contains_key("command") {
            self.changes.push(format!("runs in {}", self.folders.shown(&folder)));
        }
        Ok(Some(folder.to_string_lossy().into_owned()))
    }

    /// `text` with what a client fills in by itself, and in the way we write variables.
    fn filled(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            out.push_str(before);
            let Some((inside, next)) = after.split_once('}') else {
                rest = &rest[before.len()..];
                break;
            };
            out.push_str(&self.placeholder(inside));
            rest = next;
        }
        out.push_str(rest);
        out
    }

    fn placeholder(&mut self, inside: &str) -> String {
        let project = self.raw.project.clone().unwrap_or_else(|| self.folders.home.clone());
        let path = |it: &Path| it.to_string_lossy().into_owned();
        if let Some(input) = inside.strip_prefix("input:") {
            let name = variable(input);
            self.changes.push(format!("what was asked for as `{input}` is the variable {name}"));
            return format!("${{{name}}}");
        }
        match inside {
            "workspaceFolder" | "workspaceRoot" | "cwd" => path(&project),
            "workspaceFolderBasename" => {
                project.file_name().map(|it| path(Path::new(it))).unwrap_or_default()
            }
            "userHome" => path(&self.folders.home),
            "pathSeparator" | "/" => "/".to_owned(),
            other => {
                let (kind, _) = other.split_once(':').unwrap_or_default();
                if !kind.is_empty() && kind != "env" && !other.contains(":-") {
                    self.changes.push(format!("`${{{other}}}` cannot be filled in here"));
                }
                format!("${{{other}}}")
            }
        }
    }

    /// Says which keys are not taken over.
    fn tell_the_rest(&mut self) {
        const TAKEN: [&str; 26] = [
            "command",
            "args",
            "url",
            "serverUrl",
            "httpUrl",
            "env",
            "env_vars",
            "envFile",
            "headers",
            "http_headers",
            "env_http_headers",
            "bearer_token_env_var",
            "cwd",
            "enabled_tools",
            "includeTools",
            "disabled_tools",
            "disabledTools",
            "excludeTools",
            "startup_timeout_sec",
            "startup_timeout_ms",
            "tool_timeout_sec",
            "tool_timeout_ms",
            "disabled",
            "enabled",
            "type",
            "transport",
        ];
        let known = |key: &str| TAKEN.contains(&key) || NEEDLESS.contains(&key);
        for key in self.written.keys().filter(|it| !known(it)) {
            self.changes.push(format!("without `{}`", crate::terminal::clean(key)));
        }
    }
}

/// A text; numbers and truth values will do for one.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A name for a variable: `github-token` would be `GITHUB_TOKEN`.
pub(super) fn variable(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = name.trim_matches('-').chars().take(60).map(plain).collect();
    match name.chars().next() {
        None => "NAME".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("_{name}"),
        Some(_) => name,
    }
}
