//! Seed 003, against what the original network did when it was run: how `network.yaml` is understood, and
//! what the door answers. Each row runs against a real gateway.

use serde_json::{Value, json};

use super::{Verdict, events, tools};
use crate::{
    kit::{Folder, run},
    serving::Serving,
};

/// Rows about the original's own agent interface, which no seed asks for.
const OUT_OF_SCOPE: [&str; 5] = ["a", "cfg19", "cfg21", "cfg22", "cfg23"];

pub(crate) fn verdict(row: &Value, live: &Value) -> Verdict {
    let id = row["id"].as_str().unwrap();
    if OUT_OF_SCOPE.iter().any(|it| id.starts_with(it)) {
        return Verdict::Skip("out of scope");
    }
    match row["kind"].as_str().unwrap() {
        "network_config" => network_config(row),
        "live_http" => live_http(row, live),
        "workspace" => tools::workspace(row),
        "collector" if id.starts_with("col07") => events::conflict(row),
        "collector" => tools::collector(row),
        "event" => events::event(row),
        "subscription_pattern" => events::patterns(row),
        "event_envelope_defaults" => events::envelope(row),
        kind => Verdict::Other(format!("unknown kind {kind}")),
    }
}

fn folder_with(network: &str, files: &Value) -> Folder {
    let folder = Folder::new();
    folder.write("network.yaml", network);
    for (name, text) in files.as_object().into_iter().flatten() {
        folder.write(name, text.as_str().unwrap());
    }
    folder
}

fn initialize() -> Value {
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "t", "version": "1" } });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })
}

fn network_config(row: &Value) -> Verdict {
    let output = &row["output"];
    let folder = folder_with(row["network_yaml"].as_str().unwrap(), &row["files"]);
    let env: Vec<(&str, &str)> = row["env"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.as_str(), value.as_str().unwrap_or_default()))
        .collect();
    if let Some(refusal) = refusal(&folder, &env) {
        // A token that is configured and cannot be had left the original's door open.
        let token = row["network_yaml"].as_str().unwrap().contains("auth_token");
        if refusal.contains("Tool name conflict") {
            return conflict(output, &refusal);
        }
        if token && output["auth_token_effective"].is_null() {
            let held = if refusal.contains("auth_token") { Ok(()) } else { Err(refusal) };
            return Verdict::Class("closed-door", held);
        }
        return Verdict::Other(refusal);
    }
    let serving = Serving::start_with(folder.path(), &env);
    let token = output["auth_token_effective"].as_str();
    let without = serving.post(&[], &initialize());
    if (without.status == 401) != token.is_some() {
        return Verdict::Other(format!("{} without a token", without.status));
    }
    let header = format!("Bearer {}", token.unwrap_or("any"));
    let with = serving.post(&[("Authorization", &header)], &initialize());
    if with.status != 200 {
        return Verdict::Other(format!("{} with the token", with.status));
    }
    let found = &with.json()["result"]["instructions"];
    let expected = output["instructions"].as_str().unwrap_or_default();
    if found.as_str() == Some(expected) {
        return Verdict::Pass;
    }
    if expected.starts_with("OpenAgents Network: ") {
        let held = if found.is_null() { Ok(()) } else { Err(found.to_string()) };
        return Verdict::Class("no-made-up-instructions", held);
    }
    Verdict::Other(found.to_string())
}

/// Two tools of one name. The original's HTTP door swallowed that, and served what it had found before.
fn conflict(output: &Value, refusal: &str) -> Verdict {
    let lines = output["log_warnings_and_errors"].as_array().unwrap();
    let sentence = lines
        .iter()
        .find_map(|it| it.as_str()?.find("Tool name").map(|at| &it.as_str().unwrap()[at..]));
    let same = sentence.is_some_and(|it| refusal.contains(it));
    match output["network_initialize"].as_bool() {
        Some(false) if same => Verdict::Pass,
        _ => {
            Verdict::Class("conflicts-refuse", if same { Ok(()) } else { Err(refusal.to_owned()) })
        }
    }
}

/// What a gateway says that does not want to start; nothing where it would.
fn refusal(folder: &Folder, env: &[(&str, &str)]) -> Option<String> {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_toolcrib"));
    command.args(["serve", "--stdio"]).envs(env.iter().copied()).current_dir(folder.path());
    let run = run(command.stdin(std::process::Stdio::null()));
    (run.code != 0).then_some(run.err)
}

