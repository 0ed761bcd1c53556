//! `toolcrib serve --stdio` where another gateway owns the workspace: lines go to it and come back.
//!
//! The owner may end before we do: it is the child of another client. Then what is still unanswered is
//! answered with an error, we become the owner or find the new one, and tell it what the client said when
//! it began. The client notices nothing else.

use std::{collections::HashMap, io, path::Path, process::ExitCode, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, Stdout},
    sync::mpsc,
};
use toolcrib::{Claim, Data, Owner};
use toolcrib_server::{Hello, read_line, serve_lines};
use toolcrib_wire::{Frame, Id, RpcError, frame};

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
    let mut client =
        Client { from: lines(tokio::io::stdin()), to: tokio::io::stdout(), said: Said::default() };
    let mut found = Found::Owner(owner);
    let mut own: Option<Running> = None;
    let mut tries = 0;
    let ended = loop {
        let stream: Option<Box<dyn Stream>> = match found {
            Found::Owner(owner) => connect(&owner, asked.group).await?.map(|it| Box::new(it) as _),
            Found::Ours(data) => {
                let running = Running::start(asked, Some(data))?;
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
async fn connect(
    owner: &Owner,
    group: Option<&str>,
) -> Result<Option<tokio::net::UnixStream>, Failure> {
    let Ok(mut stream) = owner.connect().await else { return Ok(None) };
    let hello = Hello { group: group.map(str::to_owned), refused: None };
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
    to: Stdout,
    said: Said,
}

/// What has to be known of a client when its gateway goes away.
#[derive(Debug, Default)]
struct Said {
    /// How it began, to be said again: `initialize` and `notifications/initialized`.
    begin: Vec<Vec<u8>>,
    /// The id of that `initialize`, while its answer is not the client's to hear.
    again: Option<Id>,
    /// What it waits for, and the request itself where it can be sent again: where it only reads.
    waiting: HashMap<Id, Option<Vec<u8>>>,
}

impl Client {
    /// Carries lines to and fro until one side ends.
    async fn talk(&mut self, stream: Box<dyn Stream>) -> io::Result<Ended> {
        let (input, mut output) = tokio::io::split(stream);
        let mut from_gateway = lines(input);
        let begin = self.said.begin.clone();
        self.said.again = begin.first().and_then(|it| request_id(it));
        for line in begin.iter().chain(self.said.waiting.values().flatten()) {
            if output.write_all(line).await.is_err() {
                return Ok(Ended::Gateway);
            }
        }
        loop {
            let sent = tokio::select! {
                line = self.from.recv() => {
                    let Some(line) = line else { return Ok(Ended::Client) };
                    self.said.note(&line);
                    output.write_all(&line).await
                }
                line = from_gateway.recv() => match line {
                    Some(line) => {
                        if self.said.is_for_client(&line) {
                            self.to.write_all(&line).await?;
                            self.to.flush().await?;
                        }
                        continue;
                    }
                    None => Err(io::ErrorKind::UnexpectedEof.into()),
                },
            };
            if sent.is_err() {
                self.give_up().await?;
                return Ok(Ended::Gateway);
            }
        }
    }

    /// Answers with an error what waits and cannot be sent again.
    async fn give_up(&mut self) -> io::Result<()> {
        let message = "the gateway ended while it answered; it may have been done nevertheless";
        let error =
            RpcError { code: frame::INTERNAL_ERROR, message: message.to_owned(), data: None };
        for (id, _) in self.said.waiting.extract_if(|_, again| again.is_none()) {
            let text = [&*frame::response(&id, Err(&error)), b"\n"].concat();
            self.to.write_all(&text).await?;
        }
        self.to.flush().await
    }
}

impl Said {
    /// Takes note of what the client says.
    fn note(&mut self, line: &[u8]) {
        match Frame::read(&line.to_vec().into()) {
            Ok(Frame::Request { id, method, .. }) => {
                if method == "initialize" {
                    self.begin = vec![line.to_vec()];
                    // It is sent again by that.
                    self.waiting.insert(id, Some(Vec::new()));
                    return;
                }
                let reads = method.ends_with("/list") || READS.contains(&method.as_str());
                self.waiting.insert(id, reads.then(|| line.to_vec()));
            }
            Ok(Frame::Notification { method, .. }) if method == "notifications/initialized" => {
                self.begin.truncate(1);
                self.begin.push(line.to_vec());
            }
            _ => {}
        }
    }

    /// Whether the client should hear what the gateway says.
    fn is_for_client(&mut self, line: &[u8]) -> bool {
        let Ok(Frame::Response { id: Some(id), .. }) = Frame::read(&line.to_vec().into()) else {
            return true;
        };
        if self.again.as_ref() == Some(&id) && !self.waiting.contains_key(&id) {
            self.again = None;
            return false;
        }
        self.waiting.remove(&id);
        true
    }
}

fn request_id(line: &[u8]) -> Option<Id> {
    match Frame::read(&line.to_vec().into()) {
        Ok(Frame::Request { id, .. }) => Some(id),
        _ => None,
    }
}

/// The lines of a stream, each with its end, until it ends.
fn lines(input: impl AsyncRead + Unpin + Send + 'static) -> Lines {
    let (sender, receiver) = mpsc::channel(QUEUE);
    #[expect(clippy::disallowed_methods, reason = "it ends with its stream or its reader")]
    tokio::spawn(async move {
        let mut input = BufReader::new(input);
        loop {
            let mut line = Vec::new();
            match read_line(&mut input, &mut line).await {
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
        said.again = request_id(&said.begin[0]);
        assert!(!said.is_for_client(answer));
        assert!(said.is_for_client(br#"{"jsonrpc":"2.0","id":7,"result":{}}"#));
        assert!(said.waiting.is_empty());
        assert!(said.is_for_client(b"no message"));
    }
}
