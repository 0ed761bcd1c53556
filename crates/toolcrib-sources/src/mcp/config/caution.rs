//! What works in an `mcp.json`, and is better otherwise: secrets that stand there written out, addresses that anybody on
//! the way reads, programs that may be others tomorrow. No value is ever told.

use http::Uri;
use toolcrib_wire::text::{Masker, is_random, names_secret};

use super::{fault::ConfigFault, package, server::ServerConfig};
use crate::mcp::env::Filled;

/// What people write where a secret will stand.
const PLACEHOLDERS: [&str; 7] = ["your", "example", "changeme", "placeholder", "xxxx", "<", "****"];

impl ServerConfig {
    /// What somebody should know of the entry although it can be used.
    pub fn cautions(&self) -> Vec<ConfigFault> {
        let mut cautions = Vec::new();
        let mut tell = |field: String, message: &str, hint: String| {
            cautions.push(self.caution(field, message, hint));
        };
        let written_out = "a secret seems to stand here, for everybody to read who reads the file";
        for (field, name) in self.secrets_written() {
            let hint = format!("put it into a variable, and write ${{{name}}}");
            tell(field, written_out, hint);
        }
        if self.url.as_ref().is_some_and(|it| is_plain_http(it.value())) {
            let message = "whatever goes there can be read and changed on the way: `http://`";
            tell("url".to_owned(), message, "write https:// if the server can".to_owned());
        }
        cautions
    }

    /// That the entry fetches a program of which it names no version, if it does.
    pub fn loose_package(&self) -> Option<ConfigFault> {
        let command = self.command.as_ref().map(Filled::value).unwrap_or_default();
        let args: Vec<&str> = self.args.iter().map(Filled::value).collect();
        let unpinned = package::unpinned(command, &args)?;
        let message = "without a version, another program may be fetched and run tomorrow";
        let hint = format!("name the version: `{}`", unpinned.pinned());
        let hint = self.masker().mask(&hint).into_owned();
        Some(self.caution("args".to_owned(), message, hint))
    }

    fn caution(&self, field: String, message: &str, hint: String) -> ConfigFault {
        let (server, field) = (Some(self.name.clone()), Some(field));
        let fault = ConfigFault::of_file(message).at(self.at).hint(hint).note();
        ConfigFault { server, field, ..fault }
    }

    /// Where secrets stand written out, and what a variable for each may be called.
    fn secrets_written(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for (field, pairs) in [("env", &self.env), ("headers", &self.headers)] {
            let literal = |(name, it): &&(String, Filled)| is_written_secret(name, it.written());
            for (name, _) in pairs.iter().filter(literal) {
                found.push((format!("{field}: {}", name.escape_debug()), variable(name)));
            }
        }
        let mut before = "";
        for (at, arg) in self.args.iter().enumerate() {
            // `--api-key VALUE`; the name has nothing to hide.
            let name = if before.starts_with('-') { before } else { "" };
            if is_written_secret(name, arg.written()) {
                found.push((format!("args: {}", at + 1), variable(name)));
            }
            before = arg.written();
        }
        if self.url.as_ref().is_some_and(|it| is_written_secret("", it.written())) {
            found.push(("url".to_owned(), variable("")));
        }
        found
    }
}

/// Whether a secret stands in a text of a configuration, under this name, instead of where it comes from (`${NAME}`).
pub fn is_written_secret(name: &str, written: &str) -> bool {
    let literal = literal(written);
    let lower = literal.to_ascii_lowercase();
    if PLACEHOLDERS.iter().any(|it| lower.contains(it)) {
        return false;
    }
    let by_shape = Masker::default().mask(&literal) != literal;
    let bare = literal.split_once(' ').map_or(literal.as_str(), |(_, token)| token);
    let place = bare.starts_with(['/', '.', '~']) || bare.contains("://");
    by_shape || names_secret(name) && !place && is_random(bare)
}

/// Whether a text under this name is to be kept like a secret, whatever it looks like: a password may be short, and a
/// word. What is nobody's secret stays: nothing, a reference, a placeholder, a switch, a number of tokens, a file.
pub fn is_kept_secret(name: &str, written: &str) -> bool {
    const PLAIN: [&str; 10] =
        ["true", "false", "yes", "no", "on", "off", "none", "null", "auto", "default"];
    let literal = literal(written);
    let bare = literal.trim();
    let lower = bare.to_ascii_lowercase();
    let placeholder = PLACEHOLDERS.iter().any(|it| lower.contains(it));
    let place = bare.starts_with(['/', '.', '~']) || bare.contains("://");
    let said = bare.is_empty() || placeholder || place || PLAIN.contains(&lower.as_str());
    is_written_secret(name, written) || names_secret(name) && !said
}

/// Whether this is an address of another machine to which everything goes in clear text.
pub fn is_plain_http(url: &str) -> bool {
    let Ok(url) = url.parse::<Uri>() else { return false };
    url.scheme_str() == Some("http") && !url.host().is_some_and(is_this_machine)
}

