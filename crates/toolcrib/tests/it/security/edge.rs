//! A1 to A10 and A12: what a browser, or a page in it, could send.

use std::{
    fs::{self, File},
    process::{Command, Stdio},
};

use serde_json::json;

use super::{A, ACCESS, Old, ROUTES, World, call, console::routes, modern_headers, request};
use crate::{
    kit::{Folder, not_run, run, soon},
    serving::Serving,
};

/// The calls that these headers are added to in vain: one of each era.
fn refused(world: &World, session: &str, headers: &[(&str, &str)], expected: &[u16]) {
    let before = world.calls();
    let legacy = [&[A, ("Mcp-Session-Id", session)], headers].concat();
    let legacy = world.serving.post(&legacy, &call(1, "mcp__a__echo"));
    let modern = [&modern_headers("tools/call"), &[A, ("Mcp-Name", "mcp__a__echo")], headers];
    let body = super::modern_body("tools/call", json!({ "name": "mcp__a__echo" }));
    let modern = world.serving.post(&modern.concat(), &body);
    for answer in [legacy, modern] {
        assert!(expected.contains(&answer.status), "{headers:?} {answer:?}");
        assert!(!answer.body.contains("mcp__"), "{answer:?}");
    }
    assert_eq!(world.calls(), before, "{headers:?}");
}

/// The same calls go through where nothing is wrong.
fn accepted(world: &World, session: &str, headers: &[(&str, &str)]) {
    let before = world.calls();
    let legacy = [&[A, ("Mcp-Session-Id", session)], headers].concat();
    let answer = world.serving.post(&legacy, &call(1, "mcp__a__echo"));
    assert_eq!((answer.status, world.calls()), (200, before + 1), "{headers:?} {answer:?}");
}

#[test]
fn a01_a_foreign_host_reaches_no_server() {
    let world = World::start();
    let session = world.session(A);
    refused(&world, &session, &[("Host", "evil.example")], &[403]);
    accepted(&world, &session, &[]);
}

#[test]
fn a02_a_foreign_origin_reaches_no_server_and_none_is_needed() {
    let world = World::start();
    let session = world.session(A);
    refused(&world, &session, &[("Origin", "http://evil.example")], &[403]);
    let own = world.serving.url("");
    refused(&world, &session, &[("Origin", &own), ("Origin", "http://evil.example")], &[403]);
    accepted(&world, &session, &[("Origin", &own)]);
    accepted(&world, &session, &[]);
}

#[test]
fn a03_an_origin_that_resembles_ours_is_foreign() {
    let world = World::start();
    let session = world.session(A);
    let address = world.serving.address.as_str();
    let port = address.split(':').nth(1).unwrap();
    for origin in [
        "null".to_owned(),
        "http://127.0.0.1.evil.example".to_owned(),
        format!("http://127.0.0.1.evil.example:{port}"),
        "http://127.0.0.1:1".to_owned(),
        "http://127.0.0.1".to_owned(),
        format!("http://evil.example#{address}"),
        format!("http://{address}@evil.example"),
        format!("http://{address}/"),
        format!("ftp://{address}"),
        address.to_owned(),
        String::new(),
    ] {
        refused(&world, &session, &[("Origin", &origin)], &[403]);
    }
}

#[test]
fn a04_only_our_own_authorities_pass() {
    let world = World::start();
    let session = world.session(A);
    let address = world.serving.address.as_str();
    let port = address.split(':').nth(1).unwrap();
    for host in [
        "localhost.evil.example:7777".to_owned(),
        format!("localhost.evil.example:{port}"),
        "127.1".to_owned(),
        format!("127.1:{port}"),
        format!("2130706433:{port}"),
        "127.0.0.1".to_owned(),
        "127.0.0.1:1".to_owned(),
        format!("evil@{address}"),
        format!("{address}, evil.example"),
        String::new(),
    ] {
        refused(&world, &session, &[("Host", &host)], &[400, 403]);
    }
    for (first, second) in
        [(address, "evil.example"), ("evil.example", address), (address, address)]
    {
        refused(&world, &session, &[("Host", first), ("Host", second)], &[400, 403]);
    }
    for own in ["localhost", "LOCALHOST", "[::1]"] {
        accepted(&world, &session, &[("Host", &format!("{own}:{port}"))]);
    }
    let (name, token) = A;
    let get = |target: &str, host: &str| {
        let head = format!("GET {target} HTTP/1.1\r\n{host}Connection: close\r\n{name}: {token}");
        world.serving.send(&head, "").status
    };
    let host = format!("Host: {address}\r\n");
    assert_eq!(get("http://evil.example/readyz", &host), 403);
    assert_eq!(get(&format!("http://evil.example@{address}/readyz"), &host), 403);
    assert_eq!(get(&format!("http://{address}/readyz"), "Host: evil.example\r\n"), 403);
    assert_eq!(get("/readyz", ""), 403, "no Host at all");
    assert_eq!(get(&format!("http://{address}/readyz"), &host), 200);
}

