//! Webhooks: signed, retried, and never in the way.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time::Duration,
};

use serde_json::{Value, json};

use super::publish;
use crate::{
    kit::{Folder, soon, toolcrib},
    serving::Serving,
};

/// One request that came in.
#[derive(Debug)]
struct Posted {
    head: String,
    body: String,
}

impl Posted {
    fn header(&self, name: &str) -> &str {
        let line = self.head.lines().find(|it| it.to_lowercase().starts_with(&format!("{name}:")));
        line.unwrap_or_else(|| panic!("no {name}: {}", self.head)).split_once(':').unwrap().1.trim()
    }
}

/// A receiver that answers the next requests with these, and with 200 after that.
fn receiver(answers: Vec<&'static str>) -> (String, mpsc::Receiver<Posted>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (sender, received) = mpsc::channel();
    std::thread::spawn(move || {
        let mut answers = answers.into_iter();
        for socket in listener.incoming() {
            let Ok(socket) = socket else { return };
            if serve(socket, &mut answers, &sender).is_none() {
                return;
            }
        }
    });
    (url, received)
}

fn serve(
    mut socket: TcpStream,
    answers: &mut impl Iterator<Item = &'static str>,
    sender: &mpsc::Sender<Posted>,
) -> Option<()> {
    let mut reader = BufReader::new(socket.try_clone().ok()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return Some(());
        }
    }
    let length = head
        .to_lowercase()
        .lines()
        .find_map(|it| it.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let answer = answers.next().unwrap_or("200 OK");
    write!(socket, "HTTP/1.1 {answer}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").ok()?;
    sender.send(Posted { head, body: String::from_utf8(body).ok()? }).ok()
}

fn workspace(url: &str, more: &str) -> Folder {
    let folder = Folder::new();
    let hook = format!("{{ url: '{url}', name: shop, match: ['order.*'], {more} }}");
    folder.write("network.yaml", format!("bus: {{ webhooks: [{hook}] }}\n"));
    folder
}

#[test]
fn a_webhook_is_told_signed_and_until_it_takes_it() {
    let (url, received) = receiver(vec!["503 Later\r\nRetry-After: 0", "500 Broken"]);
    let folder = workspace(&url, "secret_env: HOOK, headers: { X-Key: 'k ${HOOK}' }");
    let serving = Serving::start_with(folder.path(), &[("HOOK", "whsec_c2VjcmV0LWtleQ==")]);
    publish(&serving, "other.made", &json!(1));
    publish(&serving, "order.made", &json!({ "n": 1 }));
    let posts: Vec<Posted> =
        (0..3).map(|_| received.recv_timeout(Duration::from_secs(20)).unwrap()).collect();
    let event: Value = serde_json::from_str(&posts[2].body).unwrap();
    assert_eq!((&event["type"], &event["data"]), (&json!("order.made"), &json!({ "n": 1 })));
    assert!(posts.iter().all(|it| it.header("webhook-id") == event["id"].as_str().unwrap()));
    let last = &posts[2];
    assert_eq!(last.header("content-type"), "application/cloudevents+json; charset=utf-8");
    assert_eq!(last.header("x-key"), "k whsec_c2VjcmV0LWtleQ==");
    let (id, time) = (last.header("webhook-id"), last.header("webhook-timestamp"));
    assert_eq!(
        last.header("webhook-signature"),
        signature(b"secret-key", &format!("{id}.{time}.{}", last.body))
    );
    // Nothing waits any more, and nothing was given up.
    soon("it is settled", || {
        let state = toolcrib(folder.path(), &["events", "consumers", "--json"]).json();
        state[0]["name"] == "@webhooks/shop" && state[0]["pending"] == 0 && state[0]["dead"] == 0
    });
    assert!(received.recv_timeout(Duration::from_millis(300)).is_err());
}

/// Made by Python, which is somebody else.
fn signature(key: &[u8], text: &str) -> String {
    let script = "import sys, hmac, hashlib, base64\nprint('v1,' + base64.b64encode(hmac.new(sys.argv[1].encode(), sys.argv[2].encode(), hashlib.sha256).digest()).decode())";
    let made = std::process::Command::new("python3")
        .args(["-c", script, std::str::from_utf8(key).unwrap(), text])
        .output()
        .unwrap();
    String::from_utf8(made.stdout).unwrap().trim().to_owned()
}

#[test]
fn what_a_webhook_does_not_take_ends_among_the_dead_letters() {
    let (url, received) =
        receiver(vec!["410 Gone", "404 Not Found", "302 Found\r\nLocation: http://127.0.0.1:1/"]);
    let folder = workspace(&url, "attempts: 2");
    let serving = Serving::start(folder.path());
    publish(&serving, "order.gone", &json!(1));
    received.recv_timeout(Duration::from_secs(20)).unwrap();
    publish(&serving, "order.lost", &json!(2));
    soon("both are given up", || {
        let run = toolcrib(folder.path(), &["events", "consumers", "--json"]);
        run.json()[0]["dead"] == 2
    });
    let dead = toolcrib(folder.path(), &["events", "consumers", "@webhooks/shop", "--json"]).json();
    assert!(dead[0]["reason"].as_str().unwrap().contains("410"), "{dead}");
    assert!(dead[1]["reason"].as_str().unwrap().contains("redirects"), "{dead}");
    let revived = toolcrib(folder.path(), &["events", "consumers", "@webhooks/shop", "--revive"]);
    assert_eq!(revived.out, "2 delivered again\n");
    let mut again: Vec<Value> = (0..4)
        .filter_map(|_| received.recv_timeout(Duration::from_secs(5)).ok())
        .map(|it| serde_json::from_str::<Value>(&it.body).unwrap()["data"].clone())
        .collect();
    again.sort_by_key(Value::to_string);
    again.dedup();
    assert_eq!(again, [json!(1), json!(2)]);
}

/// The gateway ends between the event and the receiver's coming back.
#[test]
fn a_webhook_that_was_away_is_told_later() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let folder = workspace(&format!("http://{free}/hook"), "");
    {
        let serving = Serving::start(folder.path());
        publish(&serving, "order.made", &json!(1));
        std::thread::sleep(Duration::from_millis(200));
    }
    let listener = TcpListener::bind(free).unwrap();
    let _serving = Serving::start(folder.path());
    let (socket, _) = listener.accept().unwrap();
    let (sender, received) = mpsc::channel();
    serve(socket, &mut std::iter::empty(), &sender).unwrap();
    assert!(received.recv().unwrap().body.contains("order.made"));
}

#[test]
fn a_webhook_that_makes_no_sense_refuses_the_start() {
    for (more, said) in [
        ("secret_env: NOT_SET_ANYWHERE", "secret_env: the variable `NOT_SET_ANYWHERE` is not set"),
        ("timeout: 1d", "its `timeout` is a time from 1s to 5m"),
        ("attempts: 0", "its `attempts` are a number from 1 to 100"),
        ("headers: { 'a b': c }", "one of its `headers` cannot be sent"),
        ("secret: ''", "its secret is empty, or no base64"),
    ] {
        let folder = workspace("https://example.com/x", more);
        let run = toolcrib(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
        assert!(run.code == 2 && run.err.contains(said), "{more}: {}", run.transcript());
    }
    let folder = workspace("ftp://example.com", "");
    let run = toolcrib(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert!(run.err.contains("must begin with https://"), "{}", run.transcript());
}
