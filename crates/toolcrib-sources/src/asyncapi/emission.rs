//! From the arguments of a call to an event.
//!
//! What was written goes on as it was written: the data of an event is cut out of the arguments, and only
//! read to be held against its schema.

use std::{borrow::Cow, ops::Range};

use serde_json::Value;
use toolcrib_catalogue::{Json, Validator};
use toolcrib_wire::json::members;

use super::{
    Emission,
    address::{Address, name_fault, segment_fault},
    arguments::{Arguments, Check},
    parameters::{From, Parameter},
    text,
};

/// How deep a value may be nested for its faults to be told one by one, where the schema can go on for ever:
/// looking for them may double the work with every step down.
const TELLABLE: usize = 12;

/// One argument: its name, and where its value stands.
type Argument<'a> = (Cow<'a, str>, Range<usize>);

/// The event that a call with these arguments stands for, or all that is wrong with them.
pub(super) fn emission(
    address: &Address,
    expected: &Arguments,
    arguments: &Json,
) -> Result<Emission, String> {
    let none = Json::empty_object();
    let arguments = if arguments.is_null() { &none } else { arguments };
    if !arguments.is_object() {
        return Err("the arguments must be an object".to_owned());
    }
    let given = Given { text: arguments.as_bytes(), all: members(arguments.as_bytes()) };
    let mut faults = Vec::new();
    let headers = expected.headers.as_ref().and_then(|name| given.get(name));
    let data = data(expected, &given, arguments, &mut faults);
    let data_value = data.as_ref().map(|it| text::scanned(it.as_bytes()));
    let headers_value = headers.map(text::scanned);
    if let Some(data) = &data_value {
        check(expected, data, headers_value.as_ref(), &mut faults);
    }
    let values: Vec<Option<String>> = expected
        .parameters
        .iter()
        .map(|it| {
            let found = match &it.from {
                From::Argument => given.get(&it.name).map(text::scanned),
                From::Payload(at) => data_value.as_ref().and_then(|it| it.pointer(at)).cloned(),
                From::Headers(at) => headers_value.as_ref().and_then(|it| it.pointer(at)).cloned(),
            };
            fill(it, found, &mut faults)
        })
        .collect();
    let name = address.fill(|name| {
        let at = expected.parameters.iter().position(|it| it.name == name);
        at.and_then(|at| values[at].as_deref()).unwrap_or_default()
    });
    if faults.is_empty()
        && let Some(fault) = name_fault(&name)
    {
        faults.push(fault);
    }
    match data {
        Some(data) if faults.is_empty() => {
            let headers = headers.map(|it| Json::from_scanned(it.to_vec().into()));
            Ok(Emission { name, data, headers })
        }
        _ => Err(faults.join("; ")),
    }
}

/// What a caller gave.
struct Given<'a> {
    text: &'a [u8],
    all: Vec<Argument<'a>>,
}

impl<'a> Given<'a> {
    fn get(&self, name: &str) -> Option<&'a [u8]> {
        let found = self.all.iter().find(|(key, _)| key == name);
        found.map(|(_, at)| &self.text[at.clone()])
    }
}

/// The data of the event.
fn data(
    expected: &Arguments,
    given: &Given<'_>,
    arguments: &Json,
    faults: &mut Vec<String>,
) -> Option<Json> {
    let besides = |name: &str| {
        expected.headers.as_deref() == Some(name)
            || expected
                .parameters
                .iter()
                .any(|it| it.from == From::Argument && !it.in_payload && it.name == name)
    };
    if let Some(payload) = &expected.payload {
        for (name, _) in given.all.iter().filter(|(it, _)| it != payload && !besides(it)) {
            faults.push(format!("/{name}: there is no such argument"));
        }
        let found = given.get(payload).map(|it| Json::from_scanned(it.to_vec().into()));
        if found.is_none() {
            faults.push(format!("/{payload}: required and not given"));
        }
        return found;
    }
    if !given.all.iter().any(|(name, _)| besides(name)) {
        return Some(arguments.clone());
    }
    let mut text = b"{".to_vec();
    for (name, at) in given.all.iter().filter(|(name, _)| !besides(name)) {
        if 1 < text.len() {
            text.push(b',');
        }
        text.extend(Value::from(name.as_ref()).to_string().into_bytes());
        text.push(b':');
        text.extend_from_slice(&given.text[at.clone()]);
    }
    text.push(b'}');
    Some(Json::from_scanned(text.into()))
}

