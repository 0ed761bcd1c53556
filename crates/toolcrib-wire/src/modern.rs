//! What a request of the modern era must say of itself, over HTTP: in `_meta`, and again in headers, so
//! that whoever stands between need not read the body. The two must agree.

use std::{borrow::Cow, sync::LazyLock};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde_json::json;

use crate::{
    Fields,
    frame::RpcError,
    json::{self, Rare},
    mirror::Mirrored,
    revision::{META_CAPABILITIES, META_VERSION, Revision},
};

/// Headers and body disagree.
pub const HEADER_MISMATCH: i64 = -32020;

/// We do not speak that revision.
pub const UNSUPPORTED_VERSION: i64 = -32022;

const VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// Whether a request says of itself that it is modern: in its `_meta`, or by a version that no legacy
/// client sends.
pub fn is_modern(headers: &Fields, method: &str, params: Option<&Bytes>) -> bool {
    let in_body = || params.is_some_and(|it| meta_member(it, META_VERSION).is_some());
    if method == "initialize" {
        // Whatever version a handshake names, it is one. Without any, it is a modern request for what
        // the modern era no longer has.
        let names = params.is_some_and(|it| json::member(it, "protocolVersion").is_some());
        return !names && in_body();
    }
    let header = headers.text(VERSION);
    let in_header = header.is_some_and(|it| Revision::V2026_07_28.as_str() <= it);
    in_header || in_body()
}

/// Checks what a modern request says of itself over HTTP: in its `_meta`, and in its headers.
pub fn check(headers: &Fields, method: &str, params: Option<&Bytes>) -> Result<(), RpcError> {
    let params = params.map_or(&b"{}"[..], |it| it);
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => "",
    };
    let [name, meta] = json::pick(params, [key, "_meta"]);
    let version = version_of(meta.map_or(b"", |at| &params[at]))?;
    agree(headers, VERSION, &version)?;
    supported(&version)?;
    agree(headers, METHOD, method)?;
    let name = name.filter(|_| !key.is_empty()).and_then(|at| json::string(&params[at]));
    match name {
        Some(name) => agree(headers, NAME, &name),
        // Without one, the request is refused for that.
        None => Ok(()),
    }
}

/// What kind of result this is, if it is not a complete one. Most say nothing, and are not read for that.
pub fn unfinished(result: &[u8]) -> Option<String> {
    static KIND: LazyLock<Rare> = LazyLock::new(|| Rare::new("resultType"));
    let at = KIND.member(result)?;
    let kind: String = serde_json::from_slice(&result[at]).unwrap_or_default();
    (kind != "complete").then_some(kind)
}

/// Whether the headers of a call say what its arguments say, where the tool wants some of them there.
pub fn check_mirrored(
    headers: &Fields,
    mirrored: &[Mirrored],
    params: &[u8],
) -> Result<(), RpcError> {
    let arguments = json::member(params, "arguments").map(|at| &params[at]);
    let arguments = arguments.and_then(|it| serde_json::from_slice(it).ok()).unwrap_or_default();
    mirrored.iter().try_for_each(|it| match it.text(&arguments) {
        Some(text) => agree(headers, it.header().as_str(), &text),
        None if headers.get(it.header().as_str()).is_some() => {
            let message = format!("Header mismatch: `{}` has no argument", it.header());
            Err(RpcError { code: HEADER_MISMATCH, message, data: None })
        }
        None => Ok(()),
    })
}

/// Checks what a modern request says of itself where there are no headers.
pub fn check_meta(params: Option<&Bytes>) -> Result<(), RpcError> {
    let meta = params.and_then(|it| Some(&it[json::member(it, "_meta")?]));
    supported(&version_of(meta.unwrap_or_default())?)
}

/// The revision of a request whose `_meta` says all it must.
fn version_of(meta: &[u8]) -> Result<Cow<'_, str>, RpcError> {
    let [version, capabilities] = json::pick(meta, [META_VERSION, META_CAPABILITIES]);
    let Some(version) = version.and_then(|at| json::string(&meta[at])) else {
        return Err(invalid(format!("`_meta` must hold `{META_VERSION}`")));
    };
    if capabilities.is_none_or(|at| meta[at].first() != Some(&b'{')) {
        return Err(invalid(format!("`_meta` must hold the object `{META_CAPABILITIES}`")));
    }
    Ok(version)
}

