//! A text as words that phrases can be looked for in.
//!
//! What is hidden is left out, letters that only look like Latin ones become Latin, accents go, so
//! that a phrase is found however it is dressed. Every word knows where it stands in the text, so
//! that evidence is quoted as it was written.

use super::hidden;

/// What a word is, besides letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// A plain word.
    Plain,
    /// A name such as programs have: `send_email`, `sendEmail`.
    Name,
    /// An address of the web.
    Url,
    /// An address of mail.
    Mail,
    /// A file that holds secrets.
    Secret,
    /// A comma, colon or dash between words.
    Comma,
}

/// One word of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word {
    start: usize,
    end: usize,
    folded: (usize, usize),
    pub(super) sentence: u32,
    pub(super) mark: Mark,
    /// A quotation mark stands right before it.
    pub(super) quoted: bool,
    /// Letters of another script stand for Latin ones in it.
    pub(super) disguised: bool,
}

/// The words of a text.
#[derive(Debug)]
pub(super) struct Words<'a> {
    pub(super) text: &'a str,
    folded: String,
    pub(super) list: Vec<Word>,
}

/// Parts of paths where secrets lie.
const SECRET_PATHS: [&str; 34] = [
    ".ssh",
    "id_rsa",
    "id_ed25519",
    "id_ecdsa",
    "authorized_keys",
    "/etc/passwd",
    "/etc/shadow",
    "/proc/self/environ",
    ".aws/",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".kube/config",
    ".docker/config",
    "mcp.json",
    ".bash_history",
    ".zsh_history",
    ".bashrc",
    ".zshrc",
    ".profile",
    "credentials.json",
    ".gnupg",
    "wallet.dat",
    "claude_desktop_config",
    "cookies.sqlite",
    ".config/gh",
    "secrets.y",
    "keychain-db",
    ".pgpass",
    "service-account",
    ".vault-token",
    "application_default_credentials",
    ".pem",
];

