//! What a caller has to give: the payload of a message, its headers, and what the address leaves open.
//!
//! The arguments are the payload, with the rest beside its properties. Where that cannot be, since the
//! payload is no object or takes no further properties, the payload is an argument of its own.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolcrib_catalogue::{Json, Validator};

use super::{
    messages::Message,
    parameters::{From, Parameter},
    references::Documents,
    schema::Schemas,
};

const DRAFT_7: &str = "http://json-schema.org/draft-07/schema#";
const DRAFT_2020: &str = "https://json-schema.org/draft/2020-12/schema";

/// The arguments of a tool.
#[derive(Debug)]
pub(super) struct Arguments {
    /// What is published of them.
    pub(super) schema: Value,
    /// The argument that is the payload; none where all that is not something else is the payload.
    pub(super) payload: Option<String>,
    /// The argument that holds the headers.
    pub(super) headers: Option<String>,
    pub(super) parameters: Vec<Parameter>,
    /// What a call is held against: one of them must fit.
    pub(super) messages: Vec<Check>,
    /// Values may be nested without end.
    pub(super) recursive: bool,
}

/// What one message has to be.
#[derive(Debug, Clone)]
pub(super) struct Check {
    pub(super) name: String,
    pub(super) payload: Option<Arc<Validator>>,
    pub(super) headers: Option<Arc<Validator>>,
    pub(super) needs_headers: bool,
}

/// One message, as schemas that stand alone.
struct Written {
    name: String,
    /// None where it takes anything.
    payload: Option<Value>,
    headers: Option<Value>,
}

/// What takes any object.
pub(super) fn anything() -> Value {
    json!({ "type": "object", "properties": {}, "required": [] })
}

/// The arguments of a tool that sends one of these messages; what is wrong with their schemas is told, and
/// then they take anything.
pub(super) fn arguments<'a>(
    documents: &'a Documents,
    messages: &[Message<'a>],
    parameters: Vec<Parameter>,
    room: &mut usize,
    tell: &mut dyn FnMut(&str, String),
) -> Arguments {
    match compose(documents, messages, &parameters, room) {
        Ok(arguments) => arguments,
        Err(Fault { place, cause }) => {
            tell(&place, format!("{cause}; any object is taken"));
            let any = Written { name: String::new(), payload: None, headers: None };
            let compose = Compose::new(Schemas::new(documents), vec![any], parameters);
            // Parameters alone make a schema that is always valid.
            compose.build(None).unwrap_or_else(|_| Arguments {
                schema: anything(),
                payload: None,
                headers: None,
                parameters: Vec::new(),
                messages: Vec::new(),
                recursive: false,
            })
        }
    }
}

/// What is wrong with the schemas of the messages.
pub(super) struct Fault {
    pub(super) place: String,
    pub(super) cause: String,
}

fn compose<'a>(
    documents: &'a Documents,
    messages: &[Message<'a>],
    parameters: &[Parameter],
    room: &mut usize,
) -> Result<Arguments, Fault> {
    let mut schemas = Schemas::new(documents);
    let mut written = Vec::new();
    for message in messages {
        written.push(write(&mut schemas, message)?);
    }
    if written.is_empty() {
        written.push(Written { name: String::new(), payload: None, headers: None });
    }
    let fault = |cause| Fault { place: "messages".to_owned(), cause };
    let recursive = schemas.recursive().map_err(fault)?;
    let left = room.checked_sub(schemas.text());
    *room = left.ok_or_else(|| fault("all schemas together are too large".to_owned()))?;
    let compose = Compose::new(schemas, written, parameters.to_vec());
    let drafts = if compose.schemas.old { [Some(DRAFT_7), None] } else { [None, Some(DRAFT_7)] };
    let first = compose.build(drafts[0]);
    let built = first.or_else(|cause| compose.build(drafts[1]).map_err(|_second| cause));
    let arguments = built.map_err(|cause| compose.fault(&drafts, &cause))?;
    Ok(Arguments { recursive, ..arguments })
}

fn write<'a>(schemas: &mut Schemas<'a>, message: &Message<'a>) -> Result<Written, Fault> {
    let fault = |part: &str| {
        let place = format!("message {}: {part}", message.name);
        move |cause| Fault { place, cause }
    };
    let payload = match message.payload {
        Some(place) => {
            let schema = schemas.root(place).map_err(fault("payload"))?;
            if !schema.is_object() && !schema.is_boolean() {
                return Err(fault("payload")("a schema must be a mapping".to_owned()));
            }
            Some(schema).filter(|it| !takes_anything(it))
        }
        None => None,
    };
    let mut headers = Vec::new();
    for place in &message.headers {
        headers.push(schemas.root(*place).map_err(fault("headers"))?);
    }
    let headers = match headers.len() {
        0 => None,
        1 => headers.pop(),
        // Those of a message and those of its traits.
        _ => Some(json!({ "type": "object", "allOf": headers })),
    };
    Ok(Written { name: message.name.clone(), payload, headers })
}

