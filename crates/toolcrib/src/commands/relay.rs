//! `toolcrib serve --stdio` where another gateway owns the workspace: lines go to it and come back.
//!
//! The owner may end before we do: it is the child of another client. Then what is still unanswered is
//! answered with an error, we become the owner or find the new one, and tell it what the client said when
//! it began. The client notices nothing else.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io,
    path::Path,
    process::ExitCode,
    time::Duration,
};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    net::UnixStream,
    sync::mpsc,
};
use toolcrib::{Claim, Data, Owner};
use toolcrib_server::{Hello, read_line, serve_lines};
use toolcrib_wire::{Frame, Id, RpcError, frame, json, standard_input, standard_output};

use super::{
    Failure,
    serve::{Asked, Running},
};

/// How often we look for a gateway before we give up.
const TRIES: u32 = 100;

/// How long we wait between looks.
const PAUSE: Duration = Duration::from_millis(100);

/// What changes nothing, besides lists.
const READS: [&str; 5] =
    ["ping", "server/discover", "prompts/get", "resources/read", "completion/complete"];

/// How long the owner may take to let us in.
const GREETING: Duration = Duration::from_secs(5);

/// More resources than this are not watched again.
const MAX_WISHES: usize = 1_000;

/// How many lines may wait.
const QUEUE: usize = 64;

type Lines = mpsc::Receiver<Vec<u8>>;

/// The other end, whatever it is.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Relays until the client closes its end.
pub(crate) async fn run(
    asked: &Asked<'_>,
    folder: &Path,
    owner: Owner,
) -> Result<ExitCode, Failure> {
    let mut client = Client {
        from: lines(standard_input(), Some(())),
        to: standard_output(),
        said: Mutex::default(),
    };
    let mut found = Found::Owner(owner);
    let mut own: Option<Running> = None;
    let mut tries = 0;
    let ended = loop {
        let stream: Option<Box<dyn Stream>> = match found {
            Found::Owner(owner) => connect(&owner, asked.group).await?.map(|it| Box::new(it) as _),
            Found::Ours(data) => {
                let running = Running::start(asked, Some(data)).await?;
                let (here, there) = tokio::io::duplex(64 * 1024);
                let caller = running.caller(asked.group)?;
                let gateway = std::sync::Arc::clone(&running.gateway);
                running.spawn(async move {
                    let (input, output) = tokio::io::split(there);
                    serve_lines(&gateway, caller, input, output).await;
                });
                own = Some(running);
                Some(Box::new(here))
            }
        };
        if let Some(stream) = stream {
            tries = 0;
            if client.talk(stream).await? == Ended::Client {
                break Ok(ExitCode::SUCCESS);
            }
        }
        tries += 1;
        if TRIES < tries {
            break Err(Failure::unusable("the gateway that owns this workspace does not answer"));
        }
        tokio::time::sleep(PAUSE).await;
        found = match Data::claim(folder) {
            Claim::Ours(data) => Found::Ours(data),
            Claim::Taken(owner) => Found::Owner(owner),
            Claim::Unusable(cause) => break Err(Failure::unusable(cause)),
        };
    };
    if let Some(running) = own {
        running.close().await;
    }
    ended
}

/// Where a gateway is.
enum Found {
    Owner(Owner),
    Ours(Data),
}

/// Connects to the owner and says who we are. Nothing where it is just coming or going.
async fn connect(owner: &Owner, group: Option<&str>) -> Result<Option<UnixStream>, Failure> {
    match tokio::time::timeout(GREETING, greet(owner, group)).await {
        Ok(greeted) => greeted,
        // It is there, and stopped, or stuck.
        Err(_) => {
            let process = owner.process.map(|it| format!(" (process {it})")).unwrap_or_default();
            let message = format!("the gateway that owns this workspace{process} does not answer");
            Err(Failure::unusable(message).hint(Some("end it, or let it go on".to_owned())))
        }
    }
}

async fn greet(owner: &Owner, group: Option<&str>) -> Result<Option<UnixStream>, Failure> {
    let Ok(mut stream) = owner.connect().await else { return Ok(None) };
    let hello = Hello { group: group.map(str::to_owned), ..Hello::default() };
    let Ok(text) = serde_json::to_string(&hello) else { return Ok(None) };
    if stream.write_all(format!("{text}\n").as_bytes()).await.is_err() {
        return Ok(None);
    }
    // Byte by byte: what comes after the line is the client's.
    let mut line = Vec::new();
    while !line.ends_with(b"\n") && line.len() < 4096 {
        let mut byte = [0_u8];
        match tokio::io::AsyncReadExt::read(&mut stream, &mut byte).await {
            Ok(1) => line.push(byte[0]),
            _ => return Ok(None),
        }
    }
    let Ok(answer) = serde_json::from_slice::<Hello>(&line) else { return Ok(None) };
    match answer.refused {
        Some(refused) => Err(Failure::unusable(refused)),
        None => Ok(Some(stream)),
    }
}

