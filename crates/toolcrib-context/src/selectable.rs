//! A tool as somebody sees it who has to choose one.
//!
//! What a server says of its tools (read-only, destructive, costs) is copied into fields for display and ranking.
//! **Claims, not facts**: nothing here may decide who may call what, see `docs/context.md`.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use toolcrib_catalogue::{Tool, ToolFault};

use crate::pytext;

/// The namespace of tools whose name shows none.
const FALLBACK: &str = "mcp";

/// A tool, ready to be listed, searched and chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SelectableItem {
    /// `namespace:name`. Among many tools two may have the same one, see [`unique_ids`].
    pub id: String,
    /// First eight digits of a SHA-256 over the name and the names of the arguments: the same as long as calls
    /// look the same, whatever becomes of the descriptions.
    pub fingerprint: String,
    /// What the definition's `_meta.version` says, if that can stand in an id.
    pub version: Option<String>,
    /// What it is: always `tool`.
    pub kind: String,
    /// What its server calls it.
    pub name: String,
    /// What it does; empty where its server does not say.
    pub description: String,
    /// Where it belongs, as far as the name shows, see [`infer_namespace`].
    pub namespace: String,
    /// `mcp`; `read-only` and `destructive` where the server claims so.
    pub tags: Vec<String>,
    /// False only where the server claims that it is read-only.
    pub side_effects: bool,
    /// Whether it may destroy something, by MCP's rule for what is not said: a tool may, unless its server says
    /// that it is read-only or that it only adds. A tag says what was claimed, this what follows from silence.
    pub may_destroy: bool,
    /// What a call costs, as the server puts it; 0 where it does not say.
    pub cost_hint: f64,
    /// The schema of its arguments.
    pub args_schema: Map<String, Value>,
    /// The schema of its structured result, where there is one.
    pub output_schema: Option<Map<String, Value>>,
    /// Whatever else the server claims of it.
    pub metadata: Map<String, Value>,
}

impl SelectableItem {
    /// The id that is the tool's own without a look at others: `namespace:name@version`, or
    /// `namespace:name#fingerprint` where there is no version.
    pub fn full_id(&self) -> String {
        match &self.version {
            Some(version) => format!("{}@{version}", self.id),
            None => format!("{}#{}", self.id, self.fingerprint),
        }
    }
}

/// The first part of a name, where it has one that looks like the name of a server; else `mcp`.
///
/// A dot counts before a slash, a slash before underscores, of which there must be two.
///
/// ```
/// use toolcrib_context::infer_namespace;
///
/// assert_eq!(infer_namespace("github.create_issue"), "github");
/// assert_eq!(infer_namespace("filesystem/read"), "filesystem");
/// assert_eq!(infer_namespace("slack_send_message"), "slack");
/// assert_eq!(infer_namespace("search_database"), "mcp");
/// ```
pub fn infer_namespace(tool_name: &str) -> &str {
    if let Some((namespace, _)) = separated(tool_name) {
        return namespace;
    }
    let mut pieces = tool_name.split('_');
    match (pieces.next(), pieces.nth(1)) {
        (Some(first), Some(_)) if !first.is_empty() => first,
        _ => FALLBACK,
    }
}

/// Both sides of the dot or the slash that sets a namespace off.
fn separated(name: &str) -> Option<(&str, &str)> {
    ['.', '/'].into_iter().find_map(|it| name.split_once(it).filter(|(front, _)| !front.is_empty()))
}

/// Reads the definition of a tool as MCP's `tools/list` gives it.
///
/// Any name is taken, and a tool needs no description. What is of a wrong type counts as absent.
///
/// ```
/// use serde_json::json;
/// use toolcrib_context::mcp_tool_to_selectable;
///
/// let item = mcp_tool_to_selectable(&json!({
///     "name": "search_database",
///     "description": "Search records in the database",
///     "inputSchema": {
///         "type": "object",
///         "properties": {
///             "query": { "type": "string" },
///             "limit": { "type": "integer", "default": 10 },
///         },
///     },
///     "outputSchema": {
///         "type": "object",
///         "properties": { "results": { "type": "array" }, "total": { "type": "integer" } },
///     },
/// }))?;
/// assert_eq!(item.id, "mcp:search_database");
/// assert_eq!(item.kind, "tool");
/// assert_eq!(item.name, "search_database");
/// assert!(item.output_schema.is_some());
/// assert!(item.side_effects && item.may_destroy && item.tags == ["mcp"]);
/// # Ok::<(), toolcrib_catalogue::ToolFault>(())
/// ```
pub fn mcp_tool_to_selectable(definition: &Value) -> Result<SelectableItem, ToolFault> {
    let Value::Object(definition) = definition else { return Err(ToolFault::NotAnObject) };
    let name = definition.get("name").and_then(Value::as_str).filter(|it| !it.is_empty());
    Ok(selectable(name.ok_or(ToolFault::NoName)?, definition))
}

