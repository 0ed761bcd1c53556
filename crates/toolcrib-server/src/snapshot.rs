//! The catalogue as it is just now, with the list that each group gets already written.
//!
//! A snapshot never changes; a new one takes its place. A call in flight keeps the one it began with.

use bytes::Bytes;
use serde_json::Value;
use toolcrib_catalogue::{Catalogue, Entry, Json};
use toolcrib_wire::json;

use crate::access::{Access, GroupId};

/// What there is to list and to call.
#[derive(Debug)]
pub(crate) struct Snapshot {
    catalogue: Catalogue,
    views: Vec<View>,
}

/// What one group sees.
#[derive(Debug, Default)]
pub(crate) struct View {
    /// Which entries of the catalogue.
    visible: Vec<bool>,
    /// `"tools":[…]`.
    pub(crate) tools: Bytes,
}

impl Snapshot {
    pub(crate) fn new(catalogue: Catalogue, access: &Access) -> Self {
        let views = (0..access.groups()).map(|group| View::new(&catalogue, access, group));
        let views = views.collect();
        Self { catalogue, views }
    }

    /// The view of a group.
    pub(crate) fn view(&self, group: GroupId) -> Option<&View> {
        self.views.get(group)
    }

    /// The tool that a group knows by this name. One that is hidden is as unknown as one that does
    /// not exist.
    pub(crate) fn find(&self, group: GroupId, name: &str) -> Option<&Entry> {
        let entry = self.catalogue.get(name)?;
        let at = self.catalogue.entries().partition_point(|it| *it.name < *name);
        let visible = self.view(group)?.visible.get(at).copied();
        visible.filter(|it| *it).map(|_| entry)
    }

    /// How many tools there are, and how many a group sees.
    pub(crate) fn counts(&self, group: GroupId) -> (usize, usize) {
        let seen = self.view(group).map_or(0, |it| it.visible.iter().filter(|it| **it).count());
        (self.catalogue.entries().len(), seen)
    }

    /// The public names of all tools.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.catalogue.entries().iter().map(|it| &*it.name).collect()
    }
}

impl View {
    fn new(catalogue: &Catalogue, access: &Access, group: GroupId) -> Self {
        let entries = catalogue.entries();
        let visible: Vec<bool> = entries.iter().map(|it| access.allows(group, &it.name)).collect();
        let mut tools = br#""tools":["#.to_vec();
        for (entry, _) in entries.iter().zip(&visible).filter(|(_, visible)| **visible) {
            if tools.last() != Some(&b'[') {
                tools.push(b',');
            }
            push_tool(&mut tools, entry);
        }
        tools.push(b']');
        Self { visible, tools: tools.into() }
    }
}

/// Appends the definition of a tool as its source gave it, under its public name. Two things are
/// mended, since clients choke on them: a missing or unusable `inputSchema`, and one without a type.
fn push_tool(text: &mut Vec<u8>, entry: &Entry) {
    let raw = entry.tool.raw.as_bytes();
    text.push(b'{');
    let mut has_schema = false;
    for (key, range) in json::members(raw) {
        if text.last() != Some(&b'{') {
            text.push(b',');
        }
        push_json(text, &key);
        text.push(b':');
        match &*key {
            "name" => push_json(text, &entry.name),
            "inputSchema" => {
                has_schema = true;
                push_schema(text, entry.tool.input_schema.as_ref());
            }
            _ => text.extend_from_slice(&raw[range]),
        }
    }
    if !has_schema {
        text.extend_from_slice(br#","inputSchema":"#);
        push_schema(text, None);
    }
    text.push(b'}');
}

fn push_schema(text: &mut Vec<u8>, schema: Option<&Json>) {
    let Some(schema) = schema else {
        text.extend_from_slice(br#"{"type":"object"}"#);
        return;
    };
    let raw = schema.as_bytes();
    if json::member(raw, "type").is_some() {
        text.extend_from_slice(raw);
        return;
    }
    text.extend_from_slice(br#"{"type":"object""#);
    let rest = raw[1..].trim_ascii_start();
    text.extend_from_slice(if rest == b"}" { b"" } else { b"," });
    text.extend_from_slice(rest);
}

fn push_json(text: &mut Vec<u8>, value: &str) {
    text.extend_from_slice(Value::from(value).to_string().as_bytes());
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use toolcrib_catalogue::{Listing, NameStyle, Origin, Settings, Tool, ToolFilter};

    use super::*;
    use crate::access::AccessSettings;

    #[track_caller]
    fn check(raw: &str, expected: &str) {
        let tool = Tool::read(Json::parse(raw.to_owned()).unwrap()).unwrap();
        let listing = Listing {
            origin: Origin::Upstream("s".into()),
            style: NameStyle::Prefixed,
            filter: ToolFilter::default(),
            tools: [Arc::new(tool)].into(),
        };
        let (catalogue, _) = Catalogue::build(&[listing], &Settings::default()).unwrap();
        let snapshot = Snapshot::new(catalogue, &Access::new(&AccessSettings::default()));
        let tools = &snapshot.view(0).unwrap().tools;
        assert_eq!(std::str::from_utf8(tools).unwrap(), format!(r#""tools":[{expected}]"#));
    }

    #[test]
    fn a_definition_goes_on_as_it_came_but_for_its_name() {
        check(
            r#"{"vendor": {"z":1.10}, "name":"a","inputSchema":{"type":"object", "x":1e400},"icons":[]}"#,
            r#"{"vendor":{"z":1.10},"name":"mcp__s__a","inputSchema":{"type":"object", "x":1e400},"icons":[]}"#,
        );
    }

    #[test]
    fn a_schema_that_clients_choke_on_is_mended() {
        check(r#"{"name":"a"}"#, r#"{"name":"mcp__s__a","inputSchema":{"type":"object"}}"#);
        check(
            r#"{"name":"a","inputSchema":[]}"#,
            r#"{"name":"mcp__s__a","inputSchema":{"type":"object"}}"#,
        );
        check(
            r#"{"name":"a","inputSchema":{ "properties":{}}}"#,
            r#"{"name":"mcp__s__a","inputSchema":{"type":"object","properties":{}}}"#,
        );
    }
}
