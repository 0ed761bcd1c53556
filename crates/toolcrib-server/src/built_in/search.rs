//! The tools of the search view: find tools, read what they take, call them. What a group may not call it
//! cannot find either, and learns no more of it than of what does not exist.

use std::{fmt::Write, ops::Range, sync::Arc};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib_catalogue::{Tool, nearest};
use toolcrib_wire::json::{member, members};

use super::{Done, read};
use crate::{access::Caller, gateway::Gateway, snapshot::Snapshot};

pub(super) const SEARCH: &str = r#"{"name":"search_tools","title":"Search tools","description":"Find tools by what they do. Answers short cards, the best first. Read the arguments of those you need with describe_tools, then call one with call_tool.","inputSchema":{"type":"object","properties":{"query":{"type":"string","minLength":1,"maxLength":1000,"description":"What you want to do, in a few words"},"top":{"type":"integer","minimum":1,"maximum":20,"default":5,"description":"How many cards"},"page":{"type":"integer","minimum":1,"maximum":10,"default":1,"description":"2 for the cards after those, and so on"}},"required":["query"],"additionalProperties":false},"outputSchema":{"type":"object","properties":{"tools":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"description":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}},"cost":{"type":"number"},"score":{"type":"number"},"also":{"type":"array","items":{"type":"string"}}},"required":["name","score"]}},"total":{"type":"integer"},"has_more":{"type":"boolean"}},"required":["tools","total"]},"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#;

pub(super) const DESCRIBE: &str = r#"{"name":"describe_tools","title":"Describe tools","description":"Get the full definitions of tools, with the schema of their arguments: one JSON object a line.","inputSchema":{"type":"object","properties":{"names":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":20,"description":"Names as search_tools gives them"}},"required":["names"],"additionalProperties":false},"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#;

pub(super) const CALL: &str = r#"{"name":"call_tool","title":"Call a tool","description":"Call a tool by its name. Get its arguments from describe_tools first.","inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"The tool, as search_tools names it"},"arguments":{"type":"object","description":"What the tool takes"}},"required":["name"],"additionalProperties":false},"annotations":{"readOnlyHint":false,"openWorldHint":true}}"#;

/// How much of a description stands on a card.
const CARD_TEXT: usize = 160;

/// How many servers the definition of the search names.
const MOST_SERVERS: usize = 30;

/// How much is described at once.
const MOST_DESCRIBED: usize = 128 * 1024;

/// The longest query: it is in the schema too.
const MOST_ASKED: usize = 4_000;

/// The last page: whoever has read two hundred cards should ask otherwise.
const MOST_PAGES: usize = 10;

/// Among how many tools it is looked for what somebody meant.
const MOST_COMPARED: usize = 5_000;