#[test]
fn a05_every_route_is_guarded_and_only_healthz_and_the_page_are_public() {
    let world = World::start();
    let later = [
        "/api/x",
        "/console/",
        "/console/x",
        "/artifacts/x",
        "/metrics/",
        "/mcp/",
        "//mcp",
        "/MCP",
    ];
    let api: Vec<String> = routes(&world.serving, A).into_iter().map(|(_, path, _)| path).collect();
    let own = |path: &str| ROUTES.contains(&path) || api.iter().any(|it| it == path);
    assert!(15 < api.len() && own("/api/artifact") && own("/api/live"), "{api:?}");
    for path in ROUTES.into_iter().chain(api.iter().map(String::as_str)).chain(later) {
        for method in ["GET", "POST", "DELETE", "OPTIONS"] {
            let status =
                |headers: &[(&str, &str)]| world.serving.request(method, path, headers, "").status;
            let place = format!("{method} {path}");
            assert_eq!(status(&[A, ("Host", "evil.example")]), 403, "{place}");
            assert_eq!(status(&[A, ("Origin", "http://evil.example")]), 403, "{place}");
            let expected = match path {
                "/healthz" => 200,
                // Nothing can be done to a page but look at it.
                "/" | "/console/app.js" if method == "GET" => 200,
                "/" | "/console/app.js" => 405,
                _ => 401,
            };
            assert_eq!(status(&[]), expected, "{place}");
        }
        if !ROUTES.contains(&path) && own(path) {
            // What it says to somebody with a token depends on what is asked for.
            continue;
        }
        // With a token there is something behind it, or nothing.
        let method = if path == "/messages" { "POST" } else { "GET" };
        let (status, _) = world.serving.head(method, path, &[A, ("Content-Length", "0")]);
        let exists = ROUTES.contains(&path) && path != "/messages";
        let expected = match path {
            "/mcp" => 400,
            "/events/ack" => 405,
            "/events/dead" => 400,
            // For operators.
            "/metrics" => 403,
            _ if exists => 200,
            _ => 404,
        };
        assert_eq!(status, expected, "{path}");
    }
}

/// In a network of its own, in which nobody else listens and from which nothing gets out.
#[test]
fn a06_it_listens_on_loopback_and_elsewhere_only_with_a_token() {
    let apart = |folder: &Folder, args: &str| {
        let mut command = Command::new("unshare");
        let program = env!("CARGO_BIN_EXE_toolcrib");
        let script = format!("ip link set lo up && exec {program} serve {args}");
        command.args(["-rn", "sh", "-c", &script]).current_dir(folder.path());
        command
    };
    let possible = Command::new("unshare").args(["-rn", "ip", "link", "set", "lo", "up"]).output();
    if !possible.is_ok_and(|it| it.status.success()) {
        not_run("a06, which needs `unshare -rn` and `ip`");
        return;
    }
    let folder = World::folder();
    let serving = Serving::run(apart(&folder, "").stderr(Stdio::null()));
    let mut listening = Vec::new();
    for family in ["tcp", "tcp6"] {
        let table = fs::read_to_string(format!("/proc/{}/net/{family}", serving.child.id()));
        for line in table.unwrap_or_default().lines().skip(1) {
            let mut columns = line.split_whitespace().skip(1);
            let (local, _, state) = (columns.next(), columns.next(), columns.next());
            // 0A is LISTEN.
            listening.extend(local.filter(|_| state == Some("0A")).map(str::to_owned));
        }
    }
    assert_eq!(listening, [format!("0100007F:{:04X}", 8700)]);
    drop(serving);
    for (address, network) in [
        ("0.0.0.0:0", ""),
        ("[::]:0", ""),
        ("10.0.0.1:0", "external_access: {}"),
        ("", "listen: 0.0.0.0:0"),
    ] {
        folder.write("network.yaml", network);
        let args = if address.is_empty() { String::new() } else { format!("--listen {address}") };
        let run = run(&mut apart(&folder, &args));
        assert_eq!(run.code, 2, "{}", run.transcript());
        assert!(run.err.contains("can be reached by others, and no token is set"), "{}", run.err);
    }
}

