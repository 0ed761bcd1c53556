//! Results that are too large: a summary and a link for the client, the whole of it piece by piece.

use std::{fs, process::Command};

use serde_json::{Value, json};
use toolcrib_testkit::{Act, Plan};

use crate::{
    kit::{Folder, entry, run},
    python::Caller,
    real::installed,
    serving::Serving,
};

/// Rows of which one holds what is looked for.
const TOOLS: &str = r#"
import json
from toolcrib import tool, Context, Image, ToolError

ROWS = [{"id": n, "name": f"row {n}", "price": n / 4, "kind": "odd" if n % 2 else "even"} for n in range(60000)]

@tool
def as_text() -> str:
    """Rows as JSON text."""
    return json.dumps({"meta": {"count": len(ROWS)}, "rows": ROWS})

@tool
def as_rows() -> dict:
    """Rows as structured content, and once more as text."""
    return {"rows": ROWS}

@tool
def as_csv() -> str:
    """Rows as CSV."""
    return "id,name,price,kind\n" + "\n".join(f'{r["id"]},"{r["name"]}",{r["price"]},{r["kind"]}' for r in ROWS)

@tool
def as_log() -> str:
    """Lines of a log."""
    return "\n".join(f"2026-01-01 line {n} {'ERROR' if n == 4711 else 'ok'}" for n in range(50000))

@tool
def picture():
    """A picture, and words about it."""
    return [Image(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20, mime="image/png"), "a small part"]

@tool
def small() -> str:
    """A small result."""
    return "just this"

@tool
def fails() -> str:
    """Fails at length."""
    raise ToolError("no! " * 5000)

@tool
async def keep(text: str, ctx: Context) -> dict:
    """Keep a text."""
    kept = await ctx.store(text, "text/markdown", label="notes")
    return {"id": kept.id, "uri": kept.uri, "size": kept.size}

@tool
def keep_more(ctx: Context):
    """Keep rows and bytes, and return links to them."""
    return [ctx.store(ROWS[:3]), ctx.store(b"\x00\xff" * 10, label="raw")]

@tool
async def whole(ctx: Context) -> int:
    """What a tool gets that calls another."""
    return len((await ctx.call("as_rows"))["rows"])
"#;

fn workspace(network: &str) -> Folder {
    let folder = Folder::new();
    folder.write("tools/t.py", TOOLS);
    folder.write("network.yaml", network);
    folder
}

/// The id of the only artifact in a result, and the text that stands for it.
#[track_caller]
fn kept(result: &Value) -> (String, String) {
    let parts = result["content"].as_array().unwrap();
    let links: Vec<&Value> = parts.iter().filter(|it| it["type"] == "resource_link").collect();
    let [link] = links[..] else { panic!("{result}") };
    let uri = link["uri"].as_str().unwrap();
    let id = uri.strip_prefix("toolcrib://artifact/").unwrap();
    (id.to_owned(), parts[0]["text"].as_str().unwrap().to_owned())
}

