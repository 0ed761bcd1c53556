//! Hints on how a tool is named and described, by the conventions of seed 002.
//!
//! A model chooses a tool by its name and description, so a vague name costs calls. But a hint is a
//! matter of taste, and nobody reads the tenth false one: a rule speaks only where it is sure, and a
//! word that it does not know is taken to be fine.

use serde::Serialize;
use serde_json::Value;

use crate::{Json, Tool, poison::visible};

/// What could be better about a definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hint {
    /// Where: `name`, `description`, `inputSchema.properties.x`.
    pub place: String,
    /// What is not as it should be.
    pub message: String,
    /// What would be, if that can be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub better: Option<String>,
}

/// How the schema of a tool came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// Somebody wrote it; parameters are expected in camelCase.
    ByHand,
    /// It follows from code, and so do the names of its parameters.
    FromCode,
}

/// Names longer than this are hard to read.
const NAME: usize = 40;
/// Descriptions longer than this are hardly concise, in characters.
const DESCRIPTION: usize = 2000;
/// How many parameters are spoken of one by one.
const PARAMETERS: usize = 20;

/// What could be better about `tool`.
///
/// ```
/// use toolcrib_catalogue::{Json, Tool, lint};
///
/// let tool = Tool::read(Json::parse(r#"{"name": "getUserProfile", "description": "Get the profile of a user"}"#)?)?;
/// let hints = lint::hints(&tool, lint::Schema::ByHand);
/// assert_eq!(hints[0].better.as_deref(), Some("get_user_profile"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn hints(tool: &Tool, schema: Schema) -> Vec<Hint> {
    let mut hints = Vec::new();
    hint_name(&tool.name, &mut hints);
    hint_description(tool, &mut hints);
    hint_parameters(tool, schema, &mut hints);
    hints
}

fn hint(place: &str, message: String, better: Option<String>) -> Hint {
    Hint { place: place.to_owned(), message, better }
}

fn hint_name(name: &str, hints: &mut Vec<Hint>) {
    let pieces = pieces(name);
    let snake = pieces.join("_");
    // Names in scripts without capitals have no snake case to be put into.
    if name.is_ascii() && name != snake && !snake.is_empty() {
        let message = format!("`{}` is not in snake_case", shown(name));
        hints.push(hint("name", message, Some(snake.clone())));
    }
    if let [only] = pieces.as_slice()
        && VERBS.contains(&only.as_str())
        && TRANSITIVE.contains(&only.as_str())
    {
        let message = format!("`{only}` is vague: it does not say what it acts on");
        hints.push(hint("name", message, None));
    }
    hint_action(&pieces, hints);
    let long = |short: &str| SHORT.iter().find(|it| it.0 == short).map(|it| it.1);
    if let Some(short) = pieces.iter().find(|it| long(it).is_some()) {
        let spelled: Vec<&str> = pieces.iter().map(|it| long(it).unwrap_or(it)).collect();
        let message = format!("`{short}` is an abbreviation");
        hints.push(hint("name", message, Some(spelled.join("_"))));
    }
    if pieces.iter().any(|it| it == "crud") {
        let message = "`crud` is unclear: make one tool of each action".to_owned();
        hints.push(hint("name", message, None));
    }
    if name.chars().count() > NAME {
        let message = format!("the name is longer than {NAME} characters");
        hints.push(hint("name", message, None));
    }
}

/// The action stands first: `create_user`, not `user_create`. A name of things alone may be fine
/// (`git_status`), so only what could be put right is spoken of.
fn hint_action(pieces: &[String], hints: &mut Vec<Hint>) {
    let is_verb = |it: &String| VERBS.contains(&it.as_str());
    let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { return };
    let noun = |it: &String| THINGS.contains(&it.trim_end_matches('s'));
    if pieces.len() > 1 && noun(first) && is_verb(last) && !pieces.iter().rev().skip(1).any(is_verb)
    {
        let rest = pieces.get(..pieces.len() - 1).unwrap_or_default().join("_");
        let message = format!("the action, `{last}`, does not stand first");
        hints.push(hint("name", message, Some(format!("{last}_{rest}"))));
    } else if pieces.iter().all(noun) {
        hints.push(hint("name", "the name does not say what the tool does".to_owned(), None));
    }
}

