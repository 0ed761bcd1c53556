//! Which messages an operation sends, and what their traits add.

use serde_json::Value;

use super::references::{Documents, Place, shorten};

/// A message, as far as a tool needs it.
#[derive(Debug)]
pub(super) struct Message<'a> {
    pub(super) name: String,
    pub(super) payload: Option<Place<'a>>,
    /// Its own, and those of its traits.
    pub(super) headers: Vec<Place<'a>>,
}

/// An object with its traits: what stands earlier wins.
#[derive(Debug, Clone)]
pub(super) struct Layers<'a>(Vec<Place<'a>>);

impl<'a> Layers<'a> {
    /// An object and its traits, each followed to where it is. A trait that is not there is told.
    pub(super) fn of(
        documents: &'a Documents,
        object: Place<'a>,
        tell: &mut dyn FnMut(&str, String),
    ) -> Self {
        let mut layers = vec![object];
        let Some(traits) = object.get("traits").filter(|it| !it.value.is_null()) else {
            return Self(layers);
        };
        let Some(list) = traits.value.as_array() else {
            tell("traits", "they must be a list".to_owned());
            return Self(layers);
        };
        for value in list {
            match documents.follow(Place { value, ..traits }) {
                // A later trait adds to, and may replace, what an earlier one says.
                Ok(place) if place.mapping().is_some() => layers.insert(1, place),
                Ok(_) => tell("traits", "a trait must be a mapping".to_owned()),
                Err(fault) => tell("traits", fault),
            }
        }
        Self(layers)
    }

    /// A member, from whoever has it first.
    pub(super) fn get(&self, key: &str) -> Option<Place<'a>> {
        self.0.iter().find_map(|it| it.get(key))
    }

    /// A member, from all who have it.
    pub(super) fn all(&self, key: &str) -> Vec<Place<'a>> {
        self.0.iter().filter_map(|it| it.get(key)).collect()
    }
}

/// The messages in a list of references, or all messages of a channel where there is no list. Fails where
/// either is not what it must be; a single message that cannot be had is told and left out.
pub(super) fn messages<'a>(
    documents: &'a Documents,
    list: Option<Place<'a>>,
    channel: Option<Place<'a>>,
    tell: &mut dyn FnMut(&str, String),
) -> Result<Vec<Message<'a>>, String> {
    let mut found = Vec::new();
    let list = list.filter(|it| !it.value.is_null());
    let places: Vec<(String, Place<'a>)> = match list {
        Some(list) => {
            let items = list.value.as_array().ok_or("`messages` must be a list")?;
            let name = |it: &Value| {
                let reference = it.get("$ref").and_then(Value::as_str).unwrap_or("message");
                shorten(reference.rsplit('/').next().unwrap_or_default())
            };
            items.iter().map(|value| (name(value), Place { value, ..list })).collect()
        }
        None => {
            let Some(all) = channel.and_then(|it| it.get("messages")) else { return Ok(found) };
            if all.value.is_null() {
                return Ok(found);
            }
            let map = all.mapping().ok_or("the channel's `messages` must be a mapping")?;
            map.iter().map(|(name, value)| (shorten(name), Place { value, ..all })).collect()
        }
    };
    for (name, place) in places {
        let at = format!("message {name}");
        match documents.follow(place) {
            Ok(place) if place.mapping().is_some() => {
                found.push(message(documents, name, place, &mut |part, what| {
                    tell(&format!("{at}: {part}"), what);
                }));
            }
            Ok(_) => tell(&at, "a message must be a mapping".to_owned()),
            Err(fault) => tell(&at, fault),
        }
    }
    Ok(found)
}

fn message<'a>(
    documents: &'a Documents,
    name: String,
    place: Place<'a>,
    tell: &mut dyn FnMut(&str, String),
) -> Message<'a> {
    let layers = Layers::of(documents, place, tell);
    let given = |it: &Place<'a>| !it.value.is_null();
    let payload = place.get("payload").filter(given);
    let headers = layers.all("headers").into_iter().filter(given).collect();
    Message { name, payload, headers }
}
