//! Event tools and the bus, on the real wire and on a real disk.

#[cfg(feature = "nats")]
pub(crate) mod broker;
mod suite;
#[cfg(feature = "nats")]
mod nats;
mod documents;
mod malformed;
mod tools;
mod door;
mod groups;
mod webhooks;
mod commands;
mod durability;

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{kit::Folder, serving::Serving};

/// The document of the guide.
pub(crate) const TASKS: &str = r##"
asyncapi: '3.0.0'
info:
  title: Task Coordination Events
  version: '1.0.0'

channels:
  task/delegate:
    address: task.delegate
    messages:
      task.delegate:
        $ref: '#/components/messages/TaskDelegate'

operations:
  delegateTask:
    action: send
    channel:
      $ref: '#/channels/task~1delegate'
    summary: Delegate a task to a specific agent
    x-agent-tool:
      enabled: true
      name: delegate_task
      description: "Delegate a task to a worker agent"

components:
  messages:
    TaskDelegate:
      name: task.delegate
      payload:
        $ref: '#/components/schemas/TaskDelegatePayload'

  schemas:
    TaskDelegatePayload:
      type: object
      required: [task_id, task_type, instructions]
      properties:
        task_id:
          type: string
          description: Unique identifier for the task
        task_type:
          type: string
          enum: ["download", "analyze", "convert"]
        instructions:
          type: string
          description: Detailed instructions
"##;

/// Arguments that fit it.
fn task(id: &str) -> Value {
    json!({ "task_id": id, "task_type": "download", "instructions": "go" })
}

/// A workspace with that document.
fn workspace() -> Folder {
    let folder = Folder::new();
    folder.write("events/task_coordination.yaml", TASKS);
    folder
}

/// Publishes an event over HTTP; returns its place.
fn publish(serving: &Serving, name: &str, data: &Value) -> u64 {
    let answer =
        serving.request("POST", "/events", &[], &json!({ "type": name, "data": data }).to_string());
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()["sequence"].as_u64().unwrap()
}

/// A stream of events, read as it comes.
struct Stream(BufReader<TcpStream>);

/// One event of a stream: its place, and what it says.
#[derive(Debug)]
struct Told {
    id: u64,
    event: Value,
}

impl Stream {
    fn open(serving: &Serving, query: &str, headers: &[(&str, &str)]) -> Self {
        let mut socket = TcpStream::connect(&serving.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut head = format!("GET /events?{query} HTTP/1.1\r\nHost: {}\r\n", serving.address);
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        socket.write_all(format!("{head}\r\n").as_bytes()).unwrap();
        let mut reader = BufReader::new(socket);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(reader.read_line(&mut head).unwrap(), 0, "{head}");
        }
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.contains("text/event-stream"), "{head}");
        Self(reader)
    }

    /// The next event; nothing where none comes in time.
    fn next(&mut self) -> Option<Told> {
        let (mut id, mut data) = (0, None);
        loop {
            let mut line = String::new();
            match self.0.read_line(&mut line) {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
            // Chunk sizes stand on lines of their own.
            let line = line.trim_end();
            if let Some(text) = line.strip_prefix("id: ") {
                id = text.parse().unwrap();
            } else if let Some(text) = line.strip_prefix("data: ") {
                data = Some(serde_json::from_str(text).unwrap());
            } else if line.is_empty()
                && let Some(event) = data.take()
            {
                return Some(Told { id, event });
            }
        }
    }

    /// What comes within a short time is not there.
    fn is_silent(&mut self, time: Duration) -> bool {
        self.0.get_ref().set_read_timeout(Some(time)).unwrap();
        let silent = self.next().is_none();
        self.0.get_ref().set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        silent
    }
}

fn acknowledge(serving: &Serving, consumer: &str, sequences: &[u64]) -> Value {
    let body = json!({ "consumer": consumer, "sequences": sequences }).to_string();
    let answer = serving.request("POST", "/events/ack", &[], &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}
