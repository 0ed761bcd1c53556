//! What was too large to travel with the text of a result, and was put aside.
//!
//! Where a result is a hundred megabytes long, it is one text or one structure in it that is. Whoever reads
//! the result off the wire may keep such a part elsewhere; in the text there stands `""` or `null` in its
//! place. [`Json::inflate`] puts everything back, to the byte.

use std::{
    fmt,
    io::{self, Read, Write},
    ops::Range,
};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Json;

/// Parts of a result that are kept elsewhere for as long as this lives.
pub trait Aside: Send + Sync + fmt::Debug {
    /// The parts, in the order in which they stand in the result.
    fn parts(&self) -> &[AsidePart];

    /// Reads a part from its beginning, as often as it is wanted. `part` is its place among [`Aside::parts`].
    /// A string is read as what it says, without quotes and escapes; a structure as the JSON that it is.
    fn open(&self, part: usize) -> io::Result<Box<dyn Read + Send>>;

    /// Like [`Aside::open`], but a string is read as it was written: with its escapes, without its quotes.
    fn open_raw(&self, part: usize) -> io::Result<Box<dyn Read + Send>>;
}

/// A part that was put aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsidePart {
    /// What it is of the result.
    pub place: AsidePlace,
    /// Where its stand-in (`""` or `null`) begins in the text of the result.
    pub at: usize,
    /// Where the part of `content` that it belongs to begins in the text of the result; of a structure, where
    /// its stand-in does.
    pub within: usize,
    /// How many bytes [`Aside::open`] reads of it.
    pub size: u64,
}

/// Which part of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AsidePlace {
    /// A string in the part of `content` that stands here, counted from 0.
    Content(usize, AsideField),
    /// The whole of `structuredContent`.
    Structure,
}

/// Which string of a part of `content`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AsideField {
    /// `text`.
    Text,
    /// `data`: base64.
    Data,
    /// `resource.text`.
    ResourceText,
    /// `resource.blob`: base64.
    ResourceBlob,
}

impl AsidePlace {
    /// What stands in the text instead.
    pub fn stand_in(self) -> &'static str {
        match self {
            Self::Content(..) => "\"\"",
            Self::Structure => "null",
        }
    }
}

/// How much is read at a time.
const STEP: usize = 64 * 1024;

/// `result` with everything in its place again, if that is no longer than `limit`.
pub(crate) fn inflate(result: &Json, aside: &dyn Aside, limit: usize) -> io::Result<Json> {
    let mut whole = Bounded { text: Vec::new(), limit };
    let text = result.as_bytes();
    write(text, 0..text.len(), aside, |_| true, &mut whole)?;
    Ok(Json::from_scanned(whole.text.into()))
}

/// Writes one part of `content`, counted from 0, with everything in its place again, if there is such a part.
pub(crate) fn write_part(result: &Json, number: usize, out: &mut dyn Write) -> io::Result<()> {
    let text = result.as_bytes();
    let belongs = |it: &AsidePart| matches!(it.place, AsidePlace::Content(at, _) if at == number);
    let aside = result.aside().map(|it| &**it);
    let first = aside.and_then(|it| it.parts().iter().find(|it| belongs(it)));
    let (Some(aside), Some(first)) = (aside, first) else {
        return out.write_all(part_of(result, number)?);
    };
    // There may be thousands of such parts: each is found without reading those before it.
    let rest = text.get(first.within..).ok_or_else(misplaced)?;
    let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<&RawValue>();
    match values.next() {
        Some(Ok(part)) if rest.starts_with(part.get().as_bytes()) => {
            let range = first.within..first.within + part.get().len();
            write(text, range, aside, belongs, out)
        }
        _ => Err(misplaced()),
    }
}

/// The text of one part of `content`.
fn part_of(result: &Json, number: usize) -> io::Result<&[u8]> {
    #[derive(Deserialize)]
    struct Parts<'a> {
        #[serde(borrow)]
        content: Vec<&'a RawValue>,
    }
    let none = || io::Error::new(io::ErrorKind::NotFound, "there is no such part in the result");
    // An array would be read as a list of members.
    let parts = Some(result).filter(|it| it.is_object()).and_then(|it| it.read().ok());
    let parts: Parts<'_> = parts.ok_or_else(none)?;
    parts.content.get(number).map(|it| it.get().as_bytes()).ok_or_else(none)
}

