//! What is kept: large results, which are downloaded and never shown by the browser itself, and sessions, of which
//! prompts can be made.

use std::{fs::File, io::Read, sync::Arc};

use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, X_FRAME_OPTIONS},
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolcrib_bus::rfc3339;
use toolcrib_context::{
    BuildOptions, ContextManager, Phase, SessionLimits,
    artifacts::{Artifact, ArtifactId, Store},
    read_session,
};

use super::{Asked, Fault, ok, room::Kind};
use crate::{
    gateway::Gateway,
    http::{Body, typed},
};

/// How many artifacts are listed.
const MOST_LISTED: usize = 500;

/// How much is read at once.
const CHUNK: usize = 256 * 1024;

/// The largest budget that makes sense.
const MOST_BUDGET: u64 = 10_000_000;

fn store(gateway: &Gateway, asked: &Asked) -> Result<Store, Fault> {
    let none = "nothing is stored here: set `results: { inline_up_to: 16KB }` in network.yaml";
    let store = gateway.settings().store.clone().ok_or_else(|| Fault::unavailable(none))?;
    if gateway.snapshot().may_read_artifacts(&asked.caller) {
        Ok(store)
    } else {
        Err(Fault::new(StatusCode::FORBIDDEN, "this group may not read what is stored"))
    }
}

/// What is stored for the caller's group, newest first.
pub(super) async fn list(gateway: &Arc<Gateway>, asked: &Asked) -> Result<Response<Body>, Fault> {
    let (store, owner) = (store(gateway, asked)?, Arc::clone(&asked.caller.group));
    let listed = gateway.tasks.spawn_blocking(move || {
        let mut all = store.list(Some(&owner));
        let total = all.len();
        all.truncate(MOST_LISTED);
        (total, all.iter().map(row).collect::<Vec<_>>())
    });
    let (total, rows) =
        listed.await.map_err(|_ended| Fault::unavailable("it could not be listed"))?;
    Ok(ok(&json!({ "artifacts": rows, "total": total })))
}

fn row(it: &Artifact) -> Value {
    json!({
        "id": it.id, "uri": it.uri(), "tool": it.tool, "call": it.call, "label": it.label,
        "media_type": it.media_type, "bytes": it.size_bytes,
        "created": rfc3339(it.created), "expires": rfc3339(it.expires),
    })
}

/// An artifact to be saved. Whatever it is, no browser takes it for a page of ours.
pub(super) async fn content(
    gateway: &Arc<Gateway>,
    asked: &Asked,
) -> Result<Response<Body>, Fault> {
    let unknown = || Fault::unknown("there is no such artifact, or it has expired");
    let id: ArtifactId = asked.need("id")?.parse().map_err(|_not_one| unknown())?;
    let (store, owner) = (store(gateway, asked)?, Arc::clone(&asked.caller.group));
    let found = gateway.tasks.spawn_blocking(move || {
        let artifact = store.find(Some(&owner), &id)?;
        Some((store.content(&artifact).ok()?, artifact))
    });
    let found = found.await.map_err(|_ended| unknown())?;
    let (file, artifact) = found.ok_or_else(unknown)?;
    let place = gateway.console.room.enter(Kind::Watching, &asked.caller).await?;
    let (sender, receiver) = mpsc::channel(2);
    gateway.tasks.spawn(async move {
        let mut file = file;
        while let Ok(Some((next, chunk))) = tokio::task::spawn_blocking(move || read(file)).await {
            if sender.send(chunk).await.is_err() {
                break;
            }
            file = next;
        }
        drop(place);
    });
    let mut response = typed(StatusCode::OK, "application/octet-stream", Body::Chunks(receiver));
    let headers = response.headers_mut();
    let name = format!("attachment; filename=\"{}.{}\"", artifact.id, ending(&artifact.media_type));
    if let Ok(name) = HeaderValue::try_from(name) {
        headers.insert(CONTENT_DISPOSITION, name);
    }
    let sandbox = HeaderValue::from_static("sandbox; default-src 'none'");
    headers.insert(CONTENT_SECURITY_POLICY, sandbox);
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    Ok(response)
}

