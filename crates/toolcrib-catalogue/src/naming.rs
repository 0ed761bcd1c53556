//! Public names: how an identity becomes the name a client calls.
//!
//! The identity of a tool is (source, server, original name). Its public name follows from that
//! alone, whatever else runs and in whatever order it came up:
//!
//! * upstream tools are `{namespace}__{server}__{tool}`, sanitised as in [`crate::name`];
//! * servers that could be taken for each other get a hash in their part, decided from the list of
//!   servers alone, so that no server's tools can rename another's;
//! * tools of one server that sanitise alike all get a hash;
//! * what is longer than [`MAX_LEN`] loses its middle to a hash, since both ends tell names apart.

use std::{borrow::Cow, collections::HashMap};

use crate::name::sanitise;

/// The longest public name: model interfaces refuse longer ones.
pub const MAX_LEN: usize = 64;

const HASH_LEN: usize = 8;
const TAIL_LEN: usize = 23;
const HEAD_LEN: usize = MAX_LEN - TAIL_LEN - HASH_LEN - 2;

/// Whether the name of an upstream tool says where it comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NameStyle {
    /// `mcp__server__tool`.
    #[default]
    Prefixed,
    /// `tool`.
    Bare,
}

/// What stands for a server in the names of its tools, and whether a hash had to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerPart {
    /// The text between the first two `__`.
    pub text: String,
    /// Another server could have been taken for this one.
    pub hashed: bool,
}

/// The parts of all these servers, in their order.
///
/// Two servers could be taken for each other if their names sanitise alike, or if one part is the
/// beginning of the other up to an underscore that a separator could swallow: server `a` with tool
/// `b__c`, and server `a__b` with tool `c`. In the latter case only the longer one is changed.
///
/// ```
/// use toolcrib_catalogue::naming::server_parts;
///
/// let parts: Vec<String> = server_parts(&["git", "s-1", "s.1"]).into_iter().map(|it| it.text).collect();
/// assert_eq!(parts, ["git", "s_1_da3b5702", "s_1_28870c8c"]);
/// ```
pub fn server_parts(servers: &[&str]) -> Vec<ServerPart> {
    let clean: Vec<String> = servers.iter().map(|it| sanitise(it)).collect();
    let mut times: HashMap<&str, usize> = HashMap::new();
    for part in &clean {
        *times.entry(part).or_default() += 1;
    }
    let ambiguous = |part: &str| {
        let stems =
            (0..part.len()).filter(|&at| part[at..].starts_with("__") || &part[at..] == "_");
        1 < times[part] || stems.into_iter().any(|at| times.contains_key(&part[..at]))
    };
    let parts = servers.iter().zip(&clean).map(|(server, part)| {
        let hashed = ambiguous(part);
        let text = if hashed { with_hash(&collapse(part), server) } else { part.clone() };
        ServerPart { text, hashed }
    });
    parts.collect()
}

/// The last part of a tool's name, for each of one server's tools; `None` where it is the plain
/// sanitised name.
pub(crate) fn shared_tool_parts<'a>(tools: &[&'a str]) -> Vec<Option<String>> {
    let clean: Vec<Cow<'a, str>> = tools.iter().map(|it| sanitised(it)).collect();
    let mut first: HashMap<&str, usize> = HashMap::with_capacity(clean.len());
    let mut parts = vec![None; tools.len()];
    for (at, part) in clean.iter().enumerate() {
        let before = *first.entry(part).or_insert(at);
        if tools[before] != tools[at] {
            parts[before] = Some(with_hash(part, tools[before]));
            parts[at] = Some(with_hash(part, tools[at]));
        }
    }
    parts
}

/// `namespace__server__tool`, cut to [`MAX_LEN`]. `identity` is what the hash of a cut stands for.
pub(crate) fn prefixed(
    namespace: &str,
    server: &str,
    tool: &str,
    identity: [&str; 2],
) -> (String, bool) {
    let mut name = String::with_capacity(namespace.len() + server.len() + tool.len() + 4);
    name.extend([namespace, "__", server, "__", tool]);
    cut(name, identity)
}

/// The name of a tool that stands for itself, with only what the protocol allows in a name.
pub(crate) fn bare(tool: &str, identity: [&str; 2]) -> (String, bool) {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    cut(tool.chars().map(|c| if legal(c) { c } else { '_' }).collect(), identity)
}

/// `text` sanitised, borrowed where nothing changes.
pub(crate) fn sanitised(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(sanitise(text))
    }
}

fn cut(name: String, identity: [&str; 2]) -> (String, bool) {
    // Only ASCII gets here but for a namespace, which configuration keeps to ASCII.
    if name.len() <= MAX_LEN || !name.is_ascii() {
        return (name, false);
    }
    let (head, tail) = (&name[..HEAD_LEN], &name[name.len() - TAIL_LEN..]);
    let hash = hash(&identity.join("\0"));
    (format!("{head}_{hash}_{tail}"), true)
}

/// Runs of `_` as one, none at the ends.
fn collapse(part: &str) -> String {
    part.split('_').filter(|it| !it.is_empty()).collect::<Vec<_>>().join("_")
}

fn with_hash(part: &str, original: &str) -> String {
    if part.is_empty() { hash(original) } else { format!("{part}_{}", hash(original)) }
}

fn hash(text: &str) -> String {
    let hex = blake3::hash(text.as_bytes()).to_hex();
    hex[..HASH_LEN].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(servers: &[&str]) -> Vec<String> {
        server_parts(servers).into_iter().map(|it| it.text).collect()
    }

    #[test]
    fn a_part_depends_on_the_set_of_servers_and_not_on_their_order() {
        assert_eq!(parts(&["b", "a-1"]), ["b", "a_1"]);
        assert_eq!(parts(&["a-1", "b"]), ["a_1", "b"]);
    }

    #[test]
    fn servers_that_could_be_taken_for_each_other_get_a_hash() {
        insta::assert_debug_snapshot!(parts(&["a", "a__b", "a_", "日", "é", "x"]), @r#"
        [
            "a",
            "a_b_e01d17bd",
            "a_f770a268",
            "66488f31",
            "46d0ec74",
            "x",
        ]
        "#);
    }

    /// All servers and tools of up to three letters of `a` and `_`: no two identities share a name
    /// unless two tools of one server sanitise alike, which the catalogue settles.
    #[test]
    fn no_two_servers_can_make_one_name() {
        let words = ["a", "_", "aa", "a_", "_a", "__", "a_a", "a__", "__a", "aaa", "___", "_a_"];
        let parts = parts(&words);
        let mut seen = HashMap::new();
        for part in &parts {
            for tool in words {
                let (name, _) = prefixed("mcp", part, tool, [part, tool]);
                let before = seen.insert(name.clone(), (part, tool));
                assert_eq!(before, None, "{name} is {part} {tool}");
            }
        }
    }

    #[test]
    fn a_long_name_keeps_both_ends() {
        let (name, was_cut) = prefixed("mcp", "s", &"t".repeat(99), ["s", "x"]);
        assert!(was_cut);
        assert_eq!(name.len(), MAX_LEN);
        insta::assert_snapshot!(name, @"mcp__s__ttttttttttttttttttttttt_30ebba97_ttttttttttttttttttttttt");
        let (other, _) = prefixed("mcp", "s", &"t".repeat(99), ["s", "y"]);
        assert_ne!(name, other);
    }
}