#[test]
fn a_large_result_becomes_a_summary_and_is_read_piece_by_piece() {
    let folder = workspace("results: { inline_up_to: 4KB }\n");
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    assert!(caller.tools().contains(&"read_artifact".to_owned()));
    let result = caller.call("as_text", &json!({}));
    assert!(result.to_string().len() < 4096, "{result}");
    assert_eq!(result["isError"], false);
    let (id, summary) = kept(&result);
    assert!(summary.contains("has 4.") && summary.contains("MB and was stored"), "{summary}");
    assert!(
        summary.contains("meta") && summary.contains("rows") && summary.contains("60000"),
        "{summary}"
    );
    let read = |caller: &mut Caller, arguments: Value| {
        let mut all = json!({ "id": id });
        all.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
        caller.text("read_artifact", &all)
    };
    assert_eq!(read(&mut caller, json!({ "path": "$.rows[31415].name" })), "\"row 31415\"");
    assert_eq!(read(&mut caller, json!({ "path": "$.meta.count" })), "60000");
    let keys = read(&mut caller, json!({ "keys": "$" }));
    assert!(keys.contains("meta") && keys.contains("rows"), "{keys}");
    let rows = read(&mut caller, json!({ "rows": "59998:", "path": "$.rows" }));
    assert!(rows.contains("row 59999") && !rows.contains("row 59997"), "{rows}");
    let sum = read(&mut caller, json!({ "sum": "id", "path": "$.rows", "where": "kind=odd" }));
    assert!(sum.contains("900000000"), "{sum}");
    let resource = caller.ask(
        "resources/read",
        &json!({ "uri": format!("toolcrib://artifact/{id}?path=$.rows[7].price") }),
    );
    assert_eq!(resource["result"]["contents"][0]["text"], "1.75", "{resource}");
    let all = caller.ask("resources/read", &json!({ "uri": format!("toolcrib://artifact/{id}") }));
    let content = &all["result"]["contents"][0];
    assert!(content["text"].as_str().unwrap().len() <= 256 * 1024);
    assert!(
        content["_meta"]["toolcrib/next"].as_str().unwrap().contains("offset="),
        "{}",
        content["_meta"]
    );
    let templates = caller.ask("resources/templates/list", &json!({}));
    assert_eq!(templates["result"]["resourceTemplates"][0]["name"], "artifact");
    assert_eq!(caller.text("whole", &json!({})), "60000");
    assert_eq!(
        caller.call("small", &json!({})),
        json!({ "content": [{ "type": "text", "text": "just this" }], "isError": false })
    );
}

#[test]
fn every_kind_of_result_is_kept_as_what_it_is() {
    let folder = workspace("results: { inline_up_to: 2KB }\n");
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    // Said twice, kept once.
    let (id, _) = kept(&caller.call("as_rows", &json!({})));
    assert_eq!(caller.text("read_artifact", &json!({ "id": id, "path": "$.rows[3].id" })), "3");
    let (id, summary) = kept(&caller.call("as_csv", &json!({})));
    assert!(summary.contains("text/csv") && summary.contains("price"), "{summary}");
    let groups = caller.text(
        "read_artifact",
        &json!({ "id": id, "count": "*", "max": "price", "group_by": "kind" }),
    );
    assert!(
        groups.contains("odd") && groups.contains("30000") && groups.contains("14999.75"),
        "{groups}"
    );
    let (id, _) = kept(&caller.call("as_log", &json!({})));
    let found =
        caller.text("read_artifact", &json!({ "id": id, "grep": "err", "ignore_case": true }));
    assert!(found.contains("line 4711 ERROR"), "{found}");
    let lines = caller.text("read_artifact", &json!({ "id": id, "lines": "10:12" }));
    assert_eq!(lines, "2026-01-01 line 10 ok\n2026-01-01 line 11 ok\n");
    // A page says how to go on, and going on leads to the end.
    let mut page = caller.call("read_artifact", &json!({ "id": id, "lines": "49000:" }));
    let mut all = String::new();
    loop {
        all.push_str(page["content"][0]["text"].as_str().unwrap());
        let Some(next) = page["content"][1]["text"].as_str() else { break };
        let next = next.rsplit_once("read_artifact ").unwrap().1;
        page = caller.call("read_artifact", &serde_json::from_str(next).unwrap());
    }
    let expected: Vec<String> =
        (49_000..50_000).map(|n| format!("2026-01-01 line {n} ok")).collect();
    assert_eq!(all.trim_end(), expected.join("\n"));
    // Small parts of a large result go on as they are.
    let result = caller.call("picture", &json!({}));
    let (id, _) = kept(&result);
    assert_eq!(result["content"].as_array().unwrap().last().unwrap()["text"], "a small part");
    let shown = caller.call("read_artifact", &json!({ "id": id }));
    assert_eq!(
        (&shown["content"][0]["type"], &shown["content"][0]["mimeType"]),
        (&json!("image"), &json!("image/png"))
    );
    // A failure stays one.
    let failed = caller.call("fails", &json!({}));
    assert_eq!(failed["isError"], true);
    kept(&failed);
}

const GROUPS: &str = "
results:
  inline_up_to: 4KB
  tools: { as_log: everything }