fn hint_description(tool: &Tool, hints: &mut Vec<Hint>) {
    let text = tool.description.as_deref().unwrap_or_default().trim();
    if text.is_empty() {
        return hints.push(hint("description", "there is no description".to_owned(), None));
    }
    if text.is_ascii() && pieces(text) == pieces(&tool.name) {
        let message = "the description says no more than the name".to_owned();
        hints.push(hint("description", message, None));
    } else if text.is_ascii() && text.split_whitespace().count() < 2 {
        hints.push(hint("description", "the description is a single word".to_owned(), None));
    }
    for opening in
        ["This tool ", "This function ", "A tool that ", "A tool to ", "Tool to ", "Tool that "]
    {
        if text.get(..opening.len()).is_some_and(|it| it.eq_ignore_ascii_case(opening)) {
            let message = format!(
                "the description begins with `{}` and not with what it does",
                opening.trim()
            );
            hints.push(hint("description", message, None));
        }
    }
    if text.len() > DESCRIPTION && text.chars().count() > DESCRIPTION {
        let message = format!("the description is longer than {DESCRIPTION} characters");
        hints.push(hint("description", message, None));
    }
}

fn hint_parameters(tool: &Tool, schema: Schema, hints: &mut Vec<Hint>) {
    let Some(written) = tool.input_schema.as_ref().and_then(Json::get::<Value>) else { return };
    let Some(properties) = written.get("properties").and_then(Value::as_object) else { return };
    let bare = |it: &Value| {
        let text = it.get("description").and_then(Value::as_str).unwrap_or_default();
        // What is defined elsewhere may be described there.
        text.trim().is_empty() && it.get("$ref").is_none() && it.get("const").is_none()
    };
    let mut all = 0;
    for (name, property) in properties {
        let place = format!("inputSchema.properties.{}", shown(name));
        let camel = camel(name);
        let mut add = |message: String, better: Option<String>| {
            all += 1;
            if all <= PARAMETERS {
                hints.push(hint(&place, message, better));
            }
        };
        if bare(property) {
            add(format!("the parameter `{}` is not described", shown(name)), None);
        }
        if schema == Schema::ByHand
            && name.is_ascii()
            && *name != camel
            && !camel.is_empty()
            && !is_special(name)
        {
            add(format!("the parameter `{}` is not in camelCase", shown(name)), Some(camel));
        }
    }
    if all > PARAMETERS {
        let message = format!("{} more hints on parameters", all - PARAMETERS);
        hints.push(hint("inputSchema.properties", message, None));
    }
}

/// Names with a meaning of their own: `$schema`, `_meta`, `X-Api-Key`, `-A`, `ID`.
fn is_special(name: &str) -> bool {
    let begins = name.starts_with(|it: char| !it.is_ascii_alphabetic());
    begins
        || name.contains(['-', '.', '[', ':', ' '])
        || name.bytes().all(|it| it.is_ascii_uppercase() || it == b'_')
}

/// `name` short and with everything to be seen.
fn shown(name: &str) -> String {
    visible(name).chars().take(80).collect()
}

/// The pieces of a name in small letters: `getUserProfile` is `get`, `user`, `profile`; a row of
/// capitals is one piece (`parseHTMLPage`: `parse`, `html`, `page`).
fn pieces(name: &str) -> Vec<String> {
    let chars: Vec<char> = name.chars().take(4 * NAME).collect();
    let mut all: Vec<String> = Vec::new();
    let mut open = false;
    for (at, &c) in chars.iter().enumerate() {
        if !c.is_alphanumeric() {
            open = false;
            continue;
        }
        let before = at.checked_sub(1).and_then(|it| chars.get(it));
        let next_small = chars.get(at + 1).is_some_and(|it| it.is_lowercase());
        let after_small = before.is_some_and(|it| it.is_lowercase() || it.is_ascii_digit());
        let begins = c.is_uppercase() && (after_small || next_small);
        match all.last_mut().filter(|_| open && !begins) {
            Some(piece) => piece.extend(c.to_lowercase()),
            None => all.push(c.to_lowercase().collect()),
        }
        open = true;
    }
    all
}

fn camel(name: &str) -> String {
    // A name of one word, however it is capitalised inside, is left alone.
    if !name.contains('_') && name.starts_with(|it: char| it.is_ascii_lowercase()) {
        return name.to_owned();
    }
    let mut camel = String::with_capacity(name.len());
    for (number, piece) in pieces(name).iter().enumerate() {
        let mut letters = piece.chars();
        match letters.next() {
            Some(first) if number > 0 => camel.extend(first.to_uppercase()),
            Some(first) => camel.push(first),
            None => (),
        }
        camel.push_str(letters.as_str());
    }
    camel
}

