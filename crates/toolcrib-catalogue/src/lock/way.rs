//! How a server is started or reached: pinned too, since who changes the command needs no tool.
//!
//! The lock is meant for git, so a [`Way`] holds names of variables and headers and never their values.
//! Arguments and addresses are pinned as they stand in `mcp.json`. What is a secret there, by the name it stands
//! under or by its looks, becomes `****` and a hash: it must not be read, and must not change unseen either.
//! In doubt it is no secret, since a command that nobody can read is none that anybody can accept.

use std::collections::BTreeMap;

use super::canonical::{Ink, Node, ToolHash, push_text};

const MASK: &str = "****";

/// How often a secret is hashed. Whoever has the lock can try what it might be; this makes each try slow.
const ROUNDS: usize = 1 << 14;

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
/// let way = |key: &str| Way::process("docker", ["run", "-e", &format!("API_KEY={key}"), "image"]);
/// assert!(way("abc").to_string().starts_with(r#"{"args":["run","-e","API_KEY=****"#));
/// assert!(!way("abc").to_string().contains("abc"));
/// assert_ne!(way("abc").hash(), way("xyz").hash());
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

fn veil_args(args: &[&str]) -> Vec<String> {
    // The option that the next argument is the value of, where it names a secret.
    let mut option = None;
    let mut veiled = Vec::with_capacity(args.len());
    for arg in args {
        veiled.push(match option {
            Some(name) if !arg.starts_with("--") => veil(name, arg),
            _ => veil_arg(arg),
        });
        let named = arg.starts_with('-') && !arg.contains('=') && sounds_secret(arg);
        option = named.then_some(*arg);
    }
    veiled
}

fn veil_arg(arg: &str) -> String {
    for option in ["--env=", "--header="] {
        if let Some(pair) = arg.strip_prefix(option) {
            return format!("{option}{}", veil_pair(pair));
        }
    }
    match arg.split_once('=').filter(|(name, _)| is_name(name)) {
        Some((name, value)) if is_url(value) && !sounds_secret(name) => {
            format!("{name}={}", veil_url(value))
        }
        None if is_url(arg) => veil_url(arg),
        _ => veil_pair(arg),
    }
}

/// Whether a text is an address, and not merely speaks of one.
fn is_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| is_name(scheme))
        && !text.contains(char::is_whitespace)
}

/// Hides the value of `NAME=value` or `Name: value` where the name or the value says that it is a secret.
fn veil_pair(arg: &str) -> String {
    let place = arg.find(['=', ':']).filter(|it| is_name(&arg[..*it]));
    let Some(place) = place else { return veil_word("", arg) };
    let (name, value) = arg.split_at(place);
    let separator = &value[..value.len() - value[1..].trim_start().len()];
    let value = &value[separator.len()..];
    let value = if sounds_secret(name) { veil(name, value) } else { veil_word(name, value) };
    format!("{name}{separator}{value}")
}

fn veil_word(name: &str, word: &str) -> String {
    if is_token(word) { veil(name, word) } else { word.to_owned() }
}

/// What stands for a secret: nothing of it can be read, and another one has another. A reference to a variable
/// is no secret, and stands for itself.
fn veil(name: &str, secret: &str) -> String {
    if secret.is_empty() || is_reference(secret) {
        return secret.to_owned();
    }
    let salt =
        blake3::derive_key("toolcrib.lock: a secret in the way to a server", name.as_bytes());
    let mut hash = blake3::keyed_hash(&salt, secret.as_bytes());
    for _ in 1..ROUNDS {
        hash = blake3::keyed_hash(&salt, hash.as_bytes());
    }
    format!("{MASK}{:.32}", hash.to_hex().as_str())
}

/// Whether a text is `${NAME}` and nothing else.
fn is_reference(text: &str) -> bool {
    let name = text.strip_prefix("${").and_then(|it| it.strip_suffix('}'));
    name.is_some_and(|it| it.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_'))
}

/// The address, with user and password, secrets of the query and what looks like a token hidden.
fn veil_url(url: &str) -> String {
    let (url, fragment) = url.split_once('#').map_or((url, None), |(it, rest)| (it, Some(rest)));
    let (url, query) = url.split_once('?').map_or((url, None), |(it, rest)| (it, Some(rest)));
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = match host.rsplit_once('@') {
        Some((user, host)) => format!("{}@{host}", veil("user", user)),
        None => host.to_owned(),
    };
    let path: Vec<String> = path.split('/').map(|it| veil_word("", it)).collect();
    let mut veiled = format!("{host}{}", path.join("/"));
    if !scheme.is_empty() {
        veiled = format!("{scheme}://{veiled}");
    }
    if let Some(query) = query {
        let pairs: Vec<String> = query.split('&').map(veil_pair).collect();
        veiled = format!("{veiled}?{}", pairs.join("&"));
    }
    match fragment {
        Some(fragment) => format!("{veiled}#{}", veil_word("", fragment)),
        None => veiled,
    }
}

/// Whether a text can be the name of an option, a variable or a header: a line of code cannot.
fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    !text.is_empty() && bytes.iter().all(|it| it.is_ascii_alphanumeric() || b"_-.".contains(it))
}

