//! One entry of an `mcp.json`: its keys as written become a [`ServerConfig`].

use std::{borrow::Cow, collections::HashSet, time::Duration};

use toolcrib_catalogue::{NameStyle, ToolFilter};

use super::{
    document::{Node, unknown_key},
    fault::ConfigFault,
    keys::{ALIASES, OTHERS, SERVER_KEYS, names},
    server::{Isolation, Rate, Secrets, ServerConfig, Transport, read_url},
};
use crate::mcp::env::{Filled, Lookup};

const NAME_LIMIT: usize = 128;

/// Reads one entry. `None` where it cannot be used; why is among the faults.
pub(super) fn read(
    name: &str,
    node: &Node<'_>,
    lookup: Lookup<'_>,
    faults: &mut Vec<ConfigFault>,
) -> Option<ServerConfig> {
    let mut entry = Entry {
        server: name,
        members: Vec::new(),
        lookup,
        faults,
        sound: true,
        secrets: Vec::new(),
    };
    let legal = !name.is_empty() && name.len() <= NAME_LIMIT && !name.chars().any(char::is_control);
    if !legal {
        let message = format!(
            "a server's name has 1 to {NAME_LIMIT} characters, none of them control characters"
        );
        entry.fail(node, None, message);
        return None;
    }
    let Some(members) = node.members() else {
        entry.fail(node, None, format!("a server must be an object, not {}", node.kind()));
        return None;
    };
    entry.take(members);
    let config = entry.config(name, node);
    entry.sound.then_some(config)
}

/// One entry while it is being read.
struct Entry<'a, 'f> {
    server: &'a str,
    members: Vec<(Cow<'a, str>, Node<'a>)>,
    lookup: Lookup<'a>,
    faults: &'f mut Vec<ConfigFault>,
    /// Nothing was found that makes the server unusable.
    sound: bool,
    /// Whatever came out of a variable.
    secrets: Vec<String>,
}

