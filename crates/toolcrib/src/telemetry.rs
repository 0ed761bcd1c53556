//! `telemetry` and `metrics` of `network.yaml`: where traces go, and who may read what is counted.
//!
//! What OpenTelemetry's own variables say counts where the file says nothing.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::{Deserialize, de::IgnoredAny};
use toolcrib_catalogue::Problem;
use toolcrib_server::{Scraping, TraceSettings};
use toolcrib_sources::mcp::{Filled, Lookup, is_plain_http, is_written_secret};
use toolcrib_wire::{Endpoint, text::Masker};

use crate::{
    guard::Word,
    network::{NetworkError, WRITTEN_OUT, unknown},
};

/// Where traces go.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub(crate) struct WrittenTelemetry {
    /// The collector: `http://127.0.0.1:4318`. `off` sends nothing, whatever the environment says.
    #[schemars(with = "Option<String>")]
    otlp: Option<Word>,
    /// What goes along with every request; `${NAME}` stands for a variable.
    headers: BTreeMap<String, String>,
    /// Which share of the traces that begin here is sent, from 0 to 1.
    sample: Option<f64>,
    /// What the gateway is called there.
    service: Option<String>,
    /// A file of certificates to trust besides the system's.
    #[schemars(with = "Option<String>")]
    ca: Option<std::path::PathBuf>,
    #[serde(flatten)]
    #[schemars(skip)]
    other: BTreeMap<String, IgnoredAny>,
}

/// Who may read `/metrics`, besides operators.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub(crate) struct WrittenMetrics {
    /// Everybody who reaches the gateway.
    open: bool,
    /// The variable that has a token which is good for `/metrics` alone.
    token_env: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    other: BTreeMap<String, IgnoredAny>,
}

/// What `metrics` means.
pub(crate) fn resolve_metrics(
    written: Option<WrittenMetrics>,
    lookup: Lookup<'_>,
    problems: &mut Vec<Problem>,
) -> Result<Scraping, NetworkError> {
    let WrittenMetrics { open, token_env, other } = written.unwrap_or_default();
    unknown(&other, "metrics: ", &["open", "token_env"], &[], problems);
    let token = match token_env {
        None => None,
        Some(name) => match lookup(&name).filter(|it| !it.trim().is_empty()) {
            Some(token) => Some(token),
            None => {
                let cause = format!("the variable `{name}` is not set");
                return Err(NetworkError::Token { key: "metrics: token_env".to_owned(), cause });
            }
        },
    };
    Ok(Scraping { open, token })
}

/// What `telemetry` means: nothing where no traces are sent.
pub(crate) fn resolve(
    written: Option<WrittenTelemetry>,
    folder: &std::path::Path,
    lookup: Lookup<'_>,
    problems: &mut Vec<Problem>,
) -> Result<Option<TraceSettings>, NetworkError> {
    let written = written.unwrap_or_default();
    let keys = ["otlp", "headers", "sample", "service", "ca"];
    unknown(&written.other, "telemetry: ", &keys, &[], problems);
    let given = |name: &str| lookup(name).filter(|it| !it.trim().is_empty());
    let url = match written.otlp.as_ref().map(Word::as_str) {
        Some("off") => return Ok(None),
        Some(text) => Some(("telemetry: otlp", at_traces(&filled(text, lookup, problems)))),
        None if given("OTEL_SDK_DISABLED").is_some_and(|it| it.eq_ignore_ascii_case("true")) => {
            None
        }
        None => from_environment(&given, problems),
    };
    let Some((place, url)) = url else { return Ok(None) };
    let sample = share(written.sample, &given, problems)?;
    let headers = match written.headers.is_empty() {
        true => given("OTEL_EXPORTER_OTLP_HEADERS").map(|it| listed(&it)).unwrap_or_default(),
        false => written_headers(&written.headers, lookup, problems),
    };
    let secrets: Vec<String> = headers.iter().map(|(_, value)| value.clone()).collect();
    let endpoint = Endpoint {
        url: address(&url, place, problems)?,
        headers: header_map(headers)?,
        ca: written.ca.map(|it| folder.join(it)),
        read_timeout: None,
    };
    let service = written.service.or_else(|| given("OTEL_SERVICE_NAME"));
    let service = service.unwrap_or_else(|| "toolcrib".to_owned());
    Ok(Some(TraceSettings { endpoint, sample, service, masker: Masker::new(secrets) }))
}