/// Who ended a talk.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    Client,
    Gateway,
}

/// The one who started us.
struct Client {
    from: Lines,
    to: Box<dyn AsyncWrite + Send + Unpin>,
    said: Mutex<Said>,
}

/// What has to be known of a client when its gateway goes away.
#[derive(Debug, Default)]
struct Said {
    /// How it began, to be said again: `initialize` and `notifications/initialized`.
    begin: Vec<Vec<u8>>,
    /// What it wished for once, to be said again: how much is logged, which resources are watched.
    wishes: BTreeMap<String, Vec<u8>>,
    /// What was said again, whose answers are not the client's to hear.
    again: HashSet<Id>,
    /// What it waits for, and the request itself where it can be sent again: where it only reads.
    waiting: HashMap<Id, Option<Vec<u8>>>,
    /// What it was asked.
    asked: HashSet<Id>,
    /// What it was asked by a gateway that is gone.
    stale: HashSet<Id>,
}

impl Client {
    /// Carries lines to and fro until one side ends.
    async fn talk(&mut self, stream: Box<dyn Stream>) -> io::Result<Ended> {
        let (input, mut output) = tokio::io::split(stream);
        let mut from_gateway = lines(input, None);
        let again = self.said.lock().again();
        let Self { from, to, said } = self;
        // Each way by itself: while one side does not read, the other must still be heard.
        let up = async {
            for line in again {
                if output.write_all(&line).await.is_err() {
                    return Ended::Gateway;
                }
            }
            while let Some(line) = from.recv().await {
                let taken = said.lock().note(&line);
                if taken && output.write_all(&line).await.is_err() {
                    return Ended::Gateway;
                }
            }
            Ended::Client
        };
        let down = async {
            while let Some(line) = from_gateway.recv().await {
                let wanted = said.lock().is_for_client(&line);
                if wanted {
                    to.write_all(&line).await?;
                    to.flush().await?;
                }
            }
            Ok::<_, io::Error>(Ended::Gateway)
        };
        let ended = tokio::select! {
            ended = up => ended,
            ended = down => ended?,
        };
        if ended == Ended::Gateway {
            self.give_up().await?;
        }
        Ok(ended)
    }

    /// Answers with an error what waits and cannot be sent again, and takes back what was asked.
    async fn give_up(&mut self) -> io::Result<()> {
        let texts = self.said.lock().last_words();
        for text in texts {
            self.to.write_all(&[&*text, b"\n"].concat()).await?;
        }
        self.to.flush().await
    }
}

impl Said {
    /// What a new gateway has to hear.
    fn again(&mut self) -> Vec<Vec<u8>> {
        let begin = self.begin.iter().chain(self.wishes.values());
        self.again = begin.clone().filter_map(|it| request_id(it)).collect();
        begin.chain(self.waiting.values().flatten()).cloned().collect()
    }

