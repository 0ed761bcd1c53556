//! From times to figures.

use std::time::Duration;

/// What one load on one way showed in one round.
#[derive(Debug, Clone)]
pub(crate) struct Slice {
    /// Half of the answers were faster, in µs.
    pub(crate) p50: f64,
    /// All but a hundredth were faster, in µs.
    pub(crate) p99: f64,
    pub(crate) answers: usize,
    elapsed: Duration,
    bytes: usize,
    /// Of whoever stands between.
    cpu: Duration,
}

/// Figures of all rounds: the one in the middle, and those at the ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Slice {
    pub(crate) fn new(
        mut times: Vec<Duration>,
        elapsed: Duration,
        bytes: usize,
        cpu: Duration,
    ) -> Self {
        times.sort_unstable();
        let at = |percent: usize| {
            let place = times.len().saturating_sub(1) * percent / 100;
            times.get(place).map_or(0.0, |it| micros(*it))
        };
        Self { p50: at(50), p99: at(99), answers: times.len(), elapsed, bytes, cpu }
    }

    /// Answers a second.
    pub(crate) fn rate(&self) -> f64 {
        count(self.answers) / self.elapsed.as_secs_f64()
    }

    /// Megabytes of answers a second.
    pub(crate) fn megabytes(&self) -> f64 {
        count(self.bytes) / 1e6 / self.elapsed.as_secs_f64()
    }
}

/// The CPU time of one answer in µs. Of all rounds together: `/proc` counts too coarsely for one.
pub(crate) fn cpu_each(slices: &[Slice]) -> f64 {
    let cpu: Duration = slices.iter().map(|it| it.cpu).sum();
    let answers: usize = slices.iter().map(|it| it.answers).sum();
    micros(cpu) / count(answers.max(1))
}

impl Spread {
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Self {
        let mut figures: Vec<f64> = figures.into_iter().collect();
        figures.sort_by(f64::total_cmp);
        let (Some(&least), Some(&most)) = (figures.first(), figures.last()) else {
            return Self { median: 0.0, least: 0.0, most: 0.0 };
        };
        let middle = figures.len() / 2;
        let median = if figures.len() % 2 == 1 {
            figures[middle]
        } else {
            f64::midpoint(figures[middle - 1], figures[middle])
        };
        Self { median, least, most }
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn count(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::INFINITY, f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_a_middle_and_two_ends() {
        let check = |figures: &[f64], median, least, most| {
            assert_eq!(Spread::of(figures.iter().copied()), Spread { median, least, most });
        };
        check(&[3.0, 1.0, 2.0], 2.0, 1.0, 3.0);
        check(&[4.0, 1.0, 2.0, 3.0], 2.5, 1.0, 4.0);
        check(&[], 0.0, 0.0, 0.0);
    }

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let times = (1..=101).rev().map(Duration::from_micros).collect();
        let slice = Slice::new(times, Duration::from_secs(2), 4_000_000, Duration::ZERO);
        assert_eq!((slice.p50.round(), slice.p99.round()), (51.0, 100.0));
        assert_eq!((slice.rate(), slice.megabytes()), (50.5, 2.0));
    }
}
