//! From the text of a path to what it says, by the grammar of RFC 9535.

use super::{BadPath, Operand, Pick, Query, Relation, Segment, Test};
use crate::artifacts::json::unquoted;

/// The longest path that is read.
const MAX_LENGTH: usize = 4096;

/// How many steps a path may have.
const MAX_SEGMENTS: usize = 64;

/// How deep the parentheses of a filter may be nested.
const MAX_DEPTH: usize = 32;

/// Numbers in a path are those that every reader of JSON has.
const MAX_INDEX: i64 = (1 << 53) - 1;

pub(super) fn parse(text: &str) -> Result<Query, BadPath> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    if MAX_LENGTH < text.len() {
        return parser.bad("it is too long");
    }
    if !parser.eat("$") {
        return parser.bad("a path begins with `$`");
    }
    let segments = parser.segments()?;
    if parser.at < text.len() {
        return parser.bad("expected `.`, `[` or the end");
    }
    Ok(Query { absolute: true, segments })
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

type Parsed<T> = Result<T, BadPath>;

impl Parser<'_> {
    fn bad<T>(&self, what: &str) -> Parsed<T> {
        let at = self.text.get(..self.at).map_or(0, |it| it.chars().count());
        Err(BadPath { at, what: what.to_owned() })
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn eat(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t' | '\n' | '\r')) {
            self.at += 1;
        }
    }

    fn expect(&mut self, word: &str) -> Parsed<()> {
        self.space();
        if self.eat(word) { Ok(()) } else { self.bad(&format!("expected `{word}`")) }
    }

    fn segments(&mut self) -> Parsed<Vec<Segment>> {
        let mut segments = Vec::new();
        loop {
            let before = self.at;
            self.space();
            let segment = if self.eat("..") {
                Some(self.dotted(true)?)
            } else if self.eat(".") {
                Some(self.dotted(false)?)
            } else if self.peek() == Some('[') {
                Some(Segment { descend: false, selectors: self.bracketed()? })
            } else {
                None
            };
            let Some(segment) = segment else {
                self.at = before;
                return Ok(segments);
            };
            if MAX_SEGMENTS <= segments.len() {
                return self.bad("it has too many steps");
            }
            segments.push(segment);
        }
    }

    fn dotted(&mut self, descend: bool) -> Parsed<Segment> {
        let selectors = match self.peek() {
            Some('*') => {
                self.at += 1;
                vec![Pick::All]
            }
            Some('[') if descend => self.bracketed()?,
            _ => vec![Pick::Name(self.name()?)],
        };
        Ok(Segment { descend, selectors })
    }

    fn name(&mut self) -> Parsed<String> {
        let first = |it: char| it.is_ascii_alphabetic() || it == '_' || !it.is_ascii();
        if !self.peek().is_some_and(first) {
            return self.bad("expected a name; others than letters, digits and `_` go into ['…']");
        }
        let name: String =
            self.rest().chars().take_while(|it| first(*it) || it.is_ascii_digit()).collect();
        self.at += name.len();
        Ok(name)
    }

    fn bracketed(&mut self) -> Parsed<Vec<Pick>> {
        self.expect("[")?;
        let mut picks = Vec::new();
        loop {
            self.space();
            picks.push(self.pick()?);
            self.space();
            if self.eat("]") {
                return Ok(picks);
            }
            if !self.eat(",") {
                return self.bad("expected `,` or `]`");
            }
        }
    }

    fn pick(&mut self) -> Parsed<Pick> {
        match self.peek() {
            Some('*') => {
                self.at += 1;
                Ok(Pick::All)
            }
            Some('?') => {
                self.at += 1;
                self.space();
                Ok(Pick::Filter(self.any()?))
            }
            Some('\'' | '"') => Ok(Pick::Name(unquoted(self.string()?.as_bytes()))),
            Some(':' | '-' | '0'..='9') => self.index_or_slice(),
            _ => self.bad("expected a name in quotes, a number, a slice, `*` or `?`"),
        }
    }

    fn index_or_slice(&mut self) -> Parsed<Pick> {
        let start = self.integer()?;
        let before = self.at;
        self.space();
        if !self.eat(":") {
            self.at = before;
            return start.map_or_else(|| self.bad("expected a number"), |it| Ok(Pick::Index(it)));
        }
        self.space();
        let end = self.integer()?;
        let before = self.at;
        self.space();
        let mut step = None;
        if self.eat(":") {
            self.space();
            step = self.integer()?;
        } else {
            self.at = before;
        }
        Ok(Pick::Slice { start, end, step: step.unwrap_or(1) })
    }

    fn integer(&mut self) -> Parsed<Option<i64>> {
        let minus = self.peek() == Some('-');
        let digits = &self.rest()[usize::from(minus)..];
        let length = digits.bytes().take_while(u8::is_ascii_digit).count();
        if length == 0 {
            return if minus { self.bad("expected a number") } else { Ok(None) };
        }
        let padded = digits.starts_with('0') && (1 < length || minus);
        let text = &self.rest()[..usize::from(minus) + length];
        let number = text.parse().ok().filter(|it: &i64| it.abs() <= MAX_INDEX);
        let Some(number) = number.filter(|_| !padded) else {
            return self.bad("a number that is not allowed here");
        };
        self.at += usize::from(minus) + length;
        Ok(Some(number))
    }

    /// A string in either quotes, as JSON writes it.
    fn string(&mut self) -> Parsed<String> {
        let quote = self.peek().unwrap_or('"');
        self.at += 1;
        let mut json = String::from('"');
        loop {
            let Some(c) = self.peek() else { return self.bad("a string that does not end") };
            self.at += c.len_utf8();
            match c {
                _ if c == quote => break,
                '"' => json.push_str("\\\""),
                '\\' => self.escape(quote, &mut json)?,
                c if c < ' ' => return self.bad("a control character in a string"),
                c => json.push(c),
            }
        }
        json.push('"');
        Ok(json)
    }

    fn escape(&mut self, quote: char, json: &mut String) -> Parsed<()> {
        let Some(c) = self.peek() else { return self.bad("a string that does not end") };
        self.at += c.len_utf8();
        match c {
            _ if c == quote => json.push_str(if c == '"' { "\\\"" } else { "'" }),
            'b' | 'f' | 'n' | 'r' | 't' | '/' | '\\' => json.extend(['\\', c]),
            'u' => {
                let unit = self.unit()?;
                let low = if (0xD800..0xDC00).contains(&unit) {
                    if !self.eat("\\u") {
                        return self.bad("half of a pair of surrogates");
                    }
                    Some(self.unit()?)
                } else {
                    None
                };
                let good = match low {
                    Some(low) => (0xDC00..0xE000).contains(&low),
                    None => !(0xDC00..0xE000).contains(&unit),
                };
                if !good {
                    return self.bad("half of a pair of surrogates");
                }
                json.push_str(&format!("\\u{unit:04x}"));
                if let Some(low) = low {
                    json.push_str(&format!("\\u{low:04x}"));
                }
            }
            _ => return self.bad("an escape that there is not"),
        }
        Ok(())
    }

    fn unit(&mut self) -> Parsed<u32> {
        let digits = self.rest().get(..4).filter(|it| it.bytes().all(|it| it.is_ascii_hexdigit()));
        match digits.and_then(|it| u32::from_str_radix(it, 16).ok()) {
            Some(unit) => {
                self.at += 4;
                Ok(unit)
            }
            None => self.bad("expected four hexadecimal digits"),
        }
    }
}

