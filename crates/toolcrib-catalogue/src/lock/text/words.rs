//! The words that lines are made of.

use std::borrow::Cow;

use crate::lock::canonical::{Ink, push_text};

/// No fact stands deeper.
const MAX_PATH: usize = 4;

/// Writes a word, as JSON where it could be taken for something else.
pub(super) fn push_word(out: &mut String, word: &str) {
    if !word.is_empty() && word.bytes().all(is_bare) {
        out.push_str(word);
    } else {
        push_text(out, word, Ink::Visible);
    }
}

fn is_bare(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-:@/$".contains(&byte)
}

/// The words of a line, up to one that cannot be read, and whether there was none.
pub(super) fn words(line: &str) -> (Vec<Cow<'_, str>>, bool) {
    let mut rest = line.trim();
    let mut words = Vec::new();
    while !rest.is_empty() && words.len() < 6 {
        match word(rest) {
            Some((word, after)) if after.is_empty() || after.starts_with(' ') => {
                words.push(word);
                rest = after.trim_start();
            }
            _ => return (words, false),
        }
    }
    (words, true)
}

/// The word that a text begins with, and what follows.
fn word(text: &str) -> Option<(Cow<'_, str>, &str)> {
    if text.starts_with('"') {
        let end = end_of_text(text)?;
        let word: String = serde_json::from_str(&text[..end]).ok()?;
        return Some((Cow::Owned(word), &text[end..]));
    }
    let end = text.bytes().position(|it| !is_bare(it)).unwrap_or(text.len());
    (end > 0).then(|| (Cow::Borrowed(&text[..end]), &text[end..]))
}

/// Where a text in JSON ends that begins here.
fn end_of_text(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (place, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(place + 1),
            _ => {}
        }
    }
    None
}

/// The path that a fact begins with, and its value.
pub(super) fn read_path(line: &str) -> Option<(Vec<String>, &str)> {
    let mut path = Vec::new();
    let mut rest = line;
    loop {
        let (part, after) = word(rest)?;
        path.push(part.into_owned());
        match after.strip_prefix('.') {
            Some(after) if path.len() < MAX_PATH => rest = after,
            Some(_) => return None,
            None => return Some((path, after.strip_prefix(' ')?.trim_start())),
        }
    }
}
