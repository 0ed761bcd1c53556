//! `${VAR}` in the strings of a configuration.
//!
//! The values are often secrets. A [`Filled`] string therefore remembers how it was written, and shows
//! only that.

use std::fmt;

/// Where the values of variables come from. Only the binary looks into the real environment.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A string whose variables have been filled in. It prints as it was written.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Filled {
    written: String,
    value: String,
    /// Names that have no value and no default.
    pub unset: Vec<String>,
    /// What came out of variables.
    pub(crate) secrets: Vec<String>,
}

impl Filled {
    /// Fills in `written`: `${NAME}`, `${env:NAME}`, and `${NAME:-default}` for a variable that may
    /// be unset or empty. What a value contains is not filled in again.
    pub fn new(written: &str, lookup: Lookup<'_>) -> Self {
        let mut filled = Self { written: written.to_owned(), ..Self::default() };
        let mut rest = written;
        while let Some((before, after)) = rest.split_once("${") {
            filled.value.push_str(before);
            let Some((inside, next)) = after.split_once('}').filter(|(it, _)| !it.is_empty())
            else {
                // No placeholder begins here; one may begin right behind.
                filled.value.push_str("${");
                rest = after;
                continue;
            };
            filled.fill(inside, lookup);
            rest = next;
        }
        filled.value.push_str(rest);
        filled
    }

    /// A string without variables.
    pub fn literal(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { written: text.clone(), value: text, ..Self::default() }
    }

    fn fill(&mut self, inside: &str, lookup: Lookup<'_>) {
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let name = name.strip_prefix("env:").unwrap_or(name);
        let value = lookup(name).filter(|it| default.is_none() || !it.is_empty());
        match (value, default) {
            (Some(value), _) => {
                self.value.push_str(&value);
                self.secrets.push(value);
            }
            (None, Some(default)) => self.value.push_str(default),
            (None, None) => self.unset.push(name.to_owned()),
        }
    }

    /// The same, with another meaning: what was written is still what is shown.
    #[must_use]
    pub(crate) fn meaning(&self, value: impl Into<String>) -> Self {
        Self { value: value.into(), ..self.clone() }
    }

    /// How it was written: safe to show.
    pub fn written(&self) -> &str {
        &self.written
    }

    /// What it means: not to be shown.
    pub fn value(&self) -> &str {
        &self.value
    }
}

impl fmt::Debug for Filled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.written)
    }
}

impl fmt::Display for Filled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

/// `value` with every `${NAME}` replaced; a variable that is not set is replaced by nothing.
///
/// ```
/// use toolcrib_sources::mcp::substitute_env_vars;
///
/// let env = |name: &str| (name == "API_KEY").then(|| "secret123".to_owned());
/// assert_eq!(substitute_env_vars("Bearer ${API_KEY}", &env), "Bearer secret123");
/// assert_eq!(substitute_env_vars("${UNSET_VAR}", &env), "");
/// assert_eq!(substitute_env_vars("${UNSET_VAR:-none}", &env), "none");
/// ```
pub fn substitute_env_vars(value: &str, lookup: Lookup<'_>) -> String {
    Filled::new(value, lookup).value
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn env(name: &str) -> Option<String> {
        let value = match name {
            "A" => "1",
            "NESTED" => "${A}",
            "EMPTY" => "",
            "X-Y" => "dash",
            _ => return None,
        };
        Some(value.to_owned())
    }

    #[track_caller]
    fn check(written: &str, expected: &str, unset: &[&str]) {
        let filled = Filled::new(written, &env);
        let unset: Vec<String> = unset.iter().map(ToString::to_string).collect();
        assert_eq!((filled.value(), &filled.unset), (expected, &unset));
    }

    #[test]
    fn placeholders() {
        check("a${A}b${A}", "a1b1", &[]);
        check("${NESTED}", "${A}", &[]);
        check("${NO}${NO2}", "", &["NO", "NO2"]);
        check("${X-Y}", "dash", &[]);
        check("${env:A}", "1", &[]);
        check("$A ${ ${} $${A}", "$A  $1", &[" ${"]);
        check("${NO:-d:-e}${EMPTY:-e}${EMPTY}", "d:-ee", &[]);
        check("${}${A}", "${}1", &[]);
    }

    #[test]
    fn a_value_is_never_shown() {
        let filled = Filled::new("Bearer ${A}", &|_| Some("hunter22".to_owned()));
        assert_eq!(format!("{filled} {filled:?}"), r#"Bearer ${A} "Bearer ${A}""#);
        assert_eq!(filled.value(), "Bearer hunter22");
    }

    fn pieces() -> impl Strategy<Value = String> {
        let words = vec!["$", "{", "}", "${", ":-", "env:", "A", "${A}", "${A:-", "é", " ", "="];
        let piece = prop_oneof![9 => prop::sample::select(words).prop_map(String::from), 1 => any::<String>()];
        prop::collection::vec(piece, 0..12).prop_map(|it| it.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100_000))]

        /// No text makes it panic; a text without `${` stays as it is; the way it shows itself does
        /// not depend on any value.
        #[test]
        fn any_text(written in pieces()) {
            let secret = "s3cr3t-value";
            let filled = Filled::new(&written, &|_| Some(secret.to_owned()));
            prop_assert_eq!(filled.written(), &written);
            let shown = format!("{filled:?}");
            prop_assert!(!shown.contains(secret));
            if !written.contains("${") {
                prop_assert_eq!(filled.value(), written);
            }
        }
    }
}
