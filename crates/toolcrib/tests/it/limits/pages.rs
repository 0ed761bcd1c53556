//! Pages: whoever goes on as the gateway's own tools say gets everything once, and nobody gets more at a time than
//! there may be.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolcrib_testkit::{Act, Plan};

use crate::{
    kit::{Folder, entry},
    python::Caller,
    serving::Serving,
};

/// What notes can be about: words that have nothing in common.
const ABOUT: [&str; 43] = [
    "anvils",
    "bridges",
    "candles",
    "deserts",
    "engines",
    "feathers",
    "glaciers",
    "harbours",
    "islands",
    "jackets",
    "kitchens",
    "ladders",
    "mirrors",
    "needles",
    "orchards",
    "pianos",
    "quarries",
    "rockets",
    "saddles",
    "tunnels",
    "umbrellas",
    "violins",
    "windows",
    "xylophones",
    "yachts",
    "zebras",
    "acorns",
    "barrels",
    "carpets",
    "drums",
    "elevators",
    "fountains",
    "gardens",
    "helmets",
    "insects",
    "jungles",
    "kettles",
    "lanterns",
    "meadows",
    "novels",
    "oceans",
    "parrots",
    "ribbons",
];

fn finding() -> (Folder, Serving) {
    let folder = Folder::new();
    let tool = |about: &&str| {
        json!({ "name": format!("note_{about}"), "description": format!("Take a note about {about}."),
            "inputSchema": { "type": "object" } })
    };
    let listed: Vec<Value> = ABOUT.iter().map(tool).collect();
    let listed = folder.write("listed.json", json!(listed).to_string());
    let servers = json!({ "s": entry(&Plan::legacy().listed(&listed)) });
    folder.write("mcp.json", json!({ "mcpServers": servers }).to_string());
    folder.write("network.yaml", "external_access: { view: search }\n");
    let serving = Serving::start(folder.path());
    (folder, serving)
}

