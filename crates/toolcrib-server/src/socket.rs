//! The door for further gateways of the same workspace: a socket that only its owner can open. The first
//! line says on whose behalf; after that it is as on standard input.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream},
    sync::Semaphore,
    time::timeout,
};

use crate::{
    gateway::Gateway,
    http::{Door, HttpSettings},
    stdio::{read_line, serve_lines},
};

/// More clients than this do not come in here at the same time.
const MAX_CLIENTS: usize = 256;

/// How long the first line may take.
const HELLO: Duration = Duration::from_secs(5);

/// The longest first line.
const MAX_HELLO: u64 = 4096;

/// The first line, and the answer to it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Hello {
    /// The group that the client is in; the default one where nothing is said.
    #[serde(default)]
    pub group: Option<String>,
    /// Whether HTTP is spoken after this line, by whoever runs the gateway, and not MCP.
    #[serde(default)]
    pub http: bool,
    /// Why it is not let in; nothing where it is.
    #[serde(default)]
    pub refused: Option<String>,
}

/// Lets clients in until the gateway is stopped.
pub async fn serve_socket(gateway: &Arc<Gateway>, listener: UnixListener) {
    let room = Arc::new(Semaphore::new(MAX_CLIENTS));
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let door = Door::new(Arc::clone(gateway), HttpSettings::default(), nowhere);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = gateway.stopped() => return,
        };
        let Ok((socket, _)) = accepted else {
            // Out of descriptors, most likely: wait rather than spin.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Ok(room) = Arc::clone(&room).try_acquire_owned() else { continue };
        let (this, door) = (Arc::clone(gateway), Arc::clone(&door));
        gateway.tasks.spawn(async move {
            if let Err(error) = welcome(&this, &door, socket).await {
                tracing::debug!(%error, "a client on the socket went away");
            }
            drop(room);
        });
    }
}

async fn welcome(
    gateway: &Arc<Gateway>,
    door: &Arc<Door>,
    socket: UnixStream,
) -> std::io::Result<()> {
    let (input, mut output) = socket.into_split();
    let mut input = BufReader::new(input);
    let mut line = Vec::new();
    timeout(HELLO, read_line(&mut (&mut input).take(MAX_HELLO), &mut line)).await??;
    let hello: Hello = serde_json::from_slice(&line)?;
    let caller = gateway.access().local(hello.group.as_deref());
    let refused = caller.is_none().then(|| {
        let known: Vec<String> = gateway.access().group_names().map(str::to_owned).collect();
        let group = hello.group.clone().unwrap_or_default();
        format!("there is no group `{group}`; there are: {}", known.join(", "))
    });
    let answer = Hello { group: hello.group, http: hello.http, refused };
    let text = format!("{}\n", serde_json::to_string(&answer)?);
    output.write_all(text.as_bytes()).await?;
    if hello.http {
        door.talk_to_operator(tokio::io::join(input, output)).await;
    } else if let Some(caller) = caller {
        serve_lines(gateway, caller, input, output).await;
    }
    Ok(())
}
