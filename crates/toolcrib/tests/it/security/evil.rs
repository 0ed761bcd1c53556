//! What the rows of the list need: the hostile server of `evil.py`, and a canary that nobody may come to.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::kit::Folder;

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/security/evil.py")
}

/// The entry of an `mcp.json` that runs it as a child process. `options` are added to its own.
pub(super) fn on_stdio(folder: &Folder, mut options: Value) -> Value {
    options["way"] = json!("stdio");
    options["notes"] = json!(folder.file("evil"));
    json!({ "command": "python3", "args": [script(), options.to_string()] })
}

/// What it was sent, as it noted it.
pub(super) fn noted(folder: &Folder) -> Vec<Value> {
    let notes = fs::read_to_string(folder.file("evil")).unwrap_or_default();
    notes.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
}

/// The hostile server on a port. It ends when this is dropped.
pub(super) struct Evil {
    child: Child,
    pub(super) port: u16,
}

impl Evil {
    pub(super) fn http(folder: &Folder) -> Self {
        Self::start(&json!({ "way": "http", "notes": folder.file("evil") }))
    }

    /// With a certificate of its own, which is in `cert.pem` of the folder.
    pub(super) fn https(folder: &Folder) -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let cert = folder.write("cert.pem", made.cert.pem());
        let key = folder.write("key.pem", made.signing_key.serialize_pem());
        let notes = folder.file("evil");
        Self::start(&json!({ "way": "https", "notes": notes, "cert": cert, "key": key }))
    }

    fn start(options: &Value) -> Self {
        let mut command = Command::new("python3");
        command.arg(script()).arg(options.to_string()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        Self { child, port: said.trim().parse().unwrap() }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

impl Drop for Evil {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A listener that keeps what whoever comes says first.
pub(super) struct Canary {
    pub(super) port: u16,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Canary {
    pub(super) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&heard);
        std::thread::spawn(move || {
            // It is there for as long as the tests are.
            for mut socket in listener.incoming().flatten() {
                let mut begin = vec![0; 1024];
                socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
                let read = socket.read(&mut begin).unwrap_or(0);
                kept.lock().push(String::from_utf8_lossy(&begin[..read]).into_owned());
            }
        });
        Self { port, heard }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Nobody came; and somebody who comes now is seen.
    #[track_caller]
    pub(super) fn assert_alone(&self) {
        assert_eq!(*self.heard.lock(), [""; 0], "somebody came to the canary");
        drop(std::net::TcpStream::connect(("127.0.0.1", self.port)).unwrap());
        crate::kit::soon("the canary lives", || self.heard.lock().len() == 1);
        self.heard.lock().clear();
    }
}