external_access:
  groups:
    one: { auth_token: token-one }
    two: { auth_token: token-two }
    whole: { auth_token: token-whole, inline_up_to: everything }
";

/// Row B13 of the security list.
#[test]
fn what_is_kept_belongs_to_a_group_and_survives_a_restart() {
    let folder = workspace(GROUPS);
    let serving = Serving::start(folder.path());
    let mut one = Caller::with(&serving, "token-one");
    let (id, _) = kept(&one.call("as_csv", &json!({})));
    let (again, _) = kept(&one.call("as_csv", &json!({})));
    assert_ne!(id, again);
    let log = one.call("as_log", &json!({}));
    assert!(1_000_000 < log["content"][0]["text"].as_str().unwrap().len());
    let whole = Caller::with(&serving, "token-whole");
    let mut whole = { whole };
    assert!(!whole.tools().contains(&"read_artifact".to_owned()));
    assert!(1_000_000 < whole.call("as_csv", &json!({})).to_string().len());
    let look = json!({ "id": id, "lines": "0:1" });
    assert_eq!(one.text("read_artifact", &look), "id,name,price,kind\n");
    drop(serving);
    let serving = Serving::start(folder.path());
    let mut one = Caller::with(&serving, "token-one");
    assert_eq!(one.text("read_artifact", &look), "id,name,price,kind\n");
    let mut two = Caller::with(&serving, "token-two");
    let never = json!({ "id": "a".repeat(26), "lines": "0:1" });
    let said = two.error("read_artifact", &look);
    assert_eq!(said, "There is no such artifact, or it has expired.");
    assert_eq!(two.error("read_artifact", &never), said);
    let refused = two.ask("resources/read", &json!({ "uri": format!("toolcrib://artifact/{id}") }));
    assert_eq!(refused["error"]["code"], -32002, "{refused}");
    // Nor over the console's way.
    let get = |token: &str, id: &str| {
        let bearer = format!("Bearer {token}");
        serving.get(&format!("/api/artifact?id={id}"), &[("Authorization", &bearer)])
    };
    assert_eq!(get("token-one", &id).status, 200);
    let (foreign, never) = (get("token-two", &id), get("token-two", &"a".repeat(26)));
    assert_eq!((foreign.status, never.status), (404, 404), "{foreign:?}");
    assert_eq!(foreign.body, never.body);
    assert!(one.error("read_artifact", &json!({ "id": "../../etc" })).contains("26 letters"));
    assert!(
        one.error("read_artifact", &json!({ "id": id, "sort": "x" }))
            .contains("no selector `sort`")
    );
}

