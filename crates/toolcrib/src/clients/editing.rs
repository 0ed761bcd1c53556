//! One entry in somebody's file: looked up, put in, taken out. Comments, order and layout of the rest stay.

use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstObject, CstRootNode},
};
use serde_json::{Map, Value};
use toml_edit::{Array, DocumentMut, Item, Table, TableLike};
use toolcrib_sources::mcp::plain_json;

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// JSON, with comments where somebody wrote some.
    Json,
    Toml,
}

/// Why a file is not touched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EditError {
    #[error("{0}")]
    Syntax(String),
    #[error("`{0}` in it is no object")]
    NoObject(String),
    #[error("the file holds no object")]
    NoRoot,
}

const MARK: &str = "\u{feff}";

/// The whole file as JSON; an empty one is an empty object.
pub(crate) fn read(text: &str, form: Form) -> Result<Value, EditError> {
    if blank(text) {
        return Ok(Value::Object(Map::new()));
    }
    match form {
        Form::Json => {
            let plain = plain_json(text.as_bytes())
                .map_err(|fault| EditError::Syntax(fault.to_string()))?;
            serde_json::from_slice(&plain).map_err(|error| EditError::Syntax(error.to_string()))
        }
        Form::Toml => toml_edit::de::from_str(text).map_err(|error| said(&error.to_string())),
    }
}

/// The entry of this name.
pub(crate) fn get(
    text: &str,
    form: Form,
    key: &str,
    name: &str,
) -> Result<Option<Value>, EditError> {
    let root = read(text, form)?;
    if !root.is_object() {
        return Err(EditError::NoRoot);
    }
    match root.get(key) {
        None => Ok(None),
        Some(Value::Object(servers)) => Ok(servers.get(name).cloned()),
        Some(_) => Err(EditError::NoObject(key.to_owned())),
    }
}

/// The text with this entry in it, in the place of one of the same name or behind the others.
pub(crate) fn put(
    text: &str,
    form: Form,
    key: &str,
    name: &str,
    entry: &Map<String, Value>,
) -> Result<String, EditError> {
    // Whatever is wrong with the file, this says it.
    get(text, form, key, name)?;
    match form {
        Form::Json => put_json(text, key, name, entry),
        Form::Toml => put_toml(text, key, name, entry),
    }
}

/// The text without the entry of this name; nothing where it has none.
pub(crate) fn take(
    text: &str,
    form: Form,
    key: &str,
    name: &str,
) -> Result<Option<String>, EditError> {
    if get(text, form, key, name)?.is_none() {
        return Ok(None);
    }
    match form {
        Form::Json => {
            let (mark, root) = parse(text)?;
            let servers = root.object_value().and_then(|it| it.object_value(key));
            if let Some(entry) = servers.and_then(|it| it.get(name)) {
                entry.remove();
            }
            Ok(Some(format!("{mark}{root}")))
        }
        Form::Toml => {
            let mut document: DocumentMut =
                text.parse().map_err(|error: toml_edit::TomlError| said(&error.to_string()))?;
            if let Some(servers) = document.get_mut(key).and_then(Item::as_table_like_mut) {
                servers.remove(name);
            }
            Ok(Some(document.to_string()))
        }
    }
}

fn blank(text: &str) -> bool {
    text.trim_start_matches(MARK).trim().is_empty()
}

/// The first line of what a reader says: the rest shows the file, and there are secrets in it.
fn said(message: &str) -> EditError {
    EditError::Syntax(message.lines().next().unwrap_or_default().to_owned())
}

fn parse(text: &str) -> Result<(&'static str, CstRootNode), EditError> {
    let (mark, text) = match text.strip_prefix(MARK) {
        Some(rest) => (MARK, rest),
        None => ("", text),
    };
    let root = CstRootNode::parse(text, &ParseOptions::default());
    Ok((mark, root.map_err(|error| said(&error.kind().to_string()))?))
}

fn put_json(
    text: &str,
    key: &str,
    name: &str,
    entry: &Map<String, Value>,
) -> Result<String, EditError> {
    let fresh = blank(text);
    let (mark, root) = parse(if fresh { "{\n}\n" } else { text })?;
    let all = root.object_value().ok_or(EditError::NoRoot)?;
    let servers = member(&all, key)?;
    let value = input(&Value::Object(entry.clone()));
    match servers.get(name) {
        Some(there) => there.set_value(value),
        None => drop(servers.append(name, value)),
    }
    Ok(format!("{mark}{root}"))
}

