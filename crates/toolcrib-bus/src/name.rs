//! What an event may be called, and which ones somebody asks for.

use serde::{Deserialize, Serialize};

/// The longest name.
const MAX_NAME: usize = 255;

/// The longest name of a consumer.
const MAX_CONSUMER: usize = 64;

/// Names that begin so are ours.
const RESERVED: &str = "toolcrib.";

/// Why a name is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It is empty.
    #[error("a name must not be empty")]
    Empty,
    /// It is too long.
    #[error("a name must not be longer than {0} bytes")]
    TooLong(usize),
    /// Something in it must not be there.
    #[error("a name must not hold `{}`", .0.escape_debug())]
    Character(char),
    /// Two dots follow each other, or one is first or last.
    #[error("something must stand before, after and between the dots")]
    EmptyPart,
    /// It is one of ours.
    #[error("names that begin with `toolcrib.` are the gateway's own")]
    Reserved,
}

/// Whether events can have this name: words with dots between them. Whatever is no space, no control
/// character and no wildcard may be in a word, since addresses of other systems have it.
pub fn check_name(name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if MAX_NAME < name.len() {
        return Err(NameError::TooLong(MAX_NAME));
    }
    let bad =
        |c: &char| c.is_whitespace() || c.is_control() || is_hidden(*c) || "*>{}".contains(*c);
    if let Some(c) = name.chars().find(bad) {
        return Err(NameError::Character(c));
    }
    if name.split('.').any(str::is_empty) {
        return Err(NameError::EmptyPart);
    }
    if name.starts_with(RESERVED) {
        return Err(NameError::Reserved);
    }
    Ok(())
}

/// Characters that nobody sees: two names that look alike must be alike.
fn is_hidden(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{e0000}'..='\u{e007f}' | '\u{ad}')
}

/// Names of events: a `*` at the end stands for the rest, one inside for whatever has no dot in it.
///
/// ```
/// use toolcrib_bus::Pattern;
/// let matches = |pattern: &str, name: &str| Pattern::new(pattern).unwrap().matches(name);
/// assert!(matches("task.*", "task.run.now"));
/// assert!(matches("task.*.done", "task.x1.done"));
/// assert!(!matches("task.*", "tasks.run"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(String);

impl Pattern {
    /// A pattern.
    pub fn new(text: impl Into<String>) -> Result<Self, NameError> {
        let text = text.into();
        if MAX_NAME < text.len() {
            return Err(NameError::TooLong(MAX_NAME));
        }
        match text.chars().find(|c| c.is_whitespace() || c.is_control()) {
            Some(c) => Err(NameError::Character(c)),
            None => Ok(Self(text)),
        }
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it stands for this name where every star is a part of one word, the last one too.
    pub fn matches_words(&self, name: &str) -> bool {
        !self.0.is_empty() && fits(&self.0, name)
    }

    /// Whether it stands for this name. The empty pattern stands for none.
    pub fn matches(&self, name: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(head) => begins(head, name),
            None => !self.0.is_empty() && fits(&self.0, name),
        }
    }
}

impl TryFrom<String> for Pattern {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        Self::new(text)
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.0
    }
}

/// Whether a name begins as a pattern says. What stands before its last star takes whole parts, and the
/// piece behind it is where the rest begins.
fn begins(head: &str, name: &str) -> bool {
    let Some((parts, last)) = head.rsplit_once('.') else {
        return match head.split_once('*') {
            None => name.starts_with(head),
            Some(_) => segment_begins(head, name.split('.').next().unwrap_or_default()),
        };
    };
    let mut names = name.split('.');
    parts.split('.').all(|part| names.next().is_some_and(|it| segment(part, it)))
        && names.next().is_some_and(|it| segment_begins(last, it))
}

fn fits(pattern: &str, name: &str) -> bool {
    let (mut parts, mut names) = (pattern.split('.'), name.split('.'));
    loop {
        match (parts.next(), names.next()) {
            (None, None) => return true,
            (Some(part), Some(name)) if segment(part, name) => {}
            _ => return false,
        }
    }
}

/// Whether a part of a name is as a part of a pattern says; each star takes any run of characters.
fn segment(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    true
}

fn segment_begins(pattern: &str, text: &str) -> bool {
    segment(&format!("{pattern}*"), text)
}

/// Which events somebody asks for, and which of those they may have.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Filter {
    /// One of these; all where there is none.
    pub asked: Vec<Pattern>,
    /// And one of these, where there are rules at all.
    pub allowed: Option<Vec<Pattern>>,
}

impl Filter {
    /// All events.
    pub fn all() -> Self {
        Self::default()
    }

    /// The events of some patterns.
    pub fn of<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self, NameError> {
        let asked = patterns.into_iter().map(Pattern::new).collect::<Result<_, _>>()?;
        Ok(Self { asked, allowed: None })
    }

    /// Whether an event of this name is among them.
    pub fn matches(&self, name: &str) -> bool {
        let any = |list: &[Pattern]| list.iter().any(|it| it.matches(name));
        (self.asked.is_empty() || any(&self.asked)) && self.allowed.as_deref().is_none_or(any)
    }
}

/// The name of a durable consumer: whose it is, and what they call it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConsumerName(String);

