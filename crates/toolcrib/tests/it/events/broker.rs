//! A real `nats-server`, which can be killed, paused and started again.
//!
//! `./scripts/test` installs it into `.tools`. Where that is not so, tests say aloud that they did not run.

use std::{
    io::Read,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use toolcrib_bus::NatsSettings;

use crate::kit::{Folder, not_run};

pub(crate) struct Broker {
    program: PathBuf,
    folder: Folder,
    pub(crate) port: u16,
    child: Option<Child>,
}

impl Broker {
    /// A server that runs.
    pub(crate) fn start() -> Option<Self> {
        let mut broker = Self::stopped()?;
        broker.run();
        Some(broker)
    }

    /// A server that does not run yet.
    pub(crate) fn stopped() -> Option<Self> {
        let program = std::env::var_os("TOOLCRIB_TOOLS")
            .map(|tools| PathBuf::from(tools).join("venv/bin/nats-server"))
            .filter(|it| it.is_file());
        let Some(program) = program else {
            not_run("no nats-server; ./scripts/test installs it and sets TOOLCRIB_TOOLS");
            return None;
        };
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let broker = Self { program, folder: Folder::new(), port, child: None };
        broker.configure("");
        Some(broker)
    }

    /// Writes its configuration, with this besides what it needs.
    pub(crate) fn configure(&self, more: &str) {
        let store = self.folder.file("jetstream");
        let text = format!(
            "listen: 127.0.0.1:{}\njetstream {{\n  store_dir: {:?}\n}}\n{more}\n",
            self.port, store
        );
        self.folder.write("nats.conf", text);
    }

    /// Starts it, and waits until it greets.
    pub(crate) fn run(&mut self) {
        let log = std::fs::File::create(self.folder.file("nats.log")).unwrap();
        let child = Command::new(&self.program)
            .arg("-c")
            .arg(self.folder.file("nats.conf"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.child = Some(child.unwrap());
        let begin = Instant::now();
        while !self.greets() {
            let log = || std::fs::read_to_string(self.folder.file("nats.log")).unwrap_or_default();
            assert!(begin.elapsed() < Duration::from_secs(20), "nats-server: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn greets(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return false };
        stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        let mut greeting = [0; 4];
        stream.read_exact(&mut greeting).is_ok() && &greeting == b"INFO"
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = self.child.as_ref().unwrap().id();
        kill(Pid::from_raw(i32::try_from(id).unwrap()), signal).unwrap();
    }

    /// Kills it, so that it cleans nothing up.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Keeps what is on its disk now.
    pub(crate) fn keep_store(&self) {
        copy(&self.folder.file("jetstream"), &self.folder.file("kept"));
    }

    /// Puts that back.
    pub(crate) fn restore_store(&self) {
        std::fs::remove_dir_all(self.folder.file("jetstream")).unwrap();
        copy(&self.folder.file("kept"), &self.folder.file("jetstream"));
    }

    /// What a bus needs to find it.
    pub(crate) fn settings(&self) -> NatsSettings {
        NatsSettings::new(format!("nats://127.0.0.1:{}", self.port))
    }

    /// JetStream, apart from any bus.
    pub(crate) async fn jetstream(&self) -> async_nats::jetstream::Context {
        let client = async_nats::connect(format!("127.0.0.1:{}", self.port)).await.unwrap();
        async_nats::jetstream::new(client)
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().ok();
            child.wait().ok();
        }
    }
}
