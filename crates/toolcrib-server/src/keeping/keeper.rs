//! Takes a result apart: what is small goes on as it is, what is large becomes an artifact of its own kind, and
//! where there are many parts, those that are left over become one together.

use std::io::{self, Read, Write};

use base64::{engine::general_purpose::STANDARD as BASE64, read::DecoderReader};
use serde_json::value::RawValue;
use toolcrib_catalogue::{Aside, AsideField, AsidePlace, Json};
use toolcrib_context::artifacts::{
    Artifact, ArtifactId, New, Shape, Store, StoreError, Writer, unescape_json_string,
};
use toolcrib_wire::json::member;

use super::Large;

/// How many parts of a result become artifacts of their own.
const MOST_KEPT: usize = 8;

/// One part of a result, as the caller gets it.
pub(super) enum Part<'a> {
    /// As it is.
    Small(&'a str),
    /// Kept, as one or two.
    Kept(Vec<Kept>),
    /// The same as something that was kept, or kept together with others.
    Elsewhere,
}

/// Something that was kept.
pub(super) struct Kept {
    pub(super) artifact: Artifact,
    pub(super) shape: Shape,
    pub(super) note: Option<&'static str>,
    /// What else the server said of the part: `annotations` and `_meta`, as they came.
    pub(super) said: Vec<(&'static str, String)>,
}

/// Keeps what is large in a result.
pub(super) struct Keeper<'a> {
    store: &'a Store,
    large: &'a Large,
    /// The result, where some of it did not come with the rest, since it is very large.
    aside: Option<&'a Json>,
    /// How much may still go on as it is.
    room: usize,
    /// What the structure is, where it was kept: servers like to say it once more as text.
    structure: Option<blake3::Hash>,
    /// What was kept so far; it goes again if the rest cannot be kept.
    done: Vec<ArtifactId>,
}

impl<'a> Keeper<'a> {
    pub(super) fn new(store: &'a Store, large: &'a Large, aside: Option<&'a Json>) -> Self {
        let room = large.limit / 2;
        Self { store, large, aside, room, structure: None, done: Vec::new() }
    }

    /// The parts of `content` as the caller gets them, what was kept of several at once last, and the structure.
    pub(super) fn keep<'b>(
        &mut self,
        content: &[&'b RawValue],
        structure: Option<&'b [u8]>,
    ) -> Result<(Vec<Part<'b>>, Option<Part<'b>>), StoreError> {
        let kept = self.try_keep(content, structure);
        if kept.is_err() {
            for id in &self.done {
                self.store.remove(id).ok();
            }
        }
        kept
    }

    fn try_keep<'b>(
        &mut self,
        content: &[&'b RawValue],
        structure: Option<&'b [u8]>,
    ) -> Result<(Vec<Part<'b>>, Option<Part<'b>>), StoreError> {
        let structure = structure.map(|it| self.structure(it)).transpose()?.flatten();
        let (mut parts, mut left) = (Vec::new(), Vec::new());
        for (at, raw) in content.iter().enumerate() {
            let raw = raw.get();
            let size = raw.len() as u64 + self.size_aside(at);
            let small = usize::try_from(size).is_ok_and(|it| self.spares(it));
            let share = (self.large.limit / 4) as u64;
            parts.push(if small {
                Part::Small(raw)
            } else if share < size && self.done.len() < MOST_KEPT {
                self.part(at, raw)?
            } else {
                left.push((at, raw));
                Part::Elsewhere
            });
        }
        if !left.is_empty() {
            parts.push(self.together(&left)?);
        }
        Ok((parts, structure))
    }

    /// Whether something is small enough to go on as it is.
    fn spares(&mut self, size: usize) -> bool {
        let small = size <= self.large.limit / 4 && size <= self.room;
        if small {
            self.room -= size;
        }
        small
    }

    fn begin(&self, handle: &str, media_type: &str, label: &str) -> Result<Tee, StoreError> {
        let writer = self.store.begin(New {
            owner: self.large.group.to_string(),
            tool: self.large.tool.clone(),
            call: self.large.call.clone(),
            handle: format!("mcp:{}:{handle}", self.large.tool),
            label: label.to_owned(),
            media_type: media_type.to_owned(),
            keep: None,
        })?;
        Ok(Tee { writer, flat: Flat::default() })
    }

    fn finish(&mut self, mut tee: Tee, note: Option<&'static str>) -> Result<Kept, StoreError> {
        let shape = tee.writer.describe()?;
        let artifact = tee.writer.finish()?;
        self.done.push(artifact.id.clone());
        Ok(Kept { artifact, shape, note, said: Vec::new() })
    }

    fn asides(&self) -> Option<&dyn Aside> {
        self.aside.and_then(Json::aside).map(|it| &**it)
    }

