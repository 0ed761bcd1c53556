//! Lines of a text that say one thing each.
//!
//! Three kinds, in this order: `key: value` and `key = value`, items of a numbered list, items of a list with
//! bullets. A key is made of letters, digits, blanks and underscores and begins with a letter or an
//! underscore; it is given in lower case with underscores for blanks. Where a key comes twice its last value
//! counts, in the place of the first. Nothing is said twice.

use hashbrown::{HashMap, HashSet};

use crate::envelope::ends_line;

/// Of a text that is nothing but facts no more are taken; a prompt has no place for them.
const MOST: usize = 1000;

/// The facts of `text`.
///
/// ```
/// use toolcrib_context::extract_facts;
///
/// assert_eq!(extract_facts("Total Count = 5\n1. first\n- bullet"), ["total_count: 5", "first", "bullet"]);
/// ```
pub fn extract_facts(text: &str) -> Vec<String> {
    let mut pairs: Vec<(String, &str)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let (mut numbered, mut bulleted) = (Vec::new(), Vec::new());
    for line in text.split(ends_line) {
        let line = line.trim();
        if let Some((key, value)) = pair(line) {
            match places.get(&key) {
                Some(place) => pairs[*place].1 = value,
                None if pairs.len() < MOST => {
                    places.insert(key.clone(), pairs.len());
                    pairs.push((key, value));
                }
                None => {}
            }
        }
        if numbered.len() < MOST {
            numbered.extend(number_item(line));
        }
        if bulleted.len() < MOST {
            bulleted.extend(bullet_item(line));
        }
    }
    let pairs = pairs.into_iter().map(|(key, value)| format!("{key}: {value}"));
    let items = numbered.into_iter().chain(bulleted).map(str::to_owned);
    let mut seen = HashSet::new();
    pairs.chain(items).filter(|it| seen.insert(it.clone())).take(MOST).collect()
}

/// `key: value` or `key = value`.
fn pair(line: &str) -> Option<(String, &str)> {
    let end = line.find([':', '='])?;
    let key = line[..end].trim_end();
    let begins = key.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_');
    let fits = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == ' ';
    if !begins || !key.chars().all(fits) {
        return None;
    }
    Some((key.to_ascii_lowercase().replace(' ', "_"), line[end + 1..].trim()))
}

/// What follows `12.` or `12)` and a blank.
fn number_item(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches(char::is_numeric);
    if rest.len() == line.len() {
        return None;
    }
    after_blank(rest.strip_prefix(['.', ')'])?)
}

/// What follows a bullet and a blank.
fn bullet_item(line: &str) -> Option<&str> {
    after_blank(line.strip_prefix(['-', '*', '•'])?)
}

fn after_blank(rest: &str) -> Option<&str> {
    let item = rest.trim_start();
    (item.len() < rest.len()).then_some(item)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, facts: &[&str]) {
        assert_eq!(extract_facts(text), facts, "{text}");
    }

    #[test]
    fn three_kinds_of_lines_are_facts() {
        check(
            "status: ok\nTotal Count = 5\n1. first\n2) second\n- bullet\n* star\n• dot\nplain",
            &["status: ok", "total_count: 5", "first", "second", "bullet", "star", "dot"],
        );
        check("key with spaces : v", &["key_with_spaces: v"]);
        check("see http://a.b/c", &["see_http: //a.b/c"]);
        check("http://a.b/c", &["http: //a.b/c"]);
        check("3: no key begins with a digit", &[]);
        check("{\"k\": 1}", &[]);
    }

    #[test]
    fn nothing_is_said_twice_and_the_last_value_counts() {
        check("- dup\n- dup", &["dup"]);
        check("a: 1\nb: 2\nA: 3", &["a: 3", "b: 2"]);
    }

    #[test]
    fn there_is_an_end_to_facts() {
        let text: String = (0..5000).map(|it| format!("k{it}: v\n")).collect();
        assert_eq!(extract_facts(&text).len(), MOST);
    }
}