fn found(page: &Value) -> Vec<String> {
    let tools = page["structuredContent"]["tools"].as_array().unwrap_or_else(|| panic!("{page}"));
    tools.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn search_tools_gives_every_tool_on_one_page() {
    let (_folder, serving) = finding();
    let mut caller = Caller::new(&serving);
    for (size, word) in [(5, "top"), (7, "limit"), (20, "top")] {
        let (mut all, mut page) = (Vec::new(), 1);
        loop {
            let asked = json!({ "query": "take a note", word: size, "page": page });
            let answer = caller.call("search_tools", &asked);
            let names = found(&answer);
            let has_more = answer["structuredContent"]["has_more"] == true;
            assert!(names.len() <= size && (names.len() == size || !has_more), "{answer}");
            all.extend(names);
            if !has_more {
                break;
            }
            page += 1;
        }
        assert_eq!(page, ABOUT.len().div_ceil(size));
        let once: BTreeSet<&String> = all.iter().collect();
        assert_eq!((all.len(), once.len()), (ABOUT.len(), ABOUT.len()), "by {size}");
    }
    // Five where nothing is said; and after the last page nothing.
    assert_eq!(found(&caller.call("search_tools", &json!({ "query": "take a note" }))).len(), 5);
    let beyond = caller.call("search_tools", &json!({ "query": "take a note", "page": 10 }));
    assert!(found(&beyond).is_empty() && beyond["structuredContent"]["has_more"] == false);
    for (key, bad, cause) in [
        ("page", json!(0), "`page` must be between 1 and 10"),
        ("page", json!(11), "`page` must be between 1 and 10"),
        ("page", json!(-1), "the arguments do not fit"),
        ("page", json!("next"), "the arguments do not fit"),
        ("top", json!(0), "`top` must be between 1 and 20"),
        ("top", json!(21), "`top` must be between 1 and 20"),
        ("cursor", json!("x"), "unknown field `cursor`"),
    ] {
        let said = caller.error("search_tools", &json!({ "query": "take a note", key: bad }));
        assert!(said.contains(cause), "{key}: {said}");
    }
}

#[test]
fn events_poll_gives_every_event_once() {
    let folder = Folder::workspace(&json!({}));
    folder.write(
        "network.yaml",
        "external_access: { exposed_tools: [events_poll, events_ack, events_publish] }\n",
    );
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    for n in 0..25 {
        caller.text("events_publish", &json!({ "name": "it.came", "data": n }));
    }
    for (size, word, consumer) in [(10, "max", "a"), (7, "limit", "b"), (25, "max", "c")] {
        let (mut all, mut pages) = (Vec::new(), 0);
        loop {
            let asked = json!({ "consumer": consumer, word: size });
            let page = caller.call("events_poll", &asked)["structuredContent"].clone();
            let events = page["events"].as_array().unwrap().clone();
            assert!(events.len() <= size, "{page}");
            // What is in hand does not come again, acknowledged or not.
            if pages % 2 == 0 && !events.is_empty() {
                let seen: Vec<&Value> = events.iter().map(|it| &it["sequence"]).collect();
                caller.text("events_ack", &json!({ "consumer": consumer, "sequences": seen }));
            }
            all.extend(events.iter().map(|it| it["data"].as_u64().unwrap()));
            pages += 1;
            if page["has_more"] == false {
                break;
            }
        }
        assert_eq!(all, (0..25).collect::<Vec<u64>>(), "by {size}");
        assert_eq!(pages, 25 / size + 1);
    }
    for (key, bad, cause) in [
        ("max", json!(0), "`max` must be between 1 and 100"),
        ("max", json!(101), "`max` must be between 1 and 100"),
        ("max", json!("all"), "the arguments do not fit"),
        ("from", json!("7"), "`from` must be first or new"),
        ("page", json!(2), "unknown field `page`"),
    ] {
        let said = caller.error("events_poll", &json!({ key: bad }));
        assert!(said.contains(cause), "{key}: {said}");
    }
}

/// Rows of a stored result, its lines, and its characters: each is gone through as the answers say.
#[test]
fn read_artifact_gives_everything_once_to_whoever_goes_on_as_it_says() {
    let rows: Vec<String> = (0..3_000).map(|n| format!("{n},row {n}")).collect();
    let text = format!("id,name\n{}\n", rows.join("\n"));
    let result = json!({ "content": [{ "type": "text", "text": text }], "isError": false });
    let plan = Plan::legacy().tool("rows", Act::Result(result.to_string()));
    let folder = Folder::workspace(&json!({ "s": entry(&plan) }));
    folder.write("network.yaml", "results: { inline_up_to: 1KB }\n");
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    let kept = caller.call("mcp__s__rows", &json!({}));
    let link = kept["content"].as_array().unwrap().iter().find(|it| it["type"] == "resource_link");
    let id = link.unwrap()["uri"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    for first in [json!({ "rows": "0:" }), json!({ "lines": "0:" }), json!({ "head": 700 })] {
        let mut asked = first.clone();
        asked["id"] = json!(id);
        let (mut all, mut pages) = (String::new(), 0);
        loop {
            let piece = caller.call("read_artifact", &asked);
            assert_eq!(piece["isError"], false, "{piece}");
            let body = piece["content"][0]["text"].as_str().unwrap();
            assert!(body.len() <= 64 * 1024, "{} bytes", body.len());
            // A table says its heading on every page.
            let body = body.strip_prefix("id,name\n").filter(|_| 0 < pages).unwrap_or(body);
            all.push_str(body);
            if first.get("head").is_none() && !all.ends_with('\n') {
                all.push('\n');
            }
            pages += 1;
            let note = piece["content"][1]["text"].as_str().unwrap_or_default();
            let Some((_, next)) = note.split_once("Go on with read_artifact ") else { break };
            asked = serde_json::from_str(next.lines().next().unwrap()).unwrap();
        }
        assert_eq!(all, text, "{first}");
        assert!(1 < pages, "{first}: {pages}");
    }
    for bad in
        [json!({ "rows": "x" }), json!({ "head": -1 }), json!({ "rows": "0:9", "from": "y" })]
    {
        let mut asked = bad.clone();
        asked["id"] = json!(id);
        let said = caller.error("read_artifact", &asked);
        assert!(!said.is_empty() && said.len() < 500, "{bad}: {said}");
    }
    let beyond = caller.call("read_artifact", &json!({ "id": id, "rows": "5000:5010" }));
    assert!(!beyond.to_string().contains("row 29"), "{beyond}");
}

/// The lists of the protocol have one page; a cursor is none of ours.
#[test]
fn a_cursor_that_nobody_gave_is_an_error() {
    let (_folder, serving) = finding();
    let mut caller = Caller::new(&serving);
    for what in ["tools", "prompts", "resources", "resources/templates"] {
        let whole = caller.ask(&format!("{what}/list"), &json!({}));
        assert!(whole["result"]["nextCursor"].is_null() && whole["error"].is_null(), "{whole}");
        let null = caller.ask(&format!("{what}/list"), &json!({ "cursor": null }));
        assert_eq!(null["result"], whole["result"]);
        let bad = caller.ask(&format!("{what}/list"), &json!({ "cursor": "2" }));
        assert_eq!(bad["error"]["code"], -32602, "{what}: {bad}");
        assert!(bad["error"]["message"].as_str().unwrap().contains("Invalid cursor"), "{bad}");
    }
}
