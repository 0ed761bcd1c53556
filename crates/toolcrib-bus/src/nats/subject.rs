//! What events and consumers are called on NATS.
//!
//! An event's subject is `toolcrib.events.` and its name. Dots stay dots, so that subject filters work;
//! whatever is no printable ASCII, and `%`, `*` and `>`, is written as `%` and two hexadecimal digits for
//! each byte. Names of JetStream consumers know no dot and no slash: there everything but letters, digits
//! and `-` is `_` and two digits. Both can be read back.

use crate::{Filter, Pattern};

/// What events are under.
pub(crate) const EVENTS: &str = "toolcrib.events.";

/// What was given up and is to be delivered again, for one consumer each.
pub(crate) const AGAIN: &str = "toolcrib.again.";

/// What was given up, for one consumer each.
pub(crate) const DEAD: &str = "toolcrib.dead.";

/// More subjects than this are not asked for one by one.
const MAX_SUBJECTS: usize = 64;

/// Writes a text so that it can stand in a subject or a header.
pub(crate) fn escape(text: &str) -> String {
    let plain = |c: u8| c.is_ascii_graphic() && !b"%*>".contains(&c);
    written(text, '%', plain)
}

/// Reads such a text.
pub(crate) fn unescape(text: &str) -> Option<String> {
    read(text, b'%')
}

/// The name of a JetStream consumer, made of that of ours.
pub(crate) fn durable(consumer: &str) -> String {
    written(consumer, '_', |c| c.is_ascii_alphanumeric() || c == b'-')
}

/// And back.
#[cfg(test)]
pub(crate) fn consumer(durable: &str) -> Option<String> {
    read(durable, b'_')
}

fn written(text: &str, mark: char, plain: impl Fn(u8) -> bool) -> String {
    let mut found = String::with_capacity(text.len() + 8);
    for byte in text.bytes() {
        if plain(byte) {
            found.push(char::from(byte));
        } else {
            found.push_str(&format!("{mark}{byte:02x}"));
        }
    }
    found
}

fn read(text: &str, mark: u8) -> Option<String> {
    let mut bytes = text.bytes();
    let mut found = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte == mark {
            let mut digit = || char::from(bytes.next()?).to_digit(16);
            let (high, low) = (digit()?, digit()?);
            found.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            found.push(byte);
        }
    }
    String::from_utf8(found).ok()
}

/// The subject of an event.
pub(crate) fn subject(name: &str) -> String {
    format!("{EVENTS}{}", escape(name))
}

/// The name of the event that has a subject.
pub(crate) fn name(subject: &str) -> Option<String> {
    unescape(subject.strip_prefix(EVENTS)?)
}

/// Subjects that hold all that a filter asks for, and as little else as NATS can tell apart. No two of them
/// have a subject in common, as JetStream wants it.
pub(crate) fn subjects(filter: &Filter) -> Vec<String> {
    let patterns = match &filter.allowed {
        _ if !filter.asked.is_empty() => &filter.asked,
        Some(allowed) => allowed,
        None => return vec![format!("{EVENTS}>")],
    };
    let mut wanted: Vec<String> = Vec::new();
    for subject in patterns.iter().filter_map(wide) {
        if !wanted.iter().any(|it| covers(it, &subject)) {
            wanted.retain(|it| !covers(&subject, it));
            wanted.push(subject);
        }
    }
    let apart = |(at, one): (usize, &String)| !wanted[..at].iter().any(|it| meet(it, one));
    if MAX_SUBJECTS < wanted.len() || !wanted.iter().enumerate().all(apart) {
        return vec![format!("{EVENTS}>")];
    }
    if wanted.is_empty() {
        // No name is written so: nothing is asked for.
        wanted.push(format!("{EVENTS}%"));
    }
    wanted
}

/// A subject with NATS's wildcards in it that holds all that a pattern stands for.
fn wide(pattern: &Pattern) -> Option<String> {
    let text = pattern.as_str();
    if text.is_empty() {
        return None;
    }
    let token = |part: &str| if part.contains('*') { "*".to_owned() } else { escape(part) };
    let (parts, open) = match text.strip_suffix('*') {
        Some(head) => (head.rsplit_once('.').map_or("", |(parts, _)| parts), true),
        None => (text, false),
    };
    let mut tokens: Vec<String> =
        parts.split('.').filter(|_| !parts.is_empty()).map(token).collect();
    if tokens.iter().any(String::is_empty) {
        return None;
    }
    if open {
        tokens.push(">".to_owned());
    }
    Some(format!("{EVENTS}{}", tokens.join(".")))
}

