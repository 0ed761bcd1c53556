//! One operation of a document: whether it is a tool, and which.

use std::{path::PathBuf, time::Duration};

use serde_json::{Map, Value};
use toolcrib_catalogue::{Problem, nearest};

use super::{
    EventTool, Reply,
    address::Address,
    arguments::{answer, arguments},
    messages::{Layers, messages},
    parameters::parameters,
    references::{Documents, Place, shorten},
};

/// What the extension is called.
const EXTENSION: &str = "x-agent-tool";

/// What may stand in it.
const KNOWN: [&str; 4] = ["enabled", "name", "description", "wait"];

/// What the names of servers' tools begin with.
const SERVERS: &str = "mcp__";

/// The longest name of a tool; the catalogue cuts what is too long for clients.
const LONGEST: usize = 128;

/// The longest wait for a reply.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// Takes what is wrong, under the name of one operation.
pub(super) struct Teller<'a> {
    /// `events/a.yaml: operations: delegateTask`.
    pub(super) subject: String,
    pub(super) problems: &'a mut Vec<Problem>,
}

impl Teller<'_> {
    fn tell(&mut self, place: &str, message: impl Into<String>) {
        self.push(place, message.into(), None);
    }

    fn push(&mut self, place: &str, message: String, hint: Option<String>) {
        let subject = match place {
            "" => self.subject.clone(),
            _ => format!("{}: {place}", self.subject),
        };
        self.problems.push(Problem { hint, ..Problem::new(subject, message) });
    }
}

/// The tool that an operation is. None where it is not to be one, or cannot be: then that is told.
pub(super) fn tool(
    documents: &Documents,
    id: &str,
    place: Place<'_>,
    room: &mut usize,
    teller: &mut Teller<'_>,
) -> Option<EventTool> {
    let place = match documents.follow(place) {
        Ok(place) if place.mapping().is_some() => place,
        Ok(_) => {
            teller.tell("", "an operation must be a mapping");
            return None;
        }
        Err(fault) => {
            teller.tell("", fault);
            return None;
        }
    };
    // Traits of operations that are no tools are nobody's concern.
    let mut unheard = Vec::new();
    let layers = Layers::of(documents, place, &mut |at, what| unheard.push((at.to_owned(), what)));
    let wishes = wishes(&layers, teller)?;
    for (at, what) in unheard {
        teller.tell(&at, what);
    }
    let made = make(documents, id, &layers, &wishes, room, teller);
    made.map_err(|(at, fault)| teller.tell(&at, format!("{fault}; it is no tool"))).ok()
}

/// What the extension says, with that of the traits; none where the operation is not to be a tool.
fn wishes(layers: &Layers<'_>, teller: &mut Teller<'_>) -> Option<Map<String, Value>> {
    let said = layers.all(EXTENSION);
    let mut all = Map::new();
    for place in &said {
        let Some(map) = place.mapping() else {
            teller.push(
                EXTENSION,
                "it must be a mapping".to_owned(),
                Some(format!("write `{EXTENSION}: {{ enabled: true }}`")),
            );
            return None;
        };
        for (key, value) in map {
            all.entry(key).or_insert_with(|| value.clone());
        }
    }
    match all.get("enabled") {
        Some(Value::Bool(true)) => {}
        None | Some(Value::Bool(false)) => return None,
        Some(_) => {
            teller.tell(&format!("{EXTENSION}: enabled"), "it must be true or false");
            return None;
        }
    }
    for key in all.keys().filter(|it| !KNOWN.contains(&it.as_str()) && !it.starts_with("x-")) {
        let hint = match nearest(key, KNOWN) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "it is ignored".to_owned(),
        };
        teller.push(EXTENSION, format!("unknown key `{}`", shorten(key)), Some(hint));
    }
    Some(all)
}

/// Where something is wrong, and what.
type Fault = (String, String);

