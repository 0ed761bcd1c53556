//! The way of one call, whole and on one thread: a client on a socket, the door, every guard, a server on another
//! socket, and back.
//!
//! `path N` makes N calls. Run it under an instruction counter with two numbers, and the difference is what the calls
//! between cost: `tests/it/path.rs` does, and holds the figure to a ceiling. Client and server are as little code as
//! can be, and counted along.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a benchmark speaks on stdout"
)]
#![expect(clippy::disallowed_methods, reason = "what is spawned here ends with the program")]

use std::{
    fs,
    net::SocketAddr,
    path::Path,
    sync::{Arc, LazyLock},
};

use memchr::memmem::{self, Finder};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use toolcrib::{Auditing, Claim, Data, Network, Workspace};
use toolcrib_catalogue::{Source, SourceState};
use toolcrib_server::{Access, Audit, Door, Gateway, HttpSettings, Settings};
use toolcrib_sources::{asyncapi::Care, mcp::Lists};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TOKEN: &str = "the-token-of-the-benchmark";

fn main() {
    // `cargo bench` passes `--bench`.
    let calls = std::env::args().filter_map(|it| it.parse().ok()).next().unwrap_or(1_000);
    let name = format!("toolcrib-path-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    fs::create_dir_all(&folder).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(run(&folder, calls));
    fs::remove_dir_all(&folder).unwrap();
    println!("{calls} calls");
}

async fn run(folder: &Path, calls: u64) {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = server.local_addr().unwrap();
    let answering = tokio::spawn(serve(server));
    let servers = format!(
        r#"{{"mcpServers":{{"s":{{"url":"http://{address}/mcp","rate":"1000000/s","concurrent":64}}}}}}"#
    );
    fs::write(folder.join("mcp.json"), servers).unwrap();
    let access = format!(
        "external_access: {{ auth_token: {TOKEN}, groups: {{ guest: {{ rate: 1000000/s }} }} }}\n"
    );
    fs::write(folder.join("network.yaml"), access).unwrap();
    let Claim::Ours(data) = Data::claim(folder) else { panic!("the folder is not ours") };
    let (gateway, workspace) = start(folder, &data).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let door = Door::new(Arc::clone(&gateway), HttpSettings::default(), address);
    let serving = tokio::spawn(async move { door.serve(listener).await });
    call(address, calls).await;
    answering.abort();
    gateway.close().await;
    workspace.close().await;
    serving.await.unwrap();
}

/// The gateway as `toolcrib serve` has it: token, validation, limits, pins, audit.
async fn start(folder: &Path, data: &Data) -> (Arc<Gateway>, Workspace) {
    let workspace = Workspace::open(folder, &|_| None, Lists::Everything).unwrap();
    let network = Network::read(folder, &|_| None).unwrap();
    let (Auditing::Default(audit) | Auditing::Asked(audit)) = &network.audit else {
        panic!("calls are on record unless somebody says otherwise")
    };
    let (at, key) = (data.file("audit"), data.file("audit.key"));
    let audit = Audit::open(&at, &key, audit.clone(), workspace.masker(&network)).unwrap();
    let own =
        workspace.start_own(false, Err("no bus".to_owned()), Care::Tools, &|_: &str| ()).await;
    let servers = workspace.start(&workspace.server_names());
    let settings = Settings {
        rules: network.rules.clone(),
        audit: Some(Arc::new(audit)),
        ..Settings::default()
    };
    let inputs = workspace.inputs(&servers, &own);
    let gateway = Gateway::start(inputs, Access::new(&network.access), settings);
    while !gateway.is_ready() {
        assert!(!matches!(servers[0].state(), SourceState::Failed { .. }), "{servers:?}");
        tokio::task::yield_now().await;
    }
    (gateway, workspace)
}

/// Makes the calls, one after the other.
async fn call(to: SocketAddr, calls: u64) {
    let body = r#"{"jsonrpc":"2.0","id":100000000,"method":"tools/call","params":{"name":"mcp__s__echo","arguments":{"text":"this is number 100000000"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {to}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nUser-Agent: bench\r\nAuthorization: Bearer {TOKEN}\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: mcp__s__echo\r\nContent-Length: {}\r\n\r\n{body}",
        body.len(),
    );
    let mut socket = TcpStream::connect(to).await.unwrap();
    socket.set_nodelay(true).unwrap();
    let mut got = Vec::with_capacity(16 * 1024);
    for _ in 0..calls {
        socket.write_all(request.as_bytes()).await.unwrap();
        let body = read(&mut socket, &mut got).await.expect("an answer");
        let right =
            got.starts_with(b"http/1.1 200") && got[body..].ends_with(b"\"isError\":false}}");
        assert!(right, "{}", String::from_utf8_lossy(&got));
    }
}

static HEAD_END: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("\r\n\r\n"));
static LENGTH: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("\ncontent-length: "));
static CALL: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("\"tools/call\""));
static ID: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("\"id\":"));

/// Reads one message, and says where its body begins; nothing at the end of the connection.
async fn read(socket: &mut TcpStream, got: &mut Vec<u8>) -> Option<usize> {
    got.clear();
    let body = loop {
        if socket.read_buf(got).await.unwrap() == 0 {
            return None;
        }
        if let Some(end) = HEAD_END.find(got) {
            break end + 4;
        }
    };
    got[..body].make_ascii_lowercase();
    let at = LENGTH.find(&got[..body]).expect("a length") + LENGTH.needle().len();
    let digits = got[at..].iter().take_while(|it| it.is_ascii_digit());
    let length = digits.fold(0, |sum, it| sum * 10 + usize::from(it - b'0'));
    while got.len() < body + length {
        assert_ne!(socket.read_buf(got).await.unwrap(), 0, "the rest of a message");
    }
    Some(body)
}

/// A server that speaks as much MCP as it is asked.
async fn serve(listener: TcpListener) {
    while let Ok((socket, _)) = listener.accept().await {
        tokio::spawn(answer(socket));
    }
}

async fn answer(mut socket: TcpStream) {
    socket.set_nodelay(true).unwrap();
    let (mut got, mut said) = (Vec::with_capacity(16 * 1024), Vec::new());
    while let Some(body) = read(&mut socket, &mut got).await {
        let asked = &got[body..];
        let result = if CALL.find(asked).is_some() {
            r#"{"resultType":"complete","content":[{"type":"text","text":"this is number 100000000"}],"isError":false}"#
        } else if memmem::find(asked, b"\"tools/list\"").is_some() {
            r#"{"resultType":"complete","tools":[{"name":"echo","description":"Gives back the text that it is given, as it was given.","inputSchema":{"type":"object","properties":{"text":{"type":"string","description":"What is to be said"}},"required":["text"]}}],"ttlMs":0,"cacheScope":"public"}"#
        } else {
            r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"public"}"#
        };
        let id = ID.find(asked).expect("a request") + 5;
        let digits = asked[id..].iter().take_while(|it| it.is_ascii_digit()).count();
        let id = std::str::from_utf8(&asked[id..id + digits]).unwrap();
        let length = result.len() + id.len() + r#"{"jsonrpc":"2.0","id":,"result":}"#.len();
        said.clear();
        std::io::Write::write_fmt(
            &mut said,
            format_args!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}"),
        )
        .unwrap();
        socket.write_all(&said).await.unwrap();
    }
}
