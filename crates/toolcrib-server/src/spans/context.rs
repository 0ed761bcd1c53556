//! Which trace something belongs to, as W3C writes it: `traceparent`.

/// A place in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Context {
    pub(crate) trace: [u8; 16],
    pub(crate) span: [u8; 8],
    /// Whether whoever began the trace wants it kept.
    pub(crate) sampled: bool,
}

impl Context {
    /// Reads a `traceparent`: of version 0, or of a later one that begins like it.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let version = number::<1>(parts.next()?)?[0];
        let (trace, span) = (number(parts.next()?)?, number(parts.next()?)?);
        let flags = number::<1>(parts.next()?)?[0];
        let more = parts.next().is_some();
        let known = version != 0xff && !(version == 0 && more);
        let real = trace != [0; 16] && span != [0; 8];
        (known && real).then_some(Self { trace, span, sampled: flags & 1 == 1 })
    }

    /// The beginning of a trace, of which this share is kept.
    pub(crate) fn begin(sample: f64) -> Self {
        let trace = random();
        // As other samplers do, so that all who know the trace decide alike.
        let low = trace.last_chunk().copied().map_or(0, u64::from_be_bytes) >> 1;
        let sampled = (low as f64) < sample * (1_u64 << 63) as f64;
        Self { trace, span: random(), sampled }
    }

    /// A place below this one.
    pub(crate) fn child(&self) -> Self {
        Self { span: random(), ..*self }
    }
}

impl std::fmt::Display for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (trace, span) = (hex(&self.trace), hex(&self.span));
        write!(f, "00-{trace}-{span}-{:02x}", u8::from(self.sampled))
    }
}

/// Bytes as W3C and OTLP write them.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|it| [it >> 4, it & 15]).map(digit).collect()
}

fn digit(value: u8) -> char {
    char::from_digit(u32::from(value), 16).unwrap_or('0')
}

/// So many bytes in small hexadecimal digits, and nothing else.
fn number<const N: usize>(text: &str) -> Option<[u8; N]> {
    let text = text.as_bytes();
    if text.len() != 2 * N {
        return None;
    }
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(bytes)
}

/// Random bytes, not all of them zero.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).ok();
    if bytes == [0; N] {
        bytes[N - 1] = 1;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn what_is_read_is_written_the_same() {
        let context = Context::read(GOOD).unwrap();
        assert!(context.sampled);
        assert_eq!(context.to_string(), GOOD);
        let quiet = GOOD.replace("-01", "-00");
        assert_eq!(Context::read(&quiet).unwrap().to_string(), quiet);
        let child = context.child();
        assert!(child.trace == context.trace && child.span != context.span && child.sampled);
        // A later version may add to it.
        assert!(Context::read(&GOOD.replace("00-", "01-")).is_some());
        assert!(Context::read(&(GOOD.replacen("00", "cc", 1) + "-what-ever")).is_some());
    }

    #[test]
    fn what_is_no_place_in_a_trace_is_none() {
        let zero_trace = "00-00000000000000000000000000000000-b7ad6b7169203331-01";
        let zero_span = "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01";
        let more = format!("{GOOD}-x");
        let (large, odd) = (GOOD.to_uppercase(), GOOD.replace("b7ad", "b7a"));
        let version = GOOD.replacen("00", "ff", 1);
        let all = ["", "00", "password", zero_trace, zero_span, &more, &large, &odd, &version];
        for bad in all {
            assert_eq!(Context::read(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_share_of_the_traces_is_kept() {
        let kept = |sample: f64| (0..2_000).filter(|_| Context::begin(sample).sampled).count();
        assert_eq!((kept(0.0), kept(1.0)), (0, 2_000));
        assert!((300..700).contains(&kept(0.25)));
    }
}
