//! How a text falls into words: `createIssue`, `HTTPServer`, `re-index`, `Zugriffsschlüssel`, `検索する`.
//!
//! Identifiers are split where a person would: at punctuation, at case, between an acronym and the word behind
//! it. What stood together is a word of its own too, so that `GitHub` is found as `github` and as `git hub`.
//! Scripts that put no spaces between words are cut into pairs of letters. Accents go.

use std::borrow::Cow;

use icu_normalizer::DecomposingNormalizerBorrowed;

/// A longer word is cut: it is a key or a hash, and nobody types it.
const MAX_WORD: usize = 40;

/// What a piece of a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece {
    /// A word.
    Word,
    /// The words before it, written as one.
    Joined,
}

/// The text with accents gone and everything that is neither letter nor digit, but for ASCII, a space.
pub(super) fn fold(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let normalizer = DecomposingNormalizerBorrowed::new_nfkd();
    let mut folded = String::with_capacity(text.len());
    for original in text.chars() {
        if original.is_ascii() || is_unspaced(original) {
            folded.push(original);
            continue;
        }
        for char in normalizer.normalize_iter(std::iter::once(original)) {
            match char {
                '\u{300}'..='\u{36f}' => {}
                '’' => folded.push('\''),
                '‐' | '‑' => folded.push('-'),
                'ß' => folded.push_str("ss"),
                'æ' | 'Æ' => folded.push_str("ae"),
                'œ' | 'Œ' => folded.push_str("oe"),
                'ø' | 'Ø' => folded.push('o'),
                'ł' | 'Ł' => folded.push('l'),
                'đ' | 'Đ' => folded.push('d'),
                'ı' => folded.push('i'),
                _ if char.is_ascii() || char.is_alphanumeric() => folded.push(char),
                _ => folded.push(' '),
            }
        }
    }
    Cow::Owned(folded)
}

/// Whether a letter belongs to a script that is written without spaces.
fn is_unspaced(char: char) -> bool {
    matches!(char,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3134f}')
}

/// What stands between two marks in a folded text, such as `createIssue`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunk<'a> {
    pub(super) text: &'a str,
    /// Only a hyphen stands between it and the chunk before.
    pub(super) hyphened: bool,
}

/// The chunks of a folded text.
pub(super) fn chunks(folded: &str) -> impl Iterator<Item = Chunk<'_>> {
    let bytes = folded.as_bytes();
    let is_inner = |it: u8| it.is_ascii_alphanumeric() || !it.is_ascii();
    let mut at = 0;
    let mut end_before = usize::MAX;
    std::iter::from_fn(move || {
        while at < bytes.len() && !is_inner(bytes[at]) {
            at += 1;
        }
        if at == bytes.len() {
            return None;
        }
        let begin = at;
        while at < bytes.len() && is_inner(bytes[at]) {
            at += 1;
        }
        let end = at;
        // `customer's` is about the customer, `don't` is no word that anybody looks for.
        if bytes.get(at) == Some(&b'\'') {
            let tail = bytes[at + 1..].iter().take_while(|it| is_inner(**it)).count();
            if tail <= 2 {
                at += 1 + tail;
            }
        }
        let hyphened = end_before.checked_add(1) == Some(begin) && bytes[begin - 1] == b'-';
        end_before = end;
        Some(Chunk { text: &folded[begin..end], hyphened })
    })
}

/// The pieces of a chunk, in lower case.
pub(super) fn pieces(chunk: &str, scratch: &mut String, mut each: impl FnMut(&str, Piece)) {
    if !chunk.is_ascii() {
        return other_pieces(chunk, scratch, &mut each);
    }
    let bytes = chunk.as_bytes();
    let mut begin = 0;
    let mut count = 0;
    for at in 1..=bytes.len() {
        if at < bytes.len() && !is_border(bytes, begin, at) {
            continue;
        }
        lower(&chunk[begin..at], scratch);
        each(scratch, Piece::Word);
        without_number(scratch, &mut each);
        begin = at;
        count += 1;
    }
    if 1 < count {
        lower(chunk, scratch);
        each(scratch, Piece::Joined);
    }
}

/// Whether a new word begins at `at`, the last one having begun at `begin`.
fn is_border(bytes: &[u8], begin: usize, at: usize) -> bool {
    let (before, here) = (bytes[at - 1], bytes[at]);
    // A single letter is no word: `OAuth`, `eMail`.
    if at - begin < 2 && begin == 0 {
        return false;
    }
    if here.is_ascii_uppercase() {
        let ends_acronym = bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
        return before.is_ascii_lowercase()
            || before.is_ascii_digit()
            || (before.is_ascii_uppercase() && ends_acronym);
    }
    false
}

/// `sha256` is also `sha`; `s3` and `v2` are what they are.
fn without_number(word: &str, each: &mut impl FnMut(&str, Piece)) {
    let stem = word.trim_end_matches(|it: char| it.is_ascii_digit());
    if stem.len() != word.len() && 3 <= stem.len() {
        each(stem, Piece::Joined);
    }
}

fn lower(word: &str, scratch: &mut String) {
    scratch.clear();
    scratch.push_str(&word[..word.len().min(MAX_WORD)]);
    scratch.make_ascii_lowercase();
}

/// Two neighbours as one word.
pub(super) fn join(first: &str, second: &str, scratch: &mut String) {
    scratch.clear();
    for part in [first, second] {
        let end = part.floor_char_boundary(MAX_WORD / 2);
        scratch.extend(part[..end].chars().flat_map(char::to_lowercase));
    }
}

