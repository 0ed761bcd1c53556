//! What of a tool can be searched.

use std::borrow::Cow;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use toolcrib_catalogue::{Entry, Json, Listing, Origin, Tool};

/// How deep in a schema parameters are looked for: an object in a list in an object.
const MAX_DEPTH: usize = 5;

/// What of a tool can be searched.
#[derive(Debug, Clone, Default)]
pub struct Document<'a> {
    /// What its source calls it.
    pub name: &'a str,
    /// A name for people.
    pub title: &'a str,
    /// What it does.
    pub description: &'a str,
    /// The server it comes from; empty for a tool of the workspace's own.
    pub server: &'a str,
    /// Single words about it.
    pub tags: Vec<Cow<'a, str>>,
    /// The schema of its arguments, as JSON.
    pub schema: Option<&'a str>,
    /// What it costs to call it, in whatever its source counts in. Of two that fit alike, the cheaper comes first.
    pub cost_hint: f64,
}

/// The members of a definition that [`Tool`] does not read out.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Rest<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    annotations: RestAnnotations<'a>,
    #[serde(rename = "_meta", borrow, deserialize_with = "or_default")]
    meta: Meta<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RestAnnotations<'a> {
    #[serde(rename = "costHint", deserialize_with = "or_default")]
    cost_hint: f64,
    #[serde(borrow, deserialize_with = "or_default")]
    tags: Vec<Cow<'a, str>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Meta<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    tags: Vec<Cow<'a, str>>,
    #[serde(rename = "_fastmcp", borrow, deserialize_with = "or_default")]
    fastmcp: FastMcp<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct FastMcp<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    tags: Vec<Cow<'a, str>>,
}

/// A member of the wrong type counts as absent.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    let raw = <&serde_json::value::RawValue>::deserialize(from)?;
    Ok(serde_json::from_str(raw.get()).unwrap_or_default())
}

impl<'a> Document<'a> {
    /// What of a tool in a catalogue can be searched, `listing` being where it comes from.
    pub fn listed(entry: &'a Entry, listing: &'a Listing) -> Self {
        let server = match &listing.origin {
            Origin::Upstream(server) | Origin::Mod(server) => server,
            Origin::Workspace | Origin::Events => "",
        };
        Self::of(&entry.tool, server)
    }

    /// What of a tool can be searched. `server` is the one it comes from, or empty.
    pub fn of(tool: &'a Tool, server: &'a str) -> Self {
        // Most definitions have none of this, and need not be read a second time.
        let raw = tool.raw.as_str();
        let has_more = raw.contains("\"costHint\"") || raw.contains("\"tags\"");
        let rest: Rest<'_> =
            if has_more { serde_json::from_str(raw).unwrap_or_default() } else { Rest::default() };
        let mut tags = rest.annotations.tags;
        tags.extend(rest.meta.tags);
        tags.extend(rest.meta.fastmcp.tags);
        Self {
            name: &tool.name,
            title: tool.title.as_deref().unwrap_or_default(),
            description: tool.description.as_deref().unwrap_or_default(),
            server,
            tags,
            schema: tool.input_schema.as_ref().map(Json::as_str),
            cost_hint: rest.annotations.cost_hint,
        }
    }
}

/// What a schema says of one parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    /// What it is called, or one of the values it may have.
    Name,
    /// What is said about it.
    Text,
}

/// Reads what a schema says of parameters. What is no schema says nothing; one that breaks off says what came
/// before.
pub(super) fn read_schema(schema: &str, each: &mut dyn FnMut(Said, &str)) {
    let walk = Walk { each, depth: MAX_DEPTH, at: At::Schema { inner: false } };
    let mut reader = serde_json::Deserializer::from_str(schema);
    walk.deserialize(&mut reader).ok();
}

