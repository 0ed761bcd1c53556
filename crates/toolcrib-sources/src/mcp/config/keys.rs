//! Every key that an `mcp.json` may have: the reader knows no others, and the schema for editors is made from the same
//! table.

use serde_json::{Map, Value, json};

/// A key: what it is called, what it takes, what holds without it, and what it means.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    pub(super) name: &'static str,
    takes: Takes,
    usual: Usual,
    about: &'static str,
}

/// What a key takes. In every text variables are filled in, so a text may stand where something else is meant.
#[derive(Debug, Clone, Copy)]
enum Takes {
    Text,
    Texts,
    Pairs,
    Flag,
    Time,
    Rate,
    Count,
    Words(&'static [&'static str]),
    Servers,
    /// Somebody else's, and not looked at.
    Anything,
}

/// What holds where a key is not there.
#[derive(Debug, Clone, Copy)]
enum Usual {
    /// Nothing, or what its description says.
    Unsaid,
    Text(&'static str),
    Flag(bool),
}

const fn key(name: &'static str, takes: Takes, usual: Usual, about: &'static str) -> Key {
    Key { name, takes, usual, about }
}

/// Keys of the file itself.
pub(super) const FILE_KEYS: [Key; 4] = [
    key("mcpServers", Takes::Servers, Usual::Unsaid, "The servers, by name."),
    key(
        "servers",
        Takes::Servers,
        Usual::Unsaid,
        "The same, as VS Code writes it. A file has one of the two.",
    ),
    key("$schema", Takes::Text, Usual::Unsaid, "Where an editor finds this schema."),
    key(
        "inputs",
        Takes::Anything,
        Usual::Unsaid,
        "What VS Code asks its user for. Toolcrib does not ask: set environment variables and write `${NAME}`.",
    ),
];

const TRANSPORTS: &[&str] =
    &["stdio", "http", "streamable-http", "streamable_http", "streamableHttp", "sse"];

/// Keys of a server.
pub(super) const SERVER_KEYS: [Key; 25] = [
    key("command", Takes::Text, Usual::Unsaid, "The program to start. No shell reads it."),
    key("args", Takes::Texts, Usual::Unsaid, "Its arguments."),
    key("env", Takes::Pairs, Usual::Unsaid, "What is added to its environment."),
    key(
        "cwd",
        Takes::Text,
        Usual::Unsaid,
        "Where it runs, seen from the workspace; the workspace itself where nothing is said.",
    ),
    key("url", Takes::Text, Usual::Unsaid, "The address of a server that runs already."),
    key("headers", Takes::Pairs, Usual::Unsaid, "What goes along with every request."),
    key(
        "ca",
        Takes::Text,
        Usual::Unsaid,
        "A file of certificates to trust besides the system's, seen from the workspace.",
    ),
    key(
        "transport",
        Takes::Words(TRANSPORTS),
        Usual::Unsaid,
        "How it is spoken to: a child process, streamable HTTP, or the old HTTP+SSE. Where nothing is said, `stdio` with a \
         `command`; with a `url`, streamable HTTP if the server speaks that, else HTTP+SSE.",
    ),
    key("type", Takes::Words(TRANSPORTS), Usual::Unsaid, "The same as `transport`."),
    key("timeout", Takes::Time, Usual::Text("30s"), "How long one attempt of a call may take."),
    key(
        "handshake_timeout",
        Takes::Time,
        Usual::Text("30s"),
        "How long the server may take to start.",
    ),
    key("session_timeout", Takes::Time, Usual::Unsaid, "An older name of `handshake_timeout`."),
    key(
        "sse_read_timeout",
        Takes::Time,
        Usual::Unsaid,
        "How long an HTTP+SSE stream may be silent; without it, for ever.",
    ),
    key(
        "cache_tools",
        Takes::Flag,
        Usual::Flag(false),
        "An old list of tools will do although the server does not tell of changes.",
    ),
    key("disabled", Takes::Flag, Usual::Flag(false), "It is not to be used."),
    key("enabled", Takes::Flag, Usual::Flag(true), "`false` is the same as `disabled: true`."),
    key(
        "required",
        Takes::Flag,
        Usual::Flag(false),
        "The gateway is not ready (`/readyz`) while this server is not.",
    ),
    key(
        "trust_hints",
        Takes::Flag,
        Usual::Flag(false),
        "Believe what it says of its tools: a call of a read-only or idempotent one may be repeated after it was sent.",
    ),
    key(
        "include",
        Takes::Texts,
        Usual::Unsaid,
        "Which of its tools are taken, by the server's own exact names. An empty list means all.",
    ),
    key("exclude", Takes::Texts, Usual::Unsaid, "Which are not; it wins over `include`."),
    key(
        "names",
        Takes::Words(&["prefixed", "bare"]),
        Usual::Unsaid,
        "How its tools are named: `mcp__server__tool`, or as the server names them. As `names` of network.yaml says where \
         nothing is said here.",
    ),
    key(
        "isolation",
        Takes::Words(&["shared", "session"]),
        Usual::Text("shared"),
        "Whether all clients share one connection, or each that stays gets its own. For servers that keep a state.",
    ),
    key(
        "rate",
        Takes::Rate,
        Usual::Unsaid,
        "How often it may be called, all its tools together; without it, as often as one likes.",
    ),
    key(
        "concurrent",
        Takes::Count,
        Usual::Unsaid,
        "How many calls of it may run at a time; without it, any number.",
    ),
    key(
        "allow_dangerous_env",
        Takes::Flag,
        Usual::Flag(false),
        "Lets `env` set what makes a program run other code than its own, such as LD_PRELOAD or NODE_OPTIONS.",
    ),
];

/// What other clients write and we have no use for.
pub(super) const OTHERS: [&str; 8] =
    ["autoApprove", "alwaysAllow", "description", "version", "icon", "name", "tags", "gallery"];

/// What other clients call a key of ours.
pub(super) const ALIASES: [(&str, &str); 5] = [
    ("serverUrl", "url"),
    ("httpUrl", "url"),
    ("includeTools", "include"),
    ("excludeTools", "exclude"),
    ("disabledTools", "exclude"),
];

/// The names of some keys.
pub(super) fn names<const N: usize>(keys: &[Key; N]) -> [&'static str; N] {
    keys.map(|it| it.name)
}

/// The JSON Schema of an `mcp.json`, for editors and for the reference. What the reader tells as a fault it flags,
/// unknown keys too; what only shows when variables are filled in it lets pass.
pub fn mcp_json_schema() -> Value {
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "mcp.json",
        "description": "The MCP servers of a Toolcrib workspace.",
        "type": "object",
        "properties": properties(&FILE_KEYS),
        "oneOf": [{ "required": ["mcpServers"] }, { "required": ["servers"] }],
        "additionalProperties": false,
    })
}

