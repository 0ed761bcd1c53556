//! A collector: takes spans over HTTP, or does whatever a bad one might do.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::Value;

use crate::kit::soon;

/// What it does with what it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    Takes,
    Answers(&'static str),
    NeverAnswers,
}

/// A collector that runs while this lives.
pub(crate) struct Collector {
    pub(crate) url: String,
    got: Arc<Mutex<Vec<(String, String)>>>,
}

/// One span, as it came.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) it: Value,
    pub(crate) attributes: BTreeMap<String, String>,
}

impl Collector {
    pub(crate) fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let got = Arc::<Mutex<Vec<(String, String)>>>::default();
        let kept = Arc::clone(&got);
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || attend(&socket, manner, &kept));
            }
        });
        Self { url, got }
    }

    /// The heads and bodies of all requests so far.
    pub(crate) fn requests(&self) -> Vec<(String, String)> {
        self.got.lock().clone()
    }

    /// All spans, once there are so many.
    #[track_caller]
    pub(crate) fn spans(&self, count: usize) -> Vec<Seen> {
        let mut found = Vec::new();
        soon("spans have come", || {
            found = self.requests().iter().flat_map(|(_, body)| spans(body)).collect();
            count <= found.len()
        });
        assert_eq!(found.len(), count, "{found:#?}");
        found
    }
}

fn attend(socket: &TcpStream, manner: Manner, kept: &Mutex<Vec<(String, String)>>) {
    let mut reader = BufReader::new(socket.try_clone().unwrap());
    let mut socket = socket;
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let length = head.to_lowercase();
        let length = length.lines().find_map(|it| it.strip_prefix("content-length: "));
        let mut body = vec![0; length.unwrap().parse().unwrap()];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        kept.lock().push((head, String::from_utf8(body).unwrap()));
        let answer = match manner {
            Manner::Takes => {
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
            }
            Manner::Answers(text) => text,
            Manner::NeverAnswers => {
                std::thread::sleep(Duration::from_secs(3600));
                return;
            }
        };
        if socket.write_all(answer.as_bytes()).is_err() || !answer.starts_with("HTTP/1.1") {
            return;
        }
    }
}

/// The spans of a request.
fn spans(body: &str) -> Vec<Seen> {
    let body: Value = serde_json::from_str(body).unwrap();
    let list = |value: &Value, key: &str| value[key].as_array().unwrap().clone();
    let scopes = list(&body, "resourceSpans").into_iter().flat_map(|it| list(&it, "scopeSpans"));
    let spans = scopes.flat_map(|it| list(&it, "spans"));
    let attribute = |it: &Value| {
        let value = &it["value"];
        let text = value["stringValue"].as_str().or(value["intValue"].as_str()).unwrap();
        (it["key"].as_str().unwrap().to_owned(), text.to_owned())
    };
    spans
        .map(|it| {
            let attributes = list(&it, "attributes");
            let read: BTreeMap<_, _> = attributes.iter().map(attribute).collect();
            assert_eq!(read.len(), attributes.len(), "a key twice: {it}");
            Seen { it, attributes: read }
        })
        .collect()
}

impl Seen {
    pub(crate) fn get(&self, key: &str) -> &str {
        self.attributes.get(key).map(String::as_str).unwrap_or_default()
    }

    pub(crate) fn text(&self, key: &str) -> &str {
        self.it[key].as_str().unwrap_or_default()
    }

    pub(crate) fn is_server(&self) -> bool {
        self.it["kind"] == 2
    }

    /// Where others say that they belong below it.
    pub(crate) fn traceparent(&self) -> String {
        format!("00-{}-{}-01", self.text("traceId"), self.text("spanId"))
    }
}
