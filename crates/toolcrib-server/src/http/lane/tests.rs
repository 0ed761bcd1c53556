//! Requests of all kinds, in pieces of every size; answers; and who is waited for how long.

use tokio::io::DuplexStream;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::queue::queue;

const PLAIN: &str = "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n";

/// What comes of a text that is sent in pieces of every size: what was read, and what is left for others.
#[track_caller]
fn check(text: &str, expected: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    for size in 1..=text.len() {
        let found = runtime.block_on(async {
            let (ours, mut theirs) = tokio::io::duplex(4096);
            let stop = CancellationToken::new();
            let reading = async {
                let mut lane = Lane::new(ours);
                let mut found = String::new();
                loop {
                    match lane.next(std::pin::pin!(stop.cancelled())).await {
                        Next::Head(head) => match lane.body(&head).await {
                            Some(body) => found += &format!("{} ", String::from_utf8_lossy(&body)),
                            None => return found + "cut",
                        },
                        Next::Closed => return found + "closed",
                        Next::Other => break,
                    }
                }
                let (before, mut stream) = lane.into_rest();
                let mut rest = before.to_vec();
                stream.read_to_end(&mut rest).await.unwrap();
                format!("{found}other {:?}", String::from_utf8_lossy(&rest))
            };
            let sending = async {
                for piece in text.as_bytes().chunks(size) {
                    theirs.write_all(piece).await.ok();
                    tokio::task::yield_now().await;
                }
                drop(theirs);
            };
            tokio::join!(reading, sending).0
        });
        assert_eq!(found, expected, "{text:?} in pieces of {size}");
    }
}

#[test]
fn plain_messages_are_read_one_after_the_other() {
    check(&format!("{PLAIN}abc{PLAIN}\r\n\n"), "abc \r\n\n closed");
    check(&format!("{PLAIN}ab"), "cut");
    check("POST /mcp HT", "closed");
    check("POST /mcp HTTP/1.1\r\nConnection: Keep-Alive\r\ncontent-length: 0\r\n\r\n", " closed");
}

#[test]
fn all_else_is_left_as_it_came_for_others() {
    for text in [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /mcp HTTP/1.0\r\nContent-Length: 1\r\n\r\na",
        "POST /mcp?x HTTP/1.1\r\nContent-Length: 1\r\n\r\na",
        "POST /mcp HTTP/1.1\nContent-Length: 1\r\n\r\na",
        "POST /mcp HTTP/1.1\r\nA: b\nContent-Length: 1\r\n\r\na",
        "POST /mcp HTTP/1.1\r\nA: b\r\rContent-Length: 1\r\n\r\na",
        "POST /mcp HTTP/1.1\r\nA: b\r\n c\r\nContent-Length: 1\r\n\r\na",
        "POST /mcp HTTP/1.1\r\nA : b\r\nContent-Length: 1\r\n\r\na",
        "POST /mcp HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
        "POST /mcp HTTP/1.1\r\nContent-Length: +1\r\n\r\na",
        "POST /mcp HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\na",
        "POST /mcp HTTP/1.1\r\nContent-Length:\r\n\r\na",
        "POST /mcp HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\na",
        "POST /mcp HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\na",
        "POST /mcp HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST /mcp HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\na",
        "POST /mcp HTTP/1.1\r\nConnection: close\r\nContent-Length: 1\r\n\r\na",
        "POST /mcp HTTP/1.1\r\nUpgrade: h2c\r\nContent-Length: 1\r\n\r\na",
        "POST /mcp HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /mcp HTTP/1.1\r\nno name\r\nContent-Length: 1\r\n\r\na",
        "POST /mcp HTTP/1.1\r\nA: \0\r\nContent-Length: 1\r\n\r\na",
        "\r\nPOST /mcp HTTP/1.1\r\nContent-Length: 1\r\n\r\na",
    ] {
        check(text, &format!("other {text:?}"));
        check(&format!("{PLAIN}abc{text}"), &format!("abc other {text:?}"));
    }
}