/// Whether one subject holds all of another.
fn covers(wide: &str, narrow: &str) -> bool {
    let (mut wide, mut narrow) = (wide.split('.'), narrow.split('.'));
    loop {
        match (wide.next(), narrow.next()) {
            (None, None) | (Some(">"), Some(_)) => return true,
            (Some("*"), Some(token)) if token != ">" => {}
            (Some(one), Some(other)) if one == other => {}
            _ => return false,
        }
    }
}

/// Whether two subjects have something in common.
fn meet(one: &str, other: &str) -> bool {
    let (mut one, mut other) = (one.split('.'), other.split('.'));
    loop {
        match (one.next(), other.next()) {
            (None, None) | (Some(">"), Some(_)) | (Some(_), Some(">")) => return true,
            (Some("*"), Some(_)) | (Some(_), Some("*")) => {}
            (Some(a), Some(b)) if a == b => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::check_name;

    /// Whether a subject is one of those that a subject with wildcards stands for, as NATS defines it.
    fn held(wide: &str, subject: &str) -> bool {
        covers(wide, subject)
    }

    #[test]
    fn names_become_subjects_that_can_be_read_back() {
        assert_eq!(subject("task.run"), "toolcrib.events.task.run");
        assert_eq!(subject("größe/a%b.$x"), "toolcrib.events.gr%c3%b6%c3%9fe/a%25b.$x");
        assert_eq!(
            name("toolcrib.events.gr%c3%b6%c3%9fe/a%25b.$x").as_deref(),
            Some("größe/a%b.$x")
        );
        assert_eq!(
            (name("other.x"), name("toolcrib.events.a%2"), name("toolcrib.events.%ff")),
            (None, None, None)
        );
        assert_eq!(durable("guest/my.tasks_1"), "guest_2fmy_2etasks_5f1");
        assert_eq!(consumer("guest_2fmy_2etasks_5f1").as_deref(), Some("guest/my.tasks_1"));
    }

    #[test]
    fn filters_become_subjects_that_hold_them() {
        let of = |patterns: &[&str]| {
            subjects(&Filter::of(patterns.iter().copied()).unwrap()).join(" ").replace(EVENTS, "")
        };
        assert_eq!(of(&[]), ">");
        assert_eq!(of(&["task.run"]), "task.run");
        assert_eq!(of(&["task.*", "task.run", "other"]), "task.> other");
        assert_eq!(of(&["task.*.done", "task.x.done"]), "task.*.done");
        assert_eq!(of(&["ta*"]), ">");
        assert_eq!(of(&["a.b*", "c.x*y.z"]), "a.> c.*.z");
        assert_eq!(of(&["a.*.c", "*.b.c"]), ">", "they overlap, which JetStream refuses");
        assert_eq!(of(&[""]), "%");
        let allowed =
            Filter { asked: Vec::new(), allowed: Some(vec![Pattern::new("a.*").unwrap()]) };
        assert_eq!(subjects(&allowed), ["toolcrib.events.a.>"]);
    }

    proptest! {
        #[test]
        fn every_name_comes_back(text in "\\PC{1,40}") {
            prop_assert_eq!(unescape(&escape(&text)), Some(text.clone()));
            prop_assert_eq!(consumer(&durable(&text)), Some(text.clone()));
            prop_assert!(escape(&text).bytes().all(|c| c.is_ascii_graphic() && c != b'*' && c != b'>'));
            prop_assert!(durable(&text).bytes().all(|c| c.is_ascii_alphanumeric() || b"-_".contains(&c)));
        }

        #[test]
        fn no_event_that_is_asked_for_is_left_out(
            patterns in prop::collection::vec("[ab*]{0,3}(\\.[ab*]{1,2}){0,2}", 0..4),
            name in "[ab]{1,3}(\\.[ab]{1,2}){0,2}",
        ) {
            let Ok(filter) = Filter::of(patterns.iter().map(String::as_str)) else { return Ok(()) };
            prop_assert!(check_name(&name).is_ok());
            let wanted = subjects(&filter);
            if filter.matches(&name) {
                prop_assert!(wanted.iter().any(|it| held(it, &subject(&name))), "{wanted:?} {name}");
            }
            for (at, one) in wanted.iter().enumerate() {
                prop_assert!(!wanted[..at].iter().any(|it| meet(it, one)), "{wanted:?}");
            }
        }
    }
}
