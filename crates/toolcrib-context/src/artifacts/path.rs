//! Values by path.
//!
//! A path to one place gives that value as it is written, in pieces if it is large. Any other gives an array of what it
//! finds. Only what lies below its singular beginning is held in memory; and where the next step asks every child
//! alone (`[*]`, `[2:9]`, `[?@.id == 7]`), only one child at a time.

use std::{
    io::{Read as _, SeekFrom},
    ops::ControlFlow,
};

use super::{
    Content, Piece, PieceError, ReadLimits, Selector,
    format::Format,
    json::{Container, JsonError, Keep, MAX_KEY},
    jsonpath::{
        Eval, Flow, Pick, Place as Where, Query, Segment, Spent, Step, Stop, ask_root, written,
    },
    list::List,
    locate::{Place, locate, scanner},
    piece::{self, Unit},
    slice::Node,
    text::Shown,
    watch::Watch,
};

const ASKED: &str = "a path";

pub(super) fn read(
    content: &mut dyn Content,
    path: &str,
    from: u64,
    asked: &piece::Asked<'_>,
) -> Result<Piece, PieceError> {
    let query = Query::parse(path).map_err(|error| PieceError::Asked(error.to_string()))?;
    let piece::Asked { media_type, limits, watch } = *asked;
    let asked = Asked { path, from, limits, watch };
    let (steps, rest) = query.split();
    let format = Format::of(content, media_type)?;
    if ask_root(rest) {
        let root = locate(content, format, &[], ASKED)?;
        return held(content, &root, &query.segments, &asked);
    }
    let place = locate(content, format, &steps, ASKED)?;
    let all = [Segment { descend: false, selectors: vec![Pick::All] }];
    let rest = if rest.is_empty() && place.documents { &all } else { rest };
    match rest.split_first() {
        None => one(content, &place, &asked),
        Some((first, others)) if first.one_by_one().is_some() => {
            many(content, &place, first, others, &asked)
        }
        Some(_) => held(content, &place, rest, &asked),
    }
}

/// What was asked for.
struct Asked<'a> {
    path: &'a str,
    from: u64,
    limits: &'a ReadLimits,
    watch: &'a Watch,
}

/// The value at a place, from its byte `from` on.
fn one(content: &mut dyn Content, place: &Place, asked: &Asked<'_>) -> Result<Piece, PieceError> {
    let limits = asked.limits;
    let mut scanner = scanner(content, place.at).map_err(|error| error.of(ASKED))?;
    let passed = scanner.value(&mut Keep::nothing()).map_err(|error| error.of(ASKED))?;
    drop(scanner);
    let from = asked.from.min(passed.length);
    content.seek(SeekFrom::Start(place.at + from))?;
    let mut bytes = Vec::new();
    let most = (limits.max_bytes as u64).min(passed.length - from);
    content.take(most).read_to_end(&mut bytes)?;
    let to_end = from + bytes.len() as u64 == passed.length;
    let shown = Shown::of(&bytes, u64::MAX, limits.max_bytes, !to_end);
    let to = from + shown.used as u64;
    let whole = from == 0 && to == passed.length;
    let next = Selector::Path { path: asked.path.to_owned(), from: to };
    let cut = (!whole).then(|| {
        let kind = passed.kind.word();
        let inside = if 0 < passed.children {
            format!(" of {} values", passed.children)
        } else {
            String::new()
        };
        format!(
            "part of {} bytes, {kind}{inside}; `keys` or `rows` with this path show what is in it",
            passed.length
        )
    });
    let (note, more) = (shown.note(), to < passed.length && from < to);
    let media_type = if whole { "application/json" } else { "text/plain" };
    Ok(Piece::text(shown.text, media_type, Unit::Bytes)
        .place(from, to, Some(passed.length))
        .next(more.then_some(next))
        .note(cut)
        .note(note))
}

/// What is found, from the `from`th on, as far as there is room.
struct Page {
    list: List,
    from: u64,
    /// How many were found so far.
    seen: u64,
    full: bool,
}

impl Page {
    fn new(asked: &Asked<'_>) -> Self {
        Self { list: List::array(asked.limits.max_bytes), from: asked.from, seen: 0, full: false }
    }