fn make(
    documents: &Documents,
    id: &str,
    layers: &Layers<'_>,
    wishes: &Map<String, Value>,
    room: &mut usize,
    teller: &mut Teller<'_>,
) -> Result<EventTool, Fault> {
    let at = |place: &str| {
        let place = place.to_owned();
        move |fault: String| (place, fault)
    };
    let channel = layers.get("channel").filter(|it| !it.value.is_null());
    let channel = channel.ok_or_else(|| at("channel")("it is required".to_owned()))?;
    let (channel, written) = self::channel(documents, channel).map_err(at("channel"))?;
    let address = Address::read(&written)
        .map_err(|fault| at("channel: address")(format!("`{}`: {fault}", shorten(&written))))?;
    let name = name(id, wishes, &written).map_err(at(EXTENSION))?;
    let mut tell = |place: &str, what: String| teller.tell(place, what);
    let list = layers.get("messages");
    let sent = messages(documents, list, Some(channel), &mut tell).map_err(at("messages"))?;
    let parameters = parameters(documents, channel, &address, &mut tell);
    let arguments = arguments(documents, &sent, parameters, room, &mut tell);
    let reply = layers.get("reply").filter(|it| !it.value.is_null());
    let wait = wait(wishes, reply.is_some(), teller);
    let reply = reply.and_then(|it| self::reply(documents, it, wait, teller));
    Ok(EventTool {
        description: description(&name, wishes, layers, teller),
        name,
        input_schema: arguments.schema.clone(),
        address: written,
        operation: id.to_owned(),
        file: PathBuf::from(documents.shown(0)),
        reply,
        template: address,
        arguments,
    })
}

/// The channel that is meant, and its address.
fn channel<'a>(documents: &'a Documents, place: Place<'a>) -> Result<(Place<'a>, String), String> {
    // OpenAgents takes the bare text of a reference, too.
    let reference = place.value.as_str().or(place.reference());
    let channel = match place.value.as_str() {
        Some(reference) => documents.follow(documents.resolve(place.file, reference)?)?,
        None => documents.follow(place)?,
    };
    channel.mapping().ok_or("it must lead to a mapping")?;
    match channel.get("address").map(|it| it.value) {
        Some(Value::String(address)) => Ok((channel, address.clone())),
        // Without an address, a channel is known by its key.
        None | Some(Value::Null) => {
            let key = reference.and_then(key).ok_or("it leads to no channel")?;
            Ok((channel, key))
        }
        Some(_) => Err("its `address` must be text".to_owned()),
    }
}

/// The key of what a reference names; in the document itself, channels do not stand at the top.
fn key(reference: &str) -> Option<String> {
    let (file, pointer) = reference.split_once('#')?;
    let pointer = super::files::unescape(pointer)?;
    let mut parts: Vec<&str> = pointer.split('/').skip(1).collect();
    let key = parts.pop()?.replace("~1", "/").replace("~0", "~");
    (!file.is_empty() || !parts.is_empty()).then_some(key)
}

/// The tool's name: given, or the operation's, or the address.
fn name(id: &str, wishes: &Map<String, Value>, address: &str) -> Result<String, String> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let fits = |it: &str| (1..=LONGEST).contains(&it.len()) && !it.starts_with(SERVERS);
    match wishes.get("name") {
        None | Some(Value::Null) => {}
        Some(Value::String(it)) if it.is_empty() => {}
        Some(Value::String(it)) if it.starts_with(SERVERS) => {
            return Err(format!("names that begin with `{SERVERS}` are those of servers"));
        }
        Some(Value::String(it)) if fits(it) && it.chars().all(|c| legal(c) || c == '/') => {
            return Ok(it.clone());
        }
        Some(Value::String(it)) => {
            return Err(format!(
                "the tool name `{}` cannot be used: it may have 1 to {LONGEST} letters, digits and the \
                 characters _ . - /",
                shorten(it)
            ));
        }
        Some(_) => return Err("`name` must be text".to_owned()),
    }
    if fits(id) && id.chars().all(legal) {
        return Ok(id.to_owned());
    }
    let name: String =
        address.chars().take(LONGEST).map(|c| if legal(c) { c } else { '_' }).collect();
    if fits(&name) {
        Ok(name)
    } else {
        Err("neither its id nor its address can be a name".to_owned())
    }
}

