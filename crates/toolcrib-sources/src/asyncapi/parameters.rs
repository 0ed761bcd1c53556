//! What the address of a channel leaves open: each parameter is an argument, or is taken from the message.

use serde_json::{Map, Value, json};

use super::{
    address::{Address, segment_fault},
    files::unescape,
    references::{Documents, Place, shorten},
};

/// A parameter of an address.
#[derive(Debug, Clone)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) from: From,
    /// The argument is one of the payload's own properties, and stays in it.
    pub(super) in_payload: bool,
    /// What it is where nobody says.
    pub(super) default: Option<String>,
    /// What it may be; anything where this is empty.
    pub(super) choices: Vec<String>,
    examples: Vec<String>,
    description: Option<String>,
}

/// Where the value of a parameter comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum From {
    /// The caller gives it.
    Argument,
    /// It stands in the payload, at this pointer.
    Payload(String),
    /// It stands in the headers, at this pointer.
    Headers(String),
}

impl Parameter {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            from: From::Argument,
            in_payload: false,
            default: None,
            choices: Vec::new(),
            examples: Vec::new(),
            description: None,
        }
    }

    /// The schema of its argument.
    pub(super) fn schema(&self) -> Value {
        let mut schema = Map::from_iter([("type".to_owned(), json!("string"))]);
        let mut say = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                schema.insert(key.to_owned(), value);
            }
        };
        let list = |it: &[String]| (!it.is_empty()).then(|| json!(it));
        say("description", self.description.as_ref().map(|it| json!(it)));
        say("enum", list(&self.choices));
        say("default", self.default.as_ref().map(|it| json!(it)));
        say("examples", list(&self.examples));
        Value::Object(schema)
    }
}

/// The parameters of an address, as the channel describes them.
pub(super) fn parameters(
    documents: &Documents,
    channel: Place<'_>,
    address: &Address,
    tell: &mut dyn FnMut(&str, String),
) -> Vec<Parameter> {
    let described = channel.get("parameters").filter(|it| !it.value.is_null());
    if described.is_some_and(|it| it.mapping().is_none()) {
        tell("channel: parameters", "they must be a mapping".to_owned());
    }
    let names = address.parameters();
    for (name, _) in described.and_then(Place::mapping).into_iter().flatten() {
        if !names.contains(&name.as_str()) && !name.starts_with("x-") {
            let place = format!("channel: parameters: {}", shorten(name));
            tell(&place, "it does not stand in the address".to_owned());
        }
    }
    let read = |name: &&str| match described.and_then(|it| it.get(name)) {
        Some(place) => {
            let mut tell = |what: String| tell(&format!("channel: parameters: {name}"), what);
            parameter(documents, name, place, &mut tell)
        }
        None => Parameter::new(name),
    };
    names.iter().map(read).collect()
}

fn parameter(
    documents: &Documents,
    name: &str,
    place: Place<'_>,
    tell: &mut dyn FnMut(String),
) -> Parameter {
    let mut parameter = Parameter::new(name);
    let place = match documents.follow(place) {
        Ok(place) => place,
        Err(fault) => {
            tell(fault);
            return parameter;
        }
    };
    if place.mapping().is_none() && !place.value.is_null() {
        tell("it must be a mapping".to_owned());
        return parameter;
    }
    let mut text = |key: &str| match place.get(key).map(|it| it.value) {
        Some(Value::String(it)) => Some(it.clone()),
        None | Some(Value::Null) => None,
        Some(_) => {
            tell(format!("its `{key}` must be text"));
            None
        }
    };
    parameter.description = text("description");
    parameter.default = text("default");
    let location = text("location");
    parameter.choices = texts(place, "enum", tell);
    parameter.examples = texts(place, "examples", tell);
    for value in parameter.choices.iter().chain(&parameter.default) {
        if let Some(fault) = segment_fault(value) {
            tell(format!("`{}` can never be used: {fault}", shorten(value)));
        }
    }
    let usable = |it: &String| segment_fault(it).is_none();
    parameter.default = parameter.default.filter(usable);
    if let Some(location) = location {
        match read_location(&location) {
            Some(from) => parameter.from = from,
            None => {
                let known = "`$message.payload#/…` nor `$message.header#/…`";
                tell(format!("its `location` is neither {known}; it is an argument"));
            }
        }
    }
    parameter
}

fn texts(place: Place<'_>, key: &str, tell: &mut dyn FnMut(String)) -> Vec<String> {
    match place.get(key).map(|it| it.value) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(list)) if list.iter().all(Value::is_string) => {
            list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        Some(_) => {
            tell(format!("its `{key}` must be a list of texts"));
            Vec::new()
        }
    }
}

fn read_location(location: &str) -> Option<From> {
    let (source, pointer) = location.split_once('#')?;
    let pointer = unescape(pointer).filter(|it| it.starts_with('/'))?;
    match source {
        "$message.payload" => Some(From::Payload(pointer)),
        "$message.header" => Some(From::Headers(pointer)),
        _ => None,
    }
}
