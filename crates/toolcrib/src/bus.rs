//! `bus` of `network.yaml`: where events go, how long they are kept, and who is told of them.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use schemars::JsonSchema;
use serde::{Deserialize, de::IgnoredAny};
use toolcrib_bus::{Bus, BusError, Embedded, Pattern};
use toolcrib_catalogue::{Problem, nearest};
use toolcrib_server::{Secret, Webhook};
use toolcrib_sources::mcp::{Filled, Lookup, is_plain_http, is_written_secret};
use toolcrib_wire::{Endpoint, text::Masker};

use crate::{
    network::{NetworkError, WRITTEN_OUT},
    python::{Amount, size},
    schema,
};

/// What the section means.
#[derive(Debug, Clone, Default)]
pub struct BusSettings {
    /// How events are kept.
    pub settings: toolcrib_bus::Settings,
    /// Where they go on to.
    #[cfg(feature = "nats")]
    pub nats: Option<toolcrib_bus::NatsSettings>,
    /// Who is told of them.
    pub webhooks: Vec<Webhook>,
    /// What of all this must not be shown.
    pub secrets: Masker,
}

impl BusSettings {
    /// Opens the bus, whose file is this.
    pub fn open(&self, file: &Path) -> Result<Arc<dyn Bus>, BusError> {
        #[cfg(feature = "nats")]
        if let Some(nats) = &self.nats {
            let store = self.settings.clone();
            let nats = toolcrib_bus::NatsSettings { store, ..nats.clone() };
            return Ok(Arc::new(toolcrib_bus::Nats::open(file, nats)?));
        }
        Ok(Arc::new(Embedded::open(file, self.settings.clone())?))
    }
}

/// The section as it is written.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub(crate) struct WrittenBus {
    /// Where events go: `embedded`, or on to NATS JetStream: `nats://host:4222`, `tls://host:4222`.
    #[schemars(extend("usual" = "embedded"))]
    url: Option<String>,
    /// How long events are kept, at least 1m.
    #[schemars(schema_with = "schema::time", extend("usual" = "30d"))]
    retain: Option<Amount>,
    /// How much is kept, at least 1MB.
    #[schemars(schema_with = "schema::size", extend("usual" = "1GB"))]
    max_size: Option<Amount>,
    /// The largest event, from 1KB to 3MB.
    #[schemars(schema_with = "schema::size", extend("usual" = "1MB"))]
    max_event: Option<Amount>,
    /// NATS: the file of credentials, seen from the workspace.
    #[schemars(with = "Option<String>")]
    credentials: Option<PathBuf>,
    /// NATS: who we are.
    user: Option<String>,
    /// NATS: the variable that has the password of `user`.
    password_env: Option<String>,
    /// NATS: the variable that has a token.
    token_env: Option<String>,
    /// NATS: the variable that has the seed of an nkey.
    nkey_env: Option<String>,
    /// NATS: a file of certificates to trust besides the system's.
    #[schemars(with = "Option<String>")]
    ca: Option<PathBuf>,
    /// NATS: go to another machine although nothing is encrypted on the way.
    allow_plaintext: bool,
    /// NATS: the stream that events are kept in.
    #[schemars(extend("usual" = "TOOLCRIB"))]
    stream: Option<String>,
    /// NATS: how many servers keep it.
    replicas: Option<usize>,
    /// NATS: how many events may wait while the broker is away.
    max_outbox: Option<u64>,
    /// Who is told of events over HTTP.
    webhooks: Vec<WrittenWebhook>,
    #[serde(flatten)]
    #[schemars(skip)]
    other: BTreeMap<String, IgnoredAny>,
}

#[derive(Deserialize, Default, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("required" = ["url"]))]
struct WrittenWebhook {
    /// Where events are posted to. It must be there.
    #[schemars(extend("examples" = ["https://example.com/hook"]))]
    url: Option<String>,
    /// What it is called in `toolcrib events consumers`; the host where nothing is said.
    name: Option<String>,
    /// The names of the events that are sent, such as `task.*`; all where nothing is said.
    #[serde(rename = "match")]
    asked: Vec<String>,
    /// What requests are signed with, written out. Better: `secret_env`.
    secret: Option<String>,
    /// The variable that has what requests are signed with.
    secret_env: Option<String>,
    /// What goes along with every request; `${NAME}` is filled in.
    headers: BTreeMap<String, String>,
    /// A file of certificates to trust besides the system's.
    #[schemars(with = "Option<String>")]
    ca: Option<PathBuf>,
    /// How often an event is tried before it is given up.
    #[schemars(range(min = 1, max = 100), extend("usual" = 10))]
    attempts: Option<u32>,
    /// How long one attempt may take, from 1s to 5m.
    #[schemars(schema_with = "schema::time", extend("usual" = "10s"))]
    timeout: Option<Amount>,
    #[serde(flatten)]
    #[schemars(skip)]
    other: BTreeMap<String, IgnoredAny>,
}

