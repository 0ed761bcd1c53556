//! A file that is saved is served a moment later.

use std::fs;

use serde_json::json;

use super::{Caller, workspace};
use crate::{
    kit::soon,
    serving::{Line, Serving},
};

const HELLO: &str = "@tool\ndef hello() -> str:\n    return 'one'\n";

fn soon_tools(serving: &Serving, expected: &[&str]) {
    soon(&format!("{expected:?}"), || Caller::new(serving).tools() == expected);
}

#[test]
fn edits_additions_and_deletions_are_followed() {
    let folder = workspace(HELLO);
    let serving = Serving::start(folder.path());
    assert_eq!(Caller::new(&serving).text("hello", &json!({})), "one");
    folder.write(
        "tools/t.py",
        "from toolcrib import tool\n@tool\ndef hello() -> str:\n    return 'two'\n",
    );
    soon("the new text", || Caller::new(&serving).text("hello", &json!({})) == "two");
    folder.write(
        "tools/more.py",
        "from toolcrib import tool\n@tool\nasync def more() -> str:\n    return 'm'\n",
    );
    soon_tools(&serving, &["hello", "more"]);
    assert_eq!(Caller::new(&serving).text("more", &json!({})), "m");
    fs::remove_file(folder.file("tools/t.py")).unwrap();
    soon_tools(&serving, &["more"]);
}

#[test]
fn a_workspace_may_begin_without_tools() {
    let folder = crate::kit::Folder::new();
    folder.write("network.yaml", "listen: 127.0.0.1:0\n");
    let serving = Serving::start(folder.path());
    assert!(Caller::new(&serving).tools().is_empty());
    folder.write("tools/t.py", format!("from toolcrib import tool\n{HELLO}"));
    soon_tools(&serving, &["hello"]);
}

#[test]
fn a_file_that_no_longer_loads_keeps_its_last_good_version() {
    let folder = workspace(HELLO);
    folder.write(
        "tools/other.py",
        "from toolcrib import tool\n@tool\ndef other() -> str:\n    return 'o'\n",
    );
    let serving = Serving::start(folder.path());
    folder.write("tools/t.py", "from toolcrib import tool\ndef broken(:\n");
    folder.write(
        "tools/other.py",
        "from toolcrib import tool\n@tool\ndef other() -> str:\n    return 'new'\n",
    );
    soon("the other file", || Caller::new(&serving).text("other", &json!({})) == "new");
    assert_eq!(Caller::new(&serving).text("hello", &json!({})), "one");
    folder.write(
        "tools/t.py",
        "from toolcrib import tool\n@tool\ndef hello() -> str:\n    return 'mended'\n",
    );
    soon("the mended file", || Caller::new(&serving).text("hello", &json!({})) == "mended");
}

#[test]
fn a_call_that_runs_ends_on_the_old_code() {
    let folder = workspace(
        "import time, asyncio\n@tool\ndef slow() -> str:\n    time.sleep(2)\n    return 'old'\n\
         @tool\nasync def slow_too() -> str:\n    await asyncio.sleep(2)\n    return 'old'\n",
    );
    let serving = Serving::start(folder.path());
    std::thread::scope(|scope| {
        let calls = ["slow", "slow_too"].map(|tool| {
            let mut caller = Caller::new(&serving);
            scope.spawn(move || caller.text(tool, &json!({})))
        });
        std::thread::sleep(std::time::Duration::from_millis(300));
        folder.write(
            "tools/t.py",
            "from toolcrib import tool\n@tool\ndef slow() -> str:\n    return 'new'\n",
        );
        soon("the new code", || Caller::new(&serving).tools() == ["slow"]);
        assert_eq!(Caller::new(&serving).text("slow", &json!({})), "new");
        for call in calls {
            assert_eq!(call.join().unwrap(), "old");
        }
    });
}

#[test]
fn a_name_that_is_taken_later_is_held_back() {
    let folder = workspace(HELLO);
    let serving = Serving::start(folder.path());
    folder.write(
        "tools/u.py",
        format!("from toolcrib import tool\n{HELLO}@tool\ndef u() -> str:\n    return 'u'\n"),
    );
    soon_tools(&serving, &["hello", "u"]);
    assert_eq!(Caller::new(&serving).text("hello", &json!({})), "one");
}

#[test]
fn clients_are_told_that_the_list_changed() {
    let folder = workspace(HELLO);
    let serving = Serving::start(folder.path());
    let session = serving.session(&[], "2025-11-25");
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    Line::open(&serving).post(&session, &ready.to_string());
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    assert!(Line::open(&serving).post(&session, &list.to_string()).body.contains("hello"));
    let mut stream = std::net::TcpStream::connect(&serving.address).unwrap();
    let head = format!(
        "GET /mcp HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\r\n",
        serving.address
    );
    std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();
    folder.write(
        "tools/more.py",
        format!("from toolcrib import tool\n{}", HELLO.replace("hello", "more")),
    );
    let mut heard = String::new();
    while !heard.contains("notifications/tools/list_changed") {
        let mut buffer = [0; 4096];
        let read = std::io::Read::read(&mut stream, &mut buffer).unwrap();
        assert_ne!(read, 0, "{heard}");
        heard.push_str(&String::from_utf8_lossy(&buffer[..read]));
    }
}
