//! Numbers as they are written: of any length, compared without rounding.

use std::{
    cmp::Ordering,
    hash::{Hash, Hasher},
};

/// Exponents beyond this are all the same to us: no such number can be written out.
const FAR: i64 = 1 << 60;

/// `±digits × 10^exponent`, with neither leading nor trailing zeros. The digits stand in two pieces
/// of the text, before and after the point.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decimal<'a> {
    negative: bool,
    whole: &'a [u8],
    part: &'a [u8],
    exponent: i64,
}

impl<'a> Decimal<'a> {
    /// Whether `text` is a number of JSON.
    pub(crate) fn is_written_well(text: &str) -> bool {
        let text = text.strip_prefix('-').unwrap_or(text);
        let (number, exponent) = split(text, &['e', 'E']);
        let (whole, part) = split(number, &['.']);
        let digits = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
        digits(whole)
            && (whole == "0" || !whole.starts_with('0'))
            && part.is_none_or(digits)
            && exponent.is_none_or(|it| digits(it.strip_prefix(['+', '-']).unwrap_or(it)))
    }

    pub(crate) fn read(text: &'a str) -> Self {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (number, exponent) = split(text, &['e', 'E']);
        let (whole, part) = split(number, &['.']);
        let mut whole = trim_start(whole.as_bytes());
        let mut part = trim_end(part.unwrap_or_default().as_bytes());
        let mut exponent = exponent.map_or(0, read_exponent) - length(part);
        if part.is_empty() {
            let trimmed = trim_end(whole);
            exponent += length(whole) - length(trimmed);
            whole = trimmed;
        }
        if whole.is_empty() {
            part = trim_start(part);
        }
        if whole.is_empty() && part.is_empty() {
            return Self { negative: false, whole, part, exponent: 0 };
        }
        Self { negative, whole, part, exponent }
    }

    pub(crate) fn is_integer(&self) -> bool {
        0 <= self.exponent
    }

    /// Whether this is `divisor` times a whole number.
    pub(crate) fn is_multiple_of(&self, divisor: Divisor) -> bool {
        if self.is_zero() {
            return true;
        }
        // The last digit is not zero, so no power of ten divides the digits.
        let Ok(shift) = u64::try_from(self.exponent - divisor.exponent) else { return false };
        let modulus = u128::from(divisor.digits);
        let digit = |rest: u128, digit: u8| (rest * 10 + u128::from(digit - b'0')) % modulus;
        let rest = self.digits().fold(0, digit);
        (rest * power_of_ten(shift, modulus)).is_multiple_of(modulus)
    }

    fn is_zero(&self) -> bool {
        self.whole.is_empty() && self.part.is_empty()
    }

    fn digits(&self) -> impl Iterator<Item = u8> + use<'a> {
        self.whole.iter().chain(self.part).copied()
    }

    /// The place of the first digit.
    fn top(&self) -> i64 {
        length(self.whole) + length(self.part) + self.exponent
    }

    fn size(&self, other: &Decimal<'_>) -> Ordering {
        match (self.is_zero(), other.is_zero()) {
            (false, false) => {
                self.top().cmp(&other.top()).then_with(|| self.digits().cmp(other.digits()))
            }
            (mine, its) => its.cmp(&mine),
        }
    }
}

impl Ord for Decimal<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.size(other),
            (true, true) => other.size(self),
            (mine, its) => its.cmp(&mine),
        }
    }
}

impl PartialOrd for Decimal<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Decimal<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Decimal<'_> {}

impl Hash for Decimal<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.negative, self.exponent).hash(state);
        self.digits().for_each(|it| it.hash(state));
    }
}

/// What `multipleOf` asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Divisor {
    digits: u64,
    exponent: i64,
}

impl Divisor {
    /// `None` where it is not above zero, or has more than 19 digits that count.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let number = Decimal::read(text);
        if number.negative || number.is_zero() {
            return None;
        }
        let digit = |sum: u64, it: u8| sum.checked_mul(10)?.checked_add(u64::from(it - b'0'));
        let digits = number.digits().try_fold(0, digit)?;
        Some(Self { digits, exponent: number.exponent })
    }
}

fn split<'t>(text: &'t str, at: &[char]) -> (&'t str, Option<&'t str>) {
    match text.split_once(at) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

fn trim_start(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|it| **it == b'0').count();
    &digits[zeros..]
}

fn trim_end(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().rev().take_while(|it| **it == b'0').count();
    &digits[..digits.len() - zeros]
}

fn length(digits: &[u8]) -> i64 {
    i64::try_from(digits.len()).unwrap_or(FAR)
}

fn read_exponent(text: &str) -> i64 {
    let far = if text.starts_with('-') { -FAR } else { FAR };
    text.parse().unwrap_or(far).clamp(-FAR, FAR)
}

fn power_of_ten(mut power: u64, modulus: u128) -> u128 {
    let (mut result, mut base) = (1 % modulus, 10 % modulus);
    while power > 0 {
        if power & 1 == 1 {
            result = result * base % modulus;
        }
        base = base * base % modulus;
        power >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_that_of_numbers() {
        let rising = [
            "-1e400",
            "-18446744073709551617",
            "-18446744073709551616",
            "-10",
            "-9.5",
            "-0.1",
            "-1e-400",
            "0",
            "1e-99999999999999999999",
            "1e-400",
            "0.00999",
            "0.01",
            "0.1",
            "1",
            "1.5",
            "2",
            "9",
            "10",
            "99.99",
            "1e2",
            "9007199254740992",
            "9007199254740993",
            "18446744073709551616",
            "1e308",
            "1e400",
            "1e99999999999999999999",
        ];
        for (i, one) in rising.iter().enumerate() {
            for (j, two) in rising.iter().enumerate() {
                let order = Decimal::read(one).cmp(&Decimal::read(two));
                assert_eq!(order, i.cmp(&j), "{one} {two}");
            }
        }
    }

    #[test]
    fn one_number_has_many_spellings() {
        for (one, two) in [
            ("1", "1.0"),
            ("100", "1e2"),
            ("0.10", "1E-1"),
            ("-0.0", "0"),
            ("0e9", "0"),
            ("1200e-2", "12.00"),
        ] {
            assert_eq!(Decimal::read(one), Decimal::read(two), "{one} {two}");
        }
    }

    #[test]
    fn integers_and_multiples() {
        for (text, integer) in [
            ("1.0", true),
            ("1e400", true),
            ("1.5", false),
            ("150e-1", true),
            ("1e-400", false),
            ("0.0", true),
        ] {
            assert_eq!(Decimal::read(text).is_integer(), integer, "{text}");
        }
        for (text, divisor, fits) in [
            ("4.35", "0.01", true),
            ("0.0075", "0.0001", true),
            ("0.00751", "0.0001", false),
            ("1e308", "0.123456789", false),
            ("1e308", "0.5", true),
            ("18446744073709551616", "2", true),
            ("18446744073709551617", "2", false),
            ("12391239123", "1e-8", true),
            ("0", "7", true),
            ("7", "10", false),
            ("-21", "7", true),
            ("1e400", "3", false),
        ] {
            let divisor = Divisor::read(divisor).unwrap();
            assert_eq!(Decimal::read(text).is_multiple_of(divisor), fits, "{text} {divisor:?}");
        }
        assert!(Divisor::read("0").is_none() && Divisor::read("-1").is_none());
        assert!(Divisor::read("123456789012345678901").is_none());
    }
}
