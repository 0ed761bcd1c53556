//! The rules of [`json::scan`](crate::json::scan) for a text that comes in pieces, none of which is kept.
//!
//! Of keys only a hash is remembered: an object of a million of them must not be held in memory to find out
//! whether two are equal. The hash has 64 bits and a secret of this process in it, so nobody can make two
//! keys meet; by chance it happens to one in a million of the largest objects that are taken at all.

use std::{collections::hash_map::RandomState, hash::BuildHasher};

use crate::json::{Fault, MAX_DEPTH, MAX_OPEN_KEYS, unescape};

/// What has been read, and what may come next.
#[derive(Debug)]
pub(super) struct Push {
    state: State,
    /// Somebody has heard that the value begins which is to be read next.
    announced: bool,
    /// How many containers are open.
    pub(super) depth: u32,
    /// Of what lies deeper, nobody wants to hear.
    pub(super) watch: u32,
    /// Bit n is set if the container at depth n is an object.
    objects: u128,
    /// The inside of the key that was read last, as it was written.
    key: Vec<u8>,
    /// The keys of all open objects, outermost first.
    keys: Vec<u64>,
    /// Where the keys of each open object begin.
    starts: Vec<usize>,
    hashing: RandomState,
    text: Utf8,
}

/// Where reading stopped, if not because there is no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// Everything was read.
    Dry,
    /// A value begins with the next byte.
    Begin,
    /// A value has ended with the last byte.
    End,
    /// A key has ended with the last byte.
    Key,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A value must come.
    Value,
    /// A container was opened: what is in it comes, or its end.
    Opened,
    /// A key must come.
    Key,
    /// The colon after a key must come.
    Colon,
    /// A value has ended: a comma, the end of a container or the end of everything comes.
    After,
    /// Inside a string.
    Inside(Kind, Escape),
    Number(Digits),
    /// In a word of which this is left.
    Word(&'static [u8]),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Key,
    Value,
}

/// How far an escape has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    None,
    Backslash,
    /// So many digits of a code unit, and their value. Whether it must be the second of a pair.
    Unit(u8, u32, bool),
    /// The first of a pair is there: the second must follow.
    Second,
    SecondBackslash,
}

/// How far a number has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Digits {
    Minus,
    Zero,
    Whole,
    Point,
    Fraction,
    E,
    Sign,
    Exponent,
}

/// Few keys are the rule, and comparing them all is quicker than sorting them.
const FEW: usize = 8;

impl Push {
    pub(super) fn new() -> Self {
        Self {
            state: State::Value,
            announced: false,
            depth: 0,
            watch: MAX_DEPTH,
            objects: 0,
            key: Vec::new(),
            keys: Vec::new(),
            starts: Vec::new(),
            hashing: RandomState::new(),
            text: Utf8::default(),
        }
    }

    /// Looks at the next piece as mere text. Comes before the steps through it.
    pub(super) fn look(&mut self, piece: &[u8]) -> Result<(), (usize, Fault)> {
        self.text.look(piece).map_err(|at| (at, Fault::NotUtf8))
    }