fn takes_anything(schema: &Value) -> bool {
    schema == &Value::Bool(true) || schema.as_object().is_some_and(Map::is_empty)
}

/// The schema of what an agent is answered with, where that is an object: of one of these messages.
pub(super) fn answer<'a>(
    documents: &'a Documents,
    messages: &[Message<'a>],
) -> Result<Option<Value>, Fault> {
    let mut schemas = Schemas::new(documents);
    let mut payloads = Vec::new();
    for message in messages {
        match write(&mut schemas, message)?.payload {
            Some(it) if is_object(&it, &schemas, 0) => push_new(&mut payloads, it),
            _ => return Ok(None),
        }
    }
    let place = "reply".to_owned();
    schemas.recursive().map_err(|cause| Fault { place: place.clone(), cause })?;
    let schema = match payloads.len() {
        0 => return Ok(None),
        1 => payloads.pop().unwrap_or_default(),
        // Whoever checks an answer is not to refuse one that two of the messages could be.
        _ => json!({ "anyOf": payloads }),
    };
    let schema = with_defs(object(schema), schemas.defs());
    let drafts = if schemas.old { [Some(DRAFT_7), None] } else { [None, Some(DRAFT_7)] };
    for draft in drafts {
        let schema = with_draft(schema.clone(), draft);
        if compile(&schema).is_ok() {
            return Ok(Some(schema));
        }
    }
    Err(Fault { place, cause: "no valid JSON Schema".to_owned() })
}

fn push_new(list: &mut Vec<Value>, it: Value) {
    if !list.contains(&it) {
        list.push(it);
    }
}

/// The pieces, before they become one schema.
struct Compose<'a> {
    schemas: Schemas<'a>,
    messages: Vec<Written>,
    /// Each payload once; none where one of the messages takes anything.
    payloads: Vec<Value>,
    parameters: Vec<Parameter>,
    payload: Option<String>,
    headers: Option<String>,
}

impl<'a> Compose<'a> {
    fn new(schemas: Schemas<'a>, messages: Vec<Written>, mut parameters: Vec<Parameter>) -> Self {
        let mut payloads = Vec::new();
        for message in &messages {
            match &message.payload {
                Some(it) => push_new(&mut payloads, it.clone()),
                None => {
                    payloads.clear();
                    break;
                }
            }
        }
        let declared = |name: &str| payloads.iter().any(|it| declares(it, name, &schemas, 0));
        let asked = |it: &Parameter| it.from == From::Argument && !declared(&it.name);
        let extra = messages.iter().any(|it| it.headers.is_some()) || parameters.iter().any(asked);
        let objects = payloads.iter().all(|it| is_object(it, &schemas, 0));
        let one = payloads.len() == 1;
        let apart =
            !objects || (extra && payloads.iter().any(|it| is_closed(it, one, &schemas, 0)));
        let asked_for = |name: &str| parameters.iter().any(|it| it.name == name);
        let taken = |name: &str| asked_for(name) || (!apart && declared(name));
        let payload = apart.then(|| free("payload", &asked_for));
        let headers = messages.iter().any(|it| it.headers.is_some());
        let headers = headers.then(|| free("headers", &taken));
        let shared: Vec<bool> = parameters.iter().map(|it| !apart && declared(&it.name)).collect();
        for (parameter, shared) in parameters.iter_mut().zip(shared) {
            parameter.in_payload = shared;
        }
        Self { schemas, messages, payloads, parameters, payload, headers }
    }

    /// The arguments, if all schemas are valid in this draft.
    fn build(&self, draft: Option<&str>) -> Result<Arguments, String> {
        let finish = |schema| with_draft(with_defs(schema, self.schemas.defs()), draft);
        let schema = finish(self.whole());
        let whole = Arc::new(compile(&schema)?);
        let same = self.payload.is_none() && self.messages.len() == 1 && self.all_is_payload();
        let check = |it: &Written| {
            let held = |schema: &Option<Value>| match schema {
                Some(_) if same => Ok(Some(Arc::clone(&whole))),
                Some(it) => compile(&finish(it.clone())).map(Arc::new).map(Some),
                None => Ok(None),
            };
            let needs_headers = it.headers.as_ref().is_some_and(needs_any);
            let (payload, headers) = (held(&it.payload)?, held(&it.headers)?);
            Ok(Check { name: it.name.clone(), payload, headers, needs_headers })
        };
        Ok(Arguments {
            messages: self.messages.iter().map(check).collect::<Result<_, String>>()?,
            schema,
            payload: self.payload.clone(),
            headers: self.headers.clone(),
            parameters: self.parameters.clone(),
            recursive: false,
        })
    }

