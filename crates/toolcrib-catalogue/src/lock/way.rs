//! How a server is started or reached: pinned too, since who changes the command needs no tool.
//!
//! The lock is meant for git, so a [`Way`] holds names of variables and headers and never their values.
//! Arguments and addresses are pinned as they stand in `mcp.json`, but for what may be a secret in them,
//! which becomes `****` here, whoever made the way.

use std::collections::BTreeMap;

use super::canonical::{Ink, Node, ToolHash, push_text};

const MASK: &str = "****";

/// Words in the name of an option, a variable or a header whose value nobody should see.
const SECRET_WORDS: [&str; 17] = [
    "token",
    "key",
    "apikey",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "pass",
    "pwd",
    "auth",
    "authorization",
    "bearer",
    "credential",
    "credentials",
    "cookie",
    "jwt",
    "pat",
];

/// What well-known tokens begin with.
const TOKEN_STARTS: [&str; 13] = [
    "sk-",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "AIza",
    "eyJ",
    "hf_",
    "npm_",
];

/// How a server is started or reached, without secrets.
///
/// ```
/// use toolcrib_catalogue::lock::Way;
///
/// let way = Way::process("docker", ["run", "-e", "API_KEY=abc", "image"]).variables(["HOME"]);
/// assert_eq!(
///     way.to_string(),
///     r#"{"args":["run","-e","API_KEY=****","image"],"command":"docker","env":["HOME"],"transport":"stdio"}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Way {
    /// Canonical JSON, by what it is.
    members: BTreeMap<Box<str>, Box<str>>,
}

impl Way {
    /// A process: its program and arguments, as they are written in `mcp.json`, not with the values of
    /// variables.
    pub fn process<T: AsRef<str>>(command: &str, args: impl IntoIterator<Item = T>) -> Self {
        let args: Vec<T> = args.into_iter().collect();
        let args = veil_args(&args.iter().map(AsRef::as_ref).collect::<Vec<_>>());
        Self::default().text("transport", "stdio").text("command", command).list("args", &args)
    }

    /// An address and what is spoken there. What is a secret in it is left out.
    pub fn address(transport: &str, url: &str) -> Self {
        Self::default().text("transport", transport).text("url", &veil_url(url))
    }

    /// Where the process runs.
    #[must_use]
    pub fn within(self, folder: &str) -> Self {
        self.text("cwd", folder)
    }

    /// The names of the variables that are added to its environment.
    #[must_use]
    pub fn variables<T: Into<String>>(self, names: impl IntoIterator<Item = T>) -> Self {
        let mut names: Vec<String> = names.into_iter().map(Into::into).collect();
        names.sort();
        names.dedup();
        self.list("env", &names)
    }

    /// The names of the headers that go along with every request.
    #[must_use]
    pub fn headers<T: Into<String>>(self, names: impl IntoIterator<Item = T>) -> Self {
        let lower = |it: T| -> String { it.into().to_ascii_lowercase() };
        let mut names: Vec<String> = names.into_iter().map(lower).collect();
        names.sort();
        names.dedup();
        self.list("headers", &names)
    }

    /// Its hash.
    pub fn hash(&self) -> ToolHash {
        ToolHash::of(&self.to_string())
    }

    /// Reads what [`Way::to_string`] gave.
    pub(super) fn read(canonical: &str) -> Option<Self> {
        let node = Node::read(canonical)?;
        let mut members = BTreeMap::new();
        for (key, value) in node.members() {
            members.insert((**key).into(), value.written(Ink::Canonical).into());
        }
        node.has_unique_keys().then_some(Self { members })
    }

    fn text(mut self, key: &str, text: &str) -> Self {
        let mut json = String::new();
        push_text(&mut json, text, Ink::Canonical);
        self.members.insert(key.into(), json.into());
        self
    }

    fn list(mut self, key: &str, texts: &[String]) -> Self {
        if !texts.is_empty() {
            let items = texts.iter().map(|it| Node::Text(it.as_str().into())).collect();
            self.members.insert(key.into(), Node::List(items).written(Ink::Canonical).into());
        }
        self
    }
}

/// The canonical form, which is JSON.
impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::from("{");
        for (key, value) in &self.members {
            if text.len() > 1 {
                text.push(',');
            }
            push_text(&mut text, key, Ink::Canonical);
            text.push(':');
            text.push_str(value);
        }
        text.push('}');
        f.write_str(&text)
    }
}

/// What the next argument is, by the one before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Plain,
    /// A secret.
    Value,
    /// `NAME=value` or `Name: value`.
    Pair,
}

fn veil_args(args: &[&str]) -> Vec<String> {
    let mut next = Next::Plain;
    let mut veiled = Vec::with_capacity(args.len());
    for arg in args {
        veiled.push(match next {
            Next::Value if !arg.starts_with("--") => MASK.to_owned(),
            Next::Pair => veil_pair(arg, true),
            Next::Value | Next::Plain => veil_arg(arg),
        });
        next = match *arg {
            "-e" | "--env" | "-H" | "--header" => Next::Pair,
            _ if arg.starts_with('-') && !arg.contains('=') && sounds_secret(arg) => Next::Value,
            _ => Next::Plain,
        };
    }
    veiled
}

fn veil_arg(arg: &str) -> String {
    for option in ["--env=", "--header="] {
        if let Some(pair) = arg.strip_prefix(option) {
            return format!("{option}{}", veil_pair(pair, true));
        }
    }
    if let Some((name, value)) = arg.split_once('=').filter(|(name, _)| !name.contains(':')) {
        if value.contains("://") && !sounds_secret(name) {
            return format!("{name}={}", veil_url(value));
        }
        return veil_pair(arg, false);
    }
    if arg.contains("://") { veil_url(arg) } else { veil_pair(arg, false) }
}