impl From<&Tool> for SelectableItem {
    fn from(tool: &Tool) -> Self {
        selectable(&tool.name, &tool.raw.get().unwrap_or_default())
    }
}

fn selectable(name: &str, definition: &Map<String, Value>) -> SelectableItem {
    let nothing = Map::new();
    let object = |key| definition.get(key).and_then(Value::as_object);
    let claims = object("annotations").unwrap_or(&nothing);
    let claims_that = |key| claims.get(key).is_some_and(pytext::is_truthy);
    let (read_only, destructive) = (claims_that("readOnlyHint"), claims_that("destructiveHint"));
    let mut tags = vec!["mcp".to_owned()];
    tags.extend(read_only.then(|| "read-only".to_owned()));
    tags.extend(destructive.then(|| "destructive".to_owned()));
    tags.sort();
    let args_schema = object("inputSchema").cloned().unwrap_or_default();
    let description = definition.get("description").filter(|it| pytext::is_truthy(it));
    let mut metadata = claims.clone();
    let cost_hint = metadata.shift_remove("costHint");
    let namespace = infer_namespace(name).to_owned();
    SelectableItem {
        id: format!("{namespace}:{}", own_part(name)),
        fingerprint: fingerprint(name, &args_schema),
        version: object("_meta").and_then(version),
        kind: "tool".to_owned(),
        name: name.to_owned(),
        description: description.map(pytext::to_str).unwrap_or_default(),
        namespace,
        tags,
        side_effects: !read_only,
        may_destroy: destructive || may_destroy(claims),
        cost_hint: cost_hint.as_ref().and_then(to_float).unwrap_or_default(),
        args_schema,
        output_schema: definition.get("outputSchema").and_then(pytext::to_dict),
        metadata,
    }
}

/// The name without the namespace, where a dot or a slash sets one off from something.
fn own_part(name: &str) -> &str {
    separated(name).map(|(_, rest)| rest).filter(|it| !it.is_empty()).unwrap_or(name)
}

/// MCP: `destructiveHint` is true where it is not said, and means something only where `readOnlyHint` is not true.
/// Here nothing but `true` and `false` counts: `"false"` reassures nobody.
fn may_destroy(claims: &Map<String, Value>) -> bool {
    let said = |key| claims.get(key).and_then(Value::as_bool);
    said("readOnlyHint") != Some(true) && said("destructiveHint") != Some(false)
}

/// First eight hexadecimal digits of the SHA-256 over the name and the names of the arguments.
pub fn fingerprint(tool_name: &str, args_schema: &Map<String, Value>) -> String {
    let properties = args_schema.get("properties").and_then(Value::as_object);
    let mut names: Vec<&String> = properties.into_iter().flat_map(Map::keys).collect();
    names.sort_unstable();
    let mut required = match args_schema.get("required") {
        Some(Value::Array(list)) => list.clone(),
        // Whoever names the one argument instead of listing it gets its letters, as from Python.
        Some(Value::String(text)) => text.chars().map(|it| it.to_string().into()).collect(),
        _ => Vec::new(),
    };
    required.sort_by_cached_key(pytext::to_str);
    let shape = pytext::compact_json(&json!({ "properties": names, "required": required }));
    let digest = Sha256::digest(format!("{tool_name}\n{shape}"));
    digest.iter().take(4).map(|it| format!("{it:02x}")).collect()
}

fn version(meta: &Map<String, Value>) -> Option<String> {
    let version = pytext::to_str(meta.get("version").filter(|it| pytext::is_truthy(it))?);
    let fits = |it: char| it.is_ascii_alphanumeric() || "._-".contains(it);
    (version.len() <= 32 && version.chars().all(fits)).then_some(version)
}

/// `float(value)`, where that is a number one can compare by.
fn to_float(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(it) => Some(f64::from(u8::from(*it))),
        Value::Number(it) => it.as_f64(),
        Value::String(it) => pytext::strip(it).parse().ok(),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
    .filter(|it| it.is_finite())
}

