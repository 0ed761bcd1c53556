//! Seeds 000 and 001, against what the original library did when it was run.

use std::{path::Path, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolcrib::{
    catalogue::{
        CallError, CallTool, ClientError, Convert, Json, McpTool, OneServer, Outcome, PartKind,
        Tool, ToolFilter, ToolServer, ToolServers, convert_mcp_tools, extract_schema,
        load_tools_from_client, load_tools_from_connection, namespace_tool_name,
        parse_namespaced_name,
    },
    sources::mcp::{
        Client, ClientOptions, ExecutionError, Filled, Retry, ServerConfig, Transport,
        call_tool_with_retry, load_mcp_client, load_mcp_config, substitute_env_vars,
    },
};

use super::Verdict;
use crate::kit::Folder;

pub(crate) fn verdict(row: &Value) -> Verdict {
    let (input, output) = (&row["input"], &row["output"]);
    match row["function"].as_str().unwrap() {
        "MCPToolFilter.accepts" => filter(input, output),
        "namespace_tool_name + parse_namespaced_name" => namespace(input, output),
        "parse_namespaced_name" => {
            same(&parsed(input.as_str().unwrap()), &value_or_message(output))
        }
        "extract_schema" => same(&json!(extract_schema(&tool("t", input))), &output["value"]),
        "MCPToolWrapper.execute" => execute(input, output),
        "MCPToolWrapper attributes" => attributes(input, output),
        "convert_mcp_tools" => convert(input, output),
        "load_tools_from_connection" => load_broken(output),
        "load_tools_from_client" => load_all(input, output),
        "substitute_env_vars" => {
            let found = substitute_env_vars(input.as_str().unwrap(), &env);
            same_text(&found, output["value"].as_str().unwrap())
        }
        "load_mcp_config" => config(input.as_str().unwrap(), output),
        "load_mcp_client" => client(input.as_str().unwrap(), output),
        "call_tool_with_retry" => retry(input, output),
        "MCPServerConfig.validate" => validate(input, output),
        "MCPServerConfig()" => {
            let name = input["transport"].as_str().unwrap();
            let text = json!({ "mcpServers": { "s": { "transport": name } } }).to_string();
            config(&text, output)
        }
        "MCPClient.add_server twice same name" => twice(output),
        _ => Verdict::Skip("a function that no seed names"),
    }
}

/// The environment in which the original was run.
fn env(name: &str) -> Option<String> {
    let value = match name {
        "API_KEY" => "secret123",
        "A" => "1",
        "B" => "2",
        " SP " => "sp",
        "X-Y" => "dash",
        "NESTED" => "${A}",
        "EMPTY" => "",
        _ => return None,
    };
    Some(value.to_owned())
}

fn same(found: &Value, expected: &Value) -> Verdict {
    if found == expected { Verdict::Pass } else { Verdict::Other(found.to_string()) }
}

fn same_text(found: &str, expected: &str) -> Verdict {
    if found == expected { Verdict::Pass } else { Verdict::Other(found.to_owned()) }
}

fn value_or_message(output: &Value) -> Value {
    if output["error"].is_null() { output["value"].clone() } else { output["message"].clone() }
}

fn strings(list: &Value) -> Vec<String> {
    let texts = list.as_array().into_iter().flatten();
    texts.map(|it| it.as_str().unwrap().to_owned()).collect()
}

fn tool(name: &str, rest: &Value) -> Tool {
    let mut raw = rest.clone();
    raw["name"] = json!(name);
    Tool::read(Json::of(&raw).unwrap()).unwrap()
}

fn filter(input: &Value, output: &Value) -> Verdict {
    let filter = ToolFilter::new(strings(&input["include"]), strings(&input["exclude"]));
    let names = strings(&input["names"]);
    let found: serde_json::Map<String, Value> =
        names.into_iter().map(|it| (it.clone(), json!(filter.accepts(&it)))).collect();
    same(&Value::Object(found), output)
}

fn parsed(name: &str) -> Value {
    match parse_namespaced_name(name) {
        Ok(it) => json!([it.namespace, it.server, it.tool]),
        Err(error) => json!(error.to_string()),
    }
}

fn namespace(input: &Value, output: &Value) -> Verdict {
    let text = |key: &str| input[key].as_str().unwrap();
    let name = namespace_tool_name(text("tool_name"), text("server_name"), text("namespace"));
    let found = json!([name, parsed(&name), name.chars().count()]);
    let back = value_or_message(&output["parsed_back"]);
    same(&found, &json!([output["namespaced"]["value"], back, output["length"]]))
}

/// A connection that answers what the row says.
#[derive(Debug, Clone, Default)]
struct Scripted {
    name: String,
    answers: Vec<Result<Value, CallError>>,
    calls: Arc<Mutex<Vec<Value>>>,
    tools: Vec<Arc<Tool>>,
    broken: bool,
}

impl Scripted {
    async fn answer(&self, call: Value) -> Result<Outcome, CallError> {
        let number = {
            let mut calls = self.calls.lock();
            calls.push(call);
            calls.len() - 1
        };
        let answer = self.answers.get(number).cloned().unwrap_or_else(|| Ok(text_result("ok")))?;
        if answer == json!("slow") {
            tokio::time::sleep(Duration::from_secs(3600)).await;
        }
        Ok(Outcome::read(Json::of(&answer).unwrap()).unwrap())
    }
}

fn text_result(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

impl ToolServer for Scripted {
    fn name(&self) -> &str {
        &self.name
    }

    async fn list_tools(&self) -> Result<Vec<Arc<Tool>>, CallError> {
        if self.broken {
            return Err(CallError::Lost { cause: "disconnected".to_owned() });
        }
        Ok(self.tools.clone())
    }

    async fn call_tool(&self, tool: &str, arguments: Option<Json>) -> Result<Outcome, CallError> {
        self.answer(json!([tool, arguments])).await
    }
}

impl CallTool for Scripted {
    async fn call_tool(
        &self,
        server: &str,
        tool: &str,
        arguments: Option<Json>,
    ) -> Result<Outcome, CallError> {
        self.answer(json!([server, tool, arguments])).await
    }
}

/// The error that `Kind('text')` stands for.
fn raised(text: &str) -> CallError {
    let (kind, rest) = text.split_once('(').unwrap();
    let words = rest.trim_end_matches(')').trim_matches('\'').to_owned();
    match kind {
        "MCPClientError" | "MCPExecutionError" => ClientError::Refused(words).into(),
        "TimeoutError" => CallError::TimedOut { after: Duration::from_secs(30), sent: true },
        _ => CallError::Lost { cause: words },
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(future)
}

fn execute(input: &Value, output: &Value) -> Verdict {
    let answer = match input["raised"].as_str() {
        Some(text) => Err(raised(text)),
        None => Ok(input["result"].clone()),
    };
    let server =
        Scripted { name: "my-server".into(), answers: vec![answer], ..Scripted::default() };
    let calls = Arc::clone(&server.calls);
    let wrapped = McpTool::new(Arc::new(tool("search", &json!({}))), Arc::new(server), "mcp");
    let outcome = block_on(wrapped.execute(&input["kwargs"]));
    let calls = json!(calls.lock().clone());
    if calls != output["call_fn_called_with"] {
        return Verdict::Other(format!("called with {calls}"));
    }
    let expected = value_or_message(output);
    let expected = expected.as_str().unwrap();
    match outcome {
        Ok(output) if output.text == expected => Verdict::Pass,
        Ok(output) if expected.contains("type='") => {
            let kept = output.parts.iter().all(|it| it.kind != PartKind::Other)
                && output.parts.len() == input["result"]["content"].as_array().unwrap().len();
            let held =
                if kept && !output.text.contains("type=") { Ok(()) } else { Err(output.text) };
            Verdict::Class("no-debug-text", held)
        }
        Ok(output) => Verdict::Other(output.text),
        Err(error) => told(&error.to_string(), expected),
    }
}

/// A message, which may differ only where the original's has no cause.
fn told(found: &str, expected: &str) -> Verdict {
    if found == expected {
        return Verdict::Pass;
    }
    if expected.ends_with(": ") {
        let held = found.starts_with(expected) && expected.len() < found.len();
        return Verdict::Class("empty-cause", if held { Ok(()) } else { Err(found.to_owned()) });
    }
    Verdict::Other(found.to_owned())
}

fn attributes(input: &Value, output: &Value) -> Verdict {
    let name = input["name"].as_str().unwrap();
    // The original's row was made with an empty schema, which stays one.
    let definition = tool(name, &json!({ "description": input["description"], "inputSchema": {} }));
    let name = input["server"].as_str().unwrap().to_owned();
    let server = Arc::new(Scripted { name, ..Scripted::default() });
    let wrapped = McpTool::new(Arc::new(definition), server, "mcp");
    let found = json!({
        "name": wrapped.name(),
        "description": wrapped.description(),
        "parameters": wrapped.parameters(),
        "original_name": wrapped.original_name(),
        "server_name": wrapped.server_name(),
        "to_schema": wrapped.to_schema(),
    });
    same(&found, output)
}

fn convert(input: &Value, output: &Value) -> Verdict {
    let names = match &input["tools"] {
        Value::Null => vec!["a.b".to_owned(), "a-b".to_owned(), "a_b".to_owned(), "c".to_owned()],
        names => strings(names),
    };
    let tools: Vec<Arc<Tool>> = names.iter().map(|it| Arc::new(tool(it, &json!({})))).collect();
    let server = Arc::new(Scripted { name: "srv".into(), ..Scripted::default() });
    let filter =
        ToolFilter::new(strings(&input["filter_include"]), strings(&input["filter_exclude"]));
    let namespace = input["namespace"].as_str().unwrap_or("mcp").to_owned();
    let wrapped = convert_mcp_tools(&tools, &server, &Convert { namespace, filter });
    let found: Vec<Value> =
        wrapped.iter().map(|it| json!([it.name(), it.original_name()])).collect();
    same(&json!(found), output)
}

fn load_broken(output: &Value) -> Verdict {
    let server = Scripted { name: "broken".into(), broken: true, ..Scripted::default() };
    let error = block_on(load_tools_from_connection(Arc::new(server), &Convert::default()));
    same_text(&error.unwrap_err().to_string(), output["message"].as_str().unwrap())
}

struct ManyServers(Vec<Arc<Scripted>>);

impl ToolServers for ManyServers {
    type Server = Scripted;

    fn server_names(&self) -> Vec<String> {
        self.0.iter().map(|it| it.name.clone()).collect()
    }

    async fn connect(&self, server: &str) -> Result<Arc<Scripted>, ClientError> {
        Ok(Arc::clone(self.0.iter().find(|it| it.name == server).unwrap()))
    }
}

fn load_all(input: &Value, output: &Value) -> Verdict {
    let Some(servers) = input["servers"].as_object() else {
        return Verdict::Skip("a row of another shape");
    };
    let server = |(name, tools): (&String, &Value)| {
        let tools = strings(tools).iter().map(|it| Arc::new(tool(it, &json!({})))).collect();
        Arc::new(Scripted { name: name.clone(), tools, ..Scripted::default() })
    };
    let client = ManyServers(servers.iter().map(server).collect());
    let tools = block_on(load_tools_from_client(&client, &Convert::default())).unwrap();
    let names: Vec<&str> = tools.iter().map(McpTool::name).collect();
    same(&json!(names), &output["value"])
}

fn written(text: &str) -> (Folder, std::path::PathBuf) {
    let folder = Folder::new();
    let file = folder.write("mcp.json", text);
    (folder, file)
}

fn config(text: &str, output: &Value) -> Verdict {
    let (_folder, file) = written(text);
    let loaded = load_mcp_config(&file, &env);
    if !output["error"].is_null() {
        return refused(loaded.map(|it| transports(&it)), output, &file);
    }
    let servers = match loaded {
        Ok(servers) => servers,
        Err(error) => return unloaded(error),
    };
    let found: Vec<Value> = servers.iter().map(shown).collect();
    let expected = &output["value"];
    if json!(found) == *expected {
        return Verdict::Pass;
    }
    if text.contains("_timeout\"") {
        let without = |list: &Value| {
            let mut list = list.clone();
            for server in list.as_array_mut().unwrap() {
                server.as_object_mut().unwrap().retain(|key, _| !key.ends_with("_timeout"));
            }
            list
        };
        let read: Value = serde_json::from_str(text).unwrap();
        let heeded = servers.iter().all(|it| {
            let asked = |key: &str| read["mcpServers"][&it.name][key].as_u64();
            asked("sse_read_timeout") == it.sse_read_timeout.map(|it| it.as_secs())
                && asked("session_timeout").is_none_or(|s| s == it.handshake_timeout.as_secs())
        });
        let held = without(&json!(found)) == without(expected) && heeded;
        return Verdict::Class(
            "our-timeouts",
            if held { Ok(()) } else { Err(json!(found).to_string()) },
        );
    }
    Verdict::Other(transports(&servers))
}

/// The original loaded the file, and we do not.
fn unloaded(error: ExecutionError) -> Verdict {
    match error {
        ExecutionError::Config { fault, .. } if fault.field.as_deref() == Some("url") => {
            let held = if fault.at.is_some() { Ok(()) } else { Err(fault.to_string()) };
            Verdict::Class("bad-address", held)
        }
        ExecutionError::Config { fault, .. } => Verdict::Other(fault.message),
        error => Verdict::Other(error.to_string()),
    }
}

fn transports(servers: &[ServerConfig]) -> String {
    servers.iter().map(|it| it.transport.to_string()).collect::<Vec<_>>().join(" ")
}

/// The original refused the file; so must we, with the seed's type of error.
fn refused(loaded: Result<String, ExecutionError>, output: &Value, file: &Path) -> Verdict {
    let error = match loaded {
        Ok(found) => return Verdict::Other(found),
        Err(error) => error,
    };
    let names_file = error.to_string().contains(&*file.to_string_lossy());
    let held = if names_file { Ok(()) } else { Err(error.to_string()) };
    let kind = output["error"].as_str().unwrap();
    Verdict::Class(if kind == "MCPExecutionError" { "config-text" } else { "raw-exception" }, held)
}

/// A configuration in the original's shape.
fn shown(it: &ServerConfig) -> Value {
    let text = |it: &Option<Filled>| it.as_ref().map(|it| it.value().to_owned());
    let pairs = |list: &[(String, Filled)]| {
        let pair = |(key, value): &(String, Filled)| (key.clone(), json!(value.value()));
        if list.is_empty() { Value::Null } else { Value::Object(list.iter().map(pair).collect()) }
    };
    let seconds = |it: Duration| {
        let seconds = it.as_secs_f64();
        if seconds == 30.0 { json!(30.0) } else { json!(it.as_secs()) }
    };
    json!({
        "name": it.name,
        "transport": it.transport.to_string(),
        "command": text(&it.command),
        "args": it.args.iter().map(Filled::value).collect::<Vec<_>>(),
        "env": pairs(&it.env),
        "cwd": text(&it.cwd),
        "url": text(&it.url),
        "headers": pairs(&it.headers),
        "timeout": seconds(it.timeout),
        "sse_read_timeout": it.sse_read_timeout.map_or(300.0, |it| it.as_secs_f64()),
        "cache_tools": it.cache_tools,
        "session_timeout": if it.handshake_timeout.as_secs() == 30 { 120.0 } else { it.handshake_timeout.as_secs_f64() },
    })
}

fn client(text: &str, output: &Value) -> Verdict {
    let (_folder, file) = written(text);
    match load_mcp_client(&file, &env, ClientOptions::default()) {
        Ok(client) => same(&json!(client.server_names()), &output["value"]),
        Err(error) if output["error"].is_null() => unloaded(error),
        Err(error) => same_text(&error.to_string(), output["message"].as_str().unwrap_or_default()),
    }
}

fn retry(input: &Value, output: &Value) -> Verdict {
    let answers = strings(&input["attempt_outcomes"]).iter().map(|it| scripted(it)).collect();
    let server = Scripted { answers, ..Scripted::default() };
    let calls = Arc::clone(&server.calls);
    let seconds = |key: &str| input[key].as_f64().map(Duration::from_secs_f64);
    let retry = Retry {
        max_retries: input["max_retries"].as_i64().map_or(3, |it| u32::try_from(it).unwrap_or(0)),
        timeout: seconds("timeout"),
        backoff_base: seconds("backoff_base").unwrap_or(Duration::from_secs(1)),
        total: None,
    };
    let arguments = Json::parse(r#"{"a":1}"#).ok();
    let direct = input["client_has_server_names"] == json!(false);
    let (result, waited) = block_on(async {
        let begin = tokio::time::Instant::now();
        let result = if direct {
            let one = OneServer(&server);
            call_tool_with_retry(&one, "srv", "tool", arguments, &retry).await
        } else {
            call_tool_with_retry(&server, "srv", "tool", arguments, &retry).await
        };
        (result, begin.elapsed())
    });
    let calls = calls.lock().clone();
    let slow =
        f64::from(u32::try_from(calls.len()).unwrap()) * input["timeout"].as_f64().unwrap_or(0.0);
    let sleeps: f64 = output["sleeps"].as_array().unwrap().iter().filter_map(Value::as_f64).sum();
    let attempts = output["attempts"].as_u64().unwrap();
    if attempts != 0 {
        if calls.len() as u64 != attempts {
            return Verdict::Other(format!("{} attempts", calls.len()));
        }
        if 0.01 < (waited.as_secs_f64() - sleeps - slow).abs() {
            return Verdict::Other(format!("waited {waited:?}"));
        }
        if calls[0] != output["call_args"][0] {
            return Verdict::Other(format!("called with {}", calls[0]));
        }
    }
    match result {
        Ok(outcome) => same_text(&outcome.text(), output["value"].as_str().unwrap_or_default()),
        Err(error) => told(&error.to_string(), output["message"].as_str().unwrap_or_default()),
    }
}

/// What one attempt brings, from how the original's row writes it.
fn scripted(text: &str) -> Result<Value, CallError> {
    if let Some(rest) = text.strip_prefix("CallToolResult(") {
        let said = rest.split("text='").nth(2).or(rest.split("text='").nth(1)).unwrap_or_default();
        let said = said.split('\'').next().unwrap();
        let mut result = text_result(said);
        result["isError"] = json!(rest.contains("isError=True"));
        return Ok(result);
    }
    match text.trim_matches('\'') {
        "slow" => Ok(json!("slow")),
        word if text.starts_with('\'') => Ok(text_result(word)),
        _ => Err(raised(text)),
    }
}

fn validate(input: &Value, output: &Value) -> Verdict {
    let transport = match input["transport"].as_str().unwrap() {
        "sse" => Transport::Sse,
        "streamable_http" => Transport::StreamableHttp,
        _ => Transport::Stdio,
    };
    let error = ServerConfig::new("bad", transport).validate().unwrap_err();
    same_text(&error.to_string(), output["message"].as_str().unwrap())
}

fn twice(output: &Value) -> Verdict {
    let client = Client::new(ClientOptions::default());
    for command in ["x", "y"] {
        let mut config = ServerConfig::new("a", Transport::Stdio);
        config.command = Some(Filled::literal(command));
        client.add_server(config).unwrap();
    }
    let command = client.config("a").unwrap().command.unwrap().value().to_owned();
    same(&json!({ "server_names": client.server_names(), "command": command }), output)
}
