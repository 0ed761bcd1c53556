//! What calls are called: 128 bits that nobody can guess and no other call has.
//!
//! A number, hashed with a key that is made at the start: asking the system for each would cost more than the rest
//! of what is recorded of a call.

use std::sync::atomic::{AtomicU64, Ordering};

/// Makes names for calls.
pub(crate) struct CallIds {
    key: [u8; 32],
    next: AtomicU64,
}

impl std::fmt::Debug for CallIds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CallIds")
    }
}

impl Default for CallIds {
    fn default() -> Self {
        let mut key = [0; 32];
        if getrandom::fill(&mut key).is_err() {
            // Ids that could be guessed give no right to anything; they only must not be the same.
            key[..8].copy_from_slice(&toolcrib_bus::now_ms().to_le_bytes());
        }
        Self { key, next: AtomicU64::new(0) }
    }
}

impl CallIds {
    pub(crate) fn next(&self) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        blake3::keyed_hash(&self.key, &number.to_le_bytes()).to_hex()[..32].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_are_long_and_never_the_same() {
        let (one, other) = (CallIds::default(), CallIds::default());
        let ids: HashSet<String> = (0..10_000).flat_map(|_| [one.next(), other.next()]).collect();
        assert_eq!(ids.len(), 20_000);
        assert!(ids.iter().all(|it| it.len() == 32));
    }
}