/// Hides the value of `NAME=value` or `Name: value`, always or where the name sounds like a secret.
fn veil_pair(arg: &str, always: bool) -> String {
    let Some(place) = arg.find(['=', ':']) else { return veil_word(arg) };
    let (name, value) = arg.split_at(place);
    let separator = &value[..value.len() - value[1..].trim_start().len()];
    let value = &value[separator.len()..];
    let hide = !value.is_empty() && (always || sounds_secret(name) || is_token(value));
    if hide { format!("{name}{separator}{MASK}") } else { arg.to_owned() }
}

fn veil_word(word: &str) -> String {
    if is_token(word) { MASK.to_owned() } else { word.to_owned() }
}

/// The address without user, password, values of the query, fragment, and what looks like a token.
fn veil_url(url: &str) -> String {
    let url = url.split('#').next().unwrap_or_default();
    let (url, query) = url.split_once('?').unwrap_or((url, ""));
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = match host.rsplit_once('@') {
        Some((_, host)) => format!("{MASK}@{host}"),
        None => host.to_owned(),
    };
    let path: Vec<String> = path.split('/').map(veil_word).collect();
    let mut veiled = format!("{host}{}", path.join("/"));
    if !scheme.is_empty() {
        veiled = format!("{scheme}://{veiled}");
    }
    if !query.is_empty() {
        let pair = |it: &str| match it.split_once('=') {
            Some((name, _)) => format!("{name}={MASK}"),
            None => MASK.to_owned(),
        };
        let pairs: Vec<String> = query.split('&').map(pair).collect();
        veiled = format!("{veiled}?{}", pairs.join("&"));
    }
    veiled
}

fn sounds_secret(name: &str) -> bool {
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|it| SECRET_WORDS.contains(&it.to_ascii_lowercase().as_str()))
}

/// Whether a word looks like a token. Names of packages must not: what is hidden is not pinned.
fn is_token(word: &str) -> bool {
    if TOKEN_STARTS.iter().any(|it| word.len() >= it.len() + 12 && word.starts_with(it)) {
        return true;
    }
    let kinds = [
        word.bytes().any(|it| it.is_ascii_digit()),
        word.bytes().any(|it| it.is_ascii_uppercase()),
        word.bytes().any(|it| it.is_ascii_lowercase()),
    ];
    let plain = word.bytes().all(|it| it.is_ascii_alphanumeric());
    let hex = word.bytes().all(|it| it.is_ascii_hexdigit());
    word.len() >= 32 && plain && kinds[0] && (hex || (kinds[1] && kinds[2]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(args: &[&str], expected: &[&str]) {
        assert_eq!(veil_args(args), expected);
    }

    #[test]
    fn no_argument_carries_a_secret_into_the_lock() {
        check(&["--api-key", "abc", "--verbose"], &["--api-key", "****", "--verbose"]);
        check(&["--token=abc", "--path=/x"], &["--token=****", "--path=/x"]);
        check(&["--api-key", "--verbose"], &["--api-key", "--verbose"]);
        check(&["-e", "PLAIN=abc", "-e", "NAME"], &["-e", "PLAIN=****", "-e", "NAME"]);
        check(&["--env=A=b"], &["--env=A=****"]);
        check(
            &["--header", "Authorization: Bearer abc", "-H", "X-Team: abc"],
            &["--header", "Authorization: ****", "-H", "X-Team: ****"],
        );
        check(&["PASSWORD=abc", "Cookie:abc"], &["PASSWORD=****", "Cookie:****"]);
        check(&["postgres://me:abc@db/x?sslkey=abc"], &["postgres://****@db/x?sslkey=****"]);
        check(&["--db=postgres://me:abc@db/x"], &["--db=postgres://****@db/x"]);
        check(&["ghp_0123456789abcdefghij"], &["****"]);
        check(&["0123456789abcdef0123456789abcdef"], &["****"]);
    }

    #[test]
    fn what_is_no_secret_is_pinned() {
        let plain = [
            "@modelcontextprotocol/server-filesystem@2025.1.14",
            "mcp-server-with-a-rather-long-name-and-v2",
            "ghcr.io/github/github-mcp-server:0.1",
            "--author=me",
            "--mount",
            "type=bind,src=/a,dst=/b",
            "C:\\files",
            "-y",
            "https://example.com/mcp",
        ];
        check(&plain, &plain);
    }

    #[test]
    fn an_address_loses_what_may_be_a_secret() {
        let way = |url: &str| Way::address("http", url).to_string();
        insta::assert_snapshot!(
            way("https://me:abc@x.example:8443/s/0123456789abcdef0123456789abcdef/mcp?key=abc&abc#abc"),
            @r#"{"transport":"http","url":"https://****@x.example:8443/s/****/mcp?key=****&****"}"#
        );
        insta::assert_snapshot!(way("${BASE}/mcp"), @r#"{"transport":"http","url":"${BASE}/mcp"}"#);
    }

    #[test]
    fn a_way_is_read_as_it_was_written() {
        let way =
            Way::process("npx", ["-y", "\"\n\u{200b}"]).within("sub").variables(["B", "A", "B"]);
        assert_eq!(Way::read(&way.to_string()), Some(way.clone()));
        let other = Way::process("npx", ["-y", "\"\n\u{200b}"]).within("sub").variables(["A", "B"]);
        assert_eq!(way.hash(), other.hash());
        let lower = Way::address("http", "https://x/").headers(["X-Key", "accept"]);
        assert_eq!(lower, Way::address("http", "https://x/").headers(["Accept", "x-key"]));
        assert_ne!(lower.hash(), Way::address("sse", "https://x/").hash());
    }
}