impl<'a> Words<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let mut words = Self { text, folded: String::with_capacity(text.len()), list: Vec::new() };
        let mut sentence = 0;
        let mut done = 0;
        let found = hidden::find(text);
        let mut found = found.iter().peekable();
        for (start, chunk) in chunks(text) {
            if text.get(done..start).is_some_and(|gap| gap.matches('\n').count() > 1) {
                sentence += 1;
            }
            done = start + chunk.len();
            while found.next_if(|it| it.end <= start).is_some() {}
            match found.peek() {
                Some(it) if it.start < done => {
                    words.take(&hidden::clean(chunk), start, Some(chunk.len()), sentence);
                }
                _ => words.take(chunk, start, None, sentence),
            }
            let end = chunk.trim_end_matches(['"', '\'', ')', '`', '*', '_', '>']);
            if end.ends_with(['.', '!', '?', ';', '。', '！', '？', '؟', '।'])
                && !chunk.ends_with("e.g.")
            {
                sentence += 1;
            }
        }
        words
    }

    pub(super) fn folded(&self, word: &Word) -> &str {
        self.folded.get(word.folded.0..word.folded.1).unwrap_or_default()
    }

    /// The text from one word to another, as it was written.
    pub(super) fn between(&self, first: usize, last: usize) -> &'a str {
        let (Some(first), Some(last)) = (self.list.get(first), self.list.get(last)) else {
            return "";
        };
        self.text.get(first.start..last.end).unwrap_or_default()
    }

    /// Takes a stretch without white space apart. `whole` is its size where it was cleaned before,
    /// so that places in it say nothing.
    fn take(&mut self, chunk: &str, start: usize, whole: Option<usize>, sentence: u32) {
        let place = |from: usize, to: usize| match whole {
            Some(size) => (start, start + size),
            None => (start + from, start + to),
        };
        let lower = chunk.to_ascii_lowercase();
        if let Some(url) = ["http://", "https://", "ftp://", "wss://", "ws://"]
            .iter()
            .find_map(|it| lower.find(it))
        {
            let tail = chunk.get(url..).unwrap_or_default();
            let size = tail.find([')', '"', '<', '>', ']', '\'', '`']).unwrap_or(tail.len());
            self.take_words(chunk.get(..url).unwrap_or_default(), sentence, &|from, to| {
                place(from, to)
            });
            self.push("", place(url, url + size), sentence, Mark::Url, false, false);
            let after = url + size;
            let rest = chunk.get(after..).unwrap_or_default();
            self.take_words(rest, sentence, &|from, to| place(after + from, after + to));
            return;
        }
        let mark = if is_mail(chunk) {
            Mark::Mail
        } else if is_secret(&lower) {
            Mark::Secret
        } else {
            return self.take_words(chunk, sentence, &place);
        };
        self.push(
            "",
            place(0, chunk.len()),
            sentence,
            mark,
            chunk.starts_with(['"', '\'', '`']),
            false,
        );
        if chunk.ends_with([',', ':']) {
            self.push("", place(chunk.len(), chunk.len()), sentence, Mark::Comma, false, false);
        }
    }

    fn take_words(
        &mut self,
        chunk: &str,
        sentence: u32,
        place: &dyn Fn(usize, usize) -> (usize, usize),
    ) {
        let inside = |c: char| {
            c.is_alphanumeric() && !is_unspaced(c) || matches!(c, '_' | '\'' | '’') || is_mark(c)
        };
        let mut begin = None;
        let mut before = None;
        let end = [(chunk.len(), ' ')];
        for (at, c) in chunk.char_indices().chain(end) {
            match (begin, inside(c)) {
                (None, true) if c != '\'' && c != '’' => begin = Some(at),
                (Some(from), false) => {
                    let quoted = before
                        .is_some_and(|it| matches!(it, '"' | '\'' | '`' | '“' | '‘' | '«' | '’'));
                    let word =
                        chunk.get(from..at).unwrap_or_default().trim_end_matches(['\'', '’']);
                    self.push_word(word, place(from, at), sentence, quoted);
                    begin = None;
                }
                _ => (),
            }
            if matches!(c, ',' | ':' | '—' | '，' | '、') {
                self.push("", place(at, at), sentence, Mark::Comma, false, false);
            }
            if begin.is_none() {
                before = Some(c);
            }
        }
    }

    fn push_word(&mut self, word: &str, place: (usize, usize), sentence: u32, quoted: bool) {
        let inner = word.trim_matches('_');
        let camel = inner
            .chars()
            .zip(inner.chars().skip(1))
            .any(|(a, b)| a.is_lowercase() && b.is_uppercase());
        let mark =
            if inner.contains('_') || camel && inner.is_ascii() { Mark::Name } else { Mark::Plain };
        let latin = word.chars().filter(char::is_ascii_alphabetic).count();
        let foreign = word.chars().filter(|&it| is_foreign(it)).count();
        let disguised = foreign > 0
            && (latin > 0 || word.chars().any(is_styled))
            && latin + foreign > 2
            && word.chars().all(|it| fold(it).is_ascii());
        let digits = word.chars().any(|it| it.is_ascii_digit());
        let mut text = String::with_capacity(word.len());
        for c in word.chars().filter(|it| !matches!(it, '\'' | '’') && !is_mark(*it)) {
            let c = if disguised || !is_foreign(c) || is_styled(c) { fold(c) } else { c };
            let c = if digits && latin > 0 { unleet(c) } else { c };
            text.extend(c.to_lowercase());
        }
        self.push(&text, place, sentence, mark, quoted, disguised);
    }

    fn push(
        &mut self,
        text: &str,
        place: (usize, usize),
        sentence: u32,
        mark: Mark,
        quoted: bool,
        disguised: bool,
    ) {
        let from = self.folded.len();
        self.folded.push_str(text);
        let folded = (from, self.folded.len());
        self.list.push(Word {
            start: place.0,
            end: place.1,
            folded,
            sentence,
            mark,
            quoted,
            disguised,
        });
    }
}

/// The stretches of `text` between white space, with their places.
fn chunks(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let base = text.as_ptr().addr();
    text.split_whitespace().map(move |it| (it.as_ptr().addr().saturating_sub(base), it))
}

fn is_mail(chunk: &str) -> bool {
    let Some((name, host)) = chunk.split_once('@') else { return false };
    name.ends_with(|c: char| c.is_ascii_alphanumeric())
        && host.starts_with(|c: char| c.is_ascii_alphanumeric())
        && host.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()).contains('.')
}

fn is_secret(lower: &str) -> bool {
    let bare = lower
        .trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '/' && c != '~');
    let bare = bare.trim_end_matches('.');
    bare.len() < 512
        && (bare == ".env"
            || bare.ends_with("/.env")
            || SECRET_PATHS.iter().any(|it| bare.contains(it)))
}

/// Scripts that put no space between words; phrases of theirs are looked for as they stand.
fn is_unspaced(c: char) -> bool {
    hidden::is_ideograph(c)
        || matches!(c, '\u{e01}'..='\u{eff}' | '\u{3040}'..='\u{30ff}' | '\u{ac00}'..='\u{d7a3}')
}

/// Accents that stand by themselves.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

/// Letters that are not Latin but may be taken for it.
fn is_foreign(c: char) -> bool {
    matches!(c, '\u{370}'..='\u{58f}' | '\u{13a0}'..='\u{13ff}') || is_styled(c)
}