/// The address that OpenTelemetry's variables name.
fn from_environment(
    given: &dyn Fn(&str) -> Option<String>,
    problems: &mut Vec<Problem>,
) -> Option<(&'static str, String)> {
    let traces = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
    let all = "OTEL_EXPORTER_OTLP_ENDPOINT";
    // The one for traces is taken as it stands.
    let found = given(traces).map(|it| (traces, it));
    let found = found.or_else(|| given(all).map(|it| (all, at_traces(&it))))?;
    let protocol = given("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL");
    let protocol = protocol.or_else(|| given("OTEL_EXPORTER_OTLP_PROTOCOL"));
    if protocol.is_some_and(|it| it == "grpc") {
        let message = "traces are sent as `http/json`, and it says `grpc`";
        let hint = "name the collector's HTTP address, which most have at port 4318";
        problems.push(Problem::warning("OTEL_EXPORTER_OTLP_PROTOCOL", message).hint(hint));
    }
    Some(found)
}

/// Where traces go at a collector.
fn at_traces(base: &str) -> String {
    format!("{}/v1/traces", base.trim().trim_end_matches('/'))
}

fn share(
    written: Option<f64>,
    given: &dyn Fn(&str) -> Option<String>,
    problems: &mut Vec<Problem>,
) -> Result<f64, NetworkError> {
    let good = |it: &f64| (0.0..=1.0).contains(it);
    if let Some(sample) = written {
        let cause = "it is a number from 0 to 1".to_owned();
        let key = "telemetry: sample".to_owned();
        return Some(sample).filter(good).ok_or(NetworkError::Value { key, cause });
    }
    let Some(text) = given("OTEL_TRACES_SAMPLER_ARG") else { return Ok(1.0) };
    let sample = text.trim().parse().ok().filter(good);
    if sample.is_none() {
        let message = "it is no number from 0 to 1, so all traces are sent";
        problems.push(Problem::warning("OTEL_TRACES_SAMPLER_ARG", message));
    }
    Ok(sample.unwrap_or(1.0))
}

fn filled(text: &str, lookup: Lookup<'_>, problems: &mut Vec<Problem>) -> String {
    if is_written_secret("", text) {
        let hint = "put it into a variable, and write ${NAME}";
        problems.push(Problem::warning("network.yaml: telemetry: otlp", WRITTEN_OUT).hint(hint));
    }
    fill("otlp", text, lookup, problems)
}

fn fill(key: &str, text: &str, lookup: Lookup<'_>, problems: &mut Vec<Problem>) -> String {
    let filled = Filled::new(text, lookup);
    for unset in &filled.unset {
        let place = format!("network.yaml: telemetry: {key}");
        problems.push(Problem::new(place, format!("the variable `{unset}` is not set")));
    }
    filled.value().to_owned()
}

fn written_headers(
    written: &BTreeMap<String, String>,
    lookup: Lookup<'_>,
    problems: &mut Vec<Problem>,
) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    for (name, text) in written {
        let key = format!("headers: {}", name.escape_debug());
        if is_written_secret(name, text) {
            let place = format!("network.yaml: telemetry: {key}");
            let hint = "put it into a variable, and write ${NAME}";
            problems.push(Problem::warning(place, WRITTEN_OUT).hint(hint));
        }
        headers.push((name.clone(), fill(&key, text, lookup, problems)));
    }
    headers
}

/// `name=value,name=value`, with what is special in values written `%20`.
fn listed(text: &str) -> Vec<(String, String)> {
    let pairs = text.split(',').filter_map(|it| it.split_once('='));
    pairs.map(|(name, value)| (name.trim().to_owned(), decoded(value.trim()))).collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|it| std::str::from_utf8(it).ok());
        let value = digits.and_then(|it| u8::from_str_radix(it, 16).ok());
        match value.filter(|_| *first == b'%') {
            Some(value) => {
                bytes.push(value);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn header_map(headers: Vec<(String, String)>) -> Result<HeaderMap, NetworkError> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let known = (HeaderName::try_from(name.as_str()), HeaderValue::try_from(value));
        let (Ok(name), Ok(mut value)) = known else {
            let cause = format!("`{}` cannot be sent", name.escape_debug());
            return Err(NetworkError::Value { key: "telemetry: headers".to_owned(), cause });
        };
        value.set_sensitive(true);
        map.insert(name, value);
    }
    Ok(map)
}

