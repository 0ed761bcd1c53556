//! The envelope: CloudEvents 1.0 as JSON. What a sender says stays as it was written.

use std::{
    collections::BTreeMap,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, value::RawValue};

use crate::{BusError, check_name};

/// Attributes that we write ourselves; a sender's own do not count.
const OURS: [&str; 11] = [
    "specversion",
    "id",
    "source",
    "type",
    "time",
    "subject",
    "datacontenttype",
    "data",
    "sequence",
    "group",
    "data_base64",
];

/// The longest value of an attribute.
const MAX_ATTRIBUTE: usize = 4096;

/// More attributes of its own than this a sender cannot add.
const MAX_ATTRIBUTES: usize = 32;

/// An event that is being written.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    /// What it is called.
    pub name: String,
    /// What it says: JSON.
    pub data: String,
    /// Its id; a new one where none is given. Sending an id twice is sending once.
    pub id: Option<String>,
    /// Who says it, as a URI reference.
    pub source: Option<String>,
    /// What it is about.
    pub subject: Option<String>,
    /// When it happened, as RFC 3339; now, where nothing is said.
    pub time: Option<String>,
    /// The group of whoever caused it.
    pub group: Option<String>,
    /// Further attributes: names of lower-case letters and digits, values that are text, numbers or
    /// booleans.
    pub more: BTreeMap<String, Value>,
}

impl Draft {
    /// An event of this name that says this.
    pub fn new(name: impl Into<String>, data: impl Into<String>) -> Self {
        Self { name: name.into(), data: data.into(), ..Self::default() }
    }

    /// Adds an attribute.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    /// Reads a CloudEvent that somebody sends.
    pub fn read(text: &str) -> Result<Self, BusError> {
        let refused = |cause: String| BusError::Refused(cause);
        let mut written: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text)
            .map_err(|error| refused(format!("an event is a JSON object: {error}")))?;
        let mut take = |key: &str| -> Result<Option<String>, BusError> {
            let Some(raw) = written.remove(key) else { return Ok(None) };
            let value: Option<String> = serde_json::from_str(raw.get())
                .map_err(|error| refused(format!("`{key}` must be text: {error}")))?;
            Ok(value)
        };
        if let Some(version) = take("specversion")?.filter(|it| it != "1.0") {
            return Err(refused(format!("`specversion` is `{version}`; only 1.0 is known")));
        }
        let name =
            take("type")?.ok_or_else(|| refused("`type` is required: the event's name".into()))?;
        let (id, source) = (take("id")?, take("source")?);
        let (subject, time) = (take("subject")?, take("time")?);
        if let Some(kind) = take("datacontenttype")?.filter(|it| !is_json(it)) {
            return Err(refused(format!("`datacontenttype` is `{kind}`; data must be JSON")));
        }
        if written.contains_key("data_base64") {
            return Err(refused("`data_base64`: data must be JSON".into()));
        }
        let data =
            written.remove("data").map_or_else(|| "null".to_owned(), |it| it.get().to_owned());
        let mut more = BTreeMap::new();
        for (key, raw) in written {
            if OURS.contains(&key.as_str()) {
                continue;
            }
            let value = serde_json::from_str(raw.get())
                .map_err(|error| refused(format!("`{}`: {error}", key.escape_debug())))?;
            more.insert(key, value);
        }
        Ok(Self { name, data, id, source, subject, time, group: None, more })
    }

    /// The event.
    pub fn event(self) -> Result<Event, BusError> {
        check_name(&self.name).map_err(|error| BusError::Refused(error.to_string()))?;
        self.check()?;
        let raw: &RawValue = serde_json::from_str(&self.data)
            .map_err(|error| BusError::Refused(format!("the data is not JSON: {error}")))?;
        let id = self.id.clone().unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
        let at = now_ms();
        let time = self.time.clone().unwrap_or_else(|| rfc3339(at));
        let source = self.source.as_deref().unwrap_or("/toolcrib");
        let mut text = String::with_capacity(raw.get().len() + 256);
        text.push_str(r#"{"specversion":"1.0""#);
        let mut attribute = |key: &str, value: &Value| {
            text.push_str(&format!(",\"{key}\":{value}"));
        };
        attribute("id", &Value::from(id.as_str()));
        attribute("source", &Value::from(source));
        attribute("type", &Value::from(self.name.as_str()));
        attribute("time", &Value::from(time));
        for (key, value) in [("subject", &self.subject), ("group", &self.group)] {
            if let Some(value) = value {
                attribute(key, &Value::from(value.as_str()));
            }
        }
        for (key, value) in &self.more {
            attribute(key, value);
        }
        attribute("datacontenttype", &Value::from("application/json"));
        // Last, so that an event that is sent twice is known by its end.
        text.push_str(",\"data\":");
        let data_at = text.len();
        push_line(&mut text, raw.get());
        text.push('}');
        Ok(Event { name: self.name, id, at, text, data_at })
    }

    fn check(&self) -> Result<(), BusError> {
        let refused = |cause: String| Err(BusError::Refused(cause));
        let texts = [("id", &self.id), ("source", &self.source), ("subject", &self.subject)];
        for (key, text) in texts {
            let Some(text) = text else { continue };
            if text.is_empty() {
                return refused(format!("`{key}` is empty"));
            }
            if MAX_ATTRIBUTE < text.len() || text.chars().any(char::is_control) {
                return refused(format!("`{key}` is too long or has control characters in it"));
            }
        }
        if self.id.as_ref().is_some_and(|it| 255 < it.len()) {
            return refused("`id` is longer than 255 bytes".to_owned());
        }
        if let Some(time) = self.time.as_deref().filter(|it| !is_time(it)) {
            return refused(format!(
                "`time` is `{}`, and not such as 2026-01-31T12:00:00Z",
                time.escape_debug()
            ));
        }
        if MAX_ATTRIBUTES < self.more.len() {
            return refused(format!("there are more than {MAX_ATTRIBUTES} attributes"));
        }
        for (key, value) in &self.more {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
            if key.is_empty() || 64 < key.len() || !key.chars().all(plain) {
                return refused(format!(
                    "`{}` is no name of an attribute: lower-case letters and digits",
                    key.escape_debug()
                ));
            }
            let long = value.as_str().is_some_and(|it| MAX_ATTRIBUTE < it.len());
            if long || value.is_object() || value.is_array() || value.is_null() {
                return refused(format!(
                    "the attribute `{key}` must be a short text, a number or a boolean"
                ));
            }
        }
        Ok(())
    }
}