fn properties(keys: &[Key]) -> Map<String, Value> {
    keys.iter().map(|it| (it.name.to_owned(), it.schema())).collect()
}

/// A server: one that is started, or one that is reached.
fn server() -> Value {
    let mut all = properties(&SERVER_KEYS);
    for (alias, name) in ALIASES {
        if let Some(key) = SERVER_KEYS.iter().find(|it| it.name == name) {
            let about = format!("What other clients call `{name}`.");
            let mut schema = key.schema();
            schema["description"] = about.into();
            all.insert(alias.to_owned(), schema);
        }
    }
    for name in OTHERS {
        let about = "Other clients write it; toolcrib has no use for it.";
        all.insert(name.to_owned(), json!({ "description": about }));
    }
    let addressed = ["url", "serverUrl", "httpUrl"].map(|it| json!({ "required": [it] }));
    json!({
        "type": "object",
        "properties": all,
        "oneOf": [{ "required": ["command"] }, { "anyOf": addressed }],
        "additionalProperties": false,
    })
}

impl Key {
    fn schema(&self) -> Value {
        let text = json!({ "type": ["string", "number", "boolean"] });
        let mut schema = match self.takes {
            Takes::Text => json!({ "type": ["string", "null"] }),
            Takes::Texts => json!({ "type": ["array", "null"], "items": text }),
            Takes::Pairs => json!({ "type": ["object", "null"], "additionalProperties": text }),
            Takes::Flag => json!({ "type": ["boolean", "null"] }),
            Takes::Time => {
                json!({ "type": ["string", "number", "null"], "pattern": TIME, "exclusiveMinimum": 0 })
            }
            Takes::Rate => json!({ "type": ["string", "null"], "pattern": RATE }),
            Takes::Count => {
                json!({ "type": ["integer", "string", "null"], "pattern": COUNT, "minimum": 1 })
            }
            // A word may come out of a variable; completion offers those that may be written.
            Takes::Words(words) => {
                json!({ "anyOf": [{ "enum": words }, { "type": ["string", "null"], "pattern": VARIABLE }] })
            }
            Takes::Servers => json!({ "type": "object", "additionalProperties": server() }),
            Takes::Anything => json!({}),
        };
        schema["description"] = self.about.into();
        match self.usual {
            Usual::Unsaid => {}
            Usual::Text(text) => schema["default"] = text.into(),
            Usual::Flag(flag) => schema["default"] = flag.into(),
        }
        schema
    }
}

/// A variable somewhere in a text.
const VARIABLE: &str = r"\$\{";

/// A time, or whatever comes out of a variable.
const TIME: &str = r"^[0-9.]+ *(ms|s|m|h)?$|\$\{";

/// Calls in a time.
const RATE: &str = r"^ *[0-9]+ */ *[smh] *(burst *[0-9]+ *)?$|\$\{";

/// A number of calls.
const COUNT: &str = r"^[0-9]+$|\$\{";

#[cfg(test)]
mod tests {
    use super::*;

    /// Every key is read, and every key that is read is in the table: a name that nothing asks for is a promise that
    /// nobody keeps.
    #[test]
    fn every_key_is_asked_for() {
        let reader = concat!(include_str!("entry.rs"), include_str!("document.rs"));
        let reader = reader.split("#[cfg(test)]").collect::<String>();
        for key in SERVER_KEYS.iter().chain(&FILE_KEYS).filter(|it| it.name != "$schema") {
            assert!(reader.contains(&format!("\"{}\"", key.name)), "{}", key.name);
        }
    }

    #[test]
    fn no_key_stands_there_twice() {
        let aliases = ALIASES.map(|(alias, _)| alias);
        let all = [&names(&SERVER_KEYS)[..], &OTHERS, &aliases].concat();
        let once: std::collections::BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(once.len(), all.len());
    }
}
