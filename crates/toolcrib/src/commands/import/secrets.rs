//! Secrets that stand written out in an entry become references to variables. Their values are kept only to tell whether
//! two are the same, and are never shown.

use serde_json::{Map, Value};
use toolcrib_sources::mcp::{Lookup, is_kept_secret, is_written_secret};

use super::meaning::variable;

/// A variable that is to be set.
#[derive(Clone)]
pub(super) struct Variable {
    pub(super) name: String,
    /// Where its value stands.
    pub(super) places: Vec<String>,
    /// It is set already, to this value.
    pub(super) set: bool,
    pub(super) value: String,
}

/// The variables that come of all entries.
#[derive(Clone)]
pub(super) struct Variables<'a> {
    lookup: Lookup<'a>,
    pub(super) all: Vec<Variable>,
}

impl<'a> Variables<'a> {
    pub(super) fn new(lookup: Lookup<'a>) -> Self {
        Self { lookup, all: Vec::new() }
    }

    /// Moves the secrets of an entry into variables; says which.
    pub(super) fn hide(
        &mut self,
        server: &str,
        file: &str,
        entry: &mut Map<String, Value>,
    ) -> Vec<String> {
        let mut changes = Vec::new();
        let mut moving = Moving { variables: self, server, file, changes: &mut changes };
        for field in ["env", "headers"] {
            let pairs = entry.get_mut(field).and_then(Value::as_object_mut);
            for (name, value) in pairs.into_iter().flatten() {
                let wish = match field {
                    "env" => variable(name),
                    _ if name.eq_ignore_ascii_case("authorization") => moving.named("TOKEN"),
                    _ => moving.named(name),
                };
                moving.move_out(value, name, &wish, &format!("{field}: {name}"));
            }
        }
        let mut before = String::new();
        let args = entry.get_mut("args").and_then(Value::as_array_mut);
        for (at, value) in args.into_iter().flatten().enumerate() {
            let text = value.as_str().unwrap_or_default().to_owned();
            let is_value = before.starts_with('-') && !text.starts_with('-');
            let flag = if is_value { before.as_str() } else { "" };
            let own = text.split_once('=').map_or("", |(flag, _)| flag);
            let wish = match [flag, own].into_iter().find(|it| it.starts_with('-')) {
                Some(flag) => moving.named(flag),
                None => moving.named("SECRET"),
            };
            moving.move_out(value, flag, &wish, &format!("args: {}", at + 1));
            before = text;
        }
        if let Some(url) = entry.get_mut("url") {
            let wish = moving.named("URL");
            moving.move_out(url, "", &wish, "url");
        }
        changes
    }

    /// The variable for a value: the one wished for, unless that has another value already.
    fn take(&mut self, wish: &str, server: &str, value: &str, place: String) -> String {
        let longer = format!("{}_{wish}", variable(server));
        let names = [wish.to_owned(), longer.clone()].into_iter();
        let mut names = names.chain((2..).map(|n| format!("{longer}_{n}")));
        let fits = |name: &String| {
            let known = self.all.iter().find(|it| it.name == *name).map(|it| it.value.clone());
            known.or_else(|| (self.lookup)(name)).is_none_or(|it| it == value)
        };
        let name = names.find(fits).unwrap_or(longer);
        match self.all.iter_mut().find(|it| it.name == name) {
            Some(known) => known.places.push(place),
            None => {
                let set = (self.lookup)(&name).is_some();
                let (places, value) = (vec![place], value.to_owned());
                self.all.push(Variable { name: name.clone(), places, set, value });
            }
        }
        name
    }
}

struct Moving<'v, 'a> {
    variables: &'v mut Variables<'a>,
    server: &'v str,
    file: &'v str,
    changes: &'v mut Vec<String>,
}

impl Moving<'_, '_> {
    fn named(&self, what: &str) -> String {
        format!("{}_{}", variable(self.server), variable(what))
    }

    /// Puts a reference in the place of a value that is a secret, by its name or by its shape.
    fn move_out(&mut self, value: &mut Value, name: &str, wish: &str, field: &str) {
        let Some(text) = value.as_str() else { return };
        let (before, secret) = bare(text);
        let name = before.strip_suffix('=').unwrap_or(name);
        if !is_written_secret(name, text) && !is_kept_secret(name, secret) {
            return;
        }
        let place = format!("{}: {}: {field}", self.file, self.server);
        let variable = self.variables.take(wish, self.server, secret, place);
        self.changes.push(format!("{field} is the variable {variable}"));
        *value = format!("{before}${{{variable}}}").into();
    }
}

/// The words that stand before a secret in a header.
const SCHEMES: [&str; 6] = ["bearer", "basic", "token", "digest", "apikey", "key"];