fn supported(version: &str) -> Result<(), RpcError> {
    if version == Revision::V2026_07_28.as_str() {
        return Ok(());
    }
    let data = json!({ "supported": [Revision::V2026_07_28.as_str()], "requested": version });
    Err(RpcError {
        code: UNSUPPORTED_VERSION,
        message: "Unsupported protocol version".to_owned(),
        data: Some(data.to_string().into()),
    })
}

fn invalid(message: String) -> RpcError {
    RpcError { code: -32602, message, data: None }
}

fn meta_member(params: &Bytes, key: &str) -> Option<Bytes> {
    let meta = params.slice(json::member(params, "_meta")?);
    let range = json::member(&meta, key)?;
    Some(meta.slice(range))
}

/// Whether a header is there once and says what the body says.
fn agree(headers: &Fields, name: &str, body: &str) -> Result<(), RpcError> {
    let mut values = headers.all(name);
    let fault = match (values.next(), values.next()) {
        (None, _) => "is missing",
        (Some(_), Some(_)) => "stands there twice",
        (Some(value), None) if says(value, body) => return Ok(()),
        (Some(_), None) => "does not say what the body says",
    };
    let message = format!("Header mismatch: `{name}` {fault}");
    Err(RpcError { code: HEADER_MISMATCH, message, data: None })
}

/// Whether a header says this, its base64 form undone.
fn says(value: &[u8], body: &str) -> bool {
    let value = value.trim_ascii();
    let inside = value.strip_prefix(b"=?base64?").and_then(|it| it.strip_suffix(b"?="));
    match inside {
        None => value == body.as_bytes(),
        Some(inside) => STANDARD.decode(inside).is_ok_and(|it| it == body.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> Fields {
        let mut headers = http::HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        Fields::from(&headers)
    }

    #[track_caller]
    fn check_call(pairs: &[(&'static str, &'static str)], meta: &str, expected: &str) {
        let params = Bytes::from(format!(r#"{{"name":"é","_meta":{{{meta}}}}}"#));
        let found = check(&headers(pairs), "tools/call", Some(&params));
        let found = found.map_err(|it| format!("{} {}", it.code, it.message));
        assert_eq!(found.err().as_deref().unwrap_or("ok"), expected);
    }

    const META: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;
    const VERSION: (&str, &str) = ("mcp-protocol-version", "2026-07-28");
    const METHOD: (&str, &str) = ("mcp-method", "tools/call");
    const NAME: (&str, &str) = ("mcp-name", "=?base64?w6k=?=");

    #[test]
    fn headers_must_say_what_the_body_says() {
        check_call(&[VERSION, METHOD, NAME], META, "ok");
        check_call(&[VERSION, METHOD], META, "-32020 Header mismatch: `mcp-name` is missing");
        check_call(
            &[VERSION, METHOD, ("mcp-name", "other")],
            META,
            "-32020 Header mismatch: `mcp-name` does not say what the body says",
        );
        check_call(
            &[VERSION, METHOD, NAME, NAME],
            META,
            "-32020 Header mismatch: `mcp-name` stands there twice",
        );
        check_call(
            &[VERSION, ("mcp-method", "tools/list"), NAME],
            META,
            "-32020 Header mismatch: `mcp-method` does not say what the body says",
        );
        check_call(
            &[("mcp-protocol-version", "2025-11-25"), METHOD, NAME],
            META,
            "-32020 Header mismatch: `mcp-protocol-version` does not say what the body says",
        );
    }

    #[test]
    fn meta_must_be_there_and_of_a_revision_we_speak() {
        let missing = "-32602 `_meta` must hold `io.modelcontextprotocol/protocolVersion`";
        check_call(&[VERSION, METHOD, NAME], "", missing);
        let newer = META.replace("2026-07-28", "2099-01-01");
        check_call(
            &[("mcp-protocol-version", "2099-01-01"), METHOD, NAME],
            &newer,
            "-32022 Unsupported protocol version",
        );
    }
}