/// Words that name an action.
const VERBS: &[&str] = &[
    "add",
    "analyze",
    "append",
    "apply",
    "approve",
    "archive",
    "assign",
    "book",
    "build",
    "calculate",
    "call",
    "cancel",
    "check",
    "clear",
    "click",
    "clone",
    "close",
    "commit",
    "compare",
    "convert",
    "copy",
    "count",
    "create",
    "delete",
    "deploy",
    "describe",
    "download",
    "edit",
    "evaluate",
    "execute",
    "explain",
    "export",
    "fetch",
    "find",
    "generate",
    "get",
    "import",
    "insert",
    "install",
    "invoke",
    "list",
    "load",
    "lookup",
    "merge",
    "move",
    "open",
    "parse",
    "publish",
    "push",
    "query",
    "read",
    "remove",
    "rename",
    "render",
    "resolve",
    "restart",
    "retrieve",
    "run",
    "save",
    "scan",
    "schedule",
    "search",
    "send",
    "show",
    "start",
    "stop",
    "submit",
    "summarize",
    "transform",
    "translate",
    "trigger",
    "update",
    "upload",
    "upsert",
    "validate",
    "verify",
    "write",
];

/// Actions that say nothing without what they act on.
const TRANSITIVE: &[&str] = &[
    "add",
    "analyze",
    "apply",
    "call",
    "check",
    "create",
    "delete",
    "describe",
    "edit",
    "execute",
    "export",
    "fetch",
    "find",
    "generate",
    "get",
    "import",
    "insert",
    "invoke",
    "list",
    "load",
    "lookup",
    "move",
    "open",
    "parse",
    "query",
    "read",
    "remove",
    "retrieve",
    "run",
    "save",
    "scan",
    "search",
    "send",
    "show",
    "start",
    "stop",
    "submit",
    "transform",
    "trigger",
    "update",
    "upload",
    "upsert",
    "validate",
    "verify",
    "write",
];

/// Words that name a thing and are no action.
const THINGS: &[&str] = &[
    "account",
    "address",
    "article",
    "branch",
    "calendar",
    "channel",
    "comment",
    "contact",
    "customer",
    "data",
    "database",
    "directory",
    "document",
    "email",
    "event",
    "file",
    "folder",
    "image",
    "info",
    "invoice",
    "issue",
    "item",
    "message",
    "note",
    "order",
    "page",
    "payment",
    "product",
    "profile",
    "project",
    "record",
    "report",
    "repository",
    "resource",
    "row",
    "setting",
    "table",
    "task",
    "team",
    "ticket",
    "token",
    "transaction",
    "user",
    "video",
    "weather",
    "workflow",
];

