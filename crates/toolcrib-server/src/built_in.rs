//! Tools that are part of the gateway. A group sees one by its view, because results may be too large for
//! it, or because its `exposed_tools` names it literally.

pub(crate) mod artifact;
pub(crate) mod events;
pub(crate) mod search;
pub(crate) mod several;

use std::sync::Arc;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use toolcrib_wire::json::member;

use crate::{access::Caller, gateway::Gateway};

/// Their names, which no other tool can have.
pub(crate) const NAMES: [&str; 8] = [
    CALL_TOOL,
    CALL_TOOLS,
    "describe_tools",
    "events_ack",
    "events_poll",
    "events_publish",
    READ_ARTIFACT,
    SEARCH_TOOLS,
];

/// Those that the search view consists of.
pub(crate) const SEARCH_VIEW: [&str; 3] = [CALL_TOOL, "describe_tools", SEARCH_TOOLS];

/// Calls another tool; the one who answers a call looks through it.
pub(crate) const CALL_TOOL: &str = "call_tool";

/// Makes several calls; only for those who name it.
pub(crate) const CALL_TOOLS: &str = "call_tools";

/// Reads pieces of what was kept.
pub(crate) const READ_ARTIFACT: &str = "read_artifact";

/// Finds tools.
pub(crate) const SEARCH_TOOLS: &str = "search_tools";

/// Whether a name is one of these.
pub(crate) fn is_reserved(name: &str) -> bool {
    NAMES.contains(&name)
}

/// The definition of one of these.
pub(crate) fn definition(name: &str) -> &'static str {
    match name {
        CALL_TOOL => search::CALL,
        CALL_TOOLS => several::CALL,
        "describe_tools" => search::DESCRIBE,
        "events_ack" => events::ACK,
        "events_poll" => events::POLL,
        "events_publish" => events::PUBLISH,
        READ_ARTIFACT => artifact::READ,
        _ => search::SEARCH,
    }
}

/// What one of these has to say.
pub(crate) struct Done {
    pub(crate) text: String,
    /// JSON, written already: numbers stay as their senders wrote them.
    pub(crate) structure: Option<String>,
}

/// Calls one of these: the result, which says so where it failed. What is done under the same name is done
/// `once`.
pub(crate) async fn call(
    gateway: &Arc<Gateway>,
    caller: &Caller,
    name: &str,
    params: &Bytes,
    once: Option<&str>,
) -> Bytes {
    let arguments = member(params, "arguments").map_or(&b"{}"[..], |at| &params[at]);
    let arguments = if arguments == b"null" { b"{}" } else { arguments };
    let done = match name {
        SEARCH_TOOLS => search::find(gateway, caller, arguments).await,
        "describe_tools" => search::describe(gateway, caller, arguments).await,
        READ_ARTIFACT => return artifact::read(gateway, caller, arguments).await,
        "events_poll" => {
            events::poll(gateway, caller, arguments).await.map_err(|it| it.to_string())
        }
        "events_ack" => events::ack(gateway, caller, arguments).await.map_err(|it| it.to_string()),
        _ => {
            let published = events::publish(gateway, caller, arguments, params, once).await;
            published.map_err(|it| it.to_string())
        }
    };
    match done {
        Ok(Done { text, structure }) => result(&text, structure.as_deref()),
        Err(cause) => refusal(&cause),
    }
}

/// A result that says this.
pub(crate) fn result(text: &str, structure: Option<&str>) -> Bytes {
    let text = Value::from(text);
    let structure = structure.map(|it| format!(r#","structuredContent":{it}"#)).unwrap_or_default();
    format!(r#"{{"content":[{{"type":"text","text":{text}}}]{structure},"isError":false}}"#).into()
}

/// A result that says why not.
pub(crate) fn refusal(cause: &str) -> Bytes {
    let content = json!([{ "type": "text", "text": cause }]);
    json!({ "content": content, "isError": true }).to_string().into()
}

fn read<T: DeserializeOwned>(arguments: &[u8]) -> Result<T, String> {
    serde_json::from_slice(arguments).map_err(|error| format!("the arguments do not fit: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_what_they_are_called() {
        for name in NAMES {
            let value: Value = serde_json::from_str(definition(name)).unwrap();
            assert_eq!(value["name"], name);
            assert!(
                toolcrib_catalogue::Validator::new(
                    &toolcrib_catalogue::Json::of(&value["inputSchema"]).unwrap()
                )
                .is_ok()
            );
        }
        assert!(NAMES.is_sorted());
    }
}
