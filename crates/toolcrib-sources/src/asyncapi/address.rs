//! The address of a channel: what an event is called, with blanks that a call fills.

/// The longest name.
const LONGEST: usize = 255;

/// What the names of our own events begin with.
const RESERVED: &str = "toolcrib.";

/// Why something cannot be the name of an event.
pub(super) fn name_fault(name: &str) -> Option<String> {
    let odd = |c: char| c.is_whitespace() || c.is_control() || "*>{}".contains(c);
    if name.is_empty() {
        return Some("an event's name must not be empty".to_owned());
    }
    if LONGEST < name.len() {
        return Some(format!("an event's name must not be longer than {LONGEST} bytes"));
    }
    if let Some(c) = name.chars().find(|c| odd(*c)) {
        return Some(format!("an event's name must not hold `{}`", c.escape_debug()));
    }
    if name.split('.').any(str::is_empty) {
        return Some("something must stand before, after and between the dots".to_owned());
    }
    if name.starts_with(RESERVED) {
        return Some(format!("names that begin with `{RESERVED}` are the gateway's own"));
    }
    None
}

/// An address, taken apart at its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    written: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Parameter(String),
}

impl Address {
    /// Takes an address apart, and looks whether its events can have names.
    pub(super) fn read(written: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = written;
        while let Some((text, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').ok_or("a `{` is not closed")?;
            let legal = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
            if name.is_empty() || !name.chars().all(legal) {
                return Err(format!(
                    "`{{{}}}` is no parameter: its name may have letters, digits, `_` and `-`",
                    super::references::shorten(name)
                ));
            }
            parts.push(Part::Text(text.to_owned()));
            parts.push(Part::Parameter(name.to_owned()));
            rest = after;
        }
        parts.push(Part::Text(rest.to_owned()));
        parts.retain(|it| !matches!(it, Part::Text(text) if text.is_empty()));
        let address = Self { written: written.to_owned(), parts };
        match name_fault(&address.fill(|_| "x")) {
            Some(fault) => Err(fault),
            None => Ok(address),
        }
    }

    /// As it stands in the document.
    pub(super) fn written(&self) -> &str {
        &self.written
    }

    /// Its parameters, each once.
    pub(super) fn parameters(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for part in &self.parts {
            if let Part::Parameter(name) = part
                && !names.contains(&name.as_str())
            {
                names.push(name);
            }
        }
        names
    }

    /// The name of an event.
    pub(super) fn fill<'a>(&'a self, value: impl Fn(&'a str) -> &'a str) -> String {
        let text = |part: &'a Part| match part {
            Part::Text(text) => text.as_str(),
            Part::Parameter(name) => value(name),
        };
        self.parts.iter().map(text).collect()
    }

    /// All names that it can give: `*` stands for each parameter.
    pub(super) fn pattern(&self) -> String {
        self.fill(|_| "*")
    }
}

/// Why a value cannot stand for a parameter: it would be more than one segment of a name, or none.
pub(super) fn segment_fault(value: &str) -> Option<String> {
    let odd = |c: &char| c.is_whitespace() || c.is_control() || "*>{}./".contains(*c);
    if value.is_empty() {
        return Some("it must not be empty".to_owned());
    }
    let c = value.chars().find(odd)?.escape_debug();
    Some(format!("it becomes a part of the event's name and must not hold `{c}`"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(written: &str, expected: &str) {
        let found = match Address::read(written) {
            Ok(it) => format!("{} {:?}", it.pattern(), it.parameters()),
            Err(fault) => fault,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn addresses_are_checked_when_they_are_read() {
        check("task.delegate", "task.delegate []");
        check("/rooms/{roomId}/{resource}", r#"/rooms/*/* ["roomId", "resource"]"#);
        check("{a}.{a}-x", r#"*.*-x ["a"]"#);
        check("/", "/ []");
        check("", "an event's name must not be empty");
        check("a b", "an event's name must not hold ` `");
        check("a\n", r"an event's name must not hold `\n`");
        check("a.*", "an event's name must not hold `*`");
        check("a.>", "an event's name must not hold `>`");
        check("a}", "an event's name must not hold `}`");
        check("a{b", "a `{` is not closed");
        check("a{}", "`{}` is no parameter: its name may have letters, digits, `_` and `-`");
        check("{a.b}", "`{a.b}` is no parameter: its name may have letters, digits, `_` and `-`");
        for dots in [".a", "a.", "a..b", "."] {
            check(dots, "something must stand before, after and between the dots");
        }
        check("toolcrib.dead", "names that begin with `toolcrib.` are the gateway's own");
        check(&"a".repeat(256), "an event's name must not be longer than 255 bytes");
        check(&"é".repeat(127), &format!("{} []", "é".repeat(127)));
    }

    proptest! {
        /// Whatever a value is that may be filled in: the name has as many segments as the address.
        #[test]
        fn a_value_stays_in_its_segment(value in any::<String>()) {
            let address = Address::read("user.{id}.login").unwrap();
            if segment_fault(&value).is_none() {
                let name = address.fill(|_| "x").replace('x', &value);
                prop_assert_eq!(name.split('.').count(), 3);
                prop_assert!(name.len() > 255 || name_fault(&name).is_none());
            }
        }
    }
}