/// Filters.
impl Parser<'_> {
    fn any(&mut self) -> Parsed<Test> {
        self.depth += 1;
        if MAX_DEPTH < self.depth {
            return self.bad("it is nested too deep");
        }
        let test = self.list("||", Self::all, Test::Any);
        self.depth -= 1;
        test
    }

    fn all(&mut self) -> Parsed<Test> {
        self.list("&&", Self::basic, Test::All)
    }

    fn list(
        &mut self,
        between: &str,
        one: fn(&mut Self) -> Parsed<Test>,
        many: fn(Vec<Test>) -> Test,
    ) -> Parsed<Test> {
        let mut tests = vec![one(self)?];
        loop {
            let before = self.at;
            self.space();
            if !self.eat(between) {
                self.at = before;
                break;
            }
            self.space();
            tests.push(one(self)?);
        }
        Ok(if tests.len() == 1 { tests.remove(0) } else { many(tests) })
    }

    fn basic(&mut self) -> Parsed<Test> {
        if self.peek() == Some('!') {
            self.at += 1;
            self.space();
            let test = if self.peek() == Some('(') { self.parentheses()? } else { self.test()? };
            return Ok(Test::Not(Box::new(test)));
        }
        if self.peek() == Some('(') {
            return self.parentheses();
        }
        if let Some(test) = self.matches()? {
            return Ok(test);
        }
        let left = self.operand()?;
        let behind = self.at;
        self.space();
        let Some(relation) = self.relation() else {
            self.at = behind;
            return match left {
                Operand::Value(query) => Ok(Test::Exists(query)),
                _ => self.bad("a value alone is no test; expected a comparison"),
            };
        };
        self.space();
        let left = self.singular(left)?;
        let right = self.operand()?;
        let right = self.singular(right)?;
        Ok(Test::Compare(left, relation, right))
    }

    fn parentheses(&mut self) -> Parsed<Test> {
        self.expect("(")?;
        self.space();
        let test = self.any()?;
        self.expect(")")?;
        Ok(test)
    }

    /// Something that holds or does not by itself.
    fn test(&mut self) -> Parsed<Test> {
        if let Some(test) = self.matches()? {
            return Ok(test);
        }
        match self.peek() {
            Some('@' | '$') => Ok(Test::Exists(self.query()?)),
            _ => self.bad("expected a path, a comparison, `match` or `search`"),
        }
    }

    fn matches(&mut self) -> Parsed<Option<Test>> {
        let whole = self.eat("match(");
        if !whole && !self.eat("search(") {
            return Ok(None);
        }
        self.space();
        let text = self.argument()?;
        self.expect(",")?;
        self.space();
        let pattern = self.argument()?;
        self.expect(")")?;
        Ok(Some(Test::Matches { text, pattern, whole }))
    }

    fn argument(&mut self) -> Parsed<Operand> {
        self.depth += 1;
        if MAX_DEPTH < self.depth {
            return self.bad("it is nested too deep");
        }
        let operand = self.operand()?;
        self.depth -= 1;
        self.singular(operand)
    }

    fn query(&mut self) -> Parsed<Query> {
        let absolute = self.peek() == Some('$');
        self.at += 1;
        self.depth += 1;
        if MAX_DEPTH < self.depth {
            return self.bad("it is nested too deep");
        }
        let segments = self.segments()?;
        self.depth -= 1;
        Ok(Query { absolute, segments })
    }

    /// What is compared has to be one value.
    fn singular(&self, operand: Operand) -> Parsed<Operand> {
        match &operand {
            Operand::Value(query) if !query.is_singular() => {
                self.bad("a path that is compared must lead to one place")
            }
            _ => Ok(operand),
        }
    }

    fn operand(&mut self) -> Parsed<Operand> {
        for word in ["true", "false", "null"] {
            if self.eat(word) {
                return Ok(Operand::Literal(word.to_owned()));
            }
        }
        match self.peek() {
            Some('\'' | '"') => Ok(Operand::Literal(self.string()?)),
            Some('-' | '0'..='9') => self.number(),
            Some('@' | '$') => Ok(Operand::Value(self.query()?)),
            _ => self.function(),
        }
    }

    fn function(&mut self) -> Parsed<Operand> {
        if self.eat("length(") {
            self.space();
            let operand = self.argument()?;
            self.expect(")")?;
            return Ok(Operand::Length(Box::new(operand)));
        }
        let many: fn(Query) -> Operand = if self.eat("count(") {
            Operand::Count
        } else if self.eat("value(") {
            Operand::Only
        } else {
            return self
                .bad("expected a path, a value, or one of length, count, value, match, search");
        };
        self.space();
        if !matches!(self.peek(), Some('@' | '$')) {
            return self.bad("expected a path");
        }
        let query = self.query()?;
        self.expect(")")?;
        Ok(many(query))
    }

    fn number(&mut self) -> Parsed<Operand> {
        let rest = self.rest();
        let length =
            rest.bytes().take_while(|it| it.is_ascii_digit() || b"+-.eE".contains(it)).count();
        let text = &rest[..length];
        // `-0` is a number, and the same one as `0`.
        if serde_json::from_str::<serde_json::Number>(text).is_err() {
            return self.bad("a number that is not allowed here");
        }
        let text = text.to_owned();
        self.at += length;
        Ok(Operand::Literal(text))
    }

    fn relation(&mut self) -> Option<Relation> {
        let relations = [
            ("==", Relation::Equal),
            ("!=", Relation::Unequal),
            ("<=", Relation::LessOrEqual),
            (">=", Relation::GreaterOrEqual),
            ("<", Relation::Less),
            (">", Relation::Greater),
        ];
        relations.into_iter().find(|(word, _)| self.eat(word)).map(|(_, it)| it)
    }
}