    /// A value that was found at some places below one.
    fn add(&mut self, value: &[u8], below: &Place, places: &[Where<'_>]) -> Flow {
        if self.from <= self.seen {
            let steps = || -> Vec<Step> {
                below.steps.iter().cloned().chain(places.iter().map(Where::step)).collect()
            };
            let room = self.list.push(&String::from_utf8_lossy(value))
                || self.list.push_or_name("", value, value.len() as u64, &steps());
            if !room {
                self.full = true;
                return Flow::Break(Stop::Enough);
            }
        }
        self.seen += 1;
        Flow::Continue(())
    }

    fn finish(self, asked: &Asked<'_>) -> Piece {
        let (from, to) = (self.from.min(self.seen), self.seen);
        let next = Selector::Path { path: asked.path.to_owned(), from: to };
        let (note, total) = (self.list.note(), (!self.full).then_some(self.seen));
        Piece::text(self.list.finish(), "application/json", Unit::Values)
            .place(from, to, total)
            .next(self.full.then_some(next))
            .note(note)
    }
}

/// What is said where a path was not followed to its end.
fn stopped(stop: Stop, path: &str) -> Result<(), PieceError> {
    match stop {
        Stop::Enough => Ok(()),
        Stop::Halted(halt) => Err(PieceError::Io(halt.into())),
        Stop::TooMuch => Err(PieceError::Asked(format!(
            "`{path}` asks for too much at once; a narrower path will do"
        ))),
    }
}

/// What `segments` find in a value that is held in memory.
fn held(
    content: &mut dyn Content,
    place: &Place,
    segments: &[Segment],
    asked: &Asked<'_>,
) -> Result<Piece, PieceError> {
    let text = hold(content, place, asked.limits).map_err(|error| error.of(ASKED))?;
    let Some(text) = text else { return Err(too_large(place, asked.limits)) };
    let mut page = Page::new(asked);
    let root = Node::new(&text);
    let visit = &mut |places: &[Where<'_>], node: Node<'_>| page.add(node.0, place, places);
    let mut spent = Spent::new(asked.watch.clone());
    let mut eval = Eval::new(root, &mut spent);
    if let Flow::Break(stop) = eval.walk(root, segments, &mut Vec::new(), visit) {
        stopped(stop, asked.path)?;
    }
    Ok(page.finish(asked))
}

/// The text of a value, documents as one array; nothing where it is too large.
fn hold(
    content: &mut dyn Content,
    place: &Place,
    limits: &ReadLimits,
) -> Result<Option<Vec<u8>>, JsonError> {
    let mut keep = Keep::up_to(limits.max_held);
    let mut scanner = scanner(content, place.at)?;
    if place.documents {
        let mut children = scanner.children(Container::Documents)?;
        keep.push(b"[");
        while children.next(&mut scanner, &mut Keep::nothing())? {
            scanner.value(&mut keep)?;
            keep.push(b",");
        }
        keep.push(b"]");
    } else {
        scanner.value(&mut keep)?;
    }
    Ok(keep.is_whole().then_some(keep.bytes))
}

fn too_large(place: &Place, limits: &ReadLimits) -> PieceError {
    let at = written(&place.steps);
    PieceError::TooLarge {
        what: format!("the value at `{at}`"),
        limit: limits.max_held,
        cure: format!(
            "`keys` with `{at}` shows what is in it; ask for a longer path, or use [*] or a filter on an array"
        ),
    }
}

/// What is found in the children of a place, which are looked at one by one.
fn many(
    content: &mut dyn Content,
    place: &Place,
    first: &Segment,
    others: &[Segment],
    asked: &Asked<'_>,
) -> Result<Piece, PieceError> {
    let mut page = Page::new(asked);
    let (Some(container), Some(pick)) = (place.container(), first.one_by_one()) else {
        return Ok(page.finish(asked));
    };
    if matches!(pick, Pick::Slice { .. }) && container == Container::Object {
        return Ok(page.finish(asked));
    }
    let wrong = |error: JsonError| error.of(ASKED);
    let mut scanner = scanner(content, place.at).map_err(wrong)?;
    let mut children = scanner.children(container).map_err(wrong)?;
    let (mut key, mut keep) = (Keep::up_to(MAX_KEY), Keep::up_to(asked.limits.max_held));
    let (mut index, mut spent) = (0_usize, Spent::new(asked.watch.clone()));
    while children.next(&mut scanner, &mut key).map_err(wrong)? {
        let (wanted, last) = chosen(pick, index);
        if last {
            break;
        }
        let step = match container {
            Container::Object => Where::Key(&key.bytes).step(),
            _ => Where::Index(index).step(),
        };
        index += 1;
        if !wanted {
            scanner.value(&mut Keep::nothing()).map_err(wrong)?;
            continue;
        }
        keep.clear();
        scanner.value(&mut keep).map_err(wrong)?;
        let steps = place.steps.iter().cloned().chain([step]).collect();
        let child = Place { steps, ..place.clone() };
        if !keep.is_whole() {
            return Err(too_large(&child, asked.limits));
        }
        spent.earn(keep.length);
        if let Flow::Break(stop) = look(&mut page, &child, &keep.bytes, pick, others, &mut spent) {
            stopped(stop, asked.path)?;
            break;
        }
    }
    Ok(page.finish(asked))
}

/// What is found in one child.
fn look(
    page: &mut Page,
    child: &Place,
    text: &[u8],
    pick: &Pick,
    others: &[Segment],
    spent: &mut Spent,
) -> Flow {
    let node = Node::new(text);
    let mut eval = Eval::new(node, spent);
    let holds = match pick {
        Pick::Filter(test) => eval.holds(test, node),
        _ => ControlFlow::Continue(true),
    };
    match holds {
        ControlFlow::Break(stop) => Flow::Break(stop),
        ControlFlow::Continue(false) => Flow::Continue(()),
        ControlFlow::Continue(true) => {
            let visit =
                &mut |places: &[Where<'_>], found: Node<'_>| page.add(found.0, child, places);
            eval.walk(node, others, &mut Vec::new(), visit)
        }
    }
}

/// Whether a child may be one of those asked for, and whether none behind it can be.
fn chosen(pick: &Pick, index: usize) -> (bool, bool) {
    let Pick::Slice { start, end, step } = pick else { return (true, false) };
    let place = |it: i64| usize::try_from(it).unwrap_or_default();
    let start = place(start.unwrap_or(0));
    let wanted = start <= index && (index - start).is_multiple_of(place(*step).max(1));
    (wanted, end.is_some_and(|end| place(end) <= index))
}