    /// Which of the schemas is not valid, after all together were not.
    fn fault(&self, drafts: &[Option<&str>], cause: &str) -> Fault {
        for message in &self.messages {
            for (part, schema) in [("payload", &message.payload), ("headers", &message.headers)] {
                let Some(schema) = schema else { continue };
                let schema = with_defs(schema.clone(), self.schemas.defs());
                let each = drafts.iter().map(|it| compile(&with_draft(schema.clone(), *it)).err());
                if let Some(Some(cause)) =
                    each.collect::<Option<Vec<_>>>().map(|it| it.into_iter().next())
                {
                    let place = format!("message {}: {part}", message.name);
                    return Fault { place, cause: format!("no valid JSON Schema: {cause}") };
                }
            }
        }
        Fault { place: "messages".to_owned(), cause: format!("no valid JSON Schema: {cause}") }
    }

    /// Whether the payload's schema is that of all arguments.
    fn all_is_payload(&self) -> bool {
        self.headers.is_none() && self.parameters.iter().all(|it| it.from != From::Argument)
    }

    /// The schema of all arguments.
    fn whole(&self) -> Value {
        let mut schema = match (&self.payload, self.payloads.as_slice()) {
            (Some(name), payloads) => {
                let payload = match payloads {
                    [one] => one.clone(),
                    several => json!({ "oneOf": several }),
                };
                let properties = Map::from_iter([(name.clone(), payload)]);
                json!({ "type": "object", "properties": properties, "required": [name],
                    "additionalProperties": false })
            }
            (None, []) => anything(),
            (None, [one]) => object(one.clone()),
            // What is published says that an event is one message; what is refused is only what fits
            // none, since a value that fits two is as good as any.
            (None, several) => {
                let several: Vec<Value> = several.iter().cloned().map(object).collect();
                json!({ "type": "object", "oneOf": several })
            }
        };
        for it in self.parameters.iter().filter(|it| it.from == From::Argument) {
            let own = (!it.in_payload).then(|| it.schema());
            add(&mut schema, &it.name, own, it.default.is_none());
        }
        if let Some(name) = &self.headers {
            let all: Vec<&Value> =
                self.messages.iter().filter_map(|it| it.headers.as_ref()).collect();
            let mut each = Vec::new();
            all.iter().for_each(|it| push_new(&mut each, (*it).clone()));
            let headers = if each.len() == 1 { each.remove(0) } else { json!({ "anyOf": each }) };
            let needed = all.len() == self.messages.len() && all.iter().all(|it| needs_any(it));
            add(&mut schema, name, Some(headers), needed);
        }
        schema
    }
}

/// Adds an argument to the schema of all.
fn add(schema: &mut Value, name: &str, own: Option<Value>, required: bool) {
    let Some(map) = schema.as_object_mut() else { return };
    if let Some(own) = own
        && let Some(properties) =
            map.entry("properties").or_insert_with(|| json!({})).as_object_mut()
    {
        properties.insert(name.to_owned(), own);
    }
    if required
        && let Some(list) = map.entry("required").or_insert_with(|| json!([])).as_array_mut()
        && !list.iter().any(|it| it == name)
    {
        list.push(name.into());
    }
}

/// A name that is not taken.
fn free(wanted: &str, taken: &dyn Fn(&str) -> bool) -> String {
    let mut name = wanted.to_owned();
    if taken(&name) {
        name = format!("message_{wanted}");
    }
    while taken(&name) {
        name.insert(0, '_');
    }
    name
}

/// A schema that admits objects, as one that admits nothing else.
fn object(schema: Value) -> Value {
    let Value::Object(mut map) = schema else { return anything() };
    if map.contains_key("type") {
        map.insert("type".to_owned(), "object".into());
        return Value::Object(map);
    }
    let mut typed = Map::from_iter([("type".to_owned(), "object".into())]);
    typed.append(&mut map);
    Value::Object(typed)
}