#[tokio::test(start_paused = true)]
async fn who_says_nothing_is_not_waited_for_and_who_was_answered_is_for_longer() {
    async fn waited(lane: &mut Lane<DuplexStream>) -> Duration {
        let (stop, begin) = (CancellationToken::new(), Instant::now());
        let next = lane.next(std::pin::pin!(stop.cancelled())).await;
        assert!(matches!(next, Next::Closed));
        begin.elapsed()
    }
    let near = |found: Duration, expected: Duration| {
        assert!((expected..expected + Duration::from_millis(10)).contains(&found), "{found:?}");
    };
    let (ours, mut theirs) = tokio::io::duplex(4096);
    let mut lane = Lane::new(ours);
    near(waited(&mut lane).await, HEAD_TIMEOUT);
    // Whoever was answered may think; whoever has begun may not.
    lane.known = true;
    near(waited(&mut lane).await, IDLE);
    theirs.write_all(b"POST /mcp").await.unwrap();
    near(waited(&mut lane).await, HEAD_TIMEOUT);
    theirs.write_all(&PLAIN.as_bytes()[9..]).await.unwrap();
    let stop = CancellationToken::new();
    let Next::Head(head) = lane.next(std::pin::pin!(stop.cancelled())).await else {
        panic!("it is plain")
    };
    let begin = Instant::now();
    assert!(lane.body(&head).await.is_none());
    near(begin.elapsed(), HEAD_TIMEOUT);
}

#[tokio::test]
async fn when_nobody_is_to_come_any_more_who_waits_is_closed_and_who_has_begun_is_heard() {
    let (ours, mut theirs) = tokio::io::duplex(4096);
    let (mut lane, stop) = (Lane::new(ours), CancellationToken::new());
    stop.cancel();
    assert!(matches!(lane.next(std::pin::pin!(stop.cancelled())).await, Next::Closed));
    theirs.write_all(PLAIN.as_bytes()).await.unwrap();
    assert!(matches!(lane.next(std::pin::pin!(stop.cancelled())).await, Next::Head(_)));
}

/// What is written of an answer, but for the date.
async fn written(body: Body, last: bool) -> (String, bool) {
    let (ours, mut theirs) = tokio::io::duplex(100_000);
    let mut lane = Lane::new(ours);
    let stays = lane.answer(super::super::typed(StatusCode::OK, "a/b", body), last).await.unwrap();
    drop(lane);
    let mut text = Vec::new();
    theirs.read_to_end(&mut text).await.unwrap();
    let text = String::from_utf8(text).unwrap();
    let (before, after) = text.split_once("date: ").unwrap();
    let (date, after) = after.split_once("\r\n").unwrap();
    assert!(date.ends_with(" GMT") && date.len() == 29, "{date}");
    (format!("{before}{after}"), stays)
}

#[tokio::test]
async fn answers_are_written_whole_or_in_chunks() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: a/b\r\nx-content-type-options: nosniff\r\n";
    let short = Body::Whole(["ab", "", "c"].map(Bytes::from));
    let expected = format!("{head}content-length: 3\r\n\r\nabc");
    assert_eq!(written(short, false).await, (expected, true));
    let text = "x".repeat(SMALL);
    let long = Body::Whole(["a".into(), text.clone().into(), "c".into()]);
    let length = SMALL + 2;
    let expected = format!("{head}connection: close\r\ncontent-length: {length}\r\n\r\na{text}c");
    assert_eq!(written(long, true).await, (expected, false));
    let (sender, receiver) = queue(4);
    for text in ["{}", "[]"] {
        sender.try_send(crate::stream::Event::Message(text.into())).unwrap();
    }
    drop(sender);
    let event = |text: &str| format!("19\r\nevent: message\ndata: {text}\n\n\r\n");
    let (first, second) = (event("{}"), event("[]"));
    let expected = format!("{head}transfer-encoding: chunked\r\n\r\n{first}{second}0\r\n\r\n");
    assert_eq!(written(Body::Events(receiver), false).await, (expected, true));
}

#[tokio::test]
async fn work_for_who_is_gone_is_dropped_and_what_comes_ahead_is_kept() {
    let (ours, mut theirs) = tokio::io::duplex(4096);
    let mut lane = Lane::new(ours);
    theirs.write_all(PLAIN.as_bytes()).await.unwrap();
    assert_eq!(lane.unless_gone(async { tokio::task::yield_now().await }).await, Some(()));
    let stop = CancellationToken::new();
    assert!(matches!(lane.next(std::pin::pin!(stop.cancelled())).await, Next::Head(_)));
    drop(theirs);
    assert_eq!(lane.unless_gone(std::future::pending::<()>()).await, None);
}
