//! A token that is taken away is taken away at once, also from what is on its way.

use std::{thread, time::Duration};

use serde_json::{Value, json};
use toolcrib_testkit::{Act, Plan};

use super::calls;
use crate::{
    kit::{Folder, entry, soon},
    serving::Serving,
};

const BOTH: &str = "
external_access:
  exposed_tools: ['*', call_tools]
  groups:
    a: { auth_token: token-a }
    b: { auth_token: token-b }
";

const ONE: &str = "
external_access:
  exposed_tools: ['*', call_tools]
  groups:
    a: { auth_token: token-a }
";

struct World {
    folder: Folder,
    serving: Serving,
}

impl World {
    fn new() -> Self {
        let folder = Folder::new();
        let plan = Plan::legacy().tool("slow", Act::Sleep(300)).notes(folder.file("notes"));
        folder.write("mcp.json", json!({ "mcpServers": { "s": entry(&plan) } }).to_string());
        folder.write("network.yaml", BOTH);
        Self { serving: Serving::start(folder.path()), folder }
    }

    fn reached(&self) -> usize {
        calls(&self.folder.file("notes"))
    }

    /// Takes the token away after the first call has reached the server; how many did in the end.
    fn take_away_during(&self, body: &Value, revision: &str) -> usize {
        let headers = [("Authorization", "Bearer token-b"), ("Accept", "application/json")];
        let session = self.serving.session(&headers, revision);
        thread::scope(|scope| {
            scope.spawn(|| {
                let own = [headers[0], headers[1], ("Mcp-Session-Id", session.as_str())];
                self.serving.post(&own, body)
            });
            soon("the first call is made", || 0 < self.reached());
            self.folder.write("network.yaml", ONE);
            self.serving.signal("-HUP");
            soon("the token is gone", || self.serving.get("/mcp", &[headers[0]]).status == 401);
            let then = self.reached();
            // Time for two more, if they were made.
            thread::sleep(Duration::from_millis(800));
            assert!(then <= 3, "{then}: too late to say anything");
            self.reached() - then
        })
    }
}

#[test]
fn several_calls_end_with_the_token_they_came_with() {
    let world = World::new();
    let many: Vec<Value> = (0..8).map(|_| json!({ "name": "mcp__s__slow" })).collect();
    // With a key it would go on without its client.
    let params = json!({ "name": "call_tools", "arguments": { "calls": many },
        "_meta": { "toolcrib/idempotencyKey": "k" } });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    assert_eq!(world.take_away_during(&body, "2025-11-25"), 0);
}

#[test]
fn a_batch_ends_with_the_token_it_came_with() {
    let world = World::new();
    let call = |id: u32| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": "mcp__s__slow" } })
    };
    let body = json!((0..8).map(call).collect::<Vec<_>>());
    assert_eq!(world.take_away_during(&body, "2025-03-26"), 0);
}