    /// What was put aside of this place.
    fn put_aside(&self, place: AsidePlace) -> io::Result<Option<Box<dyn Read + Send>>> {
        let Some(aside) = self.asides() else { return Ok(None) };
        let at = aside.parts().iter().position(|it| it.place == place);
        at.map(|at| aside.open(at)).transpose()
    }

    /// What was put aside of a part: which members of it.
    fn fields_aside(&self, at: usize) -> Vec<AsideField> {
        let parts = self.asides().map(Aside::parts).unwrap_or_default();
        let field = |place| match place {
            AsidePlace::Content(part, field) if part == at => Some(field),
            _ => None,
        };
        parts.iter().filter_map(|it| field(it.place)).collect()
    }

    /// How much was put aside of a part.
    fn size_aside(&self, at: usize) -> u64 {
        let parts = self.asides().map(Aside::parts).unwrap_or_default();
        let own =
            parts.iter().filter(|it| matches!(it.place, AsidePlace::Content(n, _) if n == at));
        own.map(|it| it.size).sum()
    }

    fn structure<'b>(&mut self, raw: &'b [u8]) -> Result<Option<Part<'b>>, StoreError> {
        let aside = self.put_aside(AsidePlace::Structure)?;
        if aside.is_none() && raw == b"null" {
            return Ok(None);
        }
        if aside.is_none()
            && self.spares(raw.len())
            && let Ok(text) = std::str::from_utf8(raw)
        {
            return Ok(Some(Part::Small(text)));
        }
        let mut tee = self.begin("structured_content", "application/json", "structured content")?;
        match aside {
            Some(mut aside) => drop(io::copy(&mut aside, &mut tee)?),
            None => tee.write_all(raw)?,
        }
        self.structure = Some(tee.flat.finish());
        Ok(Some(Part::Kept(vec![self.finish(tee, None)?])))
    }

    fn part<'b>(&mut self, at: usize, raw: &'b str) -> Result<Part<'b>, StoreError> {
        let bytes = raw.as_bytes();
        let kind = said(bytes, "type").unwrap_or_default();
        let about = |media: Option<String>| About {
            handle: format!("{kind}:{at}"),
            media,
            label: String::new(),
        };
        // What was put aside must be what is looked for, or it would be lost.
        let aside = self.fields_aside(at);
        let only = |fields: &[AsideField]| aside.iter().all(|it| fields.contains(it));
        let mut kept = match kind.as_str() {
            "text" if only(&[AsideField::Text]) => {
                let place = AsidePlace::Content(at, AsideField::Text);
                match self.text(&about(None), string(bytes, "text"), place)? {
                    Some(kept) => vec![kept],
                    None => return Ok(Part::Elsewhere),
                }
            }
            "image" | "audio" if only(&[AsideField::Data]) => {
                let media = said(bytes, "mimeType").unwrap_or_else(|| format!("{kind}/*"));
                let place = AsidePlace::Content(at, AsideField::Data);
                vec![self.binary(&about(Some(media)), string(bytes, "data"), place)?]
            }
            "resource" if only(&[AsideField::ResourceText, AsideField::ResourceBlob]) => {
                self.resource(at, bytes)?
            }
            _ => vec![self.whole(at, raw)?],
        };
        for key in ["annotations", "_meta"] {
            if let (Some(range), Some(first)) = (member(bytes, key), kept.first_mut()) {
                first.said.push((key, raw[range].to_owned()));
            }
        }
        Ok(Part::Kept(kept))
    }

    /// An embedded resource: its text, its bytes, or both.
    fn resource(&mut self, at: usize, part: &[u8]) -> Result<Vec<Kept>, StoreError> {
        let inside = member(part, "resource").map_or(&b"{}"[..], |at| &part[at]);
        let media = said(inside, "mimeType");
        let label = said(inside, "uri").unwrap_or_default();
        let mut about = About { handle: format!("resource:{at}"), media, label };
        let mut kept = Vec::new();
        let blob = string(inside, "blob");
        if let Some(text) = string(inside, "text") {
            let place = AsidePlace::Content(at, AsideField::ResourceText);
            kept.extend(self.text(&about, Some(text), place)?);
            about.handle.push_str(":blob");
        }
        if blob.is_some() || kept.is_empty() {
            let place = AsidePlace::Content(at, AsideField::ResourceBlob);
            kept.push(self.binary(&about, blob, place)?);
        }
        Ok(kept)
    }

    /// A part of a kind that we do not look into.
    fn whole(&mut self, at: usize, raw: &str) -> Result<Kept, StoreError> {
        let mut tee = self.begin(&format!("part:{at}"), "application/json", "")?;
        self.write_whole(at, raw, &mut tee)?;
        self.finish(tee, None)
    }

    /// Many small parts, as one list.
    fn together<'b>(&mut self, parts: &[(usize, &str)]) -> Result<Part<'b>, StoreError> {
        let label = format!("{} parts of the result", parts.len());
        let mut tee = self.begin("parts", "application/json", &label)?;
        for (number, (at, raw)) in parts.iter().enumerate() {
            tee.write_all(if number == 0 { b"[" } else { b",\n" })?;
            self.write_whole(*at, raw, &mut tee)?;
        }
        tee.write_all(b"]")?;
        Ok(Part::Kept(vec![self.finish(tee, None)?]))
    }

    /// A part as it came, with whatever was put aside of it.
    fn write_whole(&self, at: usize, raw: &str, out: &mut Tee) -> io::Result<()> {
        match self.aside.filter(|_| !self.fields_aside(at).is_empty()) {
            Some(result) => result.write_part(at, out),
            None => out.write_all(raw.as_bytes()),
        }
    }

    /// A text; nothing where it says what the structure says.
    fn text(
        &mut self,
        about: &About,
        raw: Option<&[u8]>,
        place: AsidePlace,
    ) -> Result<Option<Kept>, StoreError> {
        let media = about.media.as_deref().unwrap_or("text/plain");
        let mut tee = self.begin(&about.handle, media, &about.label)?;
        let mut lone = 0;
        match self.put_aside(place)? {
            Some(mut aside) => drop(io::copy(&mut aside, &mut tee)?),
            None => lone = unescape_json_string(raw.unwrap_or_default(), &mut tee)?,
        }
        if about.media.is_none() && self.structure.is_some_and(|it| it == tee.flat.finish()) {
            return Ok(None);
        }
        let note = (0 < lone).then_some("some characters were broken and are shown as \u{fffd}");
        self.finish(tee, note).map(Some)
    }

    fn binary(
        &mut self,
        about: &About,
        raw: Option<&[u8]>,
        place: AsidePlace,
    ) -> Result<Kept, StoreError> {
        let media = about.media.as_deref().unwrap_or("application/octet-stream");
        let open = || -> io::Result<Box<dyn Read + Send>> {
            if let Some(aside) = self.put_aside(place)? {
                return Ok(aside);
            }
            let mut text = Vec::new();
            unescape_json_string(raw.unwrap_or_default(), &mut text)?;
            Ok(Box::new(io::Cursor::new(text)))
        };
        let mut tee = self.begin(&about.handle, media, &about.label)?;
        let decoded = io::copy(&mut DecoderReader::new(open()?, &BASE64), &mut tee);
        match decoded {
            Ok(_) => self.finish(tee, None),
            // The reader says so of what is no base64; anything else is the disk's fault.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let mut tee = self.begin(&about.handle, media, &about.label)?;
                io::copy(&mut open()?, &mut tee)?;
                self.finish(tee, Some("it is no valid base64, and was kept as the text it is"))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// What is known of a part before it is kept.
#[derive(Default)]
struct About {
    handle: String,
    media: Option<String>,
    label: String,
}

/// A string of an object, as it stands there.
fn string<'a>(inside: &'a [u8], key: &str) -> Option<&'a [u8]> {
    member(inside, key).map(|at| &inside[at]).filter(|it| it.first() == Some(&b'"'))
}

