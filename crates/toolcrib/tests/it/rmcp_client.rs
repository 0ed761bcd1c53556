//! rmcp, the official client in Rust, through a gateway before real servers.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use rmcp::{
    ClientHandler, ErrorData,
    model::{
        CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
        ElicitationAction, GetPromptRequestParams, Implementation, ProgressNotificationParam,
        ProtocolVersion, ReadResourceRequestParams,
    },
    service::{
        ClientLifecycleMode, ClientServiceExt, NotificationContext, RequestContext, RoleClient,
        RunningService,
    },
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde_json::{Value, json};

use crate::{clients::workspace, real::installed, serving::Serving};

/// A person called Ada who watches.
#[derive(Clone, Default)]
struct Ada(Arc<Mutex<Vec<f64>>>);

impl ClientHandler for Ada {
    fn get_info(&self) -> ClientConfig {
        let capabilities: ClientCapabilities =
            serde_json::from_value(json!({ "elicitation": { "form": {} } })).unwrap();
        let mut config = ClientConfig::new(capabilities, Implementation::new("ada", "1"));
        config.protocol_version = ProtocolVersion::V_2025_11_25;
        config
    }

    async fn create_elicitation(
        &self,
        _request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let answer = ElicitResult::new(ElicitationAction::Accept);
        Ok(answer.with_content(json!({ "name": "Ada" })))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.0.lock().push(params.progress);
    }
}

type Client = RunningService<RoleClient, Ada>;

async fn call(client: &Client, tool: &str, arguments: &Value) -> Value {
    let params = CallToolRequestParams::new(tool.to_owned());
    let params = params.with_arguments(arguments.as_object().unwrap().clone());
    let result = client.call_tool(params).await.unwrap();
    serde_json::to_value(result).unwrap()
}

/// Does what all clients do here.
async fn check(over: &str, ada: &Ada, client: Client) {
    let ready = async {
        while client.list_all_tools().await.unwrap().len() < 20 {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), ready).await.unwrap();
    let echo = call(&client, "mcp__everything__echo", &json!({ "message": "hi" })).await;
    assert_eq!(echo["content"][0]["text"], "Echo: hi", "{over}");
    let moon = call(&client, "mcp__almanac__moon_phase", &json!({ "date": "2026-11-24" })).await;
    assert_eq!(moon["structuredContent"]["phase"], "full moon", "{over}");
    assert_eq!(client.list_all_prompts().await.unwrap().len(), 4, "{over}");
    let mut prompt = GetPromptRequestParams::new("mcp__everything__args_prompt");
    prompt.arguments = json!({ "city": "Oslo" }).as_object().cloned();
    let prompt = serde_json::to_value(client.get_prompt(prompt).await.unwrap()).unwrap();
    assert_eq!(prompt["messages"][0]["content"]["text"], "What's weather in Oslo?", "{over}");
    let uri = client.list_all_resources().await.unwrap()[0].uri.clone();
    let read = client.read_resource(ReadResourceRequestParams::new(uri)).await.unwrap();
    assert!(!read.contents.is_empty(), "{over}");
    let long = "mcp__everything__trigger_long_running_operation";
    call(&client, long, &json!({ "duration": 1, "steps": 2 })).await;
    // It hears of progress beside the answer, and perhaps a little later.
    let heard = async {
        while ada.0.lock().len() < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), heard).await.expect(over);
    // It takes a call back by no longer waiting for it.
    let twenty = json!({ "duration": 20, "steps": 2 });
    let endless = call(&client, long, &twenty);
    tokio::time::timeout(Duration::from_millis(500), endless).await.unwrap_err();
    let name = call(&client, "mcp__asker__ask_name", &json!({})).await;
    assert_eq!(name["content"][0]["text"], "Hello, Ada", "{over}");
    let unknown = CallToolRequestParams::new("mcp__almanac__nothing");
    let error = client.call_tool(unknown).await.unwrap_err().to_string();
    assert!(error.contains("Unknown tool: mcp__almanac__nothing"), "{over}: {error}");
    client.cancel().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn rmcp_in_both_eras_and_on_standard_input() {
    let Some(tools) = installed() else { return };
    let folder = workspace(&tools);
    let serving = Serving::start(folder.path());
    let modern = || ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    };
    for (over, mode) in [("legacy", ClientLifecycleMode::Initialize), ("modern", modern())] {
        let ada = Ada::default();
        let transport = StreamableHttpClientTransport::from_uri(serving.url("/mcp"));
        let client = ada.clone().serve_with_lifecycle(transport, mode).await.unwrap();
        check(over, &ada, client).await;
    }
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_toolcrib"));
    command.args(["serve", "--stdio"]).arg(folder.path());
    let ada = Ada::default();
    let transport = TokioChildProcess::new(command).unwrap();
    let client = ada.clone().serve_with_lifecycle(transport, ClientLifecycleMode::Initialize);
    check("stdio", &ada, client.await.unwrap()).await;
}