const KEYS: [&str; 15] = [
    "url",
    "retain",
    "max_size",
    "max_event",
    "webhooks",
    "credentials",
    "user",
    "password_env",
    "token_env",
    "nkey_env",
    "ca",
    "allow_plaintext",
    "stream",
    "replicas",
    "max_outbox",
];
const HOOK_KEYS: [&str; 9] =
    ["url", "name", "match", "secret", "secret_env", "headers", "ca", "attempts", "timeout"];

/// What the section means for a workspace.
pub(crate) fn resolve(
    mut written: WrittenBus,
    folder: &Path,
    lookup: Lookup<'_>,
    problems: &mut Vec<Problem>,
) -> Result<BusSettings, NetworkError> {
    let refuse =
        |key: &str, cause: String| Err(NetworkError::Value { key: format!("bus: {key}"), cause });
    unknown(&written.other, "bus", &KEYS, problems);
    warn_of_secrets(&written, problems);
    // Whatever comes out of a variable is a secret, and so are keys and headers however they are written.
    let secrets = RefCell::new(Vec::new());
    for hook in &written.webhooks {
        secrets.borrow_mut().extend(hook.secret.iter().chain(hook.headers.values()).cloned());
    }
    let remembering = |name: &str| {
        let value = lookup(name);
        secrets.borrow_mut().extend(value.clone());
        value
    };
    let lookup: Lookup<'_> = &remembering;
    let mut bus = BusSettings::default();
    match written.url.take().map(|it| Filled::new(&it, lookup)) {
        None => {}
        Some(url) if url.value() == "embedded" => {}
        Some(url) if !url.unset.is_empty() => {
            return refuse("url", format!("the variable `{}` is not set", url.unset[0]));
        }
        Some(url) if ["nats://", "tls://"].iter().any(|it| url.value().starts_with(it)) => {
            #[cfg(feature = "nats")]
            {
                let nats = nats(&written, url.value(), folder, lookup);
                bus.nats = Some(nats.map_err(|(key, cause)| NetworkError::Value { key, cause })?);
            }
            #[cfg(not(feature = "nats"))]
            return refuse("url", "this toolcrib was built without NATS".to_owned());
        }
        // Not what it says: that may hold a password.
        Some(_) => return refuse("url", "it is `embedded`, `nats://…` or `tls://…`".to_owned()),
    }
    if let Some(amount) = &written.retain {
        match time(amount).filter(|it| Duration::from_secs(60) <= *it) {
            Some(time) => bus.settings.retain = time,
            None => return refuse("retain", "it is a time such as 30d or 12h, at least 1m".into()),
        }
    }
    if let Some(amount) = &written.max_size {
        match size(amount).filter(|it| (1 << 20..=1 << 44).contains(it)) {
            Some(bytes) => bus.settings.max_size = bytes,
            None => return refuse("max_size", "it is an amount such as 1GB, at least 1MB".into()),
        }
    }
    if let Some(amount) = &written.max_event {
        match size(amount).filter(|it| (1 << 10..=3 << 20).contains(it)) {
            Some(bytes) => bus.settings.max_event = usize::try_from(bytes).unwrap_or(usize::MAX),
            None => return refuse("max_event", "it is an amount from 1KB to 3MB".into()),
        }
    }
    for (at, hook) in written.webhooks.into_iter().enumerate() {
        let place = format!("bus: webhooks: {}", at + 1);
        unknown(&hook.other, &place, &HOOK_KEYS, problems);
        let hook = webhook(hook, folder, lookup, &place, problems)
            .map_err(|cause| NetworkError::Value { key: place.clone(), cause })?;
        if bus.webhooks.iter().any(|it| it.name == hook.name) {
            let cause = format!("two are called `{}`: give each a `name`", hook.name);
            return refuse("webhooks", cause);
        }
        bus.webhooks.push(hook);
    }
    bus.secrets = Masker::new(secrets.take());
    Ok(bus)
}

