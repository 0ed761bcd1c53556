//! The tool that reads pieces of what was kept, and the same for clients that read resources.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use toolcrib_context::artifacts::{
    Artifact, ArtifactId, Body, Piece, Range, ReadLimits, Selector, Store, artifact_uri,
    parse_artifact_uri,
};

use super::refusal;
use crate::{access::Caller, gateway::Gateway};

pub(super) const READ: &str = r#"{"name":"read_artifact","title":"Read a stored result","description":"Read a piece of a result that was stored because it is large. Say which piece with one of: head, tail, lines, rows, keys, path, grep, count/sum/min/max/avg. Pieces are bounded; an answer says how to go on.","inputSchema":{"type":"object","properties":{"id":{"type":"string","description":"The id of the artifact, or its toolcrib:// URI"},"head":{"type":["integer","string"],"description":"So many characters from the beginning"},"offset":{"type":["integer","string"],"description":"With head: begin at this byte"},"tail":{"type":["integer","string"],"description":"So many characters from the end"},"lines":{"type":"string","description":"A range such as 0:20 or -5:"},"rows":{"type":"string","description":"Rows of CSV, of JSON lines or of a JSON array (which one: path), such as 0:10"},"keys":{"type":["string","array"],"description":"The keys of the JSON object at this path, such as $.data; or names, to get the values under those"},"path":{"type":"string","description":"JSONPath, such as $.items[0].name or $..id"},"grep":{"type":"string","description":"A regular expression; gives the lines that match"},"ignore_case":{"type":"boolean","description":"With grep"},"context":{"type":["integer","string"],"description":"With grep: lines around each match"},"count":{"type":"string","description":"Count rows: * or a column"},"sum":{"type":["string","array"],"description":"A column"},"min":{"type":["string","array"],"description":"A column"},"max":{"type":["string","array"],"description":"A column"},"avg":{"type":["string","array"],"description":"A column"},"group_by":{"type":"string","description":"With count, sum, min, max, avg: for each value of this column"},"where":{"type":["string","array","object"],"description":"With those: only rows such as status=open"},"top":{"type":["integer","string"],"description":"With group_by: so many groups"},"bytes":{"type":"string","description":"A range of bytes, as base64"},"skip":{"type":["integer","string"],"description":"With lines, as an answer says it"},"from":{"type":["integer","string"],"description":"As an answer says it, to go on"}},"required":["id"],"additionalProperties":false},"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#;

/// How clients that read resources find it.
pub(crate) const TEMPLATE: &str = r#"{"uriTemplate":"toolcrib://artifact/{id}{?head,offset,tail,lines,rows,keys,path,grep,ignore_case,context,count,sum,min,max,avg,group_by,where,top,bytes,skip,from}","name":"artifact","title":"A stored result","description":"A result that was stored because it is large, or a piece of it"}"#;

/// What a resource may be that is read without saying which piece.
const WHOLE: usize = 256 * 1024;

/// The largest picture that is shown: in pieces it is of no use.
const MOST_SHOWN: usize = 4 * 1024 * 1024;

/// What is said of something that is not there, or not for this caller.
const UNKNOWN: &str = "There is no such artifact, or it has expired.";

/// Why a resource is not read.
pub(crate) enum Refusal {
    /// It is not there.
    Unknown,
    /// It cannot be asked for like that.
    Asked(String),
}

/// Reads a piece.
pub(super) async fn read(gateway: &Arc<Gateway>, caller: &Caller, arguments: &[u8]) -> Bytes {
    match piece(gateway, caller, arguments).await {
        Ok((artifact, piece)) => shown(&artifact, &piece),
        Err(cause) => refusal(&cause),
    }
}

async fn piece(
    gateway: &Arc<Gateway>,
    caller: &Caller,
    arguments: &[u8],
) -> Result<(Artifact, Piece), String> {
    let mut arguments: Map<String, Value> = super::read(arguments)?;
    let id = arguments.remove("id").unwrap_or_default();
    let id = id.as_str().ok_or("`id` must be the id of an artifact")?;
    let (id, said) = match parse_artifact_uri(id) {
        Some(parsed) => parsed.map_err(|error| error.to_string())?,
        None => (
            id.parse().map_err(|error: toolcrib_context::artifacts::BadId| error.to_string())?,
            None,
        ),
    };
    let selector = match said {
        said if arguments.is_empty() => said,
        _ => Some(Selector::try_from(arguments).map_err(|error| error.to_string())?),
    };
    look(gateway, caller, id, selector, ReadLimits::default().max_bytes).await
}

