//! Results that are too large for their caller: what is large in them is kept, and the caller gets a summary
//! with a link to each piece that was kept. Small parts of such a result go on as they are.
//!
//! Nothing is lost where nothing can be kept: the result then goes on whole, as if there were no limit.

mod keeper;

use std::{
    fmt::Write as _,
    io::Write as _,
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use serde_json::{Value, json, value::RawValue};
use toolcrib_catalogue::{CallError, Json, Keep};
use toolcrib_context::artifacts::{JsonType, Kind, New, Store, StoreError};
use toolcrib_wire::{
    Era,
    json::{member, members},
};

use self::keeper::{Keeper, Kept, Part};
use crate::{built_in::READ_ARTIFACT, dispatch::usable, gateway::Gateway};

/// A result that is too large, and whose it is.
#[derive(Debug, Clone)]
pub(crate) struct Large {
    pub(crate) tool: String,
    pub(crate) group: Arc<str>,
    /// The call, if calls have names.
    pub(crate) call: String,
    /// How large it might be.
    pub(crate) limit: usize,
    pub(crate) era: Era,
}

/// The largest result that goes on whole where it was put aside and cannot be kept.
const MOST_WHOLE: usize = 100_000_000;

/// How often what has expired is looked for.
const SWEEP: Duration = Duration::from_secs(60);

/// How much of what was kept a summary shows.
const SHOWN: usize = 500;

/// Lets go of what was kept long enough. Never returns.
pub(crate) async fn sweep(store: Store) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let store = store.clone();
        let swept = tokio::task::spawn_blocking(move || store.sweep(SystemTime::now())).await;
        if let Ok(gone @ 1..) = swept {
            tracing::info!(gone, "artifacts have expired");
        }
    }
}

impl Gateway {
    /// Keeps what is large in a result, and gives the result that the caller gets instead.
    ///
    /// There is an error where what was put aside can neither be kept nor go on.
    pub(crate) async fn keep(
        self: &Arc<Self>,
        large: Large,
        result: Bytes,
        aside: Option<Json>,
    ) -> Result<Bytes, CallError> {
        let Some(store) = self.settings().store.clone() else { return Ok(result) };
        let kept = self.tasks.spawn_blocking(move || {
            let cause = match keep(&store, &large, &result, aside.as_ref()) {
                Ok(Some(summary)) => return Ok(summary),
                Ok(None) => "it is of no known kind".to_owned(),
                Err(error) => error.to_string(),
            };
            tracing::warn!(
                tool = large.tool,
                cause,
                "a large result goes on whole: it is not kept"
            );
            let Some(aside) = aside else { return Ok(result) };
            let cause = format!("its result is very large and cannot be kept: {cause}");
            let whole =
                aside.inflate(MOST_WHOLE).map_err(|_neither| CallError::Storage { cause })?;
            usable(whole, large.era)
        });
        let closing = |_| CallError::Unavailable { cause: "the gateway is closing".to_owned() };
        kept.await.map_err(closing)?
    }

    /// Keeps something that a tool has made.
    pub(crate) async fn store(&self, group: &str, tool: &str, keep: Keep) -> Result<Value, String> {
        let store = self.settings().store.clone();
        let store = store.ok_or("nothing can be kept here: the workspace cannot be written")?;
        let Keep { content, media_type, label } = keep;
        let new = New {
            owner: group.to_owned(),
            tool: tool.to_owned(),
            label: label.unwrap_or_default(),
            media_type: media_type.clone().unwrap_or_default(),
            ..New::default()
        };
        let put = move || {
            let mut writer = store.begin(new)?;
            writer.write_all(&content)?;
            if media_type.is_none() {
                writer.describe()?;
            }
            writer.finish()
        };
        let stored = self.tasks.spawn_blocking(put).await;
        let stored = stored.map_err(|_ended| "the gateway is closing")?;
        let stored = stored.map_err(|error| error.to_string())?;
        Ok(json!({
            "id": stored.id, "uri": stored.uri(), "size": stored.size_bytes,
            "media_type": stored.media_type, "label": stored.label,
        }))
    }
}

/// What the caller gets of a result; nothing where nothing in it can be kept.
fn keep(
    store: &Store,
    large: &Large,
    result: &Bytes,
    aside: Option<&Json>,
) -> Result<Option<Bytes>, StoreError> {
    let content = member(result, "content").map_or(&b"[]"[..], |at| &result[at]);
    let Ok(content) = serde_json::from_slice::<Vec<&RawValue>>(content) else { return Ok(None) };
    let structure = member(result, "structuredContent").map(|at| &result[at]);
    let (parts, structure) = Keeper::new(store, large, aside).keep(&content, structure)?;
    let is_kept = |it: &Part<'_>| matches!(it, Part::Kept(_));
    // What is large may be of a kind that nobody knows.
    if !parts.iter().chain(&structure).any(is_kept) {
        return Ok(None);
    }
    let put = aside.and_then(Json::aside).map_or(0, |it| it.parts().iter().map(|it| it.size).sum());
    let size = result.len() as u64 + put;
    Ok(Some(written(large, result, size, &parts, structure.as_ref())))
}

