//! Values as a JSON text that has room for so many of them.

use super::jsonpath::{Step, written};

/// A JSON array or object in the making, one value a line.
pub(super) struct List {
    text: String,
    max: usize,
    close: char,
    pub(super) count: u64,
    /// How many were too large and are only named.
    pub(super) named: u64,
    /// How many have not even room for a name.
    left_out: u64,
}

impl List {
    pub(super) fn array(max: usize) -> Self {
        Self { text: String::from('['), max, close: ']', count: 0, named: 0, left_out: 0 }
    }

    pub(super) fn object(max: usize) -> Self {
        Self { text: String::from('{'), max, close: '}', count: 0, named: 0, left_out: 0 }
    }

    /// Adds one; false where there is no room for it.
    pub(super) fn push(&mut self, value: &str) -> bool {
        let between = if self.count == 0 { "" } else { ",\n" };
        if self.max < self.text.len() + between.len() + value.len() + 1 {
            return false;
        }
        self.text.push_str(between);
        self.text.push_str(value);
        self.count += 1;
        true
    }

    /// Adds one that may be too large for any piece: then it is told where it is. `prefix` stands before it.
    pub(super) fn push_or_name(
        &mut self,
        prefix: &str,
        value: &[u8],
        length: u64,
        steps: &[Step],
    ) -> bool {
        let whole = value.len() as u64 == length;
        if whole && prefix.len() + value.len() + 2 <= self.max {
            return self.push(&format!("{prefix}{}", String::from_utf8_lossy(value)));
        }
        let pushed = self.push(&format!("{prefix}{}", named(length, steps)));
        self.named += u64::from(pushed);
        // Even its name does not fit: it is left out rather than stood before forever.
        let left_out = !pushed && self.count == 0;
        self.left_out += u64::from(left_out);
        pushed || left_out
    }

    pub(super) fn finish(mut self) -> String {
        self.text.push(self.close);
        self.text
    }

    pub(super) fn note(&self) -> Option<String> {
        let named = "values are too large for a piece: read them by the path that stands for them";
        let left_out = "values are left out, since a piece has not even room for their paths";
        let notes = [(self.named, named), (self.left_out, left_out)];
        let notes = notes.iter().filter(|(many, _)| 0 < *many);
        let notes: Vec<String> = notes.map(|(many, note)| format!("{many} {note}")).collect();
        (!notes.is_empty()).then(|| notes.join("; "))
    }
}

/// What stands for a value that is too large.
pub(super) fn named(length: u64, steps: &[Step]) -> String {
    let path = written(steps);
    serde_json::Value::from(format!("… {length} bytes, path={path}")).to_string()
}