/// Where NATS is, and who we are there.
#[cfg(feature = "nats")]
fn nats(
    written: &WrittenBus,
    url: &str,
    folder: &Path,
    lookup: Lookup<'_>,
) -> Result<toolcrib_bus::NatsSettings, (String, String)> {
    use toolcrib_bus::{Login, NatsSettings};
    let variable = |key: &str, name: &str| {
        let found = lookup(name).filter(|it| !it.is_empty());
        found.ok_or_else(|| (format!("bus: {key}"), format!("the variable `{name}` is not set")))
    };
    let mut nats = NatsSettings::new(url);
    nats.login = if let Some(file) = &written.credentials {
        Login::CredentialsFile(folder.join(file))
    } else if let Some(name) = &written.nkey_env {
        Login::Nkey(variable("nkey_env", name)?)
    } else if let Some(name) = &written.token_env {
        Login::Token(variable("token_env", name)?)
    } else if let Some(user) = &written.user {
        let password = match &written.password_env {
            Some(name) => variable("password_env", name)?,
            None => String::new(),
        };
        Login::Password { user: user.clone(), password }
    } else {
        Login::Anonymous
    };
    nats.ca = written.ca.as_ref().map(|it| folder.join(it));
    if let Some(stream) = &written.stream {
        nats.stream.clone_from(stream);
    }
    if let Some(replicas) = written.replicas {
        if !(1..=5).contains(&replicas) {
            return Err(("bus: replicas".to_owned(), "it is a number from 1 to 5".to_owned()));
        }
        nats.replicas = replicas;
    }
    if !written.allow_plaintext && written.ca.is_none() && goes_in_clear(url) {
        let cause = "everything would go there in clear text, passwords too: write `tls://`, name a `ca`, or set \
                     `allow_plaintext: true`";
        return Err(("bus: url".to_owned(), cause.to_owned()));
    }
    nats.max_outbox = written.max_outbox.unwrap_or(nats.max_outbox).max(1);
    Ok(nats)
}

/// Whether one of these servers is on another machine and nothing is encrypted on the way.
///
/// What is no address is left to those who connect, who say what is wrong with it.
#[cfg(feature = "nats")]
fn goes_in_clear(urls: &str) -> bool {
    use toolcrib_sources::mcp;
    let in_clear = |url: &str| {
        let url = url.trim().parse::<http::Uri>().ok();
        let whole = |it: &http::Uri| {
            let place = it.authority().map_or("", |it| it.as_str());
            place.ends_with(it.host().unwrap_or_default()) || it.port_u16().is_some()
        };
        let url = url.filter(|it| it.scheme_str() == Some("nats") && whole(it));
        url.is_some_and(|it| it.host().is_some_and(|host| !mcp::is_this_machine(host)))
    };
    urls.split(',').any(in_clear)
}

/// Tells of secrets that stand in the section written out, and of webhooks that anybody on the way can read.
fn warn_of_secrets(written: &WrittenBus, problems: &mut Vec<Problem>) {
    let mut warn = |place: String, message: &str, hint: &str| {
        problems.push(Problem::warning(format!("network.yaml: bus: {place}"), message).hint(hint));
    };
    if written.url.as_ref().is_some_and(|it| is_written_secret("", it)) {
        let hint = "write `user` and `password_env`, or put it into a variable";
        warn("url".to_owned(), WRITTEN_OUT, hint);
    }
    for (at, hook) in written.webhooks.iter().enumerate() {
        let place = format!("webhooks: {}", at + 1);
        if hook.secret.as_ref().is_some_and(|it| !it.is_empty() && !it.contains("${")) {
            let hint = "put it into a variable, and name that: `secret_env`";
            warn(format!("{place}: secret"), WRITTEN_OUT, hint);
        }
        for (name, _) in hook.headers.iter().filter(|(name, it)| is_written_secret(name, it)) {
            let place = format!("{place}: headers: {}", name.escape_debug());
            warn(place, WRITTEN_OUT, "put it into a variable, and write ${NAME}");
        }
        let url = hook.url.as_deref().unwrap_or_default();
        if is_written_secret("", url) {
            let hint = "put it into a variable, and write ${NAME}";
            warn(format!("{place}: url"), WRITTEN_OUT, hint);
        }
        if is_plain_http(url) {
            let message = "whatever goes there can be read and changed on the way: `http://`";
            warn(format!("{place}: url"), message, "write https:// if the receiver can");
        }
    }
}