/// The result that the caller gets.
fn written(
    large: &Large,
    result: &Bytes,
    size: u64,
    parts: &[Part<'_>],
    structure: Option<&Part<'_>>,
) -> Bytes {
    let summary = Value::from(summary(large, size, parts, structure));
    let mut content = vec![format!(r#"{{"type":"text","text":{summary}}}"#)];
    for part in parts.iter().chain(structure.filter(|it| matches!(it, Part::Kept(_)))) {
        match part {
            Part::Small(raw) => content.push((*raw).to_owned()),
            Part::Kept(kept) => content.extend(kept.iter().map(link)),
            Part::Elsewhere => {}
        }
    }
    let mut text = format!(r#"{{"content":[{}]"#, content.join(","));
    if let Some(Part::Small(raw)) = structure {
        write!(text, r#","structuredContent":{raw}"#).ok();
    }
    for (key, at) in members(result) {
        if matches!(&*key, "content" | "structuredContent") {
            continue;
        }
        let value = String::from_utf8_lossy(&result[at]);
        write!(text, ",{}:{value}", Value::from(&*key)).ok();
    }
    text.push('}');
    text.into()
}

fn link(kept: &Kept) -> String {
    let artifact = &kept.artifact;
    let name = match artifact.label.as_str() {
        "" => format!("result of {}", artifact.tool),
        label => label.to_owned(),
    };
    let link = json!({
        "type": "resource_link", "uri": artifact.uri(), "name": name,
        "mimeType": artifact.media_type, "size": artifact.size_bytes,
    });
    let mut link = link.to_string();
    link.pop();
    for (key, value) in &kept.said {
        write!(link, r#","{key}":{value}"#).ok();
    }
    link + "}"
}

/// What a model has to know to go on: what there is, and how to read it.
fn summary(large: &Large, size: u64, parts: &[Part<'_>], structure: Option<&Part<'_>>) -> String {
    let kept = parts.iter().chain(structure).flat_map(|it| match it {
        Part::Kept(kept) => kept.as_slice(),
        Part::Small(_) | Part::Elsewhere => &[],
    });
    let kept: Vec<&Kept> = kept.collect();
    let size = bytes(size);
    let mut text = format!("The result of `{}` has {size} and was stored.", large.tool);
    // Several parts share what there is room for.
    let room = (large.limit / 2 / kept.len().max(1)).min(4 * SHOWN);
    for Kept { artifact, shape, note, .. } in &kept {
        let label = if artifact.label.is_empty() { "result" } else { &artifact.label };
        let label = label.escape_debug();
        let about = cut(&shape.line(), room / 2);
        write!(text, "\n\nArtifact {} ({label}, {}): {about}", artifact.id, artifact.media_type)
            .ok();
        if !shape.facts.is_empty() {
            write!(text, "\nFacts: {}", cut(&shape.facts.join("; "), room / 4)).ok();
        }
        if !shape.head.is_empty() {
            write!(text, "\nIt begins: {}", cut(&shape.head, (room / 4).min(SHOWN))).ok();
        }
        if let Some(note) = note {
            write!(text, "\nNote: {note}.").ok();
        }
    }
    if let Some(first) = kept.first() {
        let (word, value) = example(&first.shape.kind);
        let call = json!({ "id": first.artifact.id, word: value });
        write!(text, "\n\nRead parts with {READ_ARTIFACT}, such as {call}.").ok();
    }
    text
}

/// What to ask of something of this kind: a model that has one example does the others.
fn example(kind: &Kind) -> (&'static str, String) {
    let plain = |name: &str| {
        !name.starts_with(|c: char| c.is_ascii_digit())
            && name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
    };
    let path = |name: &str| match name {
        name if plain(name) => format!("$.{name}"),
        name => format!("$[{}]", Value::from(name)),
    };
    match kind {
        Kind::Object { keys, .. } => {
            let list = keys.iter().find(|it| it.kind == JsonType::Array);
            let first = list.or(keys.first()).map(|it| path(&it.name));
            let more = if list.is_some() { "[0]" } else { "" };
            ("path", first.unwrap_or_else(|| "$".to_owned()) + more)
        }
        Kind::Array { .. } | Kind::JsonLines { .. } | Kind::Table { .. } => {
            ("rows", "0:5".to_owned())
        }
        Kind::Text { .. } => ("lines", "0:50".to_owned()),
        Kind::Value { .. } => ("head", "2000".to_owned()),
        Kind::Binary => ("bytes", "0:1000".to_owned()),
    }
}

/// A text that is not longer than so many bytes.
fn cut(text: &str, room: usize) -> String {
    if text.len() <= room {
        return text.to_owned();
    }
    text[..text.floor_char_boundary(room)].to_owned() + "…"
}

/// `5.2 MB`.
fn bytes(size: u64) -> String {
    match size {
        0..1_000 => format!("{size} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", size as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", size as f64 / 1e6),
        _ => format!("{:.1} GB", size as f64 / 1e9),
    }
}