fn address(
    text: &str,
    place: &str,
    problems: &mut Vec<Problem>,
) -> Result<http::Uri, NetworkError> {
    let url = text.parse::<http::Uri>().ok();
    let good =
        |it: &http::Uri| matches!(it.scheme_str(), Some("http" | "https")) && it.host().is_some();
    let url = url.filter(good).ok_or_else(|| NetworkError::Value {
        key: place.to_owned(),
        cause: "it is no address such as http://127.0.0.1:4318".to_owned(),
    })?;
    if is_plain_http(text) {
        let message = "whatever goes there can be read and changed on the way: `http://`";
        let problem = Problem::warning(format!("network.yaml: {place}"), message);
        problems.push(problem.hint("write https:// if the collector can"));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    type Found = Result<(Option<TraceSettings>, Vec<String>), String>;

    fn read(text: &str, variables: &[(&str, &str)]) -> Found {
        let options = serde_saphyr::options! { strict_booleans: true };
        let written = serde_saphyr::from_str_with_options(text, options).unwrap();
        let lookup = |name: &str| {
            let found = variables.iter().find(|(it, _)| *it == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let mut problems = Vec::new();
        let found = resolve(Some(written), Path::new("/w"), &lookup, &mut problems);
        let told = problems.iter().map(|it| format!("{}: {}", it.subject, it.message)).collect();
        found.map(|it| (it, told)).map_err(|it| it.to_string())
    }

    fn url(found: &Found) -> String {
        let settings = found.as_ref().unwrap().0.as_ref();
        settings.map(|it| it.endpoint.url.to_string()).unwrap_or_default()
    }

    #[test]
    fn the_file_counts_before_the_environment() {
        let env = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318/"),
            ("OTEL_SERVICE_NAME", "crib"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.5"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, x = y"),
            ("TOKEN", "secret"),
        ];
        assert!(read("{}", &[]).unwrap().0.is_none());
        let found = read("{}", &env);
        assert_eq!(url(&found), "http://localhost:4318/v1/traces");
        let (settings, told) = found.unwrap();
        let settings = settings.unwrap();
        assert_eq!((settings.sample, settings.service.as_str(), told.len()), (0.5, "crib", 0));
        assert_eq!(settings.endpoint.headers["api-key"], "a b");
        assert_eq!(settings.endpoint.headers["x"], "y");
        let text = "{ otlp: 'https://c.example/base/', sample: 1, service: s, headers: { a: '${TOKEN}' } }";
        let found = read(text, &env);
        assert_eq!(url(&found), "https://c.example/base/v1/traces");
        let settings = found.unwrap().0.unwrap();
        assert_eq!((settings.sample, settings.service.as_str()), (1.0, "s"));
        assert_eq!(settings.endpoint.headers["a"], "secret");
        assert!(!format!("{settings:?}").contains("secret"));
        assert_eq!(settings.masker.mask("it is secret"), "it is ****");
        assert!(read("{ otlp: off }", &env).unwrap().0.is_none());
        assert!(read("{ otlp: false }", &env).unwrap().0.is_none());
    }

    #[test]
    fn the_variable_for_traces_is_taken_as_it_stands() {
        let env = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:1"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://localhost:2/here"),
        ];
        assert_eq!(url(&read("{}", &env)), "http://localhost:2/here");
        let disabled = [env[0], env[1], ("OTEL_SDK_DISABLED", "true")];
        assert!(read("{}", &disabled).unwrap().0.is_none());
    }

    #[test]
    fn what_is_wrong_or_careless_is_told() {
        let cause = read("{ otlp: nowhere }", &[]).unwrap_err();
        assert!(cause.contains("telemetry: otlp: it is no address"), "{cause}");
        let cause = read("{ otlp: 'http://localhost:1', sample: 2 }", &[]).unwrap_err();
        assert!(cause.contains("from 0 to 1"), "{cause}");
        let told = |text: &str, env: &[(&str, &str)]| read(text, env).unwrap().1;
        let clear = told("{ otlp: 'http://collector.example:4318' }", &[]);
        assert!(clear[0].contains("can be read and changed on the way"), "{clear:?}");
        let unset = told("{ otlp: 'http://localhost:1', headers: { a: '${NONE}' } }", &[]);
        assert_eq!(unset, ["network.yaml: telemetry: headers: a: the variable `NONE` is not set"]);
        let grpc = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4317"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ];
        assert!(told("{}", &grpc)[0].contains("it says `grpc`"));
        assert_eq!(told("{ sampel: 1 }", &[]).len(), 1);
    }

    #[test]
    fn a_token_for_metrics_that_is_not_there_refuses_the_start() {
        let none = |_: &str| None;
        let written = || WrittenMetrics { token_env: Some("X".to_owned()), ..Default::default() };
        let cause = resolve_metrics(Some(written()), &none, &mut Vec::new()).unwrap_err();
        assert!(cause.to_string().contains("the variable `X` is not set"), "{cause}");
        let some = |_: &str| Some("t".to_owned());
        let found = resolve_metrics(Some(written()), &some, &mut Vec::new()).unwrap();
        assert_eq!(format!("{found:?}"), r#"Scraping { open: false, token: Some("****") }"#);
    }
}