    /// Reads on until there is something to say. Returns how much was read.
    pub(super) fn step(&mut self, piece: &[u8]) -> Result<(usize, Stop), (usize, Fault)> {
        let mut at = 0;
        while let Some(&byte) = piece.get(at) {
            let (read, stop) = match self.state {
                State::Inside(kind, Escape::None) => self.inside(kind, &piece[at..]),
                State::Number(digits) => self.number(digits, byte),
                _ if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') && self.between() => {
                    Ok((1, Stop::Dry))
                }
                State::Inside(kind, escape) => self.escape(kind, escape, byte),
                State::Word(rest) => self.word(rest, byte),
                State::Value => self.value(byte),
                State::Opened => self.opened(byte),
                State::Key => self.open_key(byte),
                State::Colon => self.colon(byte),
                State::After => self.after(byte),
            }
            .map_err(|fault| located(fault, at, piece))?;
            at += read;
            if stop != Stop::Dry && self.is_watched(stop) {
                return Ok((at, stop));
            }
        }
        Ok((at, Stop::Dry))
    }

    /// Whether the text may end here.
    pub(super) fn end(&self) -> Result<(), Fault> {
        let complete = match self.state {
            State::After => true,
            State::Number(digits) => digits.may_end(),
            _ => false,
        };
        if !self.text.is_whole() {
            return Err(Fault::NotUtf8);
        }
        if complete && self.depth == 0 { Ok(()) } else { Err(Fault::End) }
    }

    /// The key that was read last.
    pub(super) fn last_key(&self) -> std::borrow::Cow<'_, str> {
        unescape(&self.key)
    }

    /// How much of the text is held here.
    pub(super) fn held(&self) -> usize {
        self.key.len()
    }

    pub(super) fn in_object(&self) -> bool {
        self.objects >> self.depth & 1 == 1
    }

    fn is_watched(&self, stop: Stop) -> bool {
        stop == Stop::Begin || self.depth <= self.watch
    }

    /// Whether white space may stand here.
    fn between(&self) -> bool {
        !matches!(self.state, State::Inside(..) | State::Word(_))
    }

    fn value(&mut self, byte: u8) -> Result<(usize, Stop), Fault> {
        if !self.announced && self.depth <= self.watch {
            self.announced = true;
            return Ok((0, Stop::Begin));
        }
        self.announced = false;
        self.state = match byte {
            b'{' | b'[' => {
                self.open(byte == b'{')?;
                State::Opened
            }
            b'"' => State::Inside(Kind::Value, Escape::None),
            b'-' => State::Number(Digits::Minus),
            b'0' => State::Number(Digits::Zero),
            b'1'..=b'9' => State::Number(Digits::Whole),
            b't' => State::Word(b"rue"),
            b'f' => State::Word(b"alse"),
            b'n' => State::Word(b"ull"),
            _ => return Err(Fault::Unexpected('?')),
        };
        Ok((1, Stop::Dry))
    }

    fn open(&mut self, object: bool) -> Result<(), Fault> {
        if self.depth == MAX_DEPTH {
            return Err(Fault::TooDeep);
        }
        self.depth += 1;
        let bit = 1_u128 << self.depth;
        if object {
            self.objects |= bit;
            self.starts.push(self.keys.len());
        } else {
            self.objects &= !bit;
        }
        Ok(())
    }

    fn opened(&mut self, byte: u8) -> Result<(usize, Stop), Fault> {
        match (byte, self.in_object()) {
            (b'}', true) | (b']', false) => self.close(),
            (_, true) => self.open_key(byte),
            (_, false) => {
                self.state = State::Value;
                self.value(byte)
            }
        }
    }

    fn close(&mut self) -> Result<(usize, Stop), Fault> {
        if self.in_object() {
            let start = self.starts.pop().unwrap_or_default();
            let keys = &mut self.keys[start..];
            // Few were compared as they came.
            if FEW < keys.len() {
                keys.sort_unstable();
                if keys.windows(2).any(|pair| pair[0] == pair[1]) {
                    return Err(Fault::SomeKeyTwice);
                }
            }
            self.keys.truncate(start);
            // What one large object took is not kept for the next.
            self.keys.shrink_to(64 * 1024);
        }
        self.depth -= 1;
        self.state = State::After;
        Ok((1, Stop::End))
    }

    fn after(&mut self, byte: u8) -> Result<(usize, Stop), Fault> {
        match (byte, self.in_object()) {
            _ if self.depth == 0 => Err(Fault::Unexpected('?')),
            (b',', object) => {
                self.state = if object { State::Key } else { State::Value };
                Ok((1, Stop::Dry))
            }
            (b'}', true) | (b']', false) => self.close(),
            _ => Err(Fault::Unexpected('?')),
        }
    }

    fn open_key(&mut self, byte: u8) -> Result<(usize, Stop), Fault> {
        if byte != b'"' {
            return Err(Fault::Unexpected('?'));
        }
        if self.keys.len() == MAX_OPEN_KEYS {
            return Err(Fault::TooManyKeys);
        }
        self.key.clear();
        self.key.shrink_to(64 * 1024);
        self.state = State::Inside(Kind::Key, Escape::None);
        Ok((1, Stop::Dry))
    }

    fn close_key(&mut self) -> Result<Stop, Fault> {
        let hash = self.hashing.hash_one(&*unescape(&self.key));
        let own = &self.keys[self.starts.last().copied().unwrap_or_default()..];
        if own.len() < FEW && own.contains(&hash) {
            return Err(Fault::DuplicateKey(unescape(&self.key).into_owned()));
        }
        self.keys.push(hash);
        self.state = State::Colon;
        Ok(Stop::Key)
    }

    fn colon(&mut self, byte: u8) -> Result<(usize, Stop), Fault> {
        if byte != b':' {
            return Err(Fault::Unexpected('?'));
        }
        self.state = State::Value;
        Ok((1, Stop::Dry))
    }

    /// Reads a string up to its end, or to the next escape.
    fn inside(&mut self, kind: Kind, piece: &[u8]) -> Result<(usize, Stop), Fault> {
        let end = memchr::memchr2(b'"', b'\\', piece);
        let run = &piece[..end.unwrap_or(piece.len())];
        if run.iter().any(|it| *it < 0x20) {
            return Err(Fault::Control);
        }
        if kind == Kind::Key {
            self.key.extend_from_slice(run);
        }
        match end.map(|at| piece[at]) {
            None => Ok((run.len(), Stop::Dry)),
            Some(b'"') if kind == Kind::Key => Ok((run.len() + 1, self.close_key()?)),
            Some(b'"') => {
                self.state = State::After;
                Ok((run.len() + 1, Stop::End))
            }
            Some(_) => {
                self.state = State::Inside(kind, Escape::Backslash);
                self.note(kind, b'\\');
                Ok((run.len() + 1, Stop::Dry))
            }
        }
    }

    fn note(&mut self, kind: Kind, byte: u8) {
        if kind == Kind::Key {
            self.key.push(byte);
        }
    }

    fn escape(&mut self, kind: Kind, escape: Escape, byte: u8) -> Result<(usize, Stop), Fault> {
        let next = match (escape, byte) {
            (Escape::Backslash, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                Escape::None
            }
            (Escape::Backslash, b'u') => Escape::Unit(0, 0, false),
            (Escape::Second, b'\\') => Escape::SecondBackslash,
            (Escape::SecondBackslash, b'u') => Escape::Unit(0, 0, true),
            (Escape::Unit(digits, value, second), _) => {
                let digit = char::from(byte).to_digit(16).ok_or(Fault::Escape)?;
                let value = value * 16 + digit;
                match (digits, value, second) {
                    (0..3, _, _) => Escape::Unit(digits + 1, value, second),
                    (_, 0xdc00..0xe000, true) => Escape::None,
                    (_, 0xd800..0xdc00, false) => Escape::Second,
                    (_, 0xdc00..0xe000, false) | (_, _, true) => return Err(Fault::Escape),
                    _ => Escape::None,
                }
            }
            _ => return Err(Fault::Escape),
        };
        self.note(kind, byte);
        self.state = State::Inside(kind, next);
        Ok((1, Stop::Dry))
    }

    fn number(&mut self, digits: Digits, byte: u8) -> Result<(usize, Stop), Fault> {
        let next = match (digits, byte) {
            (Digits::Minus, b'0') => Digits::Zero,
            (Digits::Minus, b'1'..=b'9') | (Digits::Whole, b'0'..=b'9') => Digits::Whole,
            (Digits::Zero | Digits::Whole, b'.') => Digits::Point,
            (Digits::Point | Digits::Fraction, b'0'..=b'9') => Digits::Fraction,
            (Digits::Zero | Digits::Whole | Digits::Fraction, b'e' | b'E') => Digits::E,
            (Digits::E, b'+' | b'-') => Digits::Sign,
            (Digits::E | Digits::Sign | Digits::Exponent, b'0'..=b'9') => Digits::Exponent,
            (Digits::Zero, b'0'..=b'9') => return Err(Fault::Number),
            // Whatever it is, it is not the number's.
            _ if digits.may_end() => {
                self.state = State::After;
                return Ok((0, Stop::End));
            }
            _ => return Err(Fault::Number),
        };
        self.state = State::Number(next);
        Ok((1, Stop::Dry))
    }

    fn word(&mut self, rest: &'static [u8], byte: u8) -> Result<(usize, Stop), Fault> {
        match rest {
            [last] if *last == byte => {
                self.state = State::After;
                Ok((1, Stop::End))
            }
            [next, rest @ ..] if *next == byte => {
                self.state = State::Word(rest);
                Ok((1, Stop::Dry))
            }
            _ => Err(Fault::Unexpected('?')),
        }
    }
}