/// Abbreviations that nobody needs, and what they stand for. Those that everybody says (`id`, `url`,
/// `api`, `db`, `repo`) are none.
const SHORT: &[(&str, &str)] = &[
    ("acct", "account"),
    ("addr", "address"),
    ("amt", "amount"),
    ("attr", "attribute"),
    ("btn", "button"),
    ("calc", "calculate"),
    ("cfg", "config"),
    ("cmd", "command"),
    ("cnt", "count"),
    ("ctx", "context"),
    ("cust", "customer"),
    ("del", "delete"),
    ("dept", "department"),
    ("desc", "description"),
    ("dest", "destination"),
    ("dl", "download"),
    ("dup", "duplicate"),
    ("emp", "employee"),
    ("err", "error"),
    ("evt", "event"),
    ("exec", "execute"),
    ("gen", "generate"),
    ("img", "image"),
    ("inv", "invoice"),
    ("mgmt", "management"),
    ("mgr", "manager"),
    ("msg", "message"),
    ("msgs", "messages"),
    ("num", "number"),
    ("obj", "object"),
    ("pkg", "package"),
    ("pr", "pull_request"),
    ("prj", "project"),
    ("proj", "project"),
    ("prs", "pull_requests"),
    ("pwd", "password"),
    ("qty", "quantity"),
    ("req", "request"),
    ("resp", "response"),
    ("rm", "remove"),
    ("srch", "search"),
    ("stmt", "statement"),
    ("svc", "service"),
    ("tbl", "table"),
    ("txn", "transaction"),
    ("txt", "text"),
    ("upd", "update"),
    ("usr", "user"),
    ("val", "value"),
    ("ver", "version"),
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(tool: &Value, schema: Schema, expected: &[&str]) {
        let tool = Tool::read(Json::of(tool).unwrap()).unwrap();
        let shown: Vec<String> = hints(&tool, schema)
            .into_iter()
            .map(|it| match it.better {
                Some(better) => format!("{}: {} ({better})", it.place, it.message),
                None => format!("{}: {}", it.place, it.message),
            })
            .collect();
        assert_eq!(shown, expected);
    }

    #[track_caller]
    fn check_name(name: &str, expected: &[&str]) {
        check(
            &json!({ "name": name, "description": "Says what it does." }),
            Schema::ByHand,
            expected,
        );
    }

    #[test]
    fn the_seeds_good_names_are_good_and_those_to_avoid_are_not() {
        for good in [
            "search_issues",
            "create_pull_request",
            "get_user_profile",
            "analyze_code",
            "git_status",
            "echo",
            "think",
        ] {
            check_name(good, &[]);
        }
        check_name("search", &["name: `search` is vague: it does not say what it acts on"]);
        check_name(
            "getUserProfile",
            &["name: `getUserProfile` is not in snake_case (get_user_profile)"],
        );
        check_name(
            "crud_pr",
            &[
                "name: `pr` is an abbreviation (crud_pull_request)",
                "name: `crud` is unclear: make one tool of each action",
            ],
        );
    }

    #[test]
    fn names_begin_with_the_action_and_are_short() {
        check_name(
            "user_create",
            &["name: the action, `create`, does not stand first (create_user)"],
        );
        check_name("customer_data", &["name: the name does not say what the tool does"]);
        check_name(
            "parseHTMLPage",
            &["name: `parseHTMLPage` is not in snake_case (parse_html_page)"],
        );
        check_name(
            "Send-Msg",
            &[
                "name: `Send-Msg` is not in snake_case (send_msg)",
                "name: `msg` is an abbreviation (send_message)",
            ],
        );
        check_name("查询天气", &[]);
        let long = format!("read_{}", "a".repeat(50));
        check_name(&long, &["name: the name is longer than 40 characters"]);
    }

    #[test]
    fn descriptions_say_something() {
        let check = |description: Value, expected: &[&str]| {
            check(
                &json!({ "name": "read_file", "description": description }),
                Schema::ByHand,
                expected,
            );
        };
        check(json!("Read a file."), &[]);
        check(json!(null), &["description: there is no description"]);
        check(json!("Read file"), &["description: the description says no more than the name"]);
        check(json!("Reads"), &["description: the description is a single word"]);
        check(
            json!("This tool reads a file."),
            &["description: the description begins with `This tool` and not with what it does"],
        );
        check(
            json!("long ".repeat(500)),
            &["description: the description is longer than 2000 characters"],
        );
    }

    #[test]
    fn parameters_are_described_and_in_camel_case_where_written_by_hand() {
        let tool = json!({ "name": "read_file", "description": "Read a file.", "inputSchema": { "type": "object", "properties": {
            "path": { "type": "string" },
            "max_lines": { "type": "integer", "description": "How many" },
            "includeHidden": { "description": "Whether" },
            "X-Key": { "description": "Key" }, "_meta": { "description": "Meta" }, "ref": { "$ref": "#/$defs/ref" },
        } } });
        let bare = "inputSchema.properties.path: the parameter `path` is not described";
        check(&tool, Schema::FromCode, &[bare]);
        let snake = "inputSchema.properties.max_lines: the parameter `max_lines` is not in camelCase (maxLines)";
        check(&tool, Schema::ByHand, &[bare, snake]);
    }

    #[test]
    fn many_parameters_make_few_hints() {
        let properties: Value = (0..1000)
            .map(|it| (format!("p{it}"), json!({})))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let tool = json!({ "name": "read_file", "description": "Read a file.", "inputSchema": { "properties": properties } });
        let hints = hints(&Tool::read(Json::of(&tool).unwrap()).unwrap(), Schema::ByHand);
        assert_eq!(hints.len(), PARAMETERS + 1);
        assert_eq!(hints[PARAMETERS].message, "980 more hints on parameters");
    }
}
