//! Numbers as they are written: compared and added without rounding.
//!
//! A number is an integer of up to 38 digits and a place for the point. What does not fit into that is a `f64`, and
//! whoever shows a sum of such says that it is not exact.

use std::cmp::Ordering;

/// The farthest place of the point.
const MAX_SCALE: u32 = 30;

/// `digits * 10^-scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decimal {
    digits: i128,
    scale: u32,
}

/// A number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Exact(Decimal),
    Float(f64),
}

impl Number {
    /// What JSON or a cell of a table has as a number; nothing of anything else.
    pub(super) fn read(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        if !digits.starts_with(|it: char| it.is_ascii_digit() || it == '.') {
            return None;
        }
        let text = text.strip_prefix('+').unwrap_or(text);
        if let Some(exact) = Decimal::read(text) {
            return Some(Self::Exact(exact));
        }
        text.parse().ok().filter(|it: &f64| it.is_finite()).map(Self::Float)
    }

    /// The nearest float. Rounded once only: so what is less is never more as a float.
    fn float(self) -> f64 {
        match self {
            Self::Exact(it) if it.scale == 0 => it.digits as f64,
            Self::Exact(_) => self.to_string().parse().unwrap_or_default(),
            Self::Float(it) => it,
        }
    }

    /// By what they are, exact or not, to the last digit: anything less is no order that one can sort by.
    pub(super) fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Exact(a), Self::Exact(b)) => a.compare(b),
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(&b).unwrap_or(a.total_cmp(&b)),
            (Self::Exact(a), Self::Float(b)) => self.float().partial_cmp(&b).map_or_else(
                || self.float().total_cmp(&b),
                |it| it.then_with(|| a.compare_with_nearest(b)),
            ),
            (Self::Float(_), Self::Exact(_)) => other.compare(self).reverse(),
        }
    }

    pub(super) fn add(self, other: Self) -> Self {
        if let (Self::Exact(a), Self::Exact(b)) = (self, other)
            && let Some((a, b, scale)) = a.aligned(b)
            && let Some(digits) = a.checked_add(b)
        {
            return Self::Exact(Decimal { digits, scale });
        }
        Self::Float(self.float() + other.float())
    }

    /// Divided by a count: exact where that has an end within a few places, else rounded to twelve.
    pub(super) fn over(self, count: u64) -> String {
        if let Self::Exact(Decimal { digits, scale }) = self
            && let Some(wide) = 10_i128.checked_pow(12).and_then(|it| digits.checked_mul(it))
        {
            let count = i128::from(count);
            let (quotient, rest) = (wide / count, wide % count);
            let up = i128::from(count <= 2 * rest.abs()) * rest.signum();
            return Self::Exact(Decimal { digits: quotient + up, scale: scale + 12 }).to_string();
        }
        Self::Float(self.float() / count as f64).to_string()
    }

    pub(super) fn is_exact(self) -> bool {
        matches!(self, Self::Exact(_))
    }
}

impl std::fmt::Display for Number {
    /// As JSON.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Decimal { digits, scale } = match self {
            Self::Exact(it) => *it,
            Self::Float(it) if it.is_finite() => return write!(f, "{it:?}"),
            Self::Float(_) => return f.write_str("null"),
        };
        let text = format!("{:0width$}", digits.unsigned_abs(), width = scale as usize + 1);
        let (whole, part) = text.split_at(text.len() - scale as usize);
        let part = part.trim_end_matches('0');
        let sign = if digits < 0 { "-" } else { "" };
        if part.is_empty() { write!(f, "{sign}{whole}") } else { write!(f, "{sign}{whole}.{part}") }
    }
}

impl Decimal {
    pub(super) fn zero() -> Self {
        Self { digits: 0, scale: 0 }
    }

