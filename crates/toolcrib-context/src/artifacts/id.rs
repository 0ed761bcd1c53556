//! The name of an artifact. Whoever knows it may have been given it; nobody can guess it.

use std::{fmt, io, str::FromStr};

use serde::{Deserialize, Serialize};

/// Digits that survive file systems that do not tell capitals apart, and being read aloud.
const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Five bits a digit: 128 bits fill 25 digits and three bits of the last.
const LENGTH: usize = 26;

/// 128 random bits as 26 letters and digits.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ArtifactId(String);

/// A text that is no id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an artifact's id is {LENGTH} letters a-z and digits 2-7")]
pub struct BadId;

impl ArtifactId {
    /// A new one.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(Self::of(u128::from_be_bytes(bytes)))
    }

    fn of(bits: u128) -> Self {
        let digit = |place: usize| {
            // The last digit holds the three bits that are left.
            let value =
                if place + 1 == LENGTH { bits & 7 } else { (bits >> (123 - 5 * place)) & 31 };
            char::from(DIGITS[value as usize])
        };
        Self((0..LENGTH).map(digit).collect())
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ArtifactId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        let known = |it: u8| DIGITS.contains(&it);
        // Each id is written in one way only.
        let last = text.bytes().last().is_some_and(|it| DIGITS[..8].contains(&it));
        if text.len() == LENGTH && text.bytes().all(known) && last {
            Ok(Self(text.to_owned()))
        } else {
            Err(BadId)
        }
    }
}

impl TryFrom<String> for ArtifactId {
    type Error = BadId;

    fn try_from(text: String) -> Result<Self, BadId> {
        text.parse()
    }
}

impl From<ArtifactId> for String {
    fn from(id: ArtifactId) -> Self {
        id.0
    }
}

impl fmt::Display for ArtifactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ArtifactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_shows_and_comes_back() {
        let mut seen = std::collections::HashSet::new();
        for bit in 0..128 {
            let id = ArtifactId::of(1 << bit);
            assert!(seen.insert(id.clone()), "bit {bit} does not show");
            assert_eq!(id.as_str().parse(), Ok(id));
        }
        assert_ne!(ArtifactId::random().unwrap(), ArtifactId::random().unwrap());
    }

    #[test]
    fn nothing_else_is_an_id() {
        let good = ArtifactId::of(u128::MAX).to_string();
        let bad = [
            good.to_uppercase(),
            good[1..].to_owned(),
            format!("{good}a"),
            format!("{}z", &good[1..]),
            "../../../../../etc/passwd--".to_owned(),
        ];
        for text in bad {
            assert_eq!(text.parse::<ArtifactId>(), Err(BadId), "{text}");
        }
    }
}