/// Whether what is sent to this host stays here.
pub fn is_this_machine(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
    let address = host.parse::<std::net::IpAddr>();
    host == "localhost" || host.ends_with(".localhost") || address.is_ok_and(|it| it.is_loopback())
}

/// What is left of a text without its variables; a default is written out like anything else.
fn literal(written: &str) -> String {
    let mut literal = String::new();
    let mut rest = written;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((inside, next)) = after.split_once('}') else { break };
        literal.push_str(before);
        literal.push_str(inside.split_once(":-").map_or("", |(_, default)| default));
        rest = next;
    }
    literal.push_str(rest);
    literal
}

/// A name for a variable: `X-Api-Key` would be `X_API_KEY`.
fn variable(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = name.trim_start_matches('-').chars().take(40).map(plain).collect();
    if name.is_empty() { "NAME".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::Transport;

    #[test]
    fn what_is_written_out() {
        let token = format!("ghp_{}", "a1B2".repeat(9));
        let secrets = [
            ("GITHUB_TOKEN", "abcd1234efgh"),
            ("anything", token.as_str()),
            ("Authorization", "Bearer abc123def456"),
            ("DATABASE_URL", "postgres://u:hunter2@db/x"),
            ("--api-key", "0a1b2c3d4e5f"),
            ("", "--api-key=0a1b2c3d"),
            ("API_KEY", "${KEY:-abcd1234efgh}"),
        ];
        for (name, written) in secrets {
            assert!(is_written_secret(name, written), "{name}");
        }
        let others = [
            ("GITHUB_TOKEN", "${GITHUB_TOKEN}"),
            ("Authorization", "Bearer ${TOKEN}"),
            ("DATABASE_URL", "postgres://u:${PASSWORD}@db/x"),
            ("API_KEY", "your-api-key-1234"),
            ("API_KEY", ""),
            ("TOKEN_FILE", "/run/secrets/token1"),
            ("CREDENTIALS", "./creds-2024.json"),
            ("MAX_TOKENS", "4096"),
            ("LOG_LEVEL", "debug"),
            ("commit", "d41d8cd98f00b204e9800998ecf8427e"),
        ];
        for (name, written) in others {
            assert!(!is_written_secret(name, written), "{name} {written}");
        }
    }

    #[test]
    fn what_stands_under_the_name_of_a_secret_is_one() {
        for (name, written) in [
            ("DB_PASSWORD", "letmein"),
            ("DB_PASSWORD", "1234"),
            ("API_KEY", "k"),
            ("--password", "open sesame"),
        ] {
            assert!(is_kept_secret(name, written), "{name} {written}");
        }
        for (name, written) in [
            ("DB_PASSWORD", ""),
            ("DB_PASSWORD", "${DB_PASSWORD}"),
            ("DB_PASSWORD", "<your password>"),
            ("API_KEY", "changeme"),
            ("USE_TOKEN", "true"),
            ("MAX_TOKENS", "4096"),
            ("TOKEN_FILE", "/run/secrets/token"),
            ("LOG_LEVEL", "debug"),
        ] {
            assert!(!is_kept_secret(name, written), "{name} {written}");
        }
    }

    #[test]
    fn addresses_that_anybody_reads() {
        for url in ["http://example.org/mcp", "http://10.0.0.1:80", "http://[fe80::1]/"] {
            assert!(is_plain_http(url), "{url}");
        }
        let local = [
            "https://example.org",
            "http://localhost:1",
            "http://127.1.2.3/",
            "http://[::1]:8/",
            "no url",
            "",
        ];
        for url in local {
            assert!(!is_plain_http(url), "{url}");
        }
    }

    #[test]
    fn a_caution_says_where_and_never_what() {
        let mut config = ServerConfig::new("git", Transport::Stdio);
        config.command = Some(Filled::literal("npx"));
        config.args = ["-y", "srv", "--token", "s3cr3t-0a1b2c"].map(Filled::literal).into();
        config.env = vec![("API_KEY".to_owned(), Filled::literal("s3cr3t-9z8y7x"))];
        let told = config.cautions().into_iter().chain(config.loose_package());
        let told: Vec<String> = told.map(|it| it.to_string()).collect();
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[0].contains("`env: API_KEY`") && told[0].contains("${API_KEY}"), "{told:?}");
        assert!(told[1].contains("`args: 4`") && told[2].contains("`srv@1.2.3`"), "{told:?}");
        assert!(!told.concat().contains("s3cr3t"), "{told:?}");
        config.transport = Transport::Url;
        config.command = None;
        config.args.clear();
        config.env.clear();
        config.url = Some(Filled::literal("http://example.org/mcp"));
        assert_eq!(config.cautions().len(), 1);
        assert_eq!(config.loose_package(), None);
    }
}