fn read(mut file: File) -> Option<(File, Bytes)> {
    let mut chunk = Vec::with_capacity(CHUNK);
    let read = (&mut file).take(CHUNK as u64).read_to_end(&mut chunk).ok()?;
    (0 < read).then(|| (file, chunk.into()))
}

/// How a file of this kind is called, for those that programs know; never something that is run.
fn ending(media_type: &str) -> &'static str {
    match media_type.split(';').next().unwrap_or_default().trim() {
        "application/json" => "json",
        "text/csv" => "csv",
        "text/plain" | "text/markdown" => "txt",
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "audio/wav" => "wav",
        "audio/mpeg" => "mp3",
        _ => "bin",
    }
}

/// The sessions that were recorded.
pub(super) async fn sessions(gateway: &Arc<Gateway>) -> Result<Response<Body>, Fault> {
    let this = Arc::clone(gateway);
    let listed = gateway
        .tasks
        .spawn_blocking(move || Ok(json!({ "sessions": this.console.operator()?.sessions() })));
    let told: Result<Value, Fault> =
        listed.await.map_err(|_ended| Fault::unavailable("it could not be listed"))?;
    told.map(|it| ok(&it))
}

/// What a prompt is to be made of.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pack {
    /// The lines themselves.
    #[serde(default)]
    text: Option<String>,
    /// Or a session that was recorded, for an operator.
    #[serde(default)]
    session: Option<String>,
    #[serde(default)]
    phase: Option<String>,
    #[serde(default)]
    query: String,
    #[serde(default)]
    budget: Option<u64>,
}

/// Makes a prompt of a session, and says of every item why it is in or out.
pub(super) async fn pack(gateway: &Arc<Gateway>, asked: Asked) -> Result<Response<Body>, Fault> {
    let wanted: Pack = asked.body()?;
    let place = gateway.console.room.enter(Kind::Packing, &asked.caller).await?;
    let this = Arc::clone(gateway);
    let packing = gateway.tasks.spawn_blocking(move || {
        let _place = place;
        packed(&this, &asked, wanted)
    });
    packing.await.map_err(|_ended| Fault::unavailable("it could not be packed"))?
}

fn packed(gateway: &Gateway, asked: &Asked, wanted: Pack) -> Result<Response<Body>, Fault> {
    let phase = match wanted.phase.as_deref() {
        Some("route") => Phase::Route,
        Some("call") => Phase::Call,
        Some("interpret") => Phase::Interpret,
        None | Some("answer") => Phase::Answer,
        Some(_) => return Err(Fault::wrong("`phase` is route, call, interpret or answer")),
    };
    if wanted.budget.is_some_and(|it| !(1..=MOST_BUDGET).contains(&it)) {
        return Err(Fault::wrong(format!("`budget` must be between 1 and {MOST_BUDGET}")));
    }
    let lines = match (wanted.text, wanted.session) {
        (Some(text), None) => text.into_bytes(),
        (None, Some(_)) if !asked.operates => {
            let message = "recorded sessions are of all groups: they are for operators";
            return Err(Fault::new(StatusCode::FORBIDDEN, message));
        }
        (None, Some(name)) => {
            let read = gateway.console.operator()?.session(&name);
            read.map_err(|_gone| Fault::unknown("there is no such session"))?
        }
        _ => return Err(Fault::wrong("say either `text` or `session`")),
    };
    let items = read_session(lines.as_slice(), &SessionLimits::default());
    let items = items.map_err(|error| Fault::wrong(format!("the session: {error}")))?;
    let mut manager = ContextManager::new();
    for item in items {
        manager.ingest(item).map_err(|error| Fault::wrong(format!("the session: {error}")))?;
    }
    let options = BuildOptions { budget: wanted.budget, ..BuildOptions::default() };
    let pack = manager.build_with(phase, &wanted.query, &options);
    let pack = pack.map_err(|error| Fault::wrong(error.to_string()))?;
    Ok(ok(&json!(pack)))
}