fn live_http(row: &Value, live: &Value) -> Verdict {
    let mut files = live.clone();
    let network = files.as_object_mut().unwrap().remove("network.yaml").unwrap();
    let folder = folder_with(network.as_str().unwrap(), &files);
    folder.write("instructions.md", "Be kind.");
    let serving = Serving::start(folder.path());
    let (request, response) = (&row["request"], &row["response"]);
    let session = serving.session(&[("Authorization", "Bearer s3cret")], "2025-06-18");
    let gone = row["id"].as_str().unwrap().starts_with("m40");
    let headers: Vec<(String, String)> = request["headers"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| {
            let value = value.as_str().unwrap();
            // The token was changed while the original ran.
            if value == "Bearer changed" {
                return (name.clone(), "Bearer s3cret".to_owned());
            }
            // The session that the original's rows share.
            let ours = name == "Mcp-Session-Id" && value != "bogus";
            (name.clone(), if ours { session.clone() } else { value.to_owned() })
        })
        .collect();
    let in_session = headers.iter().any(|(name, _)| name == "Mcp-Session-Id");
    let also = (row["id"].as_str().unwrap().starts_with('b') && !in_session)
        .then(|| ("Mcp-Session-Id".to_owned(), session.clone()));
    let headers: Vec<(String, String)> = headers.into_iter().chain(also).collect();
    let headers: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let method = request["method"].as_str().unwrap();
    let path = request["url"].as_str().unwrap().split('>').nth(1).unwrap();
    let body = if request["body"].is_null() { String::new() } else { request["body"].to_string() };
    if gone {
        serving.request("DELETE", "/mcp", &headers, "");
    }
    if method == "GET" && response["headers"]["Content-Type"] == "text/event-stream" {
        let found = serving.head("GET", path, &headers);
        let stream = found.1.contains("text/event-stream");
        return if stream { Verdict::Pass } else { Verdict::Other(found.1) };
    }
    let answer = if row["elapsed_s"].is_number() {
        during_a_slow_call(&serving, &headers, || serving.request(method, path, &headers, &body))
    } else {
        serving.request(method, path, &headers, &body)
    };
    let expected = response["status"].as_u64().unwrap();
    let defect = row["note"].as_str().unwrap_or_default();
    if u64::from(answer.status) != expected {
        let unauthenticated = !headers.iter().any(|(name, _)| *name == "Authorization");
        if unauthenticated && expected == 200 && !defect.is_empty() {
            let held = if answer.status == 401 { Ok(()) } else { Err(answer.status.to_string()) };
            return Verdict::Class("closed-door", held);
        }
        return Verdict::Other(answer.status.to_string());
    }
    if let Some(code) = response["body"]["error"]["code"].as_i64() {
        let found = answer.json();
        let same = found["error"]["code"] == code && found["id"] == response["body"]["id"];
        return if same { Verdict::Pass } else { Verdict::Other(found.to_string()) };
    }
    if !response["body"]["result"].is_null() && answer.json() != response["body"] {
        let guide = answer.body.replacen("Invalid input: ", "Error: ", 1);
        if serde_json::from_str::<Value>(&guide).unwrap() == response["body"] {
            return Verdict::Class("guide-errors", Ok(()));
        }
        let mut result = answer.json()["result"].clone();
        // The id of the call, which is another one each time.
        result["_meta"].as_object_mut().map(|it| it.shift_remove("toolcrib/call"));
        if result["_meta"].is_null() {
            result.as_object_mut().unwrap().shift_remove("_meta");
        }
        return Verdict::Other(events::steady(&result.to_string()));
    }
    let needs = response["headers"]["WWW-Authenticate"].as_str();
    if needs.is_some() && answer.header("www-authenticate").as_deref() != needs {
        return Verdict::Other("no WWW-Authenticate".to_owned());
    }
    Verdict::Pass
}

/// What is answered while a plain function sleeps, which must not take as long as that.
fn during_a_slow_call(
    serving: &Serving,
    headers: &[(&str, &str)],
    request: impl FnOnce() -> crate::serving::Answer,
) -> crate::serving::Answer {
    std::thread::scope(|scope| {
        let call = json!({ "jsonrpc": "2.0", "id": 99, "method": "tools/call",
            "params": { "name": "slow_sync", "arguments": { "seconds": 1.5 } } });
        scope.spawn(move || serving.post(headers, &call));
        std::thread::sleep(std::time::Duration::from_millis(300));
        let begin = std::time::Instant::now();
        let answer = request();
        assert!(begin.elapsed() < std::time::Duration::from_secs(1), "it waited");
        answer
    })
}
