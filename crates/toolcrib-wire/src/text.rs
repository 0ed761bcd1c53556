//! Text from outside, made fit for a log or a terminal.

use std::borrow::Cow;

/// The bytes as text, on one line and without anything a terminal would act on.
pub fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut clean = String::with_capacity(text.len());
    for c in text.trim_end().chars() {
        if c == '\t' {
            clean.push(' ');
        } else if c.is_control() || is_invisible(c) {
            clean.extend(c.escape_unicode());
        } else {
            clean.push(c);
        }
    }
    clean
}

/// Characters that show nothing and can hide or turn round what stands beside them.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// Takes known secrets out of a text.
#[derive(Debug, Clone, Default)]
pub struct Masker(Vec<Secret>);

#[derive(Clone)]
struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("****")
    }
}

/// Anything shorter is no secret, and would take half a text with it.
const SHORTEST_SECRET: usize = 6;

impl Masker {
    /// A masker that knows these values.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        // What is masked comes line by line, and made plain.
        let forms = |it: String| {
            let lines: Vec<String> = it.lines().map(|line| plain(line.trim().as_bytes())).collect();
            // In JSON a value stands as JSON writes it.
            let quoted = serde_json::Value::from(it.as_str()).to_string();
            let quoted = quoted[1..quoted.len() - 1].to_owned();
            lines.into_iter().chain([plain(it.as_bytes()), quoted, it])
        };
        let mut secrets: Vec<String> =
            values.into_iter().flat_map(forms).filter(|it| SHORTEST_SECRET <= it.len()).collect();
        // A secret that contains another must go first, or its rest would stay.
        secrets.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.dedup();
        Self(secrets.into_iter().map(Secret).collect())
    }

    /// A masker that knows what either of two does.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let values = self.0.into_iter().chain(other.0).map(|Secret(it)| it);
        Self::new(values)
    }

    /// `text` with `****` for every secret.
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut masked = Cow::Borrowed(text);
        for Secret(secret) in &self.0 {
            if masked.contains(secret) {
                masked = Cow::Owned(masked.replace(secret, "****"));
            }
        }
        masked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_a_terminal_that_it_would_act_on() {
        assert_eq!(plain(b"a\x1b[2Jb\r\n"), "a\\u{1b}[2Jb");
        assert_eq!(
            plain("x\u{9b}y\u{202e}z\u{e0041}é".as_bytes()),
            "x\\u{9b}y\\u{202e}z\\u{e0041}é"
        );
    }

    #[test]
    fn secrets_go_the_longer_first() {
        let masker = Masker::new(["hunter22".into(), "hunter22-more".into(), "on".into()]);
        assert_eq!(masker.mask("on hunter22-more, hunter22"), "on ****, ****");
        assert_eq!(format!("{masker:?}"), "Masker([****, ****])");
    }
}
