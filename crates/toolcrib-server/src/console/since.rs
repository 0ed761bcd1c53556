//! How sources are, and since when: a source only knows how it is now.

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolcrib_bus::{now_ms, rfc3339};
use toolcrib_catalogue::SourceState;

/// What is known of a source.
#[derive(Debug)]
pub(crate) struct Since(Mutex<Known>);

#[derive(Debug, Clone, Default)]
struct Known {
    word: &'static str,
    since: u64,
    /// When it last failed, and why.
    failed: Option<(u64, String)>,
    /// How often it came up.
    starts: u64,
}

impl Default for Since {
    fn default() -> Self {
        Self(Mutex::new(Known { word: "connecting", since: now_ms(), ..Known::default() }))
    }
}

impl Clone for Since {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.0.lock().clone()))
    }
}

impl Since {
    /// Notes how the source is.
    pub(crate) fn note(&self, state: &SourceState) {
        let mut known = self.0.lock();
        let word = word(state);
        if let SourceState::Failed { cause, .. } = state {
            let at = known.failed.as_ref().filter(|it| known.word == word && it.1 == *cause);
            known.failed = Some((at.map_or_else(now_ms, |it| it.0), cause.clone()));
        }
        if known.word != word {
            (known.word, known.since) = (word, now_ms());
            known.starts += u64::from(word == "ready");
        }
    }

    /// What there is to tell of a source that is like this now.
    pub(super) fn tell(&self, state: &SourceState) -> Value {
        self.note(state);
        let known = self.0.lock().clone();
        let failed = known.failed.map(|(at, cause)| json!({ "at": rfc3339(at), "cause": cause }));
        json!({
            "state": known.word, "since": rfc3339(known.since), "starts": known.starts,
            "since_s": now_ms().saturating_sub(known.since) / 1000,
            "last_error": failed,
        })
    }
}

/// How a source is, in a word.
fn word(state: &SourceState) -> &'static str {
    match state {
        SourceState::Connecting => "connecting",
        SourceState::Ready => "ready",
        SourceState::Failed { .. } => "failed",
        SourceState::Closed => "closed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_error_stays_when_all_is_well_again() {
        let since = Since::default();
        let failed = SourceState::Failed { cause: "it ended".to_owned(), hint: None };
        since.note(&failed);
        let first = since.tell(&failed);
        assert_eq!((&first["state"], &first["starts"]), (&json!("failed"), &json!(0)));
        let now = since.tell(&SourceState::Ready);
        assert_eq!((&now["state"], &now["starts"]), (&json!("ready"), &json!(1)));
        assert_eq!(now["last_error"], first["last_error"]);
        assert_eq!(since.tell(&SourceState::Ready), now);
    }
}
