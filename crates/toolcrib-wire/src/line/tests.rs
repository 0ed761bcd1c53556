//! Answers of all kinds, in pieces of every size.

use tokio::io::{AsyncWriteExt, DuplexStream};

use super::*;

/// What is told of an answer: its status, its body and whether the connection stays; or why there is none.
async fn told(line: &mut Line<DuplexStream>) -> String {
    let mut head = match line.ask(b"GET / HTTP/1.1\r\n\r\n", b"").await {
        Ok(head) => head,
        Err(SendError::Unsent(error)) => return format!("unsent: {error}"),
        Err(SendError::Lost(error)) => return format!("lost: {error}"),
    };
    let mut body = Vec::new();
    if let Framing::Length(length) = head.framing {
        match line.exactly(usize::try_from(length).unwrap()).await {
            Ok(whole) => body.extend_from_slice(&whole),
            Err(error) => return format!("lost: {error}"),
        }
        head.framing = Framing::Length(0);
    }
    loop {
        match line.piece(&mut head.framing).await {
            Ok(Some(piece)) => body.extend_from_slice(&piece),
            Ok(None) => break,
            Err(error) => return format!("lost: {error}"),
        }
    }
    let stays = if head.stays && line.is_quiet() { "stays" } else { "ends" };
    format!("{} {:?} {stays}", head.status.as_u16(), String::from_utf8_lossy(&body))
}

/// An answer is the same in whatever pieces it comes.
#[track_caller]
fn check(answer: &str, expected: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for size in 1..=answer.len() {
        let found = runtime.block_on(async {
            let (ours, mut theirs) = tokio::io::duplex(64);
            let sent = async {
                theirs.read_exact(&mut [0; 18]).await.ok();
                for piece in answer.as_bytes().chunks(size) {
                    theirs.write_all(piece).await.ok();
                    tokio::task::yield_now().await;
                }
                // One that stays open says nothing more.
                expected.ends_with("stays").then_some(theirs)
            };
            let mut line = Line::new(ours);
            let (found, _theirs) = tokio::join!(told(&mut line), sent);
            found
        });
        assert_eq!(found, expected, "in pieces of {size}");
    }
}

#[test]
fn answers_end_where_they_say() {
    check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "200 \"abc\" stays");
    check("HTTP/1.1 200 OK\ncontent-length:0\n\n", "200 \"\" stays");
    check("HTTP/1.1 204 No Content\r\n\r\n", "204 \"\" stays");
    check(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n2;x=y\r\nab\r\n0A\r\n0123456789\r\n0\r\nT: u\r\n\r\n",
        "200 \"ab0123456789\" stays",
    );
    check("HTTP/1.1 200 OK\r\n\r\nup to the end", "200 \"up to the end\" ends");
    check(
        "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 1\r\n\r\na",
        "200 \"a\" ends",
    );
    check("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", "200 \"a\" ends");
    check(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n",
        "404 \"\" stays",
    );
}

#[test]
fn what_has_two_readings_is_no_answer_or_the_last() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n";
    check(&format!("{chunked}Content-Length: 9\r\n\r\n1\r\na\r\n0\r\n\r\n"), "200 \"a\" ends");
    check(
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "lost: its answer has two lengths",
    );
    for length in ["-1", "+1", "1, 1", "", "99999999999999999999", "0x1"] {
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\na");
        check(&answer, "lost: its answer has no sound length");
    }
    check(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "lost: its answer is encoded in a way that was not asked for",
    );
    for body in ["x\r\n", "\r\n", "-1\r\n", "fffffffffffffffff\r\n", "1\r\nab\r\n"] {
        let found = "lost: its answer comes in chunks that are none";
        check(&format!("{chunked}\r\n{body}"), found);
    }
    check("HTTP/1.1 101 Switching\r\n\r\n", "lost: it switched to another protocol");
    check("SSH-2.0\r\n\r\n", "lost: its answer is no HTTP: invalid HTTP version");
}

#[test]
fn what_ends_too_early_is_lost() {
    let early = "lost: it closed the connection before its answer had ended";
    check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", early);
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab", early);
    check("HTTP/1.1 200 OK\r\nContent-", "lost: it closed the connection before it answered");
}

#[test]
fn more_than_was_asked_for_ends_the_connection() {
    check("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab", "200 \"a\" ends");
}

#[tokio::test]
async fn a_head_has_a_limit() {
    let (ours, mut theirs) = tokio::io::duplex(4096);
    let sending = async {
        theirs.write_all(b"HTTP/1.1 200 OK\r\n").await.ok();
        while theirs.write_all(&[b'a'; 4096]).await.is_ok() {}
    };
    let mut line = Line::new(ours);
    let asked = line.ask(b"GET / HTTP/1.1\r\n\r\n", b"");
    let error = tokio::select! {
        asked = asked => match asked { Err(SendError::Lost(error)) => error, other => panic!("{other:?}") },
        () = sending => panic!("it took everything"),
    };
    assert_eq!(error.to_string(), "the head of its answer is too large");
}

/// A server that says no before it has read everything, and reads no more.
#[tokio::test]
async fn who_answers_early_is_heard() {
    let (ours, mut theirs) = tokio::io::duplex(1024);
    theirs.write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n").await.unwrap();
    let mut line = Line::new(ours);
    let body = vec![b'x'; 1_000_000];
    let head = line.ask(b"POST / HTTP/1.1\r\n\r\n", &body).await.unwrap();
    assert_eq!((head.status.as_u16(), head.stays), (413, false));
}

#[tokio::test]
async fn what_was_never_written_is_told_from_what_was_lost() {
    let (ours, theirs) = tokio::io::duplex(1024);
    drop(theirs);
    let mut line = Line::new(ours);
    assert!(!line.is_quiet());
    assert!(matches!(line.ask(b"GET", b"").await, Err(SendError::Unsent(_))));
}