/// Where in a schema we are.
#[derive(Clone, Copy)]
enum At {
    /// In a schema, and whether that is of a parameter: what is said of all arguments together says nothing.
    Schema { inner: bool },
    /// In the members of `properties`.
    Properties,
    /// In a list of schemas.
    Schemas,
    /// In what a description or a title is.
    Text,
    /// In the values of an `enum`.
    Values,
}

struct Walk<'w> {
    each: &'w mut dyn FnMut(Said, &str),
    depth: usize,
    at: At,
}

impl Walk<'_> {
    fn inner(&mut self, at: At) -> Walk<'_> {
        // `properties` and lists are no step of their own.
        let step = usize::from(matches!(at, At::Schema { .. }));
        Walk { each: &mut *self.each, depth: self.depth - step, at }
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        if self.depth == 0 {
            return IgnoredAny::deserialize(from).map(|_| ());
        }
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a schema")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Cow<'_, str>>()? {
            let at = match (self.at, &*key) {
                (At::Properties, name) => {
                    (self.each)(Said::Name, name);
                    At::Schema { inner: true }
                }
                (At::Schema { .. }, "properties") => At::Properties,
                (At::Schema { inner }, "items" | "additionalProperties") => At::Schema { inner },
                (At::Schema { .. }, "anyOf" | "oneOf" | "allOf") => At::Schemas,
                (At::Schema { inner: true }, "description" | "title") => At::Text,
                (At::Schema { inner: true }, "enum") => At::Values,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            map.next_value_seed(self.inner(at))?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        let at = match self.at {
            At::Schemas => At::Schema { inner: true },
            At::Values => At::Values,
            At::Schema { .. } | At::Properties | At::Text => {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(());
            }
        };
        while seq.next_element_seed(self.inner(at))?.is_some() {}
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        match self.at {
            At::Text => (self.each)(Said::Text, text),
            At::Values => (self.each)(Said::Name, text),
            At::Schema { .. } | At::Properties | At::Schemas => {}
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(schema: &str) -> String {
        let mut shown = Vec::new();
        read_schema(schema, &mut |said, text| {
            shown.push(match said {
                Said::Name => text.to_owned(),
                Said::Text => format!("({text})"),
            });
        });
        shown.join(" ")
    }

    #[test]
    fn parameters_are_found_also_inside_others() {
        let schema = r#"{"type": "object", "description": "arguments", "properties": {
            "filter": {"anyOf": [{"type": "null"}, {"properties": {"state": {"enum": ["open", 1, "closed"]}}}]},
            "rows": {"type": "array", "items": {"properties": {"cell": {"description": "one cell", "minimum": 1.5}}}},
            "limit": true}, "required": ["rows"]}"#;
        assert_eq!(said(schema), "filter state open closed rows cell (one cell) limit");
    }

    #[test]
    fn what_is_no_schema_says_nothing() {
        for schema in ["", "7", "[]", "\"x\"", "{\"properties\": 7}", "{\"properties\": {\"a\": "] {
            let expected = if schema.contains("\"a\"") { "a" } else { "" };
            assert_eq!(said(schema), expected, "{schema}");
        }
        let deep = "{\"properties\":{\"p\":".repeat(3000);
        assert_eq!(said(&deep), "p p p p p");
        let closed = format!("{deep}1{}", "}}".repeat(3000));
        assert_eq!(said(&closed), "p p p p p");
    }

    #[test]
    fn a_tool_of_the_catalogue_brings_its_tags_and_its_cost() {
        let raw = r#"{"name": "n", "annotations": {"costHint": 2.5, "tags": 7}, "_meta": {"_fastmcp": {"tags": ["a"]}},
            "inputSchema": {"type": "object"}}"#;
        let tool = Tool::read(Json::parse(raw).unwrap()).unwrap();
        let document = Document::of(&tool, "s");
        assert_eq!((document.cost_hint, &*document.tags), (2.5, &[Cow::from("a")][..]));
        assert_eq!(document.schema, Some(r#"{"type": "object"}"#));
    }
}