/// Latin letters in another dress: wide, mathematical, in circles, small capitals.
fn is_styled(c: char) -> bool {
    matches!(c, '\u{ff21}'..='\u{ff5a}' | '\u{1d400}'..='\u{1d6a3}' | '\u{24b6}'..='\u{24e9}' | '\u{1f130}'..='\u{1f189}')
        || SMALL.contains(&c)
}

const SMALL: [char; 26] = [
    'ᴀ', 'ʙ', 'ᴄ', 'ᴅ', 'ᴇ', 'ꜰ', 'ɢ', 'ʜ', 'ɪ', 'ᴊ', 'ᴋ', 'ʟ', 'ᴍ', 'ɴ', 'ᴏ', 'ᴘ', 'ꞯ', 'ʀ', 'ꜱ',
    'ᴛ', 'ᴜ', 'ᴠ', 'ᴡ', '𐞥', 'ʏ', 'ᴢ',
];

/// Pairs: a letter, and the Latin one it can be taken for.
const LOOKS_LIKE: &str = "аaвbеeзzиuіiїiјjкkмmнhоoпnрpсcтtуyхxһhԁdԛqԝwѕsүyӏlАAВBЕEЅSІIЈJКKМMНHОOРPСCТTУYХXҮYӀl\
    αaβbγyεeζzηnθoιiκkνvοoπnρpσoτtυuχxωwϲcϳjΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧX\
    աwցgհhոnսuքpօoյjѵvӧoӓaёeєeգqզqլlςcᎠDᎪAᎬEᏀGᎻHᎥiᎫJᏦKᏞLᎷMᏟCᏢPᏒRᏚSᎢTᏙVᎳWᏃZ";

/// The Latin letter that `c` is, in another dress, or looks like; `c` itself otherwise.
pub(super) fn fold(c: char) -> char {
    let letter = |number: u32, base: char| char::from_u32(u32::from(base) + number).unwrap_or(c);
    match c {
        '\0'..='\x7f' => c,
        '\u{ff01}'..='\u{ff5e}' => letter(u32::from(c) - 0xff01, '!'),
        '\u{1d400}'..='\u{1d6a3}' => letter((u32::from(c) - 0x1d400) % 26, 'a'),
        '\u{24b6}'..='\u{24e9}' => letter((u32::from(c) - 0x24b6) % 26, 'a'),
        '\u{1f130}'..='\u{1f149}' => letter(u32::from(c) - 0x1f130, 'a'),
        '\u{1f150}'..='\u{1f169}' => letter(u32::from(c) - 0x1f150, 'a'),
        '\u{1f170}'..='\u{1f189}' => letter(u32::from(c) - 0x1f170, 'a'),
        'à'..='å' | 'À'..='Å' | 'ā' | 'ă' | 'ą' | 'ạ' => 'a',
        'ç' | 'Ç' | 'ć' | 'č' => 'c',
        'è'..='ë' | 'È'..='Ë' | 'ē' | 'ę' | 'ě' | 'ė' | 'ẹ' => 'e',
        'ì'..='ï' | 'Ì'..='Ï' | 'ı' | 'İ' | 'ī' | 'ị' => 'i',
        'ñ' | 'Ñ' | 'ń' | 'ň' => 'n',
        'ò'..='ö' | 'Ò'..='Ö' | 'ø' | 'ō' | 'ő' | 'ọ' => 'o',
        'ù'..='ü' | 'Ù'..='Ü' | 'ū' | 'ů' | 'ű' | 'ụ' => 'u',
        'ý' | 'ÿ' => 'y',
        'ś' | 'š' | 'ş' | 'ș' => 's',
        'ź' | 'ż' | 'ž' => 'z',
        'ł' | 'ḷ' => 'l',
        'ğ' | 'ɡ' => 'g',
        'ť' | 'ț' => 't',
        'ř' => 'r',
        'ď' | 'đ' | 'ḍ' => 'd',
        _ => look_alike(c),
    }
}

fn look_alike(c: char) -> char {
    if let Some(number) = SMALL.iter().position(|&it| it == c) {
        return (b'a'..=b'z').nth(number).map_or(c, char::from);
    }
    let mut pairs = LOOKS_LIKE.chars();
    while let (Some(from), Some(to)) = (pairs.next(), pairs.next()) {
        if from == c {
            return to;
        }
    }
    c
}

fn unleet(c: char) -> char {
    match c {
        '0' => 'o',
        '1' => 'i',
        '3' => 'e',
        '4' => 'a',
        '5' => 's',
        '7' => 't',
        _ => c,
    }
}
