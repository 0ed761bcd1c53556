//! Latencies, counted in buckets that grow with what they count: each is within 0.4 % of what was measured,
//! and a million of them take no more room than ten.

use std::time::Duration;

/// How many buckets a doubling has.
const FINE: u64 = 256;
const SHIFT: u32 = FINE.trailing_zeros();

/// How often which latency was.
#[derive(Debug, Clone, Default)]
pub(crate) struct Histogram {
    counts: Vec<u32>,
    total: u64,
}

impl Histogram {
    pub(crate) fn record(&mut self, time: Duration) {
        let bucket = bucket(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        if self.counts.len() <= bucket {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.total += 1;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(to, from)| *to += from);
        self.total += other.total;
    }

    pub(crate) fn count(&self) -> u64 {
        self.total
    }

    /// So many of a thousand were no slower than this, in µs.
    pub(crate) fn micros(&self, per_mille: u64) -> f64 {
        let rank = (self.total * per_mille).div_ceil(1000).max(1);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += u64::from(*count);
            if rank <= seen {
                return middle(bucket) / 1000.0;
            }
        }
        0.0
    }
}

/// Below `FINE` each number has its own; from there on each doubling has `FINE`.
fn bucket(nanos: u64) -> usize {
    let doublings = (nanos | 1).ilog2().saturating_sub(SHIFT);
    let bucket = u64::from(doublings) * FINE + (nanos >> doublings);
    usize::try_from(bucket).unwrap_or(usize::MAX)
}

/// The number in the middle of a bucket.
fn middle(bucket: usize) -> f64 {
    let bucket = bucket as u64;
    let doublings = (bucket / FINE).saturating_sub(1);
    let least = (bucket - doublings * FINE) << doublings;
    let width = (1u64 << doublings) - 1;
    float(least) + float(width) / 2.0
}

#[expect(clippy::cast_precision_loss, reason = "a figure, not a count")]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_what_is_near_its_middle() {
        let mut last = 0;
        for nanos in (0..100_000).chain((17..63).map(|it| 1 << it)) {
            let found = bucket(nanos);
            assert!(last <= found, "{nanos}");
            last = found;
            let off = (middle(found) - float(nanos)).abs();
            assert!(off <= float(nanos) * 0.004, "{nanos}: {}", middle(found));
        }
    }

    #[test]
    fn percentiles_are_those_of_what_was_recorded() {
        let mut all = Histogram::default();
        for part in [1..=500, 501..=1000] {
            let mut some = Histogram::default();
            part.map(Duration::from_micros).for_each(|it| some.record(it));
            all.add(&some);
        }
        assert_eq!(all.count(), 1000);
        for (per_mille, micros) in [(500, 500.0), (990, 990.0), (1000, 1000.0), (1, 1.0)] {
            let found = all.micros(per_mille);
            assert!((found - micros).abs() <= micros * 0.005, "{per_mille}: {found}");
        }
        assert_eq!(Histogram::default().micros(500), 0.0);
    }
}
