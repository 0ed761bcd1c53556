//! Which words of a text changed, and which characters in it nobody sees.

use super::{MAX_SHOWN, Told, Weight, arrow};
use crate::lock::{
    canonical::{Node, is_hidden},
    quoted, shortened,
};

/// Longer texts are not held against each other word by word: that takes the product of both.
const MAX_WORDS: usize = 400;
/// How many places of a text are shown.
const MAX_PLACES: usize = 3;

/// A text that differs.
pub(super) fn changed(told: &mut Told, what: &str, old: Option<&Node<'_>>, new: Option<&Node<'_>>) {
    let text = match (old.map(Node::text), new.map(Node::text)) {
        (Some(Some(old)), Some(Some(new))) => difference(old, new),
        (None, Some(Some(new))) => format!("new: {}", quoted(new, 2 * MAX_SHOWN)),
        (Some(Some(_)), None) => "gone".to_owned(),
        _ => arrow(old, new),
    };
    told.add(Weight::Text, format!("{what}: {text}"));
}

/// One place where words differ.
#[derive(Debug, Default, PartialEq, Eq)]
struct Place<'a> {
    gone: Vec<&'a str>,
    new: Vec<&'a str>,
}

fn difference(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) =
        (old.split_whitespace().collect(), new.split_whitespace().collect());
    if old == new {
        return "only spaces and line ends changed".to_owned();
    }
    let places = places(&old, &new);
    let count: usize = places.iter().map(|it| it.gone.len().max(it.new.len())).sum();
    let noun = if count == 1 { "word" } else { "words" };
    let shown: Vec<String> = places.iter().take(MAX_PLACES).map(show).collect();
    let more = match places.len() {
        ..=MAX_PLACES => String::new(),
        count => format!(" and in {} more", count - MAX_PLACES),
    };
    format!("{count} {noun} changed: {}{more}", shown.join(", "))
}

fn show(place: &Place<'_>) -> String {
    let side = |sign: &str, words: &[&str]| {
        (!words.is_empty())
            .then(|| format!("{sign}“{}”", shortened(&words.join(" "), 2 * MAX_SHOWN)))
    };
    let sides = [side("−", &place.gone), side("+", &place.new)];
    sides.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Where two texts differ: what is common to both in the longest possible way is left out.
fn places<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Place<'a>> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[head..], &new[head..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
    if old.len() > MAX_WORDS || new.len() > MAX_WORDS {
        return vec![Place { gone: old.to_vec(), new: new.to_vec() }];
    }
    // common[i][j]: how many words the rests from i and from j on have in common, in order.
    let width = new.len() + 1;
    let mut common = vec![0_u16; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i * width + j] = if old[i] == new[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut places = Vec::new();
    let mut open = Place::default();
    while i < old.len() || j < new.len() {
        let same = i < old.len() && j < new.len() && old[i] == new[j];
        if same {
            if open != Place::default() {
                places.push(std::mem::take(&mut open));
            }
            (i, j) = (i + 1, j + 1);
        } else if j == new.len()
            || (i < old.len() && common[(i + 1) * width + j] >= common[i * width + j + 1])
        {
            open.gone.push(old[i]);
            i += 1;
        } else {
            open.new.push(new[j]);
            j += 1;
        }
    }
    if open != Place::default() {
        places.push(open);
    }
    places
}

/// The hidden characters in all texts and keys of a value, in order.
pub(super) fn gather_hidden(value: &Node<'_>, found: &mut Vec<char>) {
    match value {
        Node::Plain(_) => {}
        Node::Text(text) => gather(text, found),
        Node::List(items) => items.iter().for_each(|it| gather_hidden(it, found)),
        Node::Object(members) => {
            for (key, value) in members {
                gather(key, found);
                gather_hidden(value, found);
            }
        }
    }
}

fn gather(text: &str, found: &mut Vec<char>) {
    let mut chars = text.chars().peekable();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        let after = chars.peek().copied().unwrap_or(' ');
        if is_hidden(c) && !"\n\r\t".contains(c) && !is_in_its_place(before, c, after) {
            found.push(c);
        }
        before = c;
    }
}

/// Whether a hidden character does what it is for: it colours an emoji, or joins letters of a script
/// that needs it.
fn is_in_its_place(before: char, c: char, after: char) -> bool {
    let letter = |it: char| !it.is_ascii() && !is_hidden(it);
    match c {
        '\u{fe0e}' | '\u{fe0f}' => letter(before),
        '\u{200c}' | '\u{200d}' => (letter(before) || before == '\u{fe0f}') && letter(after),
        _ => false,
    }
}