fn with_defs(mut schema: Value, defs: Map<String, Value>) -> Value {
    if let Some(map) = schema.as_object_mut()
        && !defs.is_empty()
        && let Some(own) = map.entry("$defs").or_insert_with(|| json!({})).as_object_mut()
    {
        own.extend(defs);
    }
    schema
}

fn with_draft(schema: Value, draft: Option<&str>) -> Value {
    match (schema, draft) {
        (Value::Object(mut map), Some(draft)) => {
            let mut with = Map::from_iter([("$schema".to_owned(), draft.into())]);
            map.shift_remove("$schema");
            with.append(&mut map);
            Value::Object(with)
        }
        (schema, _) => schema,
    }
}

fn compile(schema: &Value) -> Result<Validator, String> {
    let mut schema = schema.clone();
    // What is published without a dialect is read as the newest: nobody is to guess that an older one is meant.
    if let Some(object) = schema.as_object_mut() {
        object.entry("$schema").or_insert_with(|| DRAFT_2020.into());
    }
    Validator::new(&Json::of(&schema).map_err(|error| error.to_string())?)
}

/// How far a schema is looked into for what it says of the value itself.
const FAR: usize = 16;

/// The schemas that are about the same value as this one: what it refers to, and its alternatives.
fn beside<'v>(schema: &'v Value, schemas: &'v Schemas<'_>) -> Vec<&'v Value> {
    let mut all = Vec::new();
    for key in ["allOf", "anyOf", "oneOf"] {
        all.extend(schema.get(key).and_then(Value::as_array).into_iter().flatten());
    }
    for key in ["if", "then", "else", "not"] {
        all.extend(schema.get(key));
    }
    let dependent = schema.get("dependentSchemas").or(schema.get("dependencies"));
    all.extend(dependent.and_then(Value::as_object).into_iter().flat_map(Map::values));
    all.extend(reference(schema, schemas));
    all
}

fn reference<'v>(schema: &'v Value, schemas: &'v Schemas<'_>) -> Option<&'v Value> {
    schemas.def(schema.get("$ref")?.as_str()?)
}

/// Whether an object could fit.
fn is_object(schema: &Value, schemas: &Schemas<'_>, depth: usize) -> bool {
    let all = |key: &str| schema.get(key).and_then(Value::as_array);
    let admits = |it: &Value| is_object(it, schemas, depth + 1);
    let typed = match schema.get("type") {
        Some(Value::String(it)) => it == "object",
        Some(Value::Array(list)) => list.iter().any(|it| it == "object"),
        _ => true,
    };
    if FAR < depth || !typed || schema == &Value::Bool(false) {
        return typed && schema != &Value::Bool(false);
    }
    all("enum").is_none_or(|it| it.iter().any(Value::is_object))
        && schema.get("const").is_none_or(Value::is_object)
        && all("allOf").is_none_or(|it| it.iter().all(admits))
        && all("anyOf").is_none_or(|it| it.iter().any(admits))
        && all("oneOf").is_none_or(|it| it.iter().any(admits))
        && reference(schema, schemas).is_none_or(admits)
}

/// Whether a schema names a property.
fn declares(schema: &Value, name: &str, schemas: &Schemas<'_>, depth: usize) -> bool {
    let own = schema.get("properties").is_some_and(|it| it.get(name).is_some());
    let among = || beside(schema, schemas).iter().any(|it| declares(it, name, schemas, depth + 1));
    own || (depth < FAR && among())
}

/// Whether an object that fits could no longer do so with one more property. `root`: the property will be
/// written beside those of this very schema.
fn is_closed(schema: &Value, root: bool, schemas: &Schemas<'_>, depth: usize) -> bool {
    const ALWAYS: [&str; 6] =
        ["patternProperties", "propertyNames", "maxProperties", "minProperties", "enum", "const"];
    let says = |key: &&str| schema.get(*key).is_some();
    let rest = ["additionalProperties", "unevaluatedProperties"];
    let rest = rest.iter().any(|key| schema.get(*key).is_some_and(|it| it != &Value::Bool(true)));
    let among =
        || beside(schema, schemas).iter().any(|it| is_closed(it, false, schemas, depth + 1));
    ALWAYS.iter().any(says) || (!root && rest) || FAR < depth || among()
}

/// Whether headers cannot be left out.
fn needs_any(schema: &Value) -> bool {
    let own = schema.get("required").and_then(Value::as_array).is_some_and(|it| !it.is_empty());
    let all = schema.get("allOf").and_then(Value::as_array);
    own || all.is_some_and(|it| it.iter().any(needs_any))
}