/// One of the messages must fit; otherwise the faults are those of the one that is nearest.
fn check(expected: &Arguments, data: &Value, headers: Option<&Value>, faults: &mut Vec<String>) {
    let all = expected.messages.iter();
    let each = all.map(|it| (it, held(expected, it, data, headers)));
    let Some((nearest, found)) = each.min_by_key(|(_, found)| found.len()) else { return };
    if found.is_empty() {
        return;
    }
    if expected.messages.len() == 1 {
        return faults.extend(found);
    }
    let names: Vec<&str> = expected.messages.iter().map(|it| it.name.as_str()).collect();
    let (names, nearest, found) = (names.join("`, `"), &nearest.name, found.join("; "));
    faults.push(format!("none of the messages `{names}` fits; to be `{nearest}`: {found}"));
}

/// What keeps values from being this message.
fn held(expected: &Arguments, it: &Check, data: &Value, headers: Option<&Value>) -> Vec<String> {
    let mut faults = Vec::new();
    if let Some(payload) = &it.payload {
        let below = expected.payload.as_ref().map(|it| format!("/{it}")).unwrap_or_default();
        faults.extend(misfits(payload, data, &below, expected.recursive));
    }
    let name = expected.headers.as_deref().unwrap_or("headers");
    match (&it.headers, headers) {
        (Some(schema), Some(headers)) => {
            faults.extend(misfits(schema, headers, &format!("/{name}"), expected.recursive));
        }
        (Some(_), None) if it.needs_headers => {
            faults.push(format!("/{name}: required and not given"));
        }
        _ => {}
    }
    faults
}

fn misfits(schema: &Validator, value: &Value, below: &str, recursive: bool) -> Vec<String> {
    if schema.fits(value) {
        return Vec::new();
    }
    if recursive && deeper_than(value, TELLABLE) {
        return vec![format!("{below}/: it does not fit the schema, nested too deep to say where")];
    }
    let place = |fault: String| match (below, fault.starts_with('/')) {
        ("", true) => fault,
        ("", false) => format!("/: {fault}"),
        (below, true) => format!("{below}{fault}"),
        (below, false) => format!("{below}: {fault}"),
    };
    schema.faults(value).into_iter().map(place).collect()
}

fn deeper_than(value: &Value, depth: usize) -> bool {
    let below: Vec<&Value> = match value {
        Value::Array(list) => list.iter().collect(),
        Value::Object(map) => map.values().collect(),
        _ => return false,
    };
    depth == 0 || below.into_iter().any(|it| deeper_than(it, depth - 1))
}

/// The text that stands for a parameter in the event's name.
fn fill(parameter: &Parameter, found: Option<Value>, faults: &mut Vec<String>) -> Option<String> {
    let name = &parameter.name;
    let place = match &parameter.from {
        From::Argument => format!("/{name}"),
        From::Payload(at) => format!("{at} (of the payload)"),
        From::Headers(at) => format!("{at} (of the headers)"),
    };
    let value = match found {
        Some(Value::String(it)) => Ok(it),
        Some(Value::Number(it)) if parameter.in_payload || parameter.from != From::Argument => {
            Ok(it.to_string())
        }
        Some(_) => Err("it must be text, since it becomes a part of the event's name".to_owned()),
        None => match &parameter.default {
            Some(it) => Ok(it.clone()),
            None => Err("required and not given: it is a part of the event's name".to_owned()),
        },
    };
    let value = value.and_then(|it| match segment_fault(&it) {
        Some(fault) => Err(fault),
        None if !parameter.choices.is_empty() && !parameter.choices.contains(&it) => {
            Err(format!("it must be one of {}", parameter.choices.join(", ")))
        }
        None => Ok(it),
    });
    value.map_err(|fault| faults.push(format!("{place}: {fault}"))).ok()
}
