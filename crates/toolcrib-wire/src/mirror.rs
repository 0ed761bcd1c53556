//! Arguments that a modern HTTP server wants to see in headers too (`Mcp-Param-*`), so that whoever stands
//! between can route by them. A tool says which by `x-mcp-header` in its schema; one that says so wrongly
//! must not be used over HTTP.

use std::collections::HashSet;

use http::{HeaderName, HeaderValue};
use serde_json::Value;

use crate::streamable::safe;

/// One argument that goes into a header as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirrored {
    path: Vec<String>,
    header: HeaderName,
}

/// Integers beyond this are not the same number to everybody.
const SAFE_INTEGER: i64 = (1 << 53) - 1;

const ANNOTATION: &str = "x-mcp-header";

/// The arguments that a schema wants mirrored, or what is wrong with how it says so.
pub fn mirrored(schema: &[u8]) -> Result<Vec<Mirrored>, &'static str> {
    // Few schemas have any, and are not read for that.
    if memchr::memmem::find(schema, ANNOTATION.as_bytes()).is_none() {
        return Ok(Vec::new());
    }
    let Ok(schema) = serde_json::from_slice::<Value>(schema) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    walk(&schema, Some(&mut Vec::new()), &mut found)?;
    let mut seen = HashSet::new();
    if found.iter().any(|it: &Mirrored| !seen.insert(it.header.clone())) {
        return Err("two arguments want the same header");
    }
    Ok(found)
}

/// Walks a schema. `path` is there as long as only `properties` lead to this place.
fn walk(
    schema: &Value,
    mut path: Option<&mut Vec<String>>,
    found: &mut Vec<Mirrored>,
) -> Result<(), &'static str> {
    let object = match schema {
        Value::Object(object) => object,
        Value::Array(list) => return list.iter().try_for_each(|it| walk(it, None, found)),
        _ => return Ok(()),
    };
    if let Some(name) = object.get(ANNOTATION) {
        let path = path.as_deref().filter(|it| !it.is_empty());
        let path = path.ok_or("`x-mcp-header` stands where no argument does")?;
        found.push(read(name, object.get("type"), path)?);
    }
    for (key, inner) in object.iter().filter(|(key, _)| *key != ANNOTATION) {
        match (&mut path, inner) {
            (Some(path), Value::Object(properties)) if key == "properties" => {
                for (name, property) in properties {
                    path.push(name.clone());
                    walk(property, Some(path), found)?;
                    path.pop();
                }
            }
            _ => walk(inner, None, found)?,
        }
    }
    Ok(())
}

fn read(name: &Value, kind: Option<&Value>, path: &[String]) -> Result<Mirrored, &'static str> {
    let name = name.as_str().filter(|it| !it.is_empty()).ok_or("`x-mcp-header` names nothing")?;
    let header = HeaderName::try_from(format!("mcp-param-{name}"));
    let header = header.ok().ok_or("`x-mcp-header` names what no header can be called")?;
    match kind.and_then(Value::as_str) {
        Some("string" | "integer" | "boolean") => Ok(Mirrored { path: path.to_vec(), header }),
        _ => Err("`x-mcp-header` stands at an argument that is no string, integer or boolean"),
    }
}

impl Mirrored {
    pub(crate) fn header(&self) -> &HeaderName {
        &self.header
    }

    /// What the header says for these arguments; nothing where the argument is absent or null.
    pub(crate) fn text(&self, arguments: &Value) -> Option<String> {
        let value = self.path.iter().try_fold(arguments, |value, key| value.get(key))?;
        match value {
            Value::String(text) => Some(text.clone()),
            Value::Bool(flag) => Some(flag.to_string()),
            Value::Number(number) => {
                let integer = number.as_i64().filter(|it| it.abs() <= SAFE_INTEGER)?;
                Some(integer.to_string())
            }
            _ => None,
        }
    }
}

/// The headers for these arguments.
pub(crate) fn headers(mirrored: &[Mirrored], arguments: &Value) -> Vec<(HeaderName, HeaderValue)> {
    let header = |it: &Mirrored| {
        let value = HeaderValue::try_from(&*safe(&it.text(arguments)?)).ok()?;
        Some((it.header.clone(), value))
    };
    mirrored.iter().filter_map(header).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: &Value, expected: Result<usize, &str>) {
        let found = mirrored(schema.to_string().as_bytes());
        assert_eq!(found.map(|it| it.len()), expected, "{schema}");
    }

    fn property(annotation: &Value, kind: &str) -> Value {
        json!({ "properties": { "a": { "type": kind, "x-mcp-header": annotation } } })
    }

    #[test]
    fn only_plain_arguments_can_be_mirrored() {
        check(&json!({ "type": "object" }), Ok(0));
        check(&property(&json!("Region"), "string"), Ok(1));
        check(&json!({ "properties": { "o": property(&json!("R"), "integer") } }), Ok(1));
        check(&property(&json!(""), "string"), Err("`x-mcp-header` names nothing"));
        let bad = "`x-mcp-header` names what no header can be called";
        check(&property(&json!("a\r\nb"), "string"), Err(bad));
        let wrong = "`x-mcp-header` stands at an argument that is no string, integer or boolean";
        check(&property(&json!("R"), "number"), Err(wrong));
        let nowhere = "`x-mcp-header` stands where no argument does";
        check(&json!({ "items": { "type": "string", "x-mcp-header": "R" } }), Err(nowhere));
        check(&json!({ "anyOf": [property(&json!("R"), "string")] }), Err(nowhere));
        let twice = json!({ "properties": {
            "a": { "type": "string", "x-mcp-header": "R" },
            "b": { "type": "string", "x-mcp-header": "r" },
        } });
        check(&twice, Err("two arguments want the same header"));
    }

    #[test]
    fn arguments_become_headers() {
        let schema = json!({ "properties": {
            "s": { "type": "string", "x-mcp-header": "S" },
            "i": { "type": "integer", "x-mcp-header": "I" },
            "o": { "properties": { "b": { "type": "boolean", "x-mcp-header": "B" } } },
            "n": { "type": "string", "x-mcp-header": "N" },
        } });
        let found = mirrored(schema.to_string().as_bytes()).unwrap();
        let arguments = json!({ "s": "é\r\n", "i": 7, "o": { "b": true }, "n": null });
        let shown: Vec<String> = headers(&found, &arguments)
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        assert_eq!(
            shown,
            ["mcp-param-s: =?base64?w6kNCg==?=", "mcp-param-i: 7", "mcp-param-b: true"]
        );
    }
}