/// An id for each of many tools, all of them different: [`SelectableItem::id`] for those that have it to
/// themselves, [`SelectableItem::full_id`] for those that do not. Tools that differ in nothing are numbered.
///
/// ```
/// use serde_json::json;
/// use toolcrib_context::{mcp_tool_to_selectable, unique_ids};
///
/// let tools = [json!({ "name": "fs.read" }), json!({ "name": "fs/read" }), json!({ "name": "ping" })];
/// let items: Vec<_> = tools.iter().map(mcp_tool_to_selectable).collect::<Result<_, _>>()?;
/// assert_eq!(unique_ids(&items), ["fs:read#1ab452bd", "fs:read#2fa9e889", "mcp:ping"]);
/// # Ok::<(), toolcrib_catalogue::ToolFault>(())
/// ```
pub fn unique_ids(items: &[SelectableItem]) -> Vec<String> {
    let mut owners: HashMap<&str, usize> = HashMap::new();
    for item in items {
        *owners.entry(&item.id).or_default() += 1;
    }
    let alone = |item: &SelectableItem| owners.get(item.id.as_str()) == Some(&1);
    let mut taken: HashSet<String> =
        items.iter().filter(|it| alone(it)).map(|it| it.id.clone()).collect();
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut own = |item: &SelectableItem| {
        if alone(item) {
            return item.id.clone();
        }
        let full = item.full_id();
        let number = numbers.entry(full.clone()).or_insert(0);
        loop {
            *number += 1;
            let id = if *number == 1 { full.clone() } else { format!("{full}-{number}") };
            if taken.insert(id.clone()) {
                return id;
            }
        }
    };
    items.iter().map(&mut own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(definition: &Value) -> SelectableItem {
        mcp_tool_to_selectable(definition).unwrap()
    }

    #[test]
    fn silence_may_destroy() {
        for (claims, expected) in [
            (json!({}), true),
            (json!({ "readOnlyHint": true }), false),
            (json!({ "readOnlyHint": false }), true),
            (json!({ "destructiveHint": false }), false),
            (json!({ "destructiveHint": true }), true),
            (json!({ "readOnlyHint": true, "destructiveHint": true }), true),
            (json!({ "readOnlyHint": "false" }), true),
            (json!({ "destructiveHint": "no" }), true),
        ] {
            let item = item(&json!({ "name": "x", "annotations": claims }));
            assert_eq!(item.may_destroy, expected, "{:?}", item.metadata);
        }
    }

    #[test]
    fn every_name_is_taken_and_no_description_is_needed() {
        for (name, id) in [
            ("GitHub.create", "GitHub:create"),
            ("fs/read/deep", "fs:read/deep"),
            ("a/b.c", "a/b:c"),
            ("9lives", "mcp:9lives"),
            ("has space", "mcp:has space"),
            ("x:y", "mcp:x:y"),
            (".hidden", "mcp:.hidden"),
            ("a.", "a:a."),
            ("/", "mcp:/"),
            ("größe_der_welt", "größe:größe_der_welt"),
        ] {
            let item = item(&json!({ "name": name }));
            assert_eq!((item.id.as_str(), item.description.as_str()), (id, ""));
        }
    }

    #[test]
    fn what_is_no_tool_is_an_error() {
        assert_eq!(mcp_tool_to_selectable(&json!([])), Err(ToolFault::NotAnObject));
        for name in [json!(null), json!(""), json!(5)] {
            assert_eq!(mcp_tool_to_selectable(&json!({ "name": name })), Err(ToolFault::NoName));
        }
    }

    #[test]
    fn members_of_a_wrong_type_count_as_absent() {
        let odd =
            item(&json!({ "name": "x", "description": null, "inputSchema": [1], "outputSchema": 7,
            "annotations": ["y"], "_meta": "z" }));
        assert_eq!(odd, item(&json!({ "name": "x" })));
        for cost in [json!(null), json!("cheap"), json!([]), json!("nan"), json!("inf")] {
            assert_eq!(
                item(&json!({ "name": "x", "annotations": { "costHint": cost } })).cost_hint,
                0.0
            );
        }
    }

    #[test]
    fn a_version_stands_in_an_id_only_where_it_is_needed_and_fits() {
        let one = item(&json!({ "name": "x", "_meta": { "version": 1.5 } }));
        let two = item(&json!({ "name": "x", "_meta": { "version": "2" } }));
        assert_eq!(one.id, "mcp:x");
        assert_eq!(unique_ids(&[one, two]), ["mcp:x@1.5", "mcp:x@2"]);
        assert_eq!(item(&json!({ "name": "x", "_meta": { "version": "1 beta" } })).version, None);
    }

    #[test]
    fn ids_are_unique_even_where_tools_are_not() {
        let same = item(&json!({ "name": "x" }));
        let print = &same.fingerprint;
        let sly = item(&json!({ "name": format!("x#{print}-2") }));
        let ids = unique_ids(&[same.clone(), same.clone(), sly, same.clone()]);
        let full = format!("mcp:x#{print}");
        assert_eq!(
            ids,
            [full.clone(), format!("{full}-3"), format!("{full}-2"), format!("{full}-4")]
        );
    }

    #[test]
    fn a_tool_of_the_catalogue_reads_the_same() {
        let definition =
            json!({ "name": "a.b", "description": "d", "inputSchema": { "type": "object" } });
        let tool = Tool::read(toolcrib_catalogue::Json::of(&definition).unwrap()).unwrap();
        assert_eq!(SelectableItem::from(&tool), item(&definition));
    }
}
