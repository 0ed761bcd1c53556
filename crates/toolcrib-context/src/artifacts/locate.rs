//! The way along a singular path, on the file: what lies beside it is gone over and forgotten.

use std::io::SeekFrom;

use super::{
    Content, PieceError,
    format::Format,
    json::{Container, JsonError, JsonType, Keep, MAX_KEY, Scanner, unquoted},
    jsonpath::{Query, Step, written},
    slice::key_is,
};

/// How many keys are named to somebody who asked for another.
const HINTS: usize = 20;

/// A place in a document.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// The byte where the value begins.
    pub(super) at: u64,
    /// What it is; an array also where it is all documents of JSON lines.
    pub(super) kind: JsonType,
    /// Documents one after the other, not a value.
    pub(super) documents: bool,
    /// The way to it, counted from the beginning everywhere.
    pub(super) steps: Vec<Step>,
}

impl Place {
    /// What has to be gone into to reach the children.
    pub(super) fn container(&self) -> Option<Container> {
        match self.kind {
            _ if self.documents => Some(Container::Documents),
            JsonType::Object => Some(Container::Object),
            JsonType::Array => Some(Container::Array),
            _ => None,
        }
    }
}

/// A path that leads to one place.
pub(super) fn singular(path: &str) -> Result<Vec<Step>, PieceError> {
    let query = Query::parse(path).map_err(|error| PieceError::Asked(error.to_string()))?;
    let (steps, rest) = query.split();
    if rest.is_empty() {
        return Ok(steps);
    }
    Err(PieceError::Asked(format!("`{path}` may lead to several places; this needs one place")))
}

/// A scanner from a byte on.
pub(super) fn scanner(content: &mut dyn Content, at: u64) -> Result<Scanner<'_>, JsonError> {
    content.seek(SeekFrom::Start(at))?;
    let mut scanner = Scanner::new(content, at);
    scanner.skip_mark()?;
    Ok(scanner)
}

/// Goes there.
pub(super) fn locate(
    content: &mut dyn Content,
    format: Format,
    steps: &[Step],
    asked: &'static str,
) -> Result<Place, PieceError> {
    if !matches!(format, Format::Json | Format::JsonLines) {
        return Err(PieceError::Kind { asked, found: format.word().to_owned() });
    }
    let mut place = root(content, format).map_err(|error| error.of(asked))?;
    for step in steps {
        let looked = child(content, &place, step).map_err(|error| error.of(asked))?;
        place = looked.map_err(|found| {
            let path = written(&[place.steps.as_slice(), std::slice::from_ref(step)].concat());
            PieceError::Nothing(format!("`{path}`: {found}"))
        })?;
    }
    Ok(place)
}

fn root(content: &mut dyn Content, format: Format) -> Result<Place, JsonError> {
    if format == Format::JsonLines {
        return Ok(Place { at: 0, kind: JsonType::Array, documents: true, steps: Vec::new() });
    }
    let mut scanner = scanner(content, 0)?;
    let (at, kind) = here(&mut scanner)?;
    Ok(Place { at, kind, documents: false, steps: Vec::new() })
}

/// The value that comes next.
fn here(scanner: &mut Scanner<'_>) -> Result<(u64, JsonType), JsonError> {
    let first = scanner.peek(&mut Keep::nothing())?;
    match first.and_then(JsonType::of) {
        Some(kind) => Ok((scanner.position(), kind)),
        None => scanner.syntax("expected a value"),
    }
}

/// One step on; or what there is instead.
fn child(
    content: &mut dyn Content,
    place: &Place,
    step: &Step,
) -> Result<Result<Place, String>, JsonError> {
    let path = written(&place.steps);
    let Some(container) = place.container() else {
        return Ok(Err(format!("at `{path}` is {}", place.kind.a_word())));
    };
    let step = match (step, container) {
        (Step::Name(_), Container::Object) => step.clone(),
        (Step::Index(index), Container::Array | Container::Documents) if 0 <= *index => {
            step.clone()
        }
        (Step::Index(index), Container::Array | Container::Documents) => {
            let count = count(content, place, container)?;
            match i64::try_from(count).ok().and_then(|it| it.checked_add(*index)) {
                Some(index) if 0 <= index => Step::Index(index),
                _ => return Ok(Err(format!("the array at `{path}` has {count} elements"))),
            }
        }
        (Step::Name(_), _) => {
            return Ok(Err(format!("at `{path}` is an array; its elements have numbers")));
        }
        (Step::Index(_), Container::Object) => {
            return Ok(Err(format!("at `{path}` is an object; its members have names")));
        }
    };
    let mut scanner = scanner(content, place.at)?;
    let mut children = scanner.children(container)?;
    let (mut key, mut index, mut names) = (Keep::up_to(MAX_KEY), 0_i64, Vec::new());
    while children.next(&mut scanner, &mut key)? {
        let found = match &step {
            Step::Name(name) => key.is_whole() && key_is(&key.bytes, name),
            Step::Index(wanted) => *wanted == index,
        };
        if found {
            let (at, kind) = here(&mut scanner)?;
            let steps = place.steps.iter().cloned().chain([step]).collect();
            return Ok(Ok(Place { at, kind, documents: false, steps }));
        }
        if container == Container::Object && names.len() <= HINTS {
            names.push(unquoted(&key.bytes).chars().take(60).collect::<String>());
        }
        scanner.value(&mut Keep::nothing())?;
        index += 1;
    }
    Ok(Err(match container {
        Container::Object => {
            let more = if HINTS < names.len() { ", …" } else { "" };
            names.truncate(HINTS);
            format!("the object at `{path}` has the keys {}{more}", names.join(", "))
        }
        _ => format!("the array at `{path}` has {index} elements"),
    }))
}

fn count(content: &mut dyn Content, place: &Place, container: Container) -> Result<u64, JsonError> {
    let mut scanner = scanner(content, place.at)?;
    let mut children = scanner.children(container)?;
    let mut count = 0;
    while children.next(&mut scanner, &mut Keep::nothing())? {
        scanner.value(&mut Keep::nothing())?;
        count += 1;
    }
    Ok(count)
}