/// The most near-identical tools that a card names.
const MOST_ALSO: usize = 5;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Find {
    query: String,
    /// Many call it `limit`, as the guide for tools does.
    #[serde(alias = "limit")]
    top: Option<usize>,
    page: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Describe {
    names: Vec<String>,
}

/// The definition of the search, with where the tools come from: a model that does not know what there is
/// does not look for it.
pub(crate) fn definition(servers: &[(Arc<str>, usize)]) -> String {
    let Ok(mut definition) = serde_json::from_str::<Value>(SEARCH) else {
        return SEARCH.to_owned();
    };
    let named = servers.iter().take(MOST_SERVERS).map(|(name, count)| format!("{name} ({count})"));
    let mut named = named.collect::<Vec<_>>().join(", ");
    if let Some(more) = servers.len().checked_sub(MOST_SERVERS).filter(|it| 0 < *it) {
        write!(named, " and {more} more").ok();
    }
    if !named.is_empty() {
        let text = definition["description"].as_str().unwrap_or_default();
        definition["description"] = json!(format!("{text} There are tools of: {named}."));
    }
    definition.to_string()
}

/// Finds tools.
pub(super) async fn find(
    gateway: &Arc<Gateway>,
    caller: &Caller,
    arguments: &[u8],
) -> Result<Done, String> {
    let Find { query, top, page } = read(arguments)?;
    let (top, page) = (top.unwrap_or(5), page.unwrap_or(1));
    if !(1..=20).contains(&top) {
        return Err("`top` must be between 1 and 20".to_owned());
    }
    if !(1..=MOST_PAGES).contains(&page) {
        return Err(format!("`page` must be between 1 and {MOST_PAGES}"));
    }
    if MOST_ASKED < query.len() {
        return Err(format!("`query` has {MOST_ASKED} bytes at most: a few words will do"));
    }
    if query.trim().is_empty() {
        return Err("say in `query` what you want to do, in a few words".to_owned());
    }
    gateway.first_lists().await;
    let snapshot = gateway.snapshot();
    // One more than is shown, to see whether there are more.
    let hits = gateway.search(&snapshot, caller, query, page * top + 1).await;
    let has_more = page * top < hits.len();
    let total = snapshot.visible(caller).count();
    let mut text = String::new();
    let mut cards = Vec::new();
    for hit in hits.iter().skip((page - 1) * top).take(top) {
        let Some(entry) = snapshot.tool(caller, &hit.key) else { continue };
        let card = Card::of(&entry.tool);
        writeln!(text, "{}{}", hit.key, card.line(&hit.also)).ok();
        cards.push(card.json(&hit.key, hit.score, &hit.also));
    }
    if cards.is_empty() && 1 < page {
        "There are no more.".clone_into(&mut text);
    } else if cards.is_empty() {
        text = format!("None of the {total} tools fits. Say it in other words.");
    }
    let structure = json!({ "tools": cards, "total": total, "has_more": has_more });
    let structure = structure.to_string();
    Ok(Done { text: text.trim_end().to_owned(), structure: Some(structure) })
}

/// What is told of a tool that was found. Tags are what its server claims, not what it does.
struct Card {
    description: String,
    tags: Vec<&'static str>,
    cost: Option<f64>,
}

impl Card {
    fn of(tool: &Tool) -> Self {
        let hints = [
            (tool.annotations.read_only_hint, "read-only"),
            (tool.annotations.destructive_hint, "destructive"),
        ];
        let tags = hints.into_iter().filter(|(it, _)| *it == Some(true)).map(|(_, tag)| tag);
        let description = tool.description.as_deref().or(tool.title.as_deref());
        Self {
            description: shortened(description.unwrap_or_default()),
            tags: tags.collect(),
            cost: cost(tool),
        }
    }

    fn line(&self, also: &[Arc<str>]) -> String {
        let mut line = String::new();
        if !self.description.is_empty() {
            write!(line, ": {}", self.description).ok();
        }
        let mut marks: Vec<String> = self.tags.iter().map(|it| (*it).to_owned()).collect();
        marks.extend(self.cost.map(|it| format!("cost {it}")));
        if !marks.is_empty() {
            write!(line, " [{}]", marks.join(", ")).ok();
        }
        if !also.is_empty() {
            let named: Vec<&str> = also.iter().take(MOST_ALSO).map(|it| &**it).collect();
            let more = also.len() - named.len();
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            write!(line, " (much the same: {}{more})", named.join(", ")).ok();
        }
        line
    }

    fn json(&self, name: &str, score: f64, also: &[Arc<str>]) -> Value {
        let score = (score * 1000.0).round() / 1000.0;
        let mut card = json!({ "name": name, "description": self.description, "score": score });
        if !self.tags.is_empty() {
            card["tags"] = json!(self.tags);
        }
        if let Some(cost) = self.cost {
            card["cost"] = json!(cost);
        }
        if !also.is_empty() {
            let also: Vec<&str> = also.iter().take(MOST_ALSO).map(|it| &**it).collect();
            card["also"] = json!(also);
        }
        card
    }
}

/// What a tool says it costs.
fn cost(tool: &Tool) -> Option<f64> {
    let raw = tool.raw.as_bytes();
    let annotations = &raw[member(raw, "annotations")?];
    let cost: f64 = serde_json::from_slice(&annotations[member(annotations, "costHint")?]).ok()?;
    Some(cost).filter(|it| it.is_finite())
}

/// A text in one line, and not a long one.
fn shortened(text: &str) -> String {
    let mut short = String::new();
    for word in text.split_whitespace() {
        if CARD_TEXT < short.len() + word.len() {
            let room = CARD_TEXT.saturating_sub(short.len());
            // One that never ends, such as in a language without spaces.
            if short.is_empty() {
                short.extend(word.chars().take(room / 2));
            }
            return short.trim_end().to_owned() + "…";
        }
        short.push_str(word);
        short.push(' ');
    }
    short.trim_end().to_owned()
}

/// Describes tools.
pub(super) async fn describe(
    gateway: &Gateway,
    caller: &Caller,
    arguments: &[u8],
) -> Result<Done, String> {
    let Describe { names } = read(arguments)?;
    if names.is_empty() || 20 < names.len() {
        return Err("`names` must name 1 to 20 tools".to_owned());
    }
    gateway.first_lists().await;
    let snapshot = gateway.snapshot();
    let (mut text, mut notes) = (String::new(), Vec::new());
    for name in &names {
        match snapshot.definition(caller, name) {
            None => notes.push(unknown(&snapshot, caller, name)),
            Some(definition) if MOST_DESCRIBED < text.len() + definition.len() => {
                let size = definition.len();
                notes.push(format!(
                    "The definition of `{name}` has {size} bytes; ask for it alone."
                ));
                // Alone it is shown whatever it is.
                if names.len() == 1 {
                    notes.clear();
                    text = definition;
                }
            }
            Some(definition) => text = text + &definition + "\n",
        }
    }
    if text.is_empty() {
        return Err(notes.join("\n"));
    }
    Ok(Done { text: (text + &notes.join("\n")).trim_end().to_owned(), structure: None })
}

/// What to say of a tool that there is not, or not for this caller.
pub(crate) fn unknown(snapshot: &Snapshot, caller: &Caller, name: &str) -> String {
    let shown: String = name.chars().take(100).collect();
    let shown = shown.escape_debug();
    // Looking for what was meant takes time with every letter and every tool.
    let brief = name.len() <= 128 && snapshot.visible(caller).nth(MOST_COMPARED).is_none();
    let names = snapshot.visible(caller).map(|it| &*it.name);
    match brief.then(|| nearest(name, names)).flatten() {
        Some(meant) => format!("There is no tool `{shown}`. Did you mean `{meant}`?"),
        None => format!("There is no tool `{shown}`. Find one with search_tools."),
    }
}

/// The params of the call that somebody makes through `call_tool`, and the name in them: everything but
/// name and arguments is as it was.
pub(crate) fn inner(params: &Bytes) -> Result<(String, Bytes), String> {
    let outer = member(params, "arguments").map_or(0..0, |at| at);
    let arguments = &params[outer];
    let inner = |key: &str| member(arguments, key).map(|at| &arguments[at]);
    let name: Option<String> = inner("name").and_then(|it| serde_json::from_slice(it).ok());
    let name = name.ok_or("`name` must be the name of a tool")?;
    if name == super::CALL_TOOL {
        return Err("`call_tool` does not call itself".to_owned());
    }
    let slip = members(arguments).into_iter().find(|(it, _)| it != "name" && it != "arguments");
    if let Some((slip, _)) = slip {
        let slip = slip.escape_debug();
        return Err(format!("what the tool takes belongs into `arguments`, also `{slip}`"));
    }
    let given = inner("arguments").unwrap_or(b"{}");
    if !matches!(given.first(), Some(b'{' | b'n')) {
        return Err("`arguments` must be an object".to_owned());
    }
    let mut text = Vec::with_capacity(params.len());
    let mut put = |key: &str, value: &[u8]| {
        text.push(if text.is_empty() { b'{' } else { b',' });
        text.extend_from_slice(Value::from(key).to_string().as_bytes());
        text.push(b':');
        text.extend_from_slice(value);
    };
    put("name", Value::from(name.as_str()).to_string().as_bytes());
    put("arguments", given);
    let rest =
        |(key, _): &(std::borrow::Cow<'_, str>, Range<usize>)| key != "name" && key != "arguments";
    for (key, at) in members(params).into_iter().filter(rest) {
        put(&key, &params[at]);
    }
    text.push(b'}');
    Ok((name, text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_through_another_keeps_what_belongs_to_the_request() {
        let params = r#"{"name":"call_tool","_meta":{"progressToken":1.0},"arguments":{"name":"a\u0062","arguments":{"n":1.10}}}"#;
        let (name, params) = inner(&Bytes::from_static(params.as_bytes())).unwrap();
        assert_eq!(name, "ab");
        assert_eq!(
            std::str::from_utf8(&params).unwrap(),
            r#"{"name":"ab","arguments":{"n":1.10},"_meta":{"progressToken":1.0}}"#
        );
        let refused = |text: &'static str| inner(&Bytes::from_static(text.as_bytes())).unwrap_err();
        assert!(refused(r#"{"arguments":{"name":"call_tool"}}"#).contains("itself"));
        assert!(refused(r#"{"arguments":{"name":"x","city":"Ulm"}}"#).contains("`city`"));
        assert!(refused(r#"{"arguments":{"name":"x","arguments":[1]}}"#).contains("object"));
        assert!(refused("{}").contains("`name`"));
    }

    #[test]
    fn cards_are_short() {
        let long = "word ".repeat(100);
        assert!(shortened(&long).len() <= CARD_TEXT + 3);
        assert_eq!(shortened("a\n  b"), "a b");
        assert_eq!(shortened(&"漢".repeat(500)).chars().count(), CARD_TEXT / 2 + 1);
    }

    #[test]
    fn the_search_says_where_tools_come_from() {
        let servers: Vec<_> = (0..32).map(|it| (format!("s{it}").into(), it)).collect();
        let definition = definition(&servers);
        assert!(
            definition.contains("s0 (0), s1 (1)") && definition.contains("s29 (29) and 2 more.")
        );
    }
}