#[test]
fn a07_only_json_is_taken_for_a_message() {
    let world = World::start();
    let session = world.session(A);
    let old = Old::open(&world.serving, A);
    let body = call(1, "mcp__a__echo").to_string();
    let begin = request(
        1,
        "initialize",
        json!({ "protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } }),
    );
    for media_type in [
        "text/plain",
        "text/plain; charset=utf-8",
        "text/plain; application/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json-patch+json",
        "",
    ] {
        let headers = [A, ("Mcp-Session-Id", session.as_str()), ("Content-Type", media_type)];
        for path in ["/mcp", &old.path] {
            let answer = world.serving.request("POST", path, &headers, &body);
            assert_eq!(answer.status, 415, "{path} {media_type} {answer:?}");
        }
        let [token, _, kind] = headers;
        let answer = world.serving.post(&[token, kind], &begin);
        assert_eq!((answer.status, answer.header("mcp-session-id")), (415, None), "{media_type}");
    }
    assert_eq!(world.calls(), 0);
    accepted(&world, &session, &[("Content-Type", "Application/JSON ; charset=utf-8")]);
}

#[test]
fn a08_no_foreign_page_may_read_an_answer() {
    let world = World::start();
    let own = world.serving.url("");
    for path in ROUTES {
        for (origin, foreign) in [("http://evil.example", true), ("null", true), (&own, false)] {
            let asks = [
                ("Origin", origin),
                ("Access-Control-Request-Method", "POST"),
                ("Access-Control-Request-Headers", "authorization, content-type"),
            ];
            for answer in [
                world.serving.request("OPTIONS", path, &asks, ""),
                world.serving.request("OPTIONS", path, &[&asks[..], &[A]].concat(), ""),
                world.serving.request("POST", path, &[asks[0], A], "{}"),
            ] {
                assert!(!foreign || answer.status == 403, "{path} {origin} {answer:?}");
                for what in ["origin", "credentials", "methods", "headers", "private-network"] {
                    let header = answer.header(&format!("access-control-allow-{what}"));
                    assert_eq!(header, None, "{path} {origin}");
                }
            }
        }
    }
}

#[test]
fn a10_a_token_in_the_query_opens_nothing_and_is_not_logged() {
    let folder = World::folder();
    folder.write("network.yaml", ACCESS);
    let log = folder.file("log");
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolcrib"));
    command.args(["-vv", "serve", "--listen", "127.0.0.1:0"]).current_dir(folder.path());
    let serving = Serving::run(command.stderr(File::create(&log).unwrap()));
    let list = request(1, "tools/list", json!({})).to_string();
    for path in ["/mcp", "/sse", "/messages", "/readyz", "/nothing"] {
        for key in ["token", "access_token", "session=1&auth_token", "authorization"] {
            let path = format!("{path}?{key}=SECRET_TOKEN_A");
            for method in ["GET", "POST"] {
                let answer = serving.request(method, &path, &[], &list);
                assert_eq!(answer.status, 401, "{path}");
                assert!(!answer.body.contains("SECRET"), "{answer:?}");
            }
            // Nor where somebody is let in who also says it.
            let (status, _) = serving.head("GET", &path, &[A]);
            assert_ne!(status, 401, "{path}");
        }
    }
    // What the gateway says does arrive there.
    folder.write("network.yaml", "external_access: [");
    serving.signal("-HUP");
    let said = || fs::read_to_string(&log).unwrap();
    soon("it complains", || said().contains("access stays as it was"));
    serving.signal("-TERM");
    let mut serving = serving;
    serving.child.wait().unwrap();
    let logged = said();
    assert!(!logged.contains("SECRET"), "{logged}");
}

#[test]
fn a12_the_modern_endpoint_takes_nothing_but_posts() {
    let world = World::start();
    let version = ("MCP-Protocol-Version", "2026-07-28");
    let session = world.session(A);
    let kept = ("Mcp-Session-Id", session.as_str());
    for method in ["GET", "DELETE", "TRACE", "CONNECT", "PUT", "PATCH", "OPTIONS"] {
        for headers in [&[A, version][..], &[A, version, kept]] {
            let answer = world.serving.request(method, "/mcp", headers, "");
            assert_eq!(answer.status, 405, "{method} {answer:?}");
            assert_eq!(answer.header("allow").unwrap(), "POST", "{method}");
            assert!(!answer.body.contains("SECRET"), "{answer:?}");
        }
    }
    // As a proxy is asked: to us, and to somebody else.
    let (name, token) = A;
    let address = &world.serving.address;
    let connect = |target: &str| {
        let head = format!(
            "CONNECT {target} HTTP/1.1\r\nHost: {address}\r\n{name}: {token}\r\n{}: {}",
            version.0, version.1
        );
        world.serving.send(&head, "").status
    };
    assert_eq!(connect(address), 405);
    assert_eq!(connect("evil.example:443"), 403);
    // The session is still there: nothing was ended by a DELETE that does not exist.
    accepted(&world, &session, &[]);
}