/// What may stay, and the secret: `Bearer ` and what follows, `--key=` and what follows, or all of it.
fn bare(text: &str) -> (&str, &str) {
    let split = |at: char| {
        let (before, secret) = text.split_once(at)?;
        let word = before.trim_start_matches('-');
        let plain =
            !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
        (plain && !secret.is_empty()).then(|| text.split_at(text.len() - secret.len()))
    };
    let flag = text.starts_with('-').then(|| split('=')).flatten();
    // A password of several words is one all the same.
    let scheme = text.split(' ').next().unwrap_or_default().to_ascii_lowercase();
    let scheme = SCHEMES.contains(&scheme.as_str()).then(|| split(' ')).flatten();
    flag.or(scheme).unwrap_or(("", text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_become_variables_and_nothing_else_does() {
        let mut entry = json!({
            "command": "npx",
            "args": ["-y", "srv", "--api-key", "0a1b2c3d4e5f", "--token=s3cr3t0a1b2c", "/data"],
            "env": { "GITHUB_TOKEN": "abcd1234efgh", "LOG": "debug", "OTHER": "${OTHER}" },
            "headers": { "Authorization": "Bearer abc123def456", "X-Api-Key": "9z8y7x6w5v" },
            "url": "https://me:hunter22@git.corp/mcp",
        });
        let mut variables = Variables::new(&|_| None);
        let changes = variables.hide("my-git", "~/f", entry.as_object_mut().unwrap());
        let expected = json!({
            "command": "npx",
            "args": ["-y", "srv", "--api-key", "${MY_GIT_API_KEY}", "--token=${MY_GIT_MY_GIT_TOKEN}", "/data"],
            "env": { "GITHUB_TOKEN": "${GITHUB_TOKEN}", "LOG": "debug", "OTHER": "${OTHER}" },
            "headers": { "Authorization": "Bearer ${MY_GIT_TOKEN}", "X-Api-Key": "${MY_GIT_X_API_KEY}" },
            "url": "${MY_GIT_URL}",
        });
        assert_eq!(entry, expected);
        insta::assert_snapshot!(changes.join("\n"), @"
        env: GITHUB_TOKEN is the variable GITHUB_TOKEN
        headers: Authorization is the variable MY_GIT_TOKEN
        headers: X-Api-Key is the variable MY_GIT_X_API_KEY
        args: 4 is the variable MY_GIT_API_KEY
        args: 5 is the variable MY_GIT_MY_GIT_TOKEN
        url is the variable MY_GIT_URL
        ");
    }

    #[test]
    fn under_the_name_of_a_secret_every_value_is_one() {
        let mut entry = json!({
            "args": ["--password", "open sesame", "--db-password=letmein", "--token", "--verbose", "--api-key="],
            "env": { "DB_PASSWORD": "letmein", "USE_TOKEN": "true", "API_KEY": "", "SECRET": "changeme" },
            "headers": { "Authorization": "Bearer abc" },
        });
        let mut variables = Variables::new(&|_| None);
        variables.hide("db", "~/f", entry.as_object_mut().unwrap());
        let text = entry.to_string();
        assert!(
            !text.contains("letmein") && !text.contains("sesame") && !text.contains("abc"),
            "{text}"
        );
        assert_eq!(entry["args"][2], "--db-password=${DB_DB_DB_PASSWORD}");
        assert_eq!(entry["args"][4], "--verbose");
        assert_eq!(entry["args"][5], "--api-key=");
        assert_eq!(
            entry["env"],
            json!({ "DB_PASSWORD": "${DB_PASSWORD}", "USE_TOKEN": "true", "API_KEY": "", "SECRET": "changeme" })
        );
        assert_eq!(entry["headers"]["Authorization"], "Bearer ${DB_TOKEN}");
        let values: Vec<&str> = variables.all.iter().map(|it| it.value.as_str()).collect();
        assert!(values.contains(&"open sesame") && values.contains(&"letmein"), "{values:?}");
    }

    #[test]
    fn one_name_never_stands_for_two_values() {
        let mut variables =
            Variables::new(&|name| (name == "TAKEN_API_KEY").then(|| "elsewhere12".to_owned()));
        let mut hide = |server: &str, key: &str, value: &str| {
            let mut entry = json!({ "env": { key: value } });
            variables.hide(server, "f", entry.as_object_mut().unwrap());
            entry["env"][key].as_str().unwrap().to_owned()
        };
        assert_eq!(hide("a", "API_KEY", "abcd1234efgh"), "${API_KEY}");
        assert_eq!(hide("b", "API_KEY", "abcd1234efgh"), "${API_KEY}");
        assert_eq!(hide("c", "API_KEY", "other1234efgh"), "${C_API_KEY}");
        assert_eq!(hide("c", "API_KEY", "third1234efgh"), "${C_API_KEY_2}");
        assert_eq!(hide("d", "TAKEN_API_KEY", "abcd1234efgh"), "${D_TAKEN_API_KEY}");
        let names: Vec<&str> = variables.all.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["API_KEY", "C_API_KEY", "C_API_KEY_2", "D_TAKEN_API_KEY"]);
        assert_eq!(variables.all[0].places.len(), 2);
    }
}
