//! Text from outside, made fit for a log or a terminal.

mod mask;
mod masked_json;
mod names;
mod shapes;

pub use mask::Masker;
pub use names::names_secret;
pub use shapes::{is_random, is_token};

/// The bytes as text, on one line and without anything a terminal would act on.
pub fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut clean = String::with_capacity(text.len());
    for c in text.trim_end().chars() {
        if c == '\t' {
            clean.push(' ');
        } else if c.is_control() || is_invisible(c) {
            clean.extend(c.escape_unicode());
        } else {
            clean.push(c);
        }
    }
    clean
}

/// Characters that show nothing and can hide or turn round what stands beside them.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests;
