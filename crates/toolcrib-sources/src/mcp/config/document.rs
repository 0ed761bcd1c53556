//! The text of an `mcp.json`: JSON with comments, and places for everything in it.

use std::{borrow::Cow, collections::HashSet, ops::Range};

use toolcrib_wire::json::{self, Fault, Keys};

use super::{
    Config, entry,
    fault::ConfigFault,
    keys::{FILE_KEYS, names},
};
use crate::mcp::env::Lookup;

/// Reads the text of a file.
pub(super) fn read(text: &[u8], lookup: Lookup<'_>) -> Config {
    let mut config = Config::default();
    let clean = match plain_json(text) {
        Ok(clean) => clean,
        Err(fault) => {
            config.faults.push(*fault);
            return config;
        }
    };
    let begin = clean.len() - clean.trim_ascii_start().len();
    let root = Node { text: &clean, range: begin..clean.trim_ascii_end().len() };
    if let Some(servers) = servers_of(&root, &mut config.faults) {
        read_servers(&servers, lookup, &mut config);
    }
    config
}

/// JSON as people write it, with comments and a comma after the last element, as JSON of the same length. What is
/// wrong with it is told with its place.
pub fn plain_json(text: &[u8]) -> Result<Vec<u8>, Box<ConfigFault>> {
    let clean = without_comments(text);
    match json::scan_keys(&clean, Keys::Any, |_, _| ()) {
        Ok(()) => Ok(clean),
        Err(error) => Err(Box::new(syntax(&clean, &error))),
    }
}

/// A value in the text.
#[derive(Debug, Clone)]
pub(super) struct Node<'a> {
    text: &'a [u8],
    range: Range<usize>,
}

impl<'a> Node<'a> {
    pub(super) fn raw(&self) -> &'a [u8] {
        &self.text[self.range.clone()]
    }

    pub(super) fn position(&self) -> (usize, usize) {
        json::position(self.text, self.range.start)
    }

    /// What it is, for "must be a list, not …".
    pub(super) fn kind(&self) -> &'static str {
        match self.raw().first() {
            Some(b'{') => "an object",
            Some(b'[') => "a list",
            Some(b'"') => "a string",
            Some(b't' | b'f') => "true or false",
            Some(b'n') => "null",
            _ => "a number",
        }
    }

    pub(super) fn string(&self) -> Option<String> {
        serde_json::from_slice(self.raw()).ok()
    }

    pub(super) fn boolean(&self) -> Option<bool> {
        serde_json::from_slice(self.raw()).ok()
    }

    /// The members of an object.
    pub(super) fn members(&self) -> Option<Vec<(Cow<'a, str>, Self)>> {
        self.raw().starts_with(b"{").then(|| self.children())
    }

    /// The elements of a list.
    pub(super) fn elements(&self) -> Option<Vec<Self>> {
        self.raw().starts_with(b"[").then(|| self.children().into_iter().map(|it| it.1).collect())
    }

    fn children(&self) -> Vec<(Cow<'a, str>, Self)> {
        let offset = self.range.start;
        let place = |at: Range<usize>| at.start + offset..at.end + offset;
        json::members(self.raw())
            .into_iter()
            .map(|(key, at)| (key, Node { text: self.text, range: place(at) }))
            .collect()
    }
}