async fn look(
    gateway: &Arc<Gateway>,
    caller: &Caller,
    id: ArtifactId,
    selector: Option<Selector>,
    most: usize,
) -> Result<(Artifact, Piece), String> {
    let store: Store = gateway.settings().store.clone().ok_or(UNKNOWN)?;
    let owner = (!caller.is_operator()).then(|| caller.group.to_string());
    let cancel = Arc::new(AtomicBool::new(false));
    let _leaving = Leaving(Arc::clone(&cancel));
    let read = move || {
        let artifact = store.find(owner.as_deref(), &id).ok_or(UNKNOWN)?;
        let (selector, most) = selector.map_or_else(|| whole(&artifact, most), |it| (it, most));
        let limits = ReadLimits { max_bytes: most, cancel: Some(cancel), ..ReadLimits::default() };
        let piece = store.read(&artifact, &selector, &limits);
        Ok((artifact, piece.map_err(|error| error.to_string())?))
    };
    let read = gateway.tasks.spawn_blocking(read).await;
    read.unwrap_or_else(|_ended| Err("it could not be read to the end".to_owned()))
}

/// Says so when nobody waits for a piece any more.
struct Leaving(Arc<AtomicBool>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What to read where nobody says what: as much of the beginning as may be, but of a picture or a sound all.
fn whole(artifact: &Artifact, most: usize) -> (Selector, usize) {
    if ["image/", "audio/"].iter().any(|it| artifact.media_type.starts_with(it)) {
        return (Selector::Bytes { range: Range::default() }, MOST_SHOWN);
    }
    let chars = if most == WHOLE { WHOLE as u64 } else { 2000 };
    (Selector::Head { chars, offset: 0 }, most)
}

/// A piece as the result of a call.
fn shown(artifact: &Artifact, piece: &Piece) -> Bytes {
    let whole = piece.from == 0 && piece.next.is_none();
    let family = artifact.media_type.split('/').next().unwrap_or_default();
    let mut content = match &piece.body {
        Body::Text(text) => vec![json!({ "type": "text", "text": text })],
        // A picture is of use only as a whole.
        Body::Bytes(bytes) if whole && matches!(family, "image" | "audio") => {
            vec![
                json!({ "type": family, "data": BASE64.encode(bytes), "mimeType": artifact.media_type }),
            ]
        }
        Body::Bytes(bytes) => {
            let resource = json!({
                "uri": artifact.uri(), "mimeType": piece.media_type, "blob": BASE64.encode(bytes),
            });
            vec![json!({ "type": "resource", "resource": resource })]
        }
    };
    let notes = notes(&artifact.id, piece);
    if !notes.is_empty() {
        content.push(json!({ "type": "text", "text": notes }));
    }
    json!({ "content": content, "isError": false }).to_string().into()
}

/// Where a piece stands, and how to go on.
fn notes(id: &ArtifactId, piece: &Piece) -> String {
    let mut notes = piece.notes.clone();
    if let Some(next) = &piece.next {
        let unit = json!(piece.unit);
        let unit = unit.as_str().unwrap_or_default();
        let total = piece.total.map(|it| format!(" of {it}")).unwrap_or_default();
        let mut call = Map::from_iter([("id".to_owned(), json!(id))]);
        call.extend(Map::from(next.clone()));
        let call = Value::from(call);
        let (from, to) = (piece.from, piece.to);
        notes.push(format!(
            "These are {unit} {from} to {to}{total}. Go on with read_artifact {call}"
        ));
    }
    notes.join("\n")
}

/// What was kept, or a piece of it, as a resource; nothing where the URI is that of something else.
pub(crate) async fn resource(
    gateway: &Arc<Gateway>,
    caller: &Caller,
    uri: &str,
) -> Option<Result<Bytes, Refusal>> {
    let parsed = parse_artifact_uri(uri)?;
    if !gateway.snapshot().may_read_artifacts(caller) {
        return Some(Err(Refusal::Unknown));
    }
    let (id, selector) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return Some(Err(Refusal::Asked(error.to_string()))),
    };
    let most = if selector.is_none() { WHOLE } else { ReadLimits::default().max_bytes };
    let read = look(gateway, caller, id, selector, most).await;
    let refused = |cause: String| match cause.as_str() {
        UNKNOWN => Refusal::Unknown,
        _ => Refusal::Asked(cause),
    };
    Some(read.map_err(refused).map(|(artifact, piece)| {
        let mut content = json!({ "uri": uri, "mimeType": piece.media_type });
        match &piece.body {
            Body::Text(text) => content["text"] = json!(text),
            Body::Bytes(bytes) => content["blob"] = json!(BASE64.encode(bytes)),
        }
        if let Some(next) = &piece.next {
            let next = artifact_uri(&artifact.id, Some(next));
            content["_meta"] = json!({
                "toolcrib/next": next, "toolcrib/total": piece.total, "toolcrib/size": artifact.size_bytes,
            });
        }
        json!({ "contents": [content] }).to_string().into()
    }))
}