/// A client refuses a result that lacks the structure it was promised.
#[test]
fn no_structure_is_promised_where_it_may_be_kept() {
    let schema = r#"{"type":"object","properties":{}}"#;
    let result = r#"{"content":[{"type":"text","text":"x"}],"structuredContent":{"a":1.10},"isError":false}"#;
    let big = format!(
        r#"{{"content":[{{"type":"text","text":"see there"}}],"structuredContent":{{"a":"{}"}},"isError":false,"_meta":{{"n":1.10}}}}"#,
        "x".repeat(5000)
    );
    let plan = Plan::legacy().tool_with("small", schema, Act::Result(result.to_owned())).tool_with(
        "big",
        schema,
        Act::Result(big),
    );
    let folder = Folder::workspace(&json!({ "s": entry(&plan) }));
    folder.write("network.yaml", "results: { inline_up_to: 4KB }\n");
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    let small = caller.ask("tools/call", &json!({ "name": "mcp__s__small", "arguments": {} }));
    assert_eq!(small["result"].to_string(), result);
    let big = caller.call("mcp__s__big", &json!({}));
    let (id, summary) = kept(&big);
    assert!(summary.contains("structured content"), "{summary}");
    assert_eq!(big["content"][1]["text"], "see there");
    assert_eq!(big["_meta"].to_string(), r#"{"n":1.10}"#);
    assert!(big.get("structuredContent").is_none());
    assert_eq!(caller.text("read_artifact", &json!({ "id": id, "keys": "$" })).lines().count(), 1);
}

/// Results that no tool should give, and some do: nothing of them is lost.
#[test]
fn odd_results_lose_nothing() {
    let many: Vec<Value> = (0..300)
        .map(|it| json!({ "type": "text", "text": format!("part {it} {}", "x".repeat(40)) }))
        .collect();
    let big = "y".repeat(9_000);
    let results = [
        ("string", json!({ "content": big, "isError": false })),
        ("meta", json!({ "content": [], "_meta": { "note": big }, "isError": false })),
        ("many", json!({ "content": many, "isError": false })),
        ("video", json!({ "content": [{ "type": "video", "data": big, "fps": 25 }] })),
        (
            "both",
            json!({ "content": [{ "type": "resource", "annotations": { "priority": 0.5 },
            "resource": { "uri": "file:///x", "text": big, "blob": "aGVsbG8=" } }] }),
        ),
        (
            "nobase",
            json!({ "content": [{ "type": "image", "data": "?".repeat(9_000), "mimeType": "image/png" }] }),
        ),
    ];
    let mut plan = Plan::legacy();
    for (name, result) in &results {
        plan = plan.tool(name, Act::Result(result.to_string()));
    }
    let folder = Folder::workspace(&json!({ "s": entry(&plan) }));
    folder.write("network.yaml", "results: { inline_up_to: 4KB }\n");
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    // Nothing in these can be kept, so they go on as they are.
    for (name, result) in &results[..2] {
        assert_eq!(caller.call(&format!("mcp__s__{name}"), &json!({})), *result, "{name}");
    }
    let many = caller.call("mcp__s__many", &json!({}));
    assert!(many.to_string().len() < 4096, "{}", many.to_string().len());
    let (id, _) = kept(&many);
    let last = caller.text("read_artifact", &json!({ "id": id, "path": "$[-1].text" }));
    assert!(last.starts_with("\"part 299 "), "{last}");
    let inline = many["content"].as_array().unwrap().len() - 2;
    let left = caller.text("read_artifact", &json!({ "id": id, "count": "*" }));
    assert!(left.contains(&(300 - inline).to_string()), "{left} of {inline}");
    let (id, _) = kept(&caller.call("mcp__s__video", &json!({})));
    assert_eq!(caller.text("read_artifact", &json!({ "id": id, "path": "$.fps" })), "25");
    let both = caller.call("mcp__s__both", &json!({}));
    let links: Vec<&Value> = both["content"].as_array().unwrap()[1..].iter().collect();
    assert_eq!(links.len(), 2, "{both}");
    assert_eq!(links[0]["annotations"]["priority"], 0.5);
    let bytes = caller.call("read_artifact", &json!({ "id": links[1]["uri"], "bytes": "0:5" }));
    assert_eq!(bytes["content"][0]["resource"]["blob"], "aGVsbG8=", "{bytes}");
    let (_, summary) = kept(&caller.call("mcp__s__nobase", &json!({})));
    assert!(summary.contains("no valid base64"), "{summary}");
    let wrong =
        caller.ask("resources/read", &json!({ "uri": format!("toolcrib://artifact/{id}?zork=1") }));
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    // A name that nobody could have meant costs nothing.
    let long = caller.ask("tools/call", &json!({ "name": "x".repeat(100_000), "arguments": {} }));
    assert_eq!(long["error"]["code"], -32602);
}

#[test]
fn a_python_tool_stores_what_it_likes() {
    let folder = workspace("external_access: { exposed_tools: ['*', read_artifact] }\n");
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    let kept = caller.call("keep", &json!({ "text": "# Über\n" }));
    let kept = &kept["structuredContent"];
    assert_eq!(kept["size"], "# Über\n".len());
    assert_eq!(caller.text("read_artifact", &json!({ "id": kept["id"] })), "# Über\n");
    let more = caller.call("keep_more", &json!({}));
    let [rows, raw] = &more["content"].as_array().unwrap()[..] else { panic!("{more}") };
    assert_eq!(rows["mimeType"], "application/json");
    assert_eq!(
        (&raw["name"], &raw["mimeType"], &raw["size"]),
        (&json!("raw"), &json!("application/octet-stream"), &json!(20))
    );
    assert_eq!(caller.text("read_artifact", &json!({ "id": rows["uri"], "path": "$[2].id" })), "2");
    // By the owner's own hand too.
    let run =
        crate::kit::toolcrib(folder.path(), &["artifact", "read", kept["id"].as_str().unwrap()]);
    assert_eq!((run.code, run.out.as_str()), (0, "# Über\n"), "{}", run.transcript());
}

/// Where nothing can be kept, nothing is lost.
#[test]
fn a_result_goes_on_whole_where_it_cannot_be_kept() {
    let folder = workspace("results: { inline_up_to: 4KB, quota: 1MB }\n");
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    let csv = caller.call("as_csv", &json!({}));
    assert!(1_000_000 < csv["content"][0]["text"].as_str().unwrap().len());
    assert_eq!(fs::read_dir(folder.file(".toolcrib/artifacts")).unwrap().count(), 0);
}

/// Clients that nobody here wrote: the tool is found, called, summarised, and one value of its 5 MB read out.
#[test]
fn real_clients_read_one_value_out_of_a_large_result() {
    let Some(tools) = installed() else { return };
    let folder = Folder::new();
    folder.write(
        "tools/stock.py",
        "from toolcrib import tool\n\n@tool\ndef list_stock() -> dict:\n    \"\"\"All rows of the stock list.\"\"\"\n    \
         return {'rows': [{'id': n, 'name': f'row {n}', 'note': 'x' * 100} for n in range(34000)]}\n",
    );
    folder.write(
        "network.yaml",
        "results: { inline_up_to: 4KB }\nexternal_access: { view: search }\n",
    );
    let serving = Serving::start(folder.path());
    let workspace = folder.path().to_str().unwrap();
    let gateway =
        [env!("CARGO_BIN_EXE_toolcrib"), "serve", "--stdio", workspace].map(str::to_owned);
    let url = serving.url("/mcp");
    let runs = [
        ("python", "legacy", vec![url.clone()]),
        ("python", "modern", vec![url.clone()]),
        ("python", "stdio", gateway.to_vec()),
        ("inspector", "legacy", vec![url]),
    ];
    for (client, mode, target) in runs {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/clients/large.py");
        let mut command = Command::new(tools.join("venv/bin/python"));
        command.env("TOOLS", &tools).args([script, client, mode]).args(target);
        let run = run(&mut command);
        assert_eq!(run.code, 0, "{client} {mode}\n{}", run.transcript());
        let seen = run.json();
        let listed = ["call_tool", "describe_tools", "read_artifact", "search_tools"];
        assert_eq!(seen["listed"], json!(listed), "{client} {mode}");
        assert!(5_000_000 < seen["size"].as_u64().unwrap(), "{seen}");
        assert_eq!(seen["mime"], "application/json");
        assert_eq!([&seen["value"], &seen["resource"]], ["\"row 31415\""; 2], "{client} {mode}");
        assert!(seen["summary"].as_str().unwrap().contains("rows (array of 34000)"), "{seen}");
    }
}

/// The most memory that a process has had so far.
fn peak(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn a_result_of_100_megabytes_is_kept_without_being_held() {
    let plan = Plan::legacy().tool("big", Act::Big(100_000_000)).tool("echo", Act::Echo);
    let folder = Folder::workspace(&json!({ "s": entry(&plan) }));
    folder.write("network.yaml", "results: { inline_up_to: 4KB }\n");
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    caller.text("mcp__s__echo", &json!({}));
    let before = peak(serving.child.id());
    let (id, summary) = kept(&caller.call("mcp__s__big", &json!({})));
    assert!(summary.contains("100.0 MB"), "{summary}");
    let piece = caller.call("read_artifact", &json!({ "id": id, "tail": 10 }));
    assert_eq!(piece["content"][0]["text"].as_str().unwrap().len(), 10, "{piece}");
    let grown = peak(serving.child.id()) - before;
    println!("the gateway grew by {} MB", grown >> 20);
    assert!(grown <= 64 << 20, "it grew by {grown} bytes");
    assert_eq!(fs::read_dir(folder.file(".toolcrib/spool")).unwrap().count(), 0);
}