/// The object under a key, which is added where it is not there.
fn member(all: &CstObject, key: &str) -> Result<CstObject, EditError> {
    all.object_value_or_create(key).ok_or_else(|| EditError::NoObject(key.to_owned()))
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(it) => CstInputValue::Bool(*it),
        Value::Number(it) => CstInputValue::Number(it.to_string()),
        Value::String(it) => CstInputValue::String(it.clone()),
        Value::Array(all) => CstInputValue::Array(all.iter().map(input).collect()),
        Value::Object(all) => {
            CstInputValue::Object(all.iter().map(|(key, it)| (key.clone(), input(it))).collect())
        }
    }
}

fn put_toml(
    text: &str,
    key: &str,
    name: &str,
    entry: &Map<String, Value>,
) -> Result<String, EditError> {
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| said(&error.to_string()))?;
    let mut table = Table::new();
    for (key, value) in entry {
        table.insert(key, toml_value(value));
    }
    let servers = document.entry(key).or_insert_with(|| {
        let mut servers = Table::new();
        // Only what stands in it is written, not a heading without anything below it.
        servers.set_implicit(true);
        Item::Table(servers)
    });
    let servers: &mut dyn TableLike =
        servers.as_table_like_mut().ok_or_else(|| EditError::NoObject(key.to_owned()))?;
    servers.insert(name, Item::Table(table));
    Ok(document.to_string())
}