/// A string of an object, as what it says.
fn said(inside: &[u8], key: &str) -> Option<String> {
    serde_json::from_slice(string(inside, key)?).ok()
}

/// Writes what is kept, and remembers what it says but for its layout.
struct Tee {
    writer: Writer,
    flat: Flat,
}

impl Write for Tee {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.writer.write(bytes)?;
        self.flat.add(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// A digest of JSON that is the same however it is laid out.
#[derive(Default)]
struct Flat {
    hasher: blake3::Hasher,
    quoted: bool,
    escaped: bool,
}

impl Flat {
    fn add(&mut self, bytes: &[u8]) {
        let mut begin = 0;
        for (at, byte) in bytes.iter().enumerate() {
            if self.quoted {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.quoted = false,
                    _ => {}
                }
            } else if *byte == b'"' {
                self.quoted = true;
            } else if byte.is_ascii_whitespace() {
                self.hasher.update(&bytes[begin..at]);
                begin = at + 1;
            }
        }
        self.hasher.update(&bytes[begin..]);
    }

    fn finish(&self) -> blake3::Hash {
        self.hasher.finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_value_is_known_again_however_it_is_laid_out() {
        let hash = |text: &str| {
            let mut flat = Flat::default();
            // Byte by byte: what is quoted must not depend on where pieces end.
            text.bytes().for_each(|it| flat.add(&[it]));
            flat.finish()
        };
        assert_eq!(
            hash(r#"{"a": [1, 2],"b":"x y\" z"}"#),
            hash("{\n \"a\":[1,2], \"b\":\"x y\\\" z\"}")
        );
        assert_ne!(hash(r#"{"a":"x y"}"#), hash(r#"{"a":"xy"}"#));
        let mut whole = Flat::default();
        whole.add(br#"{ "a" : 1 }"#);
        assert_eq!(whole.finish(), hash(r#"{"a":1}"#));
    }
}