impl<'a> Entry<'a, '_> {
    /// Takes the members in, aliases resolved; tells unknown and repeated ones.
    fn take(&mut self, members: Vec<(Cow<'a, str>, Node<'a>)>) {
        let known = names(&SERVER_KEYS);
        for (key, node) in members {
            let alias = ALIASES.iter().find(|(from, _)| *from == key);
            let key = alias.map_or(key, |&(_, to)| Cow::Borrowed(to));
            if self.members.iter().any(|(it, _)| *it == key) {
                self.fail(&node, Some(&key), "the key stands there twice".to_owned());
            } else if known.contains(&&*key) {
                self.members.push((key, node));
            } else if !OTHERS.contains(&&*key) {
                let mut fault = unknown_key(&key, &known).at(node.position());
                fault.server = Some(self.server.to_owned());
                self.faults.push(fault);
            }
        }
    }

    fn config(&mut self, name: &str, node: &Node<'_>) -> ServerConfig {
        let command = self.text("command");
        let url = self.text("url");
        let transport = self.transport(command.is_some(), url.is_some());
        let session_timeout = self.duration("session_timeout");
        let config = ServerConfig {
            transport,
            command,
            args: self.texts("args"),
            env: self.pairs("env"),
            cwd: self.text("cwd"),
            headers: self.pairs("headers"),
            ca: self.text("ca"),
            timeout: self.duration("timeout").unwrap_or(Duration::from_secs(30)),
            handshake_timeout: self
                .duration("handshake_timeout")
                .or(session_timeout)
                .unwrap_or(Duration::from_secs(30)),
            sse_read_timeout: self.duration("sse_read_timeout"),
            cache_tools: self.flag("cache_tools"),
            disabled: self.flag("disabled") || self.optional_flag("enabled") == Some(false),
            required: self.flag("required"),
            trust_hints: self.flag("trust_hints"),
            filter: ToolFilter::new(self.names_in("include"), self.names_in("exclude")),
            names: self
                .choice("names", &[("prefixed", NameStyle::Prefixed), ("bare", NameStyle::Bare)]),
            isolation: self
                .choice(
                    "isolation",
                    &[("shared", Isolation::Shared), ("session", Isolation::Session)],
                )
                .unwrap_or_default(),
            rate: self.rate(),
            concurrent: self.concurrent(),
            at: node.position(),
            url,
            ..ServerConfig::new(name, transport)
        };
        self.check(&config);
        let secrets = Secrets(std::mem::take(&mut self.secrets));
        ServerConfig { secrets, ..config }
    }

    /// What only shows when everything is read.
    fn check(&mut self, config: &ServerConfig) {
        if let Some(url) = config.url.as_ref().filter(|it| !it.value().is_empty())
            && let Err(fault) = read_url(url.value())
            && let Some(node) = self.get("url")
        {
            self.fail(&node, Some("url"), fault.to_owned());
        }
        if config.command.is_some()
            && config.url.is_some()
            && let Some(node) = self.get("url")
        {
            let message = "a server has a `command` or a `url`, not both".to_owned();
            self.fail(&node, Some("url"), message);
        }
        if let Err(key) = config.header_map()
            && let Some(node) = self.get("headers")
        {
            let message =
                format!("`{}` is not a legal header, or its value is not", key.escape_debug());
            self.fail(&node, Some("headers"), message);
        }
        let bad_name = |key: &str| key.is_empty() || key.contains(['=', '\0']);
        let allowed = self.flag("allow_dangerous_env");
        if let Some((name, _)) = config.env.iter().find(|(name, _)| !allowed && loads_code(name))
            && let Some(node) = self.get("env")
        {
            let message = format!("`{name}` makes the program run other code than its own");
            let hint = "take it out, or set `\"allow_dangerous_env\": true` for this server";
            self.fail_with(&node, Some("env"), message, Some(hint.to_owned()));
        }
        let bad_text = |it: &Filled| it.value().contains('\0');
        if config.env.iter().any(|(key, value)| bad_name(key) || bad_text(value))
            && let Some(node) = self.get("env")
        {
            let message = "a variable needs a name without `=`, and no text may hold a zero byte";
            self.fail(&node, Some("env"), message.to_owned());
        }
        if config.args.iter().chain(&config.command).any(bad_text)
            && let Some(node) = self.get("args").or_else(|| self.get("command"))
        {
            self.fail(&node, Some("args"), "no text may hold a zero byte".to_owned());
        }
    }

    fn transport(&mut self, has_command: bool, has_url: bool) -> Transport {
        let mut named: Option<(Transport, &str)> = None;
        for key in ["transport", "type"] {
            let Some(node) = self.get(key) else { continue };
            let Some(text) = self.filled(&node, key) else { continue };
            let Some(transport) = Transport::parse(text.value()) else {
                let message = format!("`{text}` is not a transport");
                let hint = "write stdio, http (that is, streamable HTTP) or sse";
                self.fail_with(&node, Some(key), message, Some(hint.to_owned()));
                continue;
            };
            match named {
                Some((before, other)) if before != transport => {
                    self.fail(&node, Some(key), format!("it differs from `{other}`"));
                }
                _ => named = Some((transport, key)),
            }
        }
        match named {
            Some((transport, _)) => transport,
            None if has_url && !has_command => Transport::Url,
            None => Transport::Stdio,
        }
    }

    fn get(&self, key: &str) -> Option<Node<'a>> {
        let (_, node) = self.members.iter().find(|(it, _)| *it == key)?;
        (node.raw() != b"null").then(|| node.clone())
    }

    /// A string with its variables filled in; numbers and truth values will do for one.
    fn filled(&mut self, node: &Node<'_>, field: &str) -> Option<Filled> {
        let text = match node.raw().first() {
            Some(b'"') => node.string(),
            Some(b'{' | b'[' | b'n') => None,
            _ => Some(String::from_utf8_lossy(node.raw()).into_owned()),
        };
        let Some(text) = text else {
            self.fail(node, Some(field), format!("it must be a string, not {}", node.kind()));
            return None;
        };
        let filled = Filled::new(&text, self.lookup);
        self.secrets.extend(filled.secrets.iter().cloned());
        for name in &filled.unset {
            let message = format!("the variable `{}` is not set", name.escape_debug());
            let mut fault = ConfigFault::of_file(message).at(node.position()).note();
            (fault.server, fault.field) = (Some(self.server.to_owned()), Some(field.to_owned()));
            let hint = format!("set it, or give a default: ${{{name}:-…}}");
            self.faults.push(fault.hint(hint.escape_debug().to_string()));
        }
        Some(filled)
    }

    fn text(&mut self, key: &str) -> Option<Filled> {
        let node = self.get(key)?;
        if !node.raw().starts_with(b"\"") {
            self.fail(&node, Some(key), format!("it must be a string, not {}", node.kind()));
            return None;
        }
        self.filled(&node, key)
    }

    fn texts(&mut self, key: &str) -> Vec<Filled> {
        let Some(node) = self.get(key) else { return Vec::new() };
        let Some(elements) = node.elements() else {
            let message = format!("it must be a list of strings, not {}", node.kind());
            let hint = node.string().map(|text| {
                let words: Vec<&str> = text.split_whitespace().collect();
                format!("write {words:?}")
            });
            self.fail_with(&node, Some(key), message, hint);
            return Vec::new();
        };
        elements.iter().filter_map(|it| self.filled(it, key)).collect()
    }

    fn names_in(&mut self, key: &str) -> Vec<String> {
        self.texts(key).into_iter().map(|it| it.value().to_owned()).collect()
    }

    fn pairs(&mut self, key: &str) -> Vec<(String, Filled)> {
        let Some(node) = self.get(key) else { return Vec::new() };
        let Some(members) = node.members() else {
            let message = format!("it must be an object of strings, not {}", node.kind());
            self.fail(&node, Some(key), message);
            return Vec::new();
        };
        let mut seen = HashSet::new();
        for (name, node) in &members {
            if !seen.insert(name.clone()) {
                let message = format!("`{}` stands there twice", name.escape_debug());
                self.fail(node, Some(key), message);
            }
        }
        let pair = |(name, node): (Cow<'_, str>, Node<'_>)| {
            let value = self.filled(&node, key)?;
            Some((name.into_owned(), value))
        };
        members.into_iter().filter_map(pair).collect()
    }

    fn optional_flag(&mut self, key: &str) -> Option<bool> {
        let node = self.get(key)?;
        let flag = node.boolean();
        if flag.is_none() {
            self.fail(&node, Some(key), format!("it must be true or false, not {}", node.kind()));
        }
        flag
    }

    fn flag(&mut self, key: &str) -> bool {
        self.optional_flag(key).unwrap_or_default()
    }

    fn choice<T: Copy>(&mut self, key: &str, choices: &[(&str, T)]) -> Option<T> {
        let node = self.get(key)?;
        let text = self.filled(&node, key)?;
        let chosen = choices.iter().find(|(word, _)| *word == text.value());
        if chosen.is_none() {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            let message = format!("`{text}` is none of {}", words.join(", "));
            self.fail(&node, Some(key), message);
        }
        chosen.map(|&(_, value)| value)
    }

    fn duration(&mut self, key: &str) -> Option<Duration> {
        let node = self.get(key)?;
        let text = self.filled(&node, key)?;
        let duration = read_duration(text.value());
        if duration.is_none() {
            let message = format!("`{text}` is not a time");
            let hint = "write seconds (30, 0.5) or a unit (500ms, 30s, 2m), more than nothing and at most a day";
            self.fail_with(&node, Some(key), message, Some(hint.to_owned()));
        }
        duration
    }

    fn rate(&mut self) -> Option<Rate> {
        let node = self.get("rate")?;
        let text = self.filled(&node, "rate")?;
        let rate = read_rate(text.value());
        if rate.is_none() {
            let hint = "write calls per second, minute or hour: 10/s, 100/m, 1000/h, 10/s burst 20";
            self.fail_with(
                &node,
                Some("rate"),
                format!("`{text}` is not a rate"),
                Some(hint.to_owned()),
            );
        }
        rate
    }

    fn concurrent(&mut self) -> Option<u32> {
        let node = self.get("concurrent")?;
        let text = self.filled(&node, "concurrent")?;
        let concurrent = text.value().parse().ok().filter(|&it| 0 < it);
        if concurrent.is_none() {
            let message = format!("`{text}` is not a number of calls such as 4");
            self.fail(&node, Some("concurrent"), message);
        }
        concurrent
    }

    fn fail(&mut self, node: &Node<'_>, field: Option<&str>, message: String) {
        self.fail_with(node, field, message, None);
    }

    fn fail_with(
        &mut self,
        node: &Node<'_>,
        field: Option<&str>,
        message: String,
        hint: Option<String>,
    ) {
        let mut fault = ConfigFault::of_file(message).at(node.position());
        fault.server = Some(self.server.escape_debug().to_string());
        fault.field = field.map(ToOwned::to_owned);
        fault.hint = hint;
        self.faults.push(fault);
        self.sound = false;
    }
}