/// The object that maps names to servers; none where a fault says why.
fn servers_of<'a>(root: &Node<'a>, faults: &mut Vec<ConfigFault>) -> Option<Node<'a>> {
    let Some(members) = root.members() else {
        let message = format!("the file must hold an object, not {}", root.kind());
        let fault = ConfigFault::of_file(message).at(root.position());
        faults.push(fault.hint(r#"write {"mcpServers": {"my-server": {"command": "…"}}}"#));
        return None;
    };
    let known = names(&FILE_KEYS);
    let mut found: Option<(Cow<'_, str>, Node<'_>)> = None;
    for (key, node) in members {
        let place = node.position();
        match &*key {
            "mcpServers" | "servers" => {
                if let Some((before, _)) = &found {
                    let message = if *before == key {
                        format!("the file has `{key}` twice")
                    } else {
                        format!("the file has `{before}` and `{key}`")
                    };
                    let fault = ConfigFault::of_file(message).at(place);
                    faults.push(fault.hint("put all servers under one `mcpServers`"));
                    return None;
                }
                found = Some((key, node));
            }
            "inputs" => {
                let fault = ConfigFault::of_file("`inputs` are not asked for").at(place).note();
                faults.push(fault.hint("set environment variables, and write ${NAME}"));
            }
            key if known.contains(&key) => {}
            key => faults.push(unknown_key(key, &known).at(place)),
        }
    }
    let Some((key, node)) = found else {
        let fault = ConfigFault::of_file("the file has no `mcpServers`").at(root.position());
        let bare = faults.iter().any(|it| it.message.starts_with("unknown key"));
        let hint = if bare {
            r#"put the servers under `mcpServers`: {"mcpServers": {…}}"#
        } else {
            r#"write {"mcpServers": {"my-server": {"command": "…"}}}"#
        };
        faults.push(fault.hint(hint));
        return None;
    };
    if node.members().is_none() {
        let message = format!("`{key}` must be an object of servers, not {}", node.kind());
        faults.push(ConfigFault::of_file(message).at(node.position()));
        return None;
    }
    Some(node)
}

fn read_servers(servers: &Node<'_>, lookup: Lookup<'_>, config: &mut Config) {
    let members = servers.members().unwrap_or_default();
    let mut seen = HashSet::new();
    let twice: HashSet<String> = members
        .iter()
        .filter(|(name, _)| !seen.insert(name.clone()))
        .map(|(name, _)| name.to_string())
        .collect();
    let mut told = HashSet::new();
    for (name, node) in members {
        if twice.contains(&*name) {
            if told.insert(name.clone()) {
                let message = "there are two servers of this name; neither is used";
                let mut fault = ConfigFault::of_file(message).at(node.position());
                fault.server = Some(name.to_string());
                config.faults.push(fault.hint("rename one of them"));
                config.broken.push(name.into_owned());
            }
            continue;
        }
        match entry::read(&name, &node, lookup, &mut config.faults) {
            Some(server) => config.servers.push(server),
            None => config.broken.push(name.into_owned()),
        }
    }
}

pub(super) fn unknown_key(key: &str, known: &[&str]) -> ConfigFault {
    let fault = ConfigFault::of_file(format!("unknown key `{}`", key.escape_debug())).note();
    match toolcrib_catalogue::nearest(key, known.iter().copied()) {
        Some(meant) => fault.hint(format!("did you mean `{meant}`?")),
        None => fault.hint("it is ignored"),
    }
}

fn syntax(text: &[u8], error: &json::ScanError) -> ConfigFault {
    let fault = ConfigFault::of_file(format!("not valid JSON: {}", error.fault));
    let fault = fault.at(json::position(text, error.offset));
    if text.trim_ascii().is_empty() {
        let mut empty = ConfigFault::of_file("the file is empty");
        empty.hint = Some(r#"write {"mcpServers": {}}"#.to_owned());
        return empty;
    }
    match error.fault {
        Fault::NotUtf8 => fault.hint("save the file as UTF-8"),
        Fault::Unexpected('\'') => fault.hint("strings stand in double quotes"),
        Fault::End => fault.hint("a bracket or a quote is not closed"),
        _ => fault,
    }
}

/// The text with spaces for comments, for commas before a closing bracket, and for a byte order mark:
/// everything else keeps its place.
fn without_comments(text: &[u8]) -> Vec<u8> {
    let mut clean = text.to_vec();
    if clean.starts_with(b"\xef\xbb\xbf") {
        clean[..3].fill(b' ');
    }
    let mut at = 0;
    let mut comma = None;
    while at < clean.len() {
        let end = match (clean[at], clean.get(at + 1)) {
            (b'"', _) => end_of_string(&clean, at),
            (b'/', Some(b'/')) => {
                let end =
                    clean[at..].iter().position(|&b| b == b'\n').map_or(clean.len(), |n| at + n);
                blank(&mut clean[at..end])
            }
            (b'/', Some(b'*')) => {
                let inside = &clean[at + 2..];
                let length = inside.windows(2).position(|it| it == b"*/").map(|n| n + 4);
                let Some(length) = length else { break };
                blank(&mut clean[at..at + length])
            }
            _ => 1,
        };
        match clean[at] {
            b',' => comma = Some(at),
            b'}' | b']' => {
                if let Some(comma) = comma.take() {
                    clean[comma] = b' ';
                }
            }
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => comma = None,
        }
        at += end;
    }
    clean
}

/// How long the string is that begins at `at`, quotes included.
fn end_of_string(text: &[u8], at: usize) -> usize {
    let mut length = 1;
    while let Some(&byte) = text.get(at + length) {
        length += if byte == b'\\' { 2 } else { 1 };
        if byte == b'"' {
            break;
        }
    }
    length
}

/// Makes spaces of a comment, line ends aside; returns its length.
fn blank(comment: &mut [u8]) -> usize {
    comment.iter_mut().filter(|b| **b != b'\n').for_each(|b| *b = b' ');
    comment.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let clean = without_comments(text.as_bytes());
        assert_eq!(clean.len(), text.len());
        let squeezed: String = String::from_utf8(clean).unwrap().split_whitespace().collect();
        assert_eq!(squeezed, expected);
    }

    #[test]
    fn comments_and_last_commas_become_spaces() {
        check("{ // a\n \"k\": 1, /* b\n */ }", r#"{"k":1}"#);
        check(r#"{"k": "// not, } a comment /* */",}"#, r#"{"k":"//not,}acomment/**/"}"#);
        check(r#"["\"//", 1,]"#, r#"["\"//",1]"#);
        check("[1,,]", "[1,]");
        check("/* open", "/*open");
        check("\u{feff}{}", "{}");
        check("\"\\", "\"\\");
    }

    /// Pieces of which a configuration, or something like one, can be put together.
    fn pieces() -> impl Strategy<Value = String> {
        let words = vec![
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"",
            "\\",
            "//",
            "/*",
            "*/",
            "\n",
            " ",
            "null",
            "true",
            "-1",
            "1e9",
            "1e999",
            "\"mcpServers\"",
            "\"servers\"",
            "\"command\"",
            "\"args\"",
            "\"env\"",
            "\"url\"",
            "\"headers\"",
            "\"transport\"",
            "\"type\"",
            "\"timeout\"",
            "\"include\"",
            "\"rate\"",
            "\"${S}\"",
            "\"${\"",
            "\"http://h/${S}\"",
            "\"stdio\"",
            "\"10/s\"",
            "\u{feff}",
            "\u{0}",
            "é",
            "{\"mcpServers\":{\"a\":{",
            "\"x\":\"${S}\"",
            "\"command\":\"${S}\",\"args\":[\"${S}\"]",
            "}}}",
        ];
        let piece = prop_oneof![9 => prop::sample::select(words).prop_map(String::from), 1 => any::<String>()];
        prop::collection::vec(piece, 0..24).prop_map(|it| it.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100_000))]

        /// No text makes the reader panic, and no value of a variable shows in what it says.
        #[test]
        fn any_text(text in pieces()) {
            let secret = "s3cr3t-value";
            let config = read(text.as_bytes(), &|_| Some(secret.to_owned()));
            let shown: Vec<String> = config.faults.iter().map(ToString::to_string).collect();
            let shown = format!("{shown:?} {config:?}");
            prop_assert!(!shown.contains(secret), "{}", shown);
            for server in &config.servers {
                let target = server.target(&[]).map_err(|it| it.to_string());
                if let Err(error) = target {
                    prop_assert!(!error.contains(secret), "{}", error);
                }
            }
        }
    }
}
