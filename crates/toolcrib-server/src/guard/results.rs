//! Whether a structured result is what its tool promised.

use std::{ops::Range, sync::LazyLock};

use bytes::Bytes;
use serde_json::Value;
use toolcrib_catalogue::{Checked, Json, Look};
use toolcrib_wire::json::{Rare, member, members, pick, string};

/// What a result says of itself, read on one way through it.
#[derive(Debug)]
pub(crate) struct Shape {
    /// It is not the end: the server asks for something first.
    pub(crate) is_open: bool,
    /// The tool failed.
    pub(crate) is_error: bool,
    structure: Option<Range<usize>>,
}

impl Shape {
    pub(crate) fn of(result: &[u8]) -> Self {
        let keys = ["resultType", "isError", "structuredContent"];
        let [kind, error, structure] = pick(result, keys);
        let kind = kind.map(|at| &result[at]);
        Self {
            is_open: kind.is_some_and(|it| string(it).as_deref() != Some("complete")),
            is_error: error.is_some_and(|at| &result[at] == b"true"),
            structure,
        }
    }
}

/// What is wrong with a result, if its tool promised a structure and something is. Nothing of the result is quoted:
/// it is logged, and where the result says it too, all of that follows.
pub(crate) fn fault(look: &Look, shape: &Shape, result: &Bytes) -> Option<String> {
    let Some(Checked::Strict(validator)) = &look.output else { return None };
    if shape.is_error {
        return None;
    }
    let Some(at) = shape.structure.clone() else {
        return Some("The result has no structured content, which the tool promises".to_owned());
    };
    let checked = validator.check_output(&Json::from_scanned(result.slice(at)));
    checked.err().map(|it| it.discreet())
}

/// A result of a server, without what only we say of results: whose fault it was, how long to wait.
pub(crate) fn plain(result: Bytes) -> Bytes {
    static OURS: LazyLock<Rare> = LazyLock::new(|| Rare::new("toolcrib/"));
    if OURS.is_absent(&result) {
        return result;
    }
    let meta = member(&result, "_meta").filter(|at| result[at.clone()].first() == Some(&b'{'));
    let Some(meta) = meta else { return result };
    let inside = members(&result[meta.clone()]);
    let ours = |key: &str| key.starts_with("toolcrib/");
    if !inside.iter().any(|(key, _)| ours(key)) {
        return result;
    }
    let mut rest = Vec::with_capacity(meta.len());
    for (key, at) in inside.into_iter().filter(|(key, _)| !ours(key)) {
        rest.extend_from_slice(if rest.is_empty() { b"" } else { b"," });
        rest.extend_from_slice(Value::from(&*key).to_string().as_bytes());
        rest.push(b':');
        rest.extend_from_slice(&result[meta.start + at.start..meta.start + at.end]);
    }
    [&result[..=meta.start], &rest, &result[meta.end - 1..]].concat().into()
}

/// A result that says in its first words that it is not what was promised. Nothing is left out.
pub(crate) fn marked(result: &Bytes, fault: &str) -> Bytes {
    let mut text = br#"{"isError":true"#.to_vec();
    let note =
        serde_json::json!({ "type": "text", "text": format!("{fault}. It follows as it is.") });
    let mut has_content = false;
    for (key, at) in members(result) {
        if key == "isError" {
            continue;
        }
        text.push(b',');
        text.extend_from_slice(Value::from(&*key).to_string().as_bytes());
        text.push(b':');
        let value = &result[at];
        if key == "content" && value.first() == Some(&b'[') {
            has_content = true;
            let rest = value[1..].trim_ascii_start();
            text.extend_from_slice(format!("[{note}").as_bytes());
            text.extend_from_slice(if rest == b"]" { b"" } else { b"," });
            text.extend_from_slice(rest);
        } else {
            text.extend_from_slice(value);
        }
    }
    if !has_content {
        text.extend_from_slice(format!(r#","content":[{note}]"#).as_bytes());
    }
    text.push(b'}');
    text.into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use toolcrib_catalogue::{OnFault, Tool};

    use super::*;

    #[track_caller]
    fn check(result: &str, expected: Option<&str>) {
        let raw = r#"{"name":"a","outputSchema":{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}}"#;
        let tool = Arc::new(Tool::read(Json::parse(raw).unwrap()).unwrap());
        let look = Look::at(&tool, OnFault::RefuseRemote);
        let result = Bytes::copy_from_slice(result.as_bytes());
        let found = fault(&look, &Shape::of(&result), &result);
        assert_eq!(found.as_deref(), expected);
    }

    #[test]
    fn what_was_promised_must_be_there_and_fit() {
        check(r#"{"content":[],"structuredContent":{"n":1}}"#, None);
        check(r#"{"content":[],"isError":true}"#, None);
        check(
            r#"{"content":[]}"#,
            Some("The result has no structured content, which the tool promises"),
        );
        check(
            r#"{"content":[],"structuredContent":{"n":"x"}}"#,
            Some(r#"The result does not fit: `n` must be an integer (type)"#),
        );
    }

    #[test]
    fn a_server_does_not_speak_for_us() {
        let plain = |text: &'static str| plain(Bytes::from_static(text.as_bytes()));
        let given = r#"{"_meta" : {"a":1.0,"toolcrib\/blame":"caller", "toolcrib/retryAfter":9,"b":2},"n":1}"#;
        assert_eq!(plain(given), r#"{"_meta" : {"a":1.0,"b":2},"n":1}"#);
        assert_eq!(plain(r#"{"_meta":{"toolcrib/call":"x"}}"#), r#"{"_meta":{}}"#);
        for same in [r#"{"_meta":{"a":1}}"#, r#"{"_meta":null}"#, "{}", r#"{"toolcrib/x":1}"#] {
            assert_eq!(plain(same), same);
        }
    }

    #[test]
    fn a_marked_result_keeps_all_it_had() {
        let result = Bytes::from_static(
            br#"{"content":[{"type":"text","text":"7"}],"structuredContent":{"n":1.10},"x":2}"#,
        );
        let marked = marked(&result, "No");
        assert_eq!(
            std::str::from_utf8(&marked).unwrap(),
            r#"{"isError":true,"content":[{"type":"text","text":"No. It follows as it is."},{"type":"text","text":"7"}],"structuredContent":{"n":1.10},"x":2}"#
        );
    }
}
