//! The masker, and the reader of frames, under fire.

use bytes::Bytes;
use serde_json::{Value, json};
use toolcrib_wire::{
    Frame,
    frame::{notification, request},
    text::Masker,
};

use super::fuzz;

const WORDS: &[&str] = &[
    "password",
    "token=",
    "api_key",
    "Bearer ",
    "Basic ",
    "dXNlcjpwYXNz",
    "https://",
    "u:p@",
    "-----BEGIN PRIVATE KEY-----",
    "-----END PRIVATE KEY-----",
    "ghp_",
    "sk-",
    "eyJhbGciOiJIUzI1NiJ9.",
    "0123456789abcdefABCDEF0123456789abcdef",
    "AKIA",
    "****",
    "pl4nted-secret",
    "Cookie: ",
    "\\\"",
    "\\n",
    "%20",
    "jsonrpc",
    "2.0",
    "method",
    "params",
    "id",
    "result",
    "error",
];

/// Masking twice is masking once; JSON stays JSON; what is planted is gone, wherever it came to stand.
#[test]
fn fuzz_masker() {
    let masker = Masker::new(["pl4nted-secret".to_owned(), "*star*".to_owned()]);
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let seeds = [
        json!({ "password": "x", "list": [{ "apiKey": 1 }, "Bearer abc123def456"], "n": 1.5 }).to_string(),
        json!({ "body": json!({ "token": "pl4nted-secret", "deep": ["[1, {"] }).to_string() }).to_string(),
        format!("GET /x?token=abc&y=1 Authorization: Basic dXNlcjpwYXNz\nCookie: a=b {token}"),
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\n-----END PRIVATE KEY----- postgres://u:p@h".to_owned(),
    ];
    let seeds: Vec<Vec<u8>> = seeds.into_iter().map(String::into_bytes).collect();
    fuzz("masker", &seeds, WORDS, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let masked = masker.mask(&text);
        assert!(!masked.contains("pl4nted-secret"));
        assert_eq!(masker.mask(&masked), masked);
        let masked = masker.mask_json(&text);
        assert!(!masked.contains("pl4nted-secret"));
        assert_eq!(masker.mask_json(&masked), masked);
        if let Ok(value) = serde_json::from_str::<Value>(&text) {
            let masked: Value = serde_json::from_str(&masked).unwrap();
            check_names(&value, &masked);
        }
    });
}

/// What stood under such a name is gone.
fn check_names(value: &Value, masked: &Value) {
    match (value, masked) {
        (Value::Array(list), Value::Array(masked)) => {
            assert_eq!(list.len(), masked.len());
            list.iter().zip(masked).for_each(|(value, masked)| check_names(value, masked));
        }
        (Value::Object(members), Value::Object(masked)) => {
            for (key, value) in members {
                let Some(masked) = masked.get(key) else { continue };
                if key == "password" && !value.is_boolean() && !value.is_null() && *value != "" {
                    assert!(*masked == "****" || masked.is_object() || masked.is_array());
                }
                check_names(value, masked);
            }
        }
        _ => {}
    }
}

/// A frame is refused, or what it holds is JSON that comes out again as it went in.
#[test]
fn fuzz_frames() {
    let seeds = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "a", "arguments": {} } }),
        json!({ "jsonrpc": "2.0", "id": "x", "result": { "content": [] } }),
        json!({ "jsonrpc": "2.0", "id": 7, "error": { "code": -32602, "message": "no", "data": [1] } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progress": 1 } }),
    ];
    let seeds: Vec<Vec<u8>> = seeds.iter().map(|it| serde_json::to_vec(it).unwrap()).collect();
    fuzz("frames", &seeds, WORDS, |bytes| {
        let text = Bytes::copy_from_slice(bytes);
        let Ok(frame) = Frame::read(&text) else { return };
        let whole: Value = serde_json::from_slice(bytes).unwrap();
        let written = match frame {
            Frame::Request { id, method, params } => request(&id, &method, params.as_deref()),
            Frame::Notification { method, params } => notification(&method, params.as_deref()),
            Frame::Response { .. } => return assert!(whole.get("method").is_none(), "{whole}"),
        };
        let again: Value = serde_json::from_slice(&written).unwrap();
        for key in ["id", "method", "params"] {
            assert_eq!(again.get(key), whole.get(key), "{whole}");
        }
    });
}
