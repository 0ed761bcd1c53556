//! How long to wait before the next try.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(60);

/// Pauses that double up to a minute, each shortened by chance, so that servers that went down
/// together do not come back together.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    tries: u32,
}

impl Backoff {
    /// The next pause.
    pub(crate) fn next_pause(&mut self) -> Duration {
        let pause = self.ceiling();
        self.tries = self.tries.saturating_add(1);
        pause.mul_f64(0.5 + fastrand::f64() / 2.0)
    }

    /// It worked: begin again from the shortest pause. Only if it worked for longer than the next
    /// pause would be: a server that dies at once after every start has not recovered.
    pub(crate) fn worked_for(&mut self, time: Duration) {
        if self.ceiling() <= time {
            self.tries = 0;
        }
    }

    fn ceiling(&self) -> Duration {
        FIRST.saturating_mul(1 << self.tries.min(16)).min(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_minute_and_start_again_after_success() {
        let mut backoff = Backoff::default();
        for tries in 0..40 {
            let ceiling = Duration::from_millis(500 << tries.min(16)).min(LONGEST);
            let pause = backoff.next_pause();
            assert!(ceiling / 2 <= pause && pause <= ceiling, "{tries}: {pause:?}");
        }
        backoff.worked_for(Duration::from_secs(1));
        assert!(Duration::from_secs(30) <= backoff.next_pause());
        backoff.worked_for(Duration::from_secs(60));
        assert!(backoff.next_pause() <= FIRST);
    }
}
