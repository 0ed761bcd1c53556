//! From times to figures, and from figures to ratios.

use std::time::Duration;

use crate::histogram::Histogram;

/// What one way showed in one round.
#[derive(Debug, Clone)]
pub(crate) struct Slice {
    pub(crate) times: Histogram,
    pub(crate) elapsed: Duration,
    pub(crate) bytes: u64,
    /// Of whoever stands between.
    pub(crate) cpu: Duration,
}

/// Figures of all rounds: the one in the middle, and those at the ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Slice {
    /// Half of the answers were faster, in µs.
    pub(crate) fn p50(&self) -> f64 {
        self.times.micros(500)
    }

    /// All but a hundredth were faster, in µs.
    pub(crate) fn p99(&self) -> f64 {
        self.times.micros(990)
    }

    /// Answers a second.
    pub(crate) fn rate(&self) -> f64 {
        float(self.times.count()) / self.elapsed.as_secs_f64()
    }

    /// Megabytes of answers a second.
    pub(crate) fn megabytes(&self) -> f64 {
        float(self.bytes) / 1e6 / self.elapsed.as_secs_f64()
    }

    /// CPU time of one answer, in µs.
    pub(crate) fn cpu(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / float(self.times.count().max(1))
    }
}

impl Spread {
    /// Of figures that are numbers: what was divided by nothing is left out.
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut figures: Vec<f64> = figures.into_iter().filter(|it| it.is_finite()).collect();
        figures.sort_by(f64::total_cmp);
        let (&least, &most) = (figures.first()?, figures.last()?);
        let middle = figures.len() / 2;
        let median = if figures.len() % 2 == 1 {
            figures[middle]
        } else {
            f64::midpoint(figures[middle - 1], figures[middle])
        };
        Some(Self { median, least, most })
    }

    /// A figure that was measured once.
    pub(crate) fn once(figure: f64) -> Self {
        Self { median: figure, least: figure, most: figure }
    }

    /// How far the ends lie apart, as a part of the middle.
    pub(crate) fn width(&self) -> f64 {
        ((self.most - self.least) / self.median).abs()
    }
}

/// One figure of two ways, divided round by round: what troubles the machine troubles both.
pub(crate) fn ratio(of: &[Slice], by: &[Slice], figure: impl Fn(&Slice) -> f64) -> Option<Spread> {
    Spread::of(of.iter().zip(by).map(|(of, by)| figure(of) / figure(by)))
}

/// What a way adds to the direct one by what another adds, round by round. A round in which the other adds
/// nothing says nothing.
pub(crate) fn added_ratio(of: &[Slice], by: &[Slice], direct: &[Slice]) -> Option<Spread> {
    let rounds = of.iter().zip(by).zip(direct).map(|((of, by), direct)| {
        let (of, by) = (of.p50() - direct.p50(), by.p50() - direct.p50());
        if 0.0 < by { of / by } else { f64::NAN }
    });
    Spread::of(rounds)
}

#[expect(clippy::cast_precision_loss, reason = "a figure, not a count")]
pub(crate) fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(micros: u64, answers: u64) -> Slice {
        let mut times = Histogram::default();
        (0..answers).for_each(|_| times.record(Duration::from_micros(micros)));
        let (elapsed, cpu) = (Duration::from_secs(2), Duration::from_millis(answers));
        Slice { times, elapsed, bytes: 4_000_000, cpu }
    }

    #[test]
    fn a_spread_has_a_middle_and_two_ends() {
        let check = |figures: &[f64], median, least, most| {
            let expected = Some(Spread { median, least, most });
            assert_eq!(Spread::of(figures.iter().copied()), expected);
        };
        check(&[3.0, 1.0, 2.0], 2.0, 1.0, 3.0);
        check(&[4.0, 1.0, f64::NAN, 2.0, 3.0], 2.5, 1.0, 4.0);
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread { median: 2.0, least: 1.0, most: 3.0 }.width(), 1.0);
    }

    #[test]
    fn a_slice_has_rates() {
        let slice = slice(100, 100);
        assert_eq!((slice.rate(), slice.megabytes(), slice.cpu()), (50.0, 2.0, 1000.0));
        assert!((slice.p50() - 100.0).abs() < 0.5);
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let (of, by) = ([slice(100, 10), slice(300, 30)], [slice(100, 20), slice(100, 20)]);
        let rates = ratio(&of, &by, Slice::rate).unwrap();
        assert_eq!(rates, Spread { median: 1.0, least: 0.5, most: 1.5 });
        // Added: 100 by 50, then nothing that could be divided by.
        let direct = [slice(100, 1), slice(100, 1)];
        let added =
            added_ratio(&[slice(200, 1), slice(200, 1)], &[slice(150, 1), slice(90, 1)], &direct);
        assert!((added.unwrap().median - 2.0).abs() < 0.05);
    }
}