fn sounds_secret(name: &str) -> bool {
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|it| SECRET_WORDS.contains(&it.to_ascii_lowercase().as_str()))
}

/// Whether a word looks like a token of a well-known kind. A digest or a revision does not, and neither do other long
/// words: they say what is run. What looks like something hidden is hidden too, so that it is not taken for it.
fn is_token(word: &str) -> bool {
    let starts = |it: &&str| word.len() >= it.len() + 12 && word.starts_with(*it);
    word.starts_with(MASK) || TOKEN_STARTS.iter().any(starts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hash is shown as `#`.
    #[track_caller]
    fn check(args: &[&str], expected: &[&str]) {
        let shown: Vec<String> = veil_args(args).iter().map(|it| without_hashes(it)).collect();
        assert_eq!(shown, expected);
    }

    fn without_hashes(text: &str) -> String {
        let mut parts = text.split(MASK);
        let mut shown = parts.next().unwrap().to_owned();
        for part in parts {
            let (hash, rest) = part.split_at(32);
            assert!(hash.bytes().all(|it| it.is_ascii_hexdigit()), "{text}");
            shown.push_str(&format!("#{rest}"));
        }
        shown
    }

    #[test]
    fn no_argument_carries_a_secret_into_the_lock() {
        check(&["--api-key", "abc", "--verbose"], &["--api-key", "#", "--verbose"]);
        check(&["--token=abc", "--path=/x"], &["--token=#", "--path=/x"]);
        check(&["--api-key", "--verbose"], &["--api-key", "--verbose"]);
        check(&["-e", "A_TOKEN=abc", "-e", "NAME"], &["-e", "A_TOKEN=#", "-e", "NAME"]);
        check(&["--env=KEY=b"], &["--env=KEY=#"]);
        check(&["--header", "Authorization: Bearer abc"], &["--header", "Authorization: #"]);
        check(&["PASSWORD=abc", "Cookie:abc"], &["PASSWORD=#", "Cookie:#"]);
        check(&["postgres://me:abc@db/x?ssl-key=abc"], &["postgres://#@db/x?ssl-key=#"]);
        check(&["--db=postgres://me:abc@db/x"], &["--db=postgres://#@db/x"]);
        check(&["ghp_0123456789abcdefghij"], &["#"]);
        check(&["X=ghp_0123456789abcdefghij"], &["X=#"]);
    }

    #[test]
    fn what_is_no_secret_is_pinned() {
        let plain = [
            "@modelcontextprotocol/server-filesystem@2025.1.14",
            "mcp-server-with-a-rather-long-name-and-v2",
            "ghcr.io/github/github-mcp-server:0.1",
            "image@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
            "--rev",
            "0123456789abcdef0123456789abcdef01234567",
            "-e",
            "const key = 1; require('child_process').exec('curl http://x')",
            "-e",
            "PLAIN=abc",
            "-H",
            "X-Team: abc",
            "--token",
            "${TOKEN}",
            "--author=me",
            "--mount",
            "type=bind,src=/a,dst=/b",
            "C:\\files",
            "-y",
            "https://example.com/mcp?tools=read#part",
        ];
        check(&plain, &plain);
    }

    #[test]
    fn another_secret_is_another_way_and_a_hash_is_none() {
        let way = |args: &[&str]| veil_args(args).join(" ");
        assert_ne!(way(&["--token", "abc"]), way(&["--token", "abd"]));
        assert_ne!(way(&["--token", "abc"]), way(&["--secret", "abc"]).replace("secret", "token"));
        assert_ne!(way(&["https://a:b@x/"]), way(&["https://a:c@x/"]));
        let (hidden, shown) = (veil_args(&["ghp_0123456789abcdefghij"]), "ghp_");
        assert!(!hidden[0].contains(shown));
        // Who writes what stands in the lock has not written what was accepted.
        assert_ne!(veil_args(&[&hidden[0]]), hidden);
    }

    #[test]
    fn an_address_loses_what_may_be_a_secret() {
        let way = |url: &str| without_hashes(&Way::address("http", url).to_string());
        insta::assert_snapshot!(
            way("https://me:abc@x.example:8443/s/sk-0123456789abcdef/mcp?key=abc&abc#abc"),
            @r##"{"transport":"http","url":"https://#@x.example:8443/s/#/mcp?key=#&abc#abc"}"##
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