/// The pieces of a chunk that is not ASCII.
fn other_pieces(chunk: &str, scratch: &mut String, each: &mut impl FnMut(&str, Piece)) {
    let mut rest = chunk;
    while let Some(first) = rest.chars().next() {
        let unspaced = is_unspaced(first);
        let end = rest.find(|it| is_unspaced(it) != unspaced).unwrap_or(rest.len());
        let (run, behind) = rest.split_at(end);
        rest = behind;
        if unspaced {
            pairs(run, each);
        } else {
            scratch.clear();
            scratch.extend(run.chars().take(MAX_WORD).flat_map(char::to_lowercase));
            each(scratch, Piece::Word);
        }
    }
}

/// Each pair of neighbours, and each letter.
fn pairs(run: &str, each: &mut impl FnMut(&str, Piece)) {
    let mut before: Option<usize> = None;
    for (at, char) in run.char_indices() {
        let end = at + char.len_utf8();
        if let Some(begin) = before {
            each(&run[begin..end], Piece::Word);
        }
        let alone = run.len() == char.len_utf8();
        each(&run[at..end], if alone { Piece::Word } else { Piece::Joined });
        before = Some(at);
    }
}

/// Whether a word only holds a sentence together.
pub(super) fn is_filler(word: &str) -> bool {
    word.len() <= size_of::<u64>() && PACKED.binary_search(&pack(word)).is_ok()
}

/// The closed classes of English, sorted: articles, pronouns, prepositions and what verbs are used with,
/// conjunctions, auxiliaries, question words.
const FILLERS: &[&str] = &[
    "a", "about", "above", "across", "after", "again", "against", "all", "along", "also", "am",
    "among", "an", "and", "any", "are", "around", "as", "at", "be", "because", "been", "before",
    "being", "below", "between", "both", "but", "by", "can", "could", "did", "do", "does", "doing",
    "don", "down", "during", "each", "either", "else", "for", "from", "further", "had", "has",
    "have", "having", "he", "her", "here", "hers", "him", "his", "how", "i", "if", "in", "into",
    "is", "it", "its", "itself", "just", "let", "may", "me", "might", "more", "most", "must", "my",
    "myself", "neither", "no", "nor", "not", "now", "of", "off", "on", "once", "only", "onto",
    "or", "other", "our", "ours", "out", "over", "own", "per", "please", "shall", "she", "should",
    "so", "some", "such", "than", "that", "the", "their", "theirs", "them", "then", "there",
    "these", "they", "this", "those", "through", "to", "too", "toward", "towards", "under",
    "until", "up", "upon", "us", "very", "via", "was", "we", "were", "what", "when", "where",
    "whether", "which", "while", "who", "whom", "whose", "why", "will", "with", "within",
    "without", "would", "you", "your", "yours",
];

/// The same, each as one number. The order is the same too.
static PACKED: [u64; FILLERS.len()] = {
    let mut packed = [0; FILLERS.len()];
    let mut at = 0;
    while at < FILLERS.len() {
        packed[at] = pack(FILLERS[at]);
        at += 1;
    }
    packed
};

/// The first eight bytes of a word as a number.
const fn pack(word: &str) -> u64 {
    let bytes = word.as_bytes();
    let mut packed = [0; size_of::<u64>()];
    let mut at = 0;
    while at < bytes.len() && at < packed.len() {
        packed[at] = bytes[at];
        at += 1;
    }
    u64::from_be_bytes(packed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> String {
        let folded = fold(text);
        let mut shown = Vec::new();
        let mut scratch = String::new();
        for chunk in chunks(&folded) {
            pieces(chunk.text, &mut scratch, |word, piece| match piece {
                Piece::Word => shown.push(word.to_owned()),
                Piece::Joined => shown.push(format!("={word}")),
            });
        }
        shown.join(" ")
    }

    #[test]
    fn identifiers_fall_into_words() {
        let check = |text, expected| assert_eq!(split(text), expected, "{text}");
        check("create_issue", "create issue");
        check("createIssue", "create issue =createissue");
        check("HTTPServer.start", "http server =httpserver start");
        check("getUserByID", "get user by id =getuserbyid");
        check("listS3Buckets", "list s3 buckets =lists3buckets");
        check("OAuth2Token", "oauth2 =oauth token =oauth2token");
        check("GitHub/re-index v10", "git hub =github re index v10");
        check("sha256", "sha256 =sha");
        check("customer's don't o'reilly", "customer don o reilly");
    }

    #[test]
    fn accents_go_and_unspaced_scripts_become_pairs() {
        let check = |text, expected| assert_eq!(split(text), expected, "{text}");
        check("Zugriffsschlüssel löschen", "zugriffsschlussel loschen");
        check("Straße — Ærø", "strasse aero");
        check("検索する", "=検 検索 =索 索す =す する =る");
        check("検 search検索", "検 search =検 検索 =索");
        check("파일 읽기", "=파 파일 =일 =읽 읽기 =기");
        check("ПОИСК файлов", "поиск фаилов");
    }

    #[test]
    fn fillers_are_found_and_nothing_else_is() {
        assert!(PACKED.is_sorted());
        assert!(FILLERS.iter().all(|it| is_filler(it) && it.len() <= 8));
        for word in ["", "file", "withoutx", "without1more", "th", "thesis"] {
            assert!(!is_filler(word), "{word}");
        }
    }
}