impl Digits {
    fn may_end(self) -> bool {
        matches!(self, Self::Zero | Self::Whole | Self::Fraction | Self::Exponent)
    }
}

/// A fault in what begins here, and where it is.
fn located(fault: Fault, at: usize, piece: &[u8]) -> (usize, Fault) {
    let rest = &piece[at..];
    match fault {
        Fault::Control => (at + rest.iter().take_while(|it| 0x20 <= **it).count(), fault),
        // Known where the key ends.
        Fault::DuplicateKey(_) => (at + memchr::memchr(b'"', rest).unwrap_or_default(), fault),
        Fault::Unexpected(_) => {
            let next = String::from_utf8_lossy(&rest[..rest.len().min(4)]);
            (at, Fault::Unexpected(next.chars().next().unwrap_or('?')))
        }
        fault => (at, fault),
    }
}

/// UTF-8 that comes in pieces.
#[derive(Debug, Default)]
struct Utf8 {
    /// The beginning of a character whose rest has not come.
    begun: Vec<u8>,
}

impl Utf8 {
    /// Fails with the place of what is none.
    fn look(&mut self, piece: &[u8]) -> Result<(), usize> {
        let mut rest = piece;
        while let (false, [next, left @ ..]) = (self.begun.is_empty(), rest) {
            self.begun.push(*next);
            rest = left;
            match std::str::from_utf8(&self.begun) {
                Ok(_) => self.begun.clear(),
                Err(error) if error.error_len().is_none() => {}
                Err(_) => return Err(0),
            }
        }
        match std::str::from_utf8(rest) {
            Ok(_) => Ok(()),
            Err(error) if error.error_len().is_none() => {
                self.begun.extend_from_slice(&rest[error.valid_up_to()..]);
                Ok(())
            }
            Err(error) => Err(piece.len() - rest.len() + error.valid_up_to()),
        }
    }

    fn is_whole(&self) -> bool {
        self.begun.is_empty()
    }
}