    fn read(text: &str) -> Option<Self> {
        let (number, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        let plain = |it: &str| it.bytes().all(|it| it.is_ascii_digit());
        if !plain(whole.strip_prefix('-').unwrap_or(whole)) || !plain(part) {
            return None;
        }
        let part = part.trim_end_matches('0');
        if 60 < whole.len() + part.len() {
            return None;
        }
        let digits: i128 = format!("{whole}{part}").parse().ok()?;
        let exponent: i32 = exponent.parse().ok()?;
        let scale = i32::try_from(part.len()).ok()?.checked_sub(exponent)?;
        if digits == 0 {
            return Some(Self::zero());
        }
        match u32::try_from(scale) {
            Ok(scale) if scale <= MAX_SCALE => Some(Self { digits, scale }),
            Ok(_) => None,
            Err(_) => {
                let digits = digits.checked_mul(10_i128.checked_pow(scale.unsigned_abs())?)?;
                Some(Self { digits, scale: 0 })
            }
        }
    }

    /// What is before the point, and what is behind it.
    fn split(self) -> (i128, i128) {
        let one = 10_i128.checked_pow(self.scale);
        one.map_or((0, self.digits), |one| (self.digits / one, self.digits % one))
    }

    fn compare(self, other: Self) -> Ordering {
        let ((whole, part), (others, its)) = (self.split(), other.split());
        // A part is less than one, so that it has room for the places of the other.
        let scale = self.scale.max(other.scale);
        let at = |part: i128, own: u32| {
            part.saturating_mul(10_i128.checked_pow(scale - own).unwrap_or(i128::MAX))
        };
        whole.cmp(&others).then_with(|| at(part, self.scale).cmp(&at(its, other.scale)))
    }

    /// Compares with the float that is nearest to it.
    fn compare_with_nearest(self, float: f64) -> Ordering {
        // Such a float has no more places than this: the least decimal is 1e-30.
        let text = format!("{:.160}", float.abs());
        let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
        let own = Number::Exact(Self { digits: self.digits.saturating_abs(), ..self }).to_string();
        let (own_whole, own_part) = own.split_once('.').unwrap_or((&own, ""));
        let order = (own_whole.len(), own_whole)
            .cmp(&(whole.len(), whole))
            .then_with(|| own_part.cmp(part.trim_end_matches('0')));
        if self.digits < 0 { order.reverse() } else { order }
    }

    /// Both with the point at the same place.
    fn aligned(self, other: Self) -> Option<(i128, i128, u32)> {
        let scale = self.scale.max(other.scale);
        let at = |it: Self| it.digits.checked_mul(10_i128.checked_pow(scale - it.scale)?);
        Some((at(self)?, at(other)?, scale))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> Option<String> {
        Number::read(text).map(|it| it.to_string())
    }

    #[test]
    fn numbers_are_what_they_say() {
        let same = ["0", "-1", "0.1", "123456789012345678901234567890.5", "-0.001"];
        for text in same {
            assert_eq!(shown(text).as_deref(), Some(text));
        }
        let rows = [
            ("1e3", "1000"),
            ("1.50", "1.5"),
            ("-0", "0"),
            ("25e-1", "2.5"),
            ("1e300", "1e300"),
            ("+5", "5"),
            (".5", "0.5"),
        ];
        for (text, expected) in rows {
            assert_eq!(shown(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["", "-", "x", "1x", "nan", "inf", "0x10", "1 2", "--1", "1e999", "-inf", "+-0"]
        {
            assert_eq!(shown(text), None, "{text}");
        }
    }

    #[test]
    fn sums_do_not_round() {
        let sum = ["0.1", "0.2", "9007199254740993"].map(|it| Number::read(it).unwrap());
        let sum = sum.into_iter().fold(Number::Exact(Decimal::zero()), Number::add);
        assert_eq!(sum.to_string(), "9007199254740993.3");
        assert_eq!(Number::read("1").unwrap().over(3), "0.333333333333");
        assert_eq!(Number::read("-5").unwrap().over(3), "-1.666666666667");
        assert_eq!(Number::read("1").unwrap().over(8), "0.125");
        assert!(!sum.add(Number::read("1e300").unwrap()).is_exact());
    }

    fn order(numbers: &[Number]) {
        for a in numbers {
            for b in numbers {
                let ab = a.compare(*b);
                assert_eq!(ab, b.compare(*a).reverse(), "{a:?} {b:?}");
                for c in numbers.iter().filter(|c| ab == b.compare(**c)) {
                    assert_eq!(ab, a.compare(*c), "{a:?} {b:?} {c:?}");
                }
            }
        }
    }

    #[test]
    fn numbers_have_one_order_whether_or_not_they_fit() {
        let texts = [
            "17014118346046923173168730371.58841",
            "17014118346046923173168730371.588410000000000001",
            "17014118346046923173168730372",
            "17014118346046923173168730373",
            "17014118346046923173168730371.5884105727",
            "17014118346046923173168730371.588410572700000000000000000001",
            "170141183460469231731687303715884105727",
            "170141183460469231731687303715884105728",
            "170141183460469231731687303715884105726",
            "0.1",
            "0.1000000000000000000000000000001",
            "0.10000000000000000555111512312578270211815834045410156250",
            "0.1000000000000000055511151231257827",
            "0.1000000000000000055511151231257828",
            "0.100000000000000005551115123126",
            "-0.1",
            "-0.10000000000000000555111512312578270211815834045410156250",
            "0",
            "-1e-400",
            "1e-31",
            "1e300",
        ];
        let numbers: Vec<Number> = texts.iter().map(|it| Number::read(it).unwrap()).collect();
        order(&numbers);
        let compare = |a: &str, b: &str| Number::read(a).unwrap().compare(Number::read(b).unwrap());
        assert_eq!(compare(texts[0], texts[2]), Ordering::Less);
        // The float nearest to a tenth is a little more.
        assert_eq!(compare("0.1", texts[11]), Ordering::Less);
        assert_eq!(compare("-0.1", texts[16]), Ordering::Greater);
        let zeros = format!("0.5{}", "0".repeat(80));
        assert_eq!(compare("0.5", &zeros), Ordering::Equal);
    }

    proptest! {
        #[test]
        fn any_numbers_have_one_order(
            texts in prop::collection::vec("-?(170141183460469231731687303715884105727|[0-9]{1,40})(\\.[0-9]{1,34})?(e-?[0-9]{1,2})?", 3..8),
        ) {
            order(&texts.iter().filter_map(|it| Number::read(it)).collect::<Vec<_>>());
        }

        #[test]
        fn order_and_sum_are_those_of_integers(a in any::<i64>(), b in any::<i64>()) {
            let read = |it: i64| Number::read(&it.to_string()).unwrap();
            prop_assert_eq!(read(a).compare(read(b)), a.cmp(&b));
            prop_assert_eq!(read(a).add(read(b)).to_string(), (i128::from(a) + i128::from(b)).to_string());
        }

        #[test]
        fn any_text_is_a_number_or_none(text in "[-+.eE0-9]{0,12}") {
            if let Some(number) = Number::read(&text) {
                let float: f64 = text.parse().unwrap();
                prop_assert!((number.float() - float).abs() <= float.abs() * 1e-12);
            }
        }
    }
}
