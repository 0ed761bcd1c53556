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

use std::{borrow::Cow, fmt, ops::Deref, sync::Arc};

use hashbrown::HashMap;

use crate::name::sanitise;

/// The longest public name: model interfaces refuse longer ones.
pub const MAX_LEN: usize = 64;

const HASH_LEN: usize = 8;
const TAIL_LEN: usize = 23;
pub(crate) const HEAD_LEN: usize = MAX_LEN - TAIL_LEN - HASH_LEN - 2;

/// Whether the name of an upstream tool says where it comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NameStyle {
    /// `mcp__server__tool`.
    #[default]
    Prefixed,
    /// `tool`.
    Bare,
}

/// A public name. The names of one server share a buffer, so that a large catalogue is quick to build.
#[derive(Clone)]
pub struct Name {
    buffer: Arc<str>,
    range: (u32, u32),
}

impl Name {
    pub(crate) fn slice(buffer: &Arc<str>, range: (u32, u32)) -> Self {
        Self { buffer: Arc::clone(buffer), range }
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.buffer[self.range.0 as usize..self.range.1 as usize]
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (**self).cmp(other)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
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

/// Appends the public name of a tool: `{prefix}{tool}`, sanitised and cut to [`MAX_LEN`]. `server` is what
/// the hash of a cut stands for, besides the tool. Returns whether it was cut.
pub(crate) fn push_name(name: &mut String, prefix: &str, tool: &str, server: &str) -> bool {
    let begin = name.len();
    name.push_str(prefix);
    if prefix.is_empty() {
        // Nothing but the tool: keep all that the protocol allows in a name.
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        name.extend(tool.chars().map(|c| if legal(c) { c } else { '_' }));
    } else {
        name.push_str(&sanitised(tool));
    }
    cut(name, begin, server, tool)
}

/// What all names of a server begin with.
pub(crate) fn prefix(namespace: &str, server_part: &str) -> String {
    format!("{namespace}__{server_part}__")
}

/// Adds a hash to a name that another tool of the same server has too.
pub(crate) fn tell_apart(name: &str, tool: &str, server: &str) -> String {
    let mut name = with_hash(name, tool);
    cut(&mut name, 0, server, tool);
    name
}

/// `text` sanitised, borrowed where nothing changes.
fn sanitised(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(sanitise(text))
    }
}

/// Cuts the name that stands from `begin` on.
fn cut(text: &mut String, begin: usize, server: &str, tool: &str) -> bool {
    let name = &text[begin..];
    // Only ASCII gets here but for a namespace, which configuration keeps to ASCII.
    if name.len() <= MAX_LEN || !name.is_ascii() {
        return false;
    }
    let identity = [server, tool].join("\0");
    let middle = begin + HEAD_LEN..text.len() - TAIL_LEN;
    text.replace_range(middle, &format!("_{}_", hash(&identity)));
    true
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
    use proptest::prelude::*;

    use super::*;

    fn parts(servers: &[&str]) -> Vec<String> {
        server_parts(servers).into_iter().map(|it| it.text).collect()
    }

    fn name_of(part: &str, tool: &str, server: &str) -> String {
        let mut name = String::new();
        push_name(&mut name, &prefix("mcp", part), tool, server);
        name
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
                let name = name_of(part, tool, part);
                let before = seen.insert(name.clone(), (part, tool));
                assert_eq!(before, None, "{name} is {part} {tool}");
            }
        }
    }

    #[test]
    fn a_long_name_keeps_both_ends() {
        let name = name_of("s", &"t".repeat(99), "s");
        assert_eq!(name.len(), MAX_LEN);
        insta::assert_snapshot!(name, @"mcp__s__ttttttttttttttttttttttt_86083d84_ttttttttttttttttttttttt");
        assert_ne!(name, name_of("s", &"t".repeat(98), "s"));
        assert_ne!(name, name_of("s", &"t".repeat(99), "s."));
    }

    fn name() -> impl Strategy<Value = String> {
        let words = vec!["a", "b", "_", "__", ".", "-", " ", "é", "\u{202e}", "\n", "mcp__"];
        let piece = prop_oneof![9 => prop::sample::select(words).prop_map(String::from), 1 => any::<String>()];
        prop::collection::vec(piece, 0..8).prop_map(|it| it.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100_000))]

        /// Whatever servers and tools are called: their parts differ if the servers do, and public
        /// names are short and made of what every client takes.
        #[test]
        fn any_names(servers in prop::collection::hash_set(name(), 1..5), tool in name()) {
            let servers: Vec<&str> = servers.iter().map(String::as_str).collect();
            let mut names = std::collections::HashSet::new();
            for (server, part) in servers.iter().zip(server_parts(&servers)) {
                let name = name_of(&part.text, &tool, server);
                prop_assert!(name.len() <= MAX_LEN);
                prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'), "{}", name);
                crate::parse_namespaced_name(&name).ok();
                prop_assert!(names.insert(name.clone()), "{} twice of {:?}", name, servers);
            }
        }
    }
}