/// An event that can be appended.
#[derive(Debug, Clone)]
pub struct Event {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) at: u64,
    pub(crate) text: String,
    data_at: usize,
}

impl Event {
    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The envelope.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether what is on disk says the same.
    pub(crate) fn says_as(&self, name: &str, text: &str) -> bool {
        let data = &self.text[self.data_at - ",\"data\":".len()..];
        self.name == name && text.ends_with(data)
    }
}

/// An event as it is on the bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its place: they count up by one.
    pub seq: u64,
    /// What it is called.
    pub name: String,
    /// Its id.
    pub id: String,
    /// When it was appended, in milliseconds since 1970.
    pub at: u64,
    /// The envelope, without its place.
    pub text: String,
}

impl Record {
    /// The CloudEvent, with its place in it as the attribute `sequence`. One line.
    pub fn cloud_event(&self) -> String {
        let rest = self.text.get(1..).unwrap_or("}");
        format!(r#"{{"sequence":"{}",{rest}"#, self.seq)
    }

    /// An attribute that is text.
    pub fn attribute(&self, key: &str) -> Option<String> {
        let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(&self.text).ok()?;
        serde_json::from_str(members.get(key)?.get()).ok()
    }

    /// What it says.
    pub fn data(&self) -> Option<Box<RawValue>> {
        let mut members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(&self.text).ok()?;
        members.remove("data")
    }
}

/// An event goes out as one line, whatever line ends its sender put between the tokens.
fn push_line(text: &mut String, raw: &str) {
    if raw.contains(['\n', '\r']) {
        text.push_str(&raw.replace(['\n', '\r'], " "));
    } else {
        text.push_str(raw);
    }
}

fn is_json(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || kind.ends_with("+json") || kind == "text/json"
}

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Milliseconds since 1970 as `2026-01-31T12:00:00.000Z`.
pub fn rfc3339(ms: u64) -> String {
    let (seconds, ms) = (ms / 1000, ms % 1000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Counted from a March, a year's leap day comes last; an era of 400 years has 146,097 days.
    let day = days + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) =
        (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Whether a text has the shape of a time of RFC 3339.
fn is_time(text: &str) -> bool {
    let shape = |pattern: &str, text: &str| {
        pattern.len() == text.len()
            && pattern.bytes().zip(text.bytes()).all(|(p, c)| match p {
                b'0' => c.is_ascii_digit(),
                b'T' => matches!(c, b'T' | b't' | b' '),
                p => p == c,
            })
    };
    let Some((date, rest)) = text.split_at_checked(19) else { return false };
    let fraction =
        rest.strip_prefix('.').map(|it| it.trim_start_matches(|c: char| c.is_ascii_digit()));
    let zone = match fraction {
        Some(zone) if zone.len() + 1 < rest.len() => zone,
        Some(_) => return false,
        None => rest,
    };
    let offset = matches!(zone, "Z" | "z") || shape("+00:00", zone) || shape("-00:00", zone);
    shape("0000-00-00T00:00:00", date) && offset && text.len() <= 40
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_a_cloud_event_on_one_line() {
        let mut draft = Draft::new("task.run", "{\n\"n\": 1.10,\r\n \"n2\": 1e400 }")
            .with("tool", "run_task")
            .with("correlationid", "x\"y");
        draft.id = Some("e-1".into());
        draft.time = Some("2026-01-31T12:00:00Z".into());
        draft.group = Some("guest".into());
        let event = draft.event().unwrap();
        assert_eq!(
            event.text,
            r#"{"specversion":"1.0","id":"e-1","source":"/toolcrib","type":"task.run","time":"2026-01-31T12:00:00Z","group":"guest","correlationid":"x\"y","tool":"run_task","datacontenttype":"application/json","data":{ "n": 1.10,   "n2": 1e400 }}"#
        );
        let record = Record {
            seq: 7,
            name: event.name.clone(),
            id: "e-1".into(),
            at: 0,
            text: event.text.clone(),
        };
        let value: Value = serde_json::from_str(&record.cloud_event()).unwrap();
        assert_eq!(
            (&value["sequence"], &value["data"]["n2"].to_string()),
            (&Value::from("7"), &"1e+400".to_owned())
        );
        assert_eq!(record.attribute("correlationid").as_deref(), Some("x\"y"));
    }

    #[test]
    fn what_somebody_sends_is_kept_and_what_is_ours_is_not_taken() {
        let text = r#"{"type":"a.b","source":"/me","id":"1","group":"admin","sequence":"9","comexampleother":true,"data":[1, 2]}"#;
        let event = Draft::read(text).unwrap().event().unwrap();
        let value: Value = serde_json::from_str(event.text()).unwrap();
        assert_eq!(
            (&value["source"], &value["comexampleother"]),
            (&Value::from("/me"), &Value::from(true))
        );
        assert_eq!((value.get("group"), value.get("sequence")), (None, None));
        assert!(event.text().ends_with(r#""data":[1, 2]}"#));
    }

    #[test]
    fn what_is_no_event_is_refused_with_the_reason() {
        let refused = |text: &str| match Draft::read(text).and_then(Draft::event) {
            Err(BusError::Refused(cause)) => cause,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(refused("{}"), "`type` is required: the event's name");
        assert_eq!(
            refused(r#"{"type":"a","specversion":"0.3"}"#),
            "`specversion` is `0.3`; only 1.0 is known"
        );
        assert_eq!(refused(r#"{"type":"a b"}"#), "a name must not hold ` `");
        assert!(refused("[]").starts_with("an event is a JSON object"));
        assert!(refused(r#"{"type":"a","id":7}"#).starts_with("`id` must be text"));
        assert_eq!(refused(r#"{"type":"a","id":""}"#), "`id` is empty");
        assert!(refused(r#"{"type":"a","time":"yesterday"}"#).contains("2026-01-31T12:00:00Z"));
        assert!(refused(r#"{"type":"a","Bad-Name":1}"#).contains("lower-case"));
        assert!(refused(r#"{"type":"a","x":{}}"#).contains("short text"));
        assert!(refused(r#"{"type":"a","datacontenttype":"text/xml"}"#).contains("must be JSON"));
        assert!(refused(r#"{"type":"a","data_base64":"AA=="}"#).contains("must be JSON"));
        let many: String = (0..33).map(|n| format!(",\"a{n}\":1")).collect();
        assert!(refused(&format!(r#"{{"type":"a"{many}}}"#)).contains("more than 32"));
    }

    #[test]
    fn times_are_written_as_others_write_them() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(951_827_696_789), "2000-02-29T12:34:56.789Z");
        assert_eq!(rfc3339(4_102_444_799_999), "2099-12-31T23:59:59.999Z");
        assert_eq!(rfc3339(1_772_323_199_000), "2026-02-28T23:59:59.000Z");
        for good in ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.5+02:00", "2026-01-31t12:00:00z"]
        {
            assert!(is_time(good), "{good}");
        }
        for bad in [
            "",
            "2026-01-31",
            "2026-01-31T12:00:00",
            "2026-01-31T12:00:00.Z",
            "2026-01-31T12:00:00+2",
        ] {
            assert!(!is_time(bad), "{bad}");
        }
    }

    #[test]
    fn the_same_event_is_known_again() {
        let mut draft = Draft::new("a.b", r#"{"x":1}"#);
        draft.id = Some("1".into());
        let (first, again) = (draft.clone().event().unwrap(), draft.clone().event().unwrap());
        assert!(first.says_as(&again.name, &again.text));
        draft.data = r#"{"x":2}"#.into();
        assert!(!draft.event().unwrap().says_as(&first.name, &first.text));
    }
}