impl ConsumerName {
    /// A consumer that belongs to `owner`; one of the same name that belongs to another is another.
    pub fn new(owner: &str, name: &str) -> Result<Self, NameError> {
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        if MAX_CONSUMER < name.len() {
            return Err(NameError::TooLong(MAX_CONSUMER));
        }
        let good = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        match name.chars().find(|c| !good(*c)) {
            Some(c) => Err(NameError::Character(c)),
            None => Ok(Self(format!("{owner}/{name}"))),
        }
    }

    /// `owner/name`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whose it is, and what they call it.
    pub fn parts(full: &str) -> (&str, &str) {
        full.rsplit_once('/').unwrap_or(("", full))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(pattern: &str, yes: &[&str], no: &[&str]) {
        let pattern = Pattern::new(pattern).unwrap();
        for name in yes {
            assert!(pattern.matches(name), "{pattern:?} stands for {name}");
        }
        for name in no {
            assert!(!pattern.matches(name), "{pattern:?} does not stand for {name}");
        }
    }

    #[test]
    fn a_final_star_is_the_rest_and_one_inside_a_part() {
        check("*", &["a", "a.b.c"], &[]);
        check("task.*", &["task.run", "task.run.now"], &["task", "tasks.run", "x.task.run"]);
        check("task*", &["task", "tasks.run", "task.run"], &["a.task"]);
        check("*.run", &["task.run"], &["run", "task.run.now", "a.b.run"]);
        check("task.*.done", &["task.x1.done"], &["task.done", "task.a.b.done", "task.x1.done2"]);
        check("a.*.c.*", &["a.b.c.d", "a.b.c.d.e"], &["a.b.c", "a.b.x.c.d"]);
        check("a.x*z.c", &["a.xz.c", "a.xyz.c"], &["a.xy.c", "a.x.z.c"]);
        check("a*b*", &["ab", "axbx", "axb.c"], &["a.b"]);
        check("task.run", &["task.run"], &["task.run.now", "task.ru", "task.runs"]);
        check("", &[], &["a", ""]);
    }

    #[test]
    fn word_by_word_no_star_takes_a_dot() {
        let matches =
            |pattern: &str, name: &str| Pattern::new(pattern).unwrap().matches_words(name);
        assert!(matches("orders.*", "orders.1") && matches("*", "orders"));
        assert!(!matches("orders.*", "orders.1.refund") && !matches("*", "payroll.salary"));
    }

    #[test]
    fn a_name_is_words_with_dots_between_them() {
        for good in ["task.delegate", "light/measured", "Üser.signed-up", "a", "a.1.0:x#y"] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        assert_eq!(check_name(""), Err(NameError::Empty));
        assert_eq!(check_name("toolcrib.x"), Err(NameError::Reserved));
        for part in [".a", "a.", "a..b", "."] {
            assert_eq!(check_name(part), Err(NameError::EmptyPart));
        }
        for bad in ["a b", "a\n", "a*", "a.>", "{x}", "a\u{200b}b", "a\u{202e}"] {
            assert!(matches!(check_name(bad), Err(NameError::Character(..))), "{bad}");
        }
        assert_eq!(check_name(&"x".repeat(256)), Err(NameError::TooLong(255)));
    }

    #[test]
    fn what_is_asked_for_is_had_only_where_it_is_allowed() {
        let mut filter = Filter::of(["task.*", "user.new"]).unwrap();
        assert!(filter.matches("task.run") && filter.matches("user.new"));
        filter.allowed = Some(vec![Pattern::new("task.*").unwrap()]);
        assert!(filter.matches("task.run") && !filter.matches("user.new"));
        filter.allowed = Some(Vec::new());
        assert!(!filter.matches("task.run"));
        assert!(Filter::all().matches("anything"));
    }

    #[test]
    fn a_consumer_belongs_to_somebody() {
        let name = ConsumerName::new("guest", "mail").unwrap();
        assert_eq!(name.as_str(), "guest/mail");
        assert_eq!(ConsumerName::parts("a/b/mail"), ("a/b", "mail"));
        for bad in ["", "a/b", "a b", "ü", &"x".repeat(65)] {
            assert!(ConsumerName::new("guest", bad).is_err(), "{bad}");
        }
    }

    /// The definition, as slow as it is plain: expand a pattern part by part.
    fn by_definition(pattern: &str, name: &str) -> bool {
        fn go(p: &[u8], n: &[u8]) -> bool {
            match p.split_first() {
                None => n.is_empty(),
                Some((b'*', [])) => true,
                Some((b'*', rest)) => (0..=n.len())
                    .take_while(|at| !n[..*at].contains(&b'.'))
                    .any(|at| go(rest, &n[at..])),
                Some((c, rest)) => n.first() == Some(c) && go(rest, &n[1..]),
            }
        }
        !pattern.is_empty() && go(pattern.as_bytes(), name.as_bytes())
    }

    proptest! {
        #[test]
        fn matching_is_as_defined(pattern in "[ab.*]{0,8}", name in "[ab.]{0,8}") {
            let found = Pattern::new(pattern.clone()).unwrap().matches(&name);
            prop_assert_eq!(found, by_definition(&pattern, &name), "{} {}", pattern, name);
        }
    }
}