fn description(
    name: &str,
    wishes: &Map<String, Value>,
    layers: &Layers<'_>,
    teller: &mut Teller<'_>,
) -> String {
    let given = wishes.get("description");
    let summary = layers.get("summary").map(|it| it.value);
    for (place, value) in [("x-agent-tool: description", given), ("summary", summary)] {
        match value {
            Some(Value::String(it)) if !it.is_empty() => return it.clone(),
            None | Some(Value::String(_) | Value::Null) => {}
            Some(_) => teller.tell(place, "it must be text"),
        }
    }
    format!("Event tool: {name}")
}

/// How long a caller waits for the reply.
fn wait(wishes: &Map<String, Value>, reply: bool, teller: &mut Teller<'_>) -> Option<Duration> {
    let written = wishes.get("wait").filter(|it| !it.is_null())?;
    let place = format!("{EXTENSION}: wait");
    if !reply {
        teller.push(
            &place,
            "there is nothing to wait for".to_owned(),
            Some("an operation that is answered has a `reply`".to_owned()),
        );
        return None;
    }
    let wait = duration(written).filter(|it| !it.is_zero() && *it <= LONGEST_WAIT);
    if wait.is_none() {
        let hint = "write `500ms`, `10s` or `2m`, not more than 10 minutes".to_owned();
        teller.push(&place, "it is no time to wait".to_owned(), Some(hint));
    }
    wait
}

fn duration(written: &Value) -> Option<Duration> {
    let (number, unit) = match written {
        Value::Number(it) => (it.to_string(), "s"),
        Value::String(it) => {
            let it = it.trim();
            let end = it.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(it.len());
            (it[..end].to_owned(), it[end..].trim())
        }
        _ => return None,
    };
    let scale = match unit {
        "ms" => 0.001,
        "s" | "" => 1.0,
        "m" => 60.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * scale).ok()
}

fn reply(
    documents: &Documents,
    place: Place<'_>,
    wait: Option<Duration>,
    teller: &mut Teller<'_>,
) -> Option<Reply> {
    match read_reply(documents, place, wait, teller) {
        Ok(reply) => Some(reply),
        Err(fault) => {
            teller.tell("reply", format!("{fault}; nobody waits for it"));
            None
        }
    }
}

fn read_reply(
    documents: &Documents,
    place: Place<'_>,
    wait: Option<Duration>,
    teller: &mut Teller<'_>,
) -> Result<Reply, String> {
    let place = documents.follow(place)?;
    place.mapping().ok_or("it must be a mapping")?;
    let given = |key: &str| place.get(key).filter(|it| !it.value.is_null());
    let (mut channel, mut template) = (None, None);
    if let Some(at) = given("channel") {
        let (found, address) = match self::channel(documents, at) {
            // The address may be known only when the request is made.
            Ok((found, _)) if given("address").is_some() && no_address(found) => (found, None),
            Ok((found, address)) => (found, Some(address)),
            Err(fault) => return Err(format!("channel: {fault}")),
        };
        channel = Some(found);
        template = address.map(|it| Address::read(&it)).transpose()?;
    }
    if let Some(at) = given("address") {
        let at = documents.follow(at)?;
        at.get("location")
            .and_then(|it| it.value.as_str())
            .ok_or("address: it has no `location`")?;
    }
    let mut tell = |at: &str, what: String| teller.tell(&format!("reply: {at}"), what);
    let list = messages(documents, given("messages"), channel, &mut tell)?;
    let schema = answer(documents, &list).unwrap_or_else(|fault| {
        tell(&fault.place, format!("{}; what comes back is not described", fault.cause));
        None
    });
    let address = template.as_ref().map(|it| it.written().to_owned());
    Ok(Reply { address, schema, wait, template })
}

fn no_address(channel: Place<'_>) -> bool {
    channel.get("address").is_none_or(|it| it.value.is_null())
}