/// Whether whoever sets this variable has code of his own run in whatever program is started.
fn loads_code(variable: &str) -> bool {
    const NAMES: [&str; 7] = [
        "NODE_OPTIONS",
        "PYTHONSTARTUP",
        "PERL5OPT",
        "RUBYOPT",
        "BASH_ENV",
        "JAVA_TOOL_OPTIONS",
        "_JAVA_OPTIONS",
    ];
    let name = variable.to_ascii_uppercase();
    name.starts_with("LD_") || name.starts_with("DYLD_") || NAMES.contains(&name.as_str())
}

const DAY: f64 = 86_400.0;

/// Reads a time: `30`, `0.5`, `500ms`, `30s`, `2m`.
pub fn read_duration(text: &str) -> Option<Duration> {
    let (number, unit) = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)]
        .into_iter()
        .find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)))
        .unwrap_or((text, 1.0));
    let seconds = number.trim().parse::<f64>().ok()? * unit;
    (0.0 < seconds && seconds <= DAY).then(|| Duration::from_secs_f64(seconds))
}

/// Reads a rate: `10/s`, `100/m`, `1000/h`, `10/s burst 20`. Where no burst is said, all may come at once.
pub fn read_rate(text: &str) -> Option<Rate> {
    let (calls, rest) = text.split_once('/')?;
    let (unit, burst) = match rest.split_once("burst") {
        Some((unit, burst)) => (unit, Some(burst)),
        None => (rest, None),
    };
    let per = match unit.trim() {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return None,
    };
    let number = |it: &str| it.trim().parse().ok().filter(|&it| 0 < it);
    let calls = number(calls)?;
    let burst = burst.map_or(Some(calls), number)?;
    Some(Rate { calls, per: Duration::from_secs(per), burst })
}