    /// What the client has to hear of a gateway that is gone.
    fn last_words(&mut self) -> Vec<Bytes> {
        let message = "the gateway ended while it answered; it may have been done nevertheless";
        let error =
            RpcError { code: frame::INTERNAL_ERROR, message: message.to_owned(), data: None };
        let lost = self.waiting.extract_if(|_, again| again.is_none());
        let mut texts: Vec<Bytes> = lost.map(|(id, _)| frame::response(&id, Err(&error))).collect();
        for id in self.asked.drain() {
            let params = format!(r#"{{"requestId":{id}}}"#);
            texts.push(frame::notification("notifications/cancelled", Some(params.as_bytes())));
            self.stale.insert(id);
        }
        texts
    }

    /// Takes note of what the client says; returns whether it is for the gateway.
    fn note(&mut self, line: &[u8]) -> bool {
        let text = Bytes::copy_from_slice(line);
        if text.trim_ascii_start().first() == Some(&b'[') {
            for (_, at) in json::members(&text) {
                if let Some(id) = request_id(&text[at]) {
                    self.waiting.insert(id, None);
                }
            }
            return true;
        }
        match Frame::read(&text) {
            Ok(Frame::Request { id, method, params }) => {
                self.note_request(id, &method, params.as_ref(), line);
            }
            Ok(Frame::Notification { method, .. }) if method == "notifications/initialized" => {
                self.begin.truncate(1);
                self.begin.push(line.to_vec());
            }
            Ok(Frame::Notification { method, params }) if method == "notifications/cancelled" => {
                let id = params.and_then(|it| Id::read(&it[json::member(&it, "requestId")?]));
                if let Some(id) = id {
                    self.waiting.remove(&id);
                }
            }
            // An answer to somebody who is gone must not be taken for one to somebody else.
            Ok(Frame::Response { id: Some(id), .. }) => {
                self.asked.remove(&id);
                return !self.stale.remove(&id);
            }
            _ => {}
        }
        true
    }

    fn note_request(&mut self, id: Id, method: &str, params: Option<&Bytes>, line: &[u8]) {
        let uri = || {
            let at = json::member(params?, "uri")?;
            serde_json::from_slice::<String>(&params?[at]).ok()
        };
        match (method, uri()) {
            ("initialize", _) => {
                self.begin = vec![line.to_vec()];
                // It is sent again by that.
                self.waiting.insert(id, Some(Vec::new()));
                return;
            }
            ("logging/setLevel", _) => drop(self.wishes.insert(String::new(), line.to_vec())),
            ("resources/subscribe", Some(uri)) if self.wishes.len() < MAX_WISHES => {
                self.wishes.insert(uri, line.to_vec());
            }
            ("resources/unsubscribe", Some(uri)) => drop(self.wishes.remove(&uri)),
            _ => {}
        }
        let reads = method.ends_with("/list") || READS.contains(&method);
        self.waiting.insert(id, reads.then(|| line.to_vec()));
    }

    /// Whether the client should hear what the gateway says.
    fn is_for_client(&mut self, line: &[u8]) -> bool {
        match Frame::read(&Bytes::copy_from_slice(line)) {
            Ok(Frame::Response { id: Some(id), .. }) => {
                let again = self.again.remove(&id);
                self.waiting.remove(&id).is_some() || !again
            }
            Ok(Frame::Request { id, .. }) => {
                self.asked.insert(id);
                true
            }
            _ => true,
        }
    }
}

fn request_id(line: &[u8]) -> Option<Id> {
    match Frame::read(&line.to_vec().into()) {
        Ok(Frame::Request { id, .. }) => Some(id),
        _ => None,
    }
}

/// The lines of a stream, each with its end, until it ends. One that is too long is cut, so that it is refused.
fn lines(input: impl AsyncRead + Unpin + Send + 'static, cut: Option<()>) -> Lines {
    let (sender, receiver) = mpsc::channel(QUEUE);
    #[expect(clippy::disallowed_methods, reason = "it ends with its stream or its reader")]
    tokio::spawn(async move {
        let mut input = BufReader::new(input);
        loop {
            let mut line = Vec::new();
            let read = match cut {
                Some(()) => read_line(&mut input, &mut line).await,
                None => input.read_until(b'\n', &mut line).await,
            };
            match read {
                Ok(0) | Err(_) => return,
                Ok(_) if sender.send(line).await.is_err() => return,
                Ok(_) => {}
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_began_with_is_said_again_and_answered_once() {
        let initialize = br#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{}}"#;
        let answer = br#"{"jsonrpc":"2.0","id":"i","result":{}}"#;
        let mut said = Said::default();
        said.note(initialize);
        assert!(said.is_for_client(answer));
        said.note(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        said.note(br#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#);
        assert_eq!((said.begin.len(), said.waiting.len()), (2, 1));
        assert!(said.waiting.values().all(Option::is_some));
        assert_eq!(said.again().len(), 3);
        assert!(!said.is_for_client(answer));
        assert!(said.is_for_client(br#"{"jsonrpc":"2.0","id":7,"result":{}}"#));
        assert!(said.waiting.is_empty());
        assert!(said.is_for_client(b"no message"));
        // A question of a gateway that is gone is taken back, and its answer is nobody's.
        assert!(said.is_for_client(br#"{"jsonrpc":"2.0","id":9,"method":"roots/list"}"#));
        let told = said.last_words().concat();
        assert_eq!(
            &told[..],
            br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}"#
        );
        assert!(!said.note(br#"{"jsonrpc":"2.0","id":9,"result":{}}"#));
        // What was taken back is not waited for.
        said.note(br#"{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{}}"#);
        said.note(
            br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":10}}"#,
        );
        assert!(said.last_words().is_empty());
    }
}