fn webhook(
    written: WrittenWebhook,
    folder: &Path,
    lookup: Lookup<'_>,
    place: &str,
    problems: &mut Vec<Problem>,
) -> Result<Webhook, String> {
    let mut fill = |key: &str, text: &str| {
        let filled = Filled::new(text, lookup);
        for unset in &filled.unset {
            let place = format!("network.yaml: {place}: {key}");
            problems.push(Problem::new(place, format!("the variable `{unset}` is not set")));
        }
        filled.value().to_owned()
    };
    let url = written.url.ok_or("it has no `url`")?;
    let url: http::Uri = fill("url", &url).parse().ok().ok_or("its `url` is no address")?;
    if !matches!(url.scheme_str(), Some("http" | "https")) || url.host().is_none() {
        return Err("its `url` must begin with https:// or http://".to_owned());
    }
    let mut headers = http::HeaderMap::new();
    for (name, text) in &written.headers {
        let value = fill(&format!("headers: {name}"), text);
        let name = http::HeaderName::try_from(name.as_str());
        let value = http::HeaderValue::try_from(value);
        let (Ok(name), Ok(mut value)) = (name, value) else {
            return Err("one of its `headers` cannot be sent".to_owned());
        };
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    let secret = match (written.secret, written.secret_env) {
        (Some(text), _) => {
            let filled = Filled::new(&text, lookup);
            if let Some(unset) = filled.unset.first() {
                return Err(format!("secret: the variable `{unset}` is not set"));
            }
            Some(filled.value().to_owned())
        }
        (None, Some(variable)) => {
            let found = lookup(&variable).filter(|it| !it.is_empty());
            // What nobody signs anybody can send: better not at all.
            Some(found.ok_or_else(|| format!("secret_env: the variable `{variable}` is not set"))?)
        }
        (None, None) => None,
    };
    let secret = secret.map(|it| Secret::new(&it).ok_or("its secret is empty, or no base64"));
    let host = url.host().unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-.".contains(c) { c } else { '_' };
    let name = written.name.unwrap_or_else(|| host.chars().map(plain).collect());
    toolcrib_bus::ConsumerName::new("", &name).map_err(|error| format!("name: {error}"))?;
    let asked = written.asked.into_iter().map(Pattern::new).collect::<Result<_, _>>();
    let limit = Duration::from_secs(1)..=Duration::from_secs(300);
    let timeout = match &written.timeout {
        None => Duration::from_secs(10),
        Some(amount) => {
            let found = time(amount).filter(|it| limit.contains(it));
            found.ok_or("its `timeout` is a time from 1s to 5m")?
        }
    };
    let attempts = written.attempts.unwrap_or(10);
    if !(1..=100).contains(&attempts) {
        return Err("its `attempts` are a number from 1 to 100".to_owned());
    }
    let ca = written.ca.map(|it| folder.join(it));
    let endpoint = Endpoint { url, headers, ca, read_timeout: None };
    let asked = asked.map_err(|error| format!("match: {error}"))?;
    let secret = secret.transpose()?;
    Ok(Webhook { name, endpoint, asked, secret, attempts, timeout })
}

fn unknown(
    keys: &BTreeMap<String, IgnoredAny>,
    place: &str,
    known: &[&str],
    problems: &mut Vec<Problem>,
) {
    for key in keys.keys() {
        let message = format!("unknown key `{}`", key.escape_debug());
        let problem = Problem::new(format!("network.yaml: {place}"), message);
        problems.push(match nearest(key, known.iter().copied()) {
            Some(meant) => problem.hint(format!("did you mean `{meant}`?")),
            None => problem.hint("it is ignored"),
        });
    }
}

/// `30d`, `12h`, `10m`, `5s`; a bare number is seconds.
pub(crate) fn time(amount: &Amount) -> Option<Duration> {
    let text = match amount {
        Amount::Number(number) => format!("{number}"),
        Amount::Text(text) => text.trim().to_owned(),
    };
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let number: f64 = number.parse().ok()?;
    let unit = match unit.trim() {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        "w" => 604_800.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number * unit).ok().filter(|it| it.as_secs() < 1 << 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let read = |text: &str| time(&Amount::Text(text.to_owned())).map(|it| it.as_secs());
        assert_eq!(read("30d"), Some(30 * 86_400));
        assert_eq!(
            [read("12h"), read("1.5m"), read("7"), read("2w")],
            [Some(43_200), Some(90), Some(7), Some(1_209_600)]
        );
        for bad in ["", "d", "30y", "-1s", "1e999d", "..s"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