/// Writes a range of the text of a result, with the parts that belong there in their places again.
fn write(
    text: &[u8],
    range: Range<usize>,
    aside: &dyn Aside,
    belongs: impl Fn(&AsidePart) -> bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut done = range.start;
    for (number, part) in aside.parts().iter().enumerate().filter(|(_, it)| belongs(it)) {
        let stand_in = part.place.stand_in();
        let end = part.at + stand_in.len();
        if text.get(part.at..end) != Some(stand_in.as_bytes()) {
            return Err(misplaced());
        }
        out.write_all(text.get(done..part.at).ok_or_else(misplaced)?)?;
        done = end;
        let quote: &[u8] = match part.place {
            AsidePlace::Structure => b"",
            AsidePlace::Content(..) => b"\"",
        };
        out.write_all(quote)?;
        copy(&mut *aside.open_raw(number)?, out)?;
        out.write_all(quote)?;
    }
    out.write_all(text.get(done..range.end).ok_or_else(misplaced)?)
}

fn misplaced() -> io::Error {
    io::Error::other("a part that was put aside has no place in its result")
}

fn copy(from: &mut dyn Read, to: &mut dyn Write) -> io::Result<()> {
    let mut piece = vec![0; STEP];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(size) => to.write_all(&piece[..size])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Text that does not grow beyond a limit.
struct Bounded {
    text: Vec<u8>,
    limit: usize,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.limit - self.text.len() < bytes.len() {
            let message = format!("the result is larger than the limit of {} bytes", self.limit);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[derive(Debug)]
    struct Kept(Vec<AsidePart>, Vec<&'static str>);

    impl Aside for Kept {
        fn parts(&self) -> &[AsidePart] {
            &self.0
        }

        fn open(&self, part: usize) -> io::Result<Box<dyn Read + Send>> {
            Ok(Box::new(io::Cursor::new(self.open_said(part))))
        }

        fn open_raw(&self, part: usize) -> io::Result<Box<dyn Read + Send>> {
            Ok(Box::new(self.1[part].as_bytes()))
        }
    }

    impl Kept {
        fn open_said(&self, part: usize) -> String {
            match self.0[part].place {
                AsidePlace::Structure => self.1[part].to_owned(),
                AsidePlace::Content(..) => {
                    serde_json::from_str(&format!("\"{}\"", self.1[part])).unwrap()
                }
            }
        }
    }

    const REDUCED: &str =
        r#"{"content":[{"text":"","type":"text"}],"structuredContent":null,"x":1}"#;

    fn result(first: usize) -> Json {
        let text = r#"é \u00e9 \u00E9 \"quoted\"\\ \/ / \n\u000a\ud83d\ude00"#;
        let places = [AsidePlace::Content(0, AsideField::Text), AsidePlace::Structure];
        let parts = [first, 59].into_iter().zip(places);
        let parts = parts.map(|(at, place)| AsidePart { place, at, within: 12, size: 1 }).collect();
        let aside = Arc::new(Kept(parts, vec![text, r#"{"n": 1.10}"#]));
        Json::parse(REDUCED).unwrap().with_aside(aside)
    }

    #[test]
    fn everything_stands_in_its_place_again() {
        let whole = result(20).inflate(1000).unwrap();
        let expected = r#"{"content":[{"text":"é \u00e9 \u00E9 \"quoted\"\\ \/ / \n\u000a\ud83d\ude00","type":"text"}],"structuredContent":{"n": 1.10},"x":1}"#;
        assert_eq!(whole.as_str(), expected);
        assert!(whole.aside().is_none());
        assert!(Json::parse(whole.into_bytes()).is_ok());
    }

    #[test]
    fn no_more_is_put_back_than_is_allowed() {
        let size = result(20).inflate(1000).unwrap().as_bytes().len();
        assert!(result(20).inflate(size).is_ok());
        for limit in 0..size {
            let error = result(20).inflate(limit).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge, "{limit}");
        }
    }

    #[test]
    fn a_part_is_not_put_where_no_stand_in_is() {
        assert!(result(21).inflate(1000).is_err());
        assert!(result(1000).inflate(1000).is_err());
    }

    fn part(result: &Json, number: usize) -> io::Result<String> {
        let mut out = Vec::new();
        result.write_part(number, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    /// A result of which everything that is `""` in the parts of `content` was put aside, and says its number.
    fn parted(text: &str, begins: &[usize]) -> Json {
        let fields = [AsideField::Data, AsideField::ResourceBlob];
        let at: Vec<usize> = text.match_indices("\"\"").map(|(at, _)| at).collect();
        let parts = at.iter().enumerate().map(|(n, &at)| {
            let number = begins.iter().filter(|it| **it <= at).count() - 1;
            let place = AsidePlace::Content(number, fields[n % 2]);
            AsidePart { place, at, within: begins[number], size: 1 }
        });
        let parts: Vec<AsidePart> = parts.collect();
        let said = [r"\/0", r"\u00e91", r#"\"2"#, r"\\3", "4"][..parts.len()].to_vec();
        Json::parse(text.to_owned()).unwrap().with_aside(Arc::new(Kept(parts, said)))
    }

    #[test]
    fn one_part_is_written_with_what_was_put_aside_of_it() {
        let text = r#"{"content" : [ {"type":"new", "data": "" ,"resource":{"blob":""},"x":[1, 2]} , 7,{"text":"small"},["",""], {"data":""}],"y":1}"#;
        let begin = |of: &str| text.find(of).unwrap();
        let begins = [
            begin(r#"{"type"#),
            begin("7,"),
            begin(r#"{"text"#),
            begin(r#"["","#),
            begin(r#"{"data":""}]"#),
        ];
        let result = parted(text, &begins);
        let expected = [
            r#"{"type":"new", "data": "\/0" ,"resource":{"blob":"\u00e91"},"x":[1, 2]}"#,
            "7",
            r#"{"text":"small"}"#,
            r#"["\"2","\\3"]"#,
            r#"{"data":"4"}"#,
        ];
        for (number, expected) in expected.iter().enumerate() {
            assert_eq!(part(&result, number).unwrap(), *expected);
        }
        // The same as of the result that has everything.
        let whole = result.inflate(1000).unwrap();
        for (number, expected) in expected.iter().enumerate() {
            assert_eq!(part(&whole, number).unwrap(), *expected);
        }
        let others = [(&result, 5), (&whole, 5), (&Json::empty_object(), 0)];
        let array = Json::parse("[[1]]").unwrap();
        for (result, number) in others.into_iter().chain([(&array, 0)]) {
            assert_eq!(part(result, number).unwrap_err().kind(), io::ErrorKind::NotFound);
        }
    }

    #[test]
    fn a_part_that_does_not_begin_where_it_should_is_not_written() {
        let text = r#"{"content":[{"data":""},{"data":""}]}"#;
        assert!(part(&parted(text, &[12, 24]), 1).is_ok());
        // In the middle of it, or in another part.
        for begins in [[12, 25], [12, 13], [12, 20], [0, 12]] {
            assert!(part(&parted(text, &begins), 1).is_err(), "{begins:?}");
        }
        let spaced = r#"{"content":[ {"data":""}]}"#;
        assert!(part(&parted(spaced, &[13]), 0).is_ok());
        assert!(part(&parted(spaced, &[12]), 0).is_err());
        assert!(part(&result(20), 0).is_ok());
        assert!(part(&result(1000), 0).is_err());
    }

    #[test]
    fn a_part_of_any_size_is_written_piece_by_piece() {
        #[derive(Debug)]
        struct Endless(Vec<AsidePart>, u64);

        impl Aside for Endless {
            fn parts(&self) -> &[AsidePart] {
                &self.0
            }

            fn open(&self, _: usize) -> io::Result<Box<dyn Read + Send>> {
                Ok(Box::new(io::repeat(b'x').take(self.1)))
            }

            fn open_raw(&self, part: usize) -> io::Result<Box<dyn Read + Send>> {
                self.open(part)
            }
        }

        /// Takes anything, and remembers how much, and how much at a time.
        #[derive(Default)]
        struct Sink(u64, usize);

        impl Write for Sink {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 += bytes.len() as u64;
                self.1 = self.1.max(bytes.len());
                Ok(bytes.len())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }

        let size = 3_000_000;
        let place = AsidePlace::Content(0, AsideField::Data);
        let parts = vec![AsidePart { place, at: 20, within: 12, size }];
        let result = Json::parse(r#"{"content":[{"data":""}]}"#).unwrap();
        let mut sink = Sink::default();
        let result = result.with_aside(Arc::new(Endless(parts, size)));
        result.write_part(0, &mut sink).unwrap();
        assert_eq!(sink.0, size + r#"{"data":""}"#.len() as u64);
        assert!(sink.1 <= STEP);
    }

    #[test]
    fn a_result_is_equal_to_another_only_with_what_was_put_aside() {
        let (one, other) = (result(20), result(20));
        assert_eq!(one, one.clone());
        assert_ne!(one, other);
        assert_ne!(one, Json::parse(REDUCED).unwrap());
        assert_eq!(format!("{one:?}"), format!("{REDUCED} and 2 parts aside"));
    }
}