fn toml_value(value: &Value) -> Item {
    let plain = |value: &Value| match value {
        Value::Bool(it) => toml_edit::Value::from(*it),
        Value::Number(it) if it.as_i64().is_some() => it.as_i64().unwrap_or_default().into(),
        Value::String(it) => it.as_str().into(),
        other => other.to_string().into(),
    };
    match value {
        Value::Array(all) => Item::Value(all.iter().map(plain).collect::<Array>().into()),
        Value::Object(all) => {
            let table = all.iter().map(|(key, it)| (key.as_str(), plain(it)));
            Item::Value(table.collect::<toml_edit::InlineTable>().into())
        }
        other => Item::Value(plain(other)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn entry() -> Map<String, Value> {
        let entry = json!({ "command": "/bin/toolcrib", "args": ["serve", "--stdio", "/a \"b\""] });
        entry.as_object().cloned().unwrap()
    }

    fn put_json(text: &str) -> String {
        put(text, Form::Json, "mcpServers", "toolcrib", &entry()).unwrap()
    }

    #[test]
    fn an_entry_is_put_into_json() {
        insta::assert_snapshot!(put_json(""), @r#"
    {
      "mcpServers": {
        "toolcrib": {
          "command": "/bin/toolcrib",
          "args": ["serve", "--stdio", "/a \"b\""]
        }
      }
    }
    "#);
        insta::assert_snapshot!(put_json("{}"), @r#"
    {
      "mcpServers": {
        "toolcrib": {
          "command": "/bin/toolcrib",
          "args": ["serve", "--stdio", "/a \"b\""]
        }
      }
    }
    "#);
        let commented = "// mine\n{\n    \"theme\": \"dark\", // as I like it\n    \"mcpServers\": {\n        /* the first */\n        \"git\": { \"command\": \"x\" },\n    },\n}\n";
        insta::assert_snapshot!(put_json(commented), @r#"
    // mine
    {
        "theme": "dark", // as I like it
        "mcpServers": {
            /* the first */
            "git": { "command": "x" },
            "toolcrib": {
                "command": "/bin/toolcrib",
                "args": ["serve", "--stdio", "/a \"b\""],
            },
        },
    }
    "#);
        insta::assert_snapshot!(put_json("\u{feff}{\"mcpServers\":{\"a\":{}}}").escape_debug(), @r#"\u{feff}{\"mcpServers\":{\n    \"a\":{},\n    \"toolcrib\": {\n      \"command\": \"/bin/toolcrib\",\n      \"args\": [\"serve\", \"--stdio\", \"/a \\\"b\\\"\"]\n    }\n  }}"#);
        insta::assert_snapshot!(put_json("{\r\n\t\"mcpServers\": {\r\n\t}\r\n}\r\n").escape_debug(), @r#"{\r\n\t\"mcpServers\": {\r\n\t\t\"toolcrib\": {\r\n\t\t\t\"command\": \"/bin/toolcrib\",\r\n\t\t\t\"args\": [\"serve\", \"--stdio\", \"/a \\\"b\\\"\"]\r\n\t\t}\r\n\t}\r\n}\r\n"#);
        // One of the same name is replaced where it stands.
        let there = put_json("{\"mcpServers\": {\"toolcrib\": 1, \"b\": 2}}");
        insta::assert_snapshot!(there, @r#"
    {"mcpServers": {"toolcrib": {
          "command": "/bin/toolcrib",
          "args": ["serve", "--stdio", "/a \"b\""]
        }, "b": 2}}
    "#);
    }

    #[test]
    fn an_entry_is_taken_out_of_json() {
        let take = |text: &str| take(text, Form::Json, "mcpServers", "toolcrib").unwrap();
        assert_eq!(take("{}"), None);
        let text = "{\n  // a\n  \"mcpServers\": {\n    \"a\": 1, // one\n    \"toolcrib\": 2,\n    \"b\": 3\n  }\n}\n";
        insta::assert_snapshot!(take(text).unwrap(), @r#"
    {
      // a
      "mcpServers": {
        "a": 1, // one
        "b": 3
      }
    }
    "#);
    }

    #[test]
    fn an_entry_is_put_into_toml_and_taken_out() {
        let put = |text: &str| put(text, Form::Toml, "mcp_servers", "toolcrib", &entry()).unwrap();
        insta::assert_snapshot!(put(""), @r#"
    [mcp_servers.toolcrib]
    command = "/bin/toolcrib"
    args = ["serve", "--stdio", '/a "b"']
    "#);
        let text = "# mine\nmodel = \"x\" # good\n\n[mcp_servers.git] # the first\ncommand = \"x\"\n\n[tui]\na = 1\n";
        let with = put(text);
        insta::assert_snapshot!(with, @r#"
    # mine
    model = "x" # good

    [mcp_servers.git] # the first
    command = "x"

    [mcp_servers.toolcrib]
    command = "/bin/toolcrib"
    args = ["serve", "--stdio", '/a "b"']

    [tui]
    a = 1
    "#);
        let without = take(&with, Form::Toml, "mcp_servers", "toolcrib").unwrap().unwrap();
        assert_eq!(without, text);
        let inline = put("mcp_servers = { git = { command = \"x\" } }\n");
        insta::assert_snapshot!(inline, @r#"mcp_servers = { git = { command = "x" } , toolcrib = { command = "/bin/toolcrib", args = ["serve", "--stdio", '/a "b"'] } }"#);
    }

    #[test]
    fn what_is_no_list_of_servers_is_not_touched() {
        let fail = |text: &str, form, key| {
            put(text, form, key, "toolcrib", &entry()).unwrap_err().to_string()
        };
        assert_eq!(fail("[]", Form::Json, "mcpServers"), "the file holds no object");
        assert_eq!(fail("{\"a\": []}", Form::Json, "a"), "`a` in it is no object");
        insta::assert_snapshot!(fail("{\"a\": {}, 'hunter22' }", Form::Json, "a"), @"line 1, column 11: not valid JSON: unexpected `'` (hint: strings stand in double quotes)");
        insta::assert_snapshot!(fail("a = hunter22 hunter22", Form::Toml, "a"), @"TOML parse error at line 1, column 5");
        insta::assert_snapshot!(fail("a = 7", Form::Toml, "a"), @"`a` in it is no object");
        let deep = format!("{{\"a\": {}{}}}", "[".repeat(5000), "]".repeat(5000));
        insta::assert_snapshot!(fail(&deep, Form::Json, "a"), @"line 1, column 133: not valid JSON: nested deeper than 127");
        let deep = format!("a = {}{}", "[".repeat(5000), "]".repeat(5000));
        insta::assert_snapshot!(fail(&deep, Form::Toml, "a"), @"TOML parse error at line 1, column 85");
    }

    /// Pieces of which a file, or something like one, can be put together.
    fn pieces() -> impl Strategy<Value = String> {
        let words = "{|}|[|]|,|:|\"|\\|//|/*|*/|\n|\r\n| |null|1|\"mcpServers\"|\"toolcrib\"|{\"mcpServers\": {|\"a\": {}|}}|é|\u{feff}";
        let words: Vec<&str> = words.split('|').collect();
        let piece = prop_oneof![9 => prop::sample::select(words).prop_map(String::from), 1 => any::<String>()];
        prop::collection::vec(piece, 0..20).prop_map(|it| it.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        /// Whatever the file: it is refused, or the entry is in it, everything else is as it was, and it can be taken out.
        #[test]
        fn any_file(text in pieces()) {
            let (form, key, name) = (Form::Json, "mcpServers", "toolcrib");
            if let Ok(with) = put(&text, form, key, name, &entry()) {
                let mut expected = read(&text, form).unwrap();
                expected[key][name] = Value::Object(entry());
                prop_assert_eq!(read(&with, form).unwrap(), expected.clone());
                let without = take(&with, form, key, name).unwrap().unwrap();
                expected[key].as_object_mut().unwrap().shift_remove(name);
                prop_assert_eq!(read(&without, form).unwrap(), expected);
            }
        }
    }
}
