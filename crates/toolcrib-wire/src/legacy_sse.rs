//! HTTP+SSE, the transport of 2024-11-05: one stream of events from the server, and an address, told in
//! the stream's first event, that takes our messages.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::Uri;
use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    board::{Answer, Board},
    client::{Aside, Inbox},
    error::{ConnectError, RequestError},
    http::{Asides, Events, Http, authority, drain, refusal},
    incoming::{Later, receive},
};

/// A connection to an HTTP+SSE server.
#[derive(Debug, Clone)]
pub(crate) struct SseLink {
    http: Http,
    messages: Uri,
    pub(crate) board: Arc<Board>,
    tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
}

impl SseLink {
    /// Opens the stream and waits for the address.
    pub(crate) async fn open(
        http: Http,
        inbox: Arc<dyn Inbox>,
        tasks: &TaskTracker,
    ) -> Result<Self, ConnectError> {
        let board = Arc::new(Board::default());
        let mut events = http.events(&http.url, &[], Asides::All(Arc::clone(&board))).await?;
        let messages = endpoint(&mut events, &http.url).await?;
        let link =
            Self { http, messages, board, tasks: tasks.clone(), stop: CancellationToken::new() };
        let this = link.clone();
        tasks.spawn(async move {
            let cause = tokio::select! {
                () = this.stop.cancelled() => "it was shut down".to_owned(),
                cause = this.read(events, &*inbox) => cause,
                never = this.http.keep_tidy() => match never {},
            };
            this.board.close(&cause);
        });
        Ok(link)
    }

    async fn read(&self, mut events: Events, inbox: &dyn Inbox) -> String {
        loop {
            let (event, message) = match events.next().await {
                Ok(Some(told)) => told,
                Ok(None) => return "its event stream ended".to_owned(),
                Err(error) => return error.to_string(),
            };
            // A second address would lead our messages elsewhere, and is not taken.
            if message.text.is_empty() || !matches!(&*event.event, "" | "message") {
                continue;
            }
            match receive(&message, None, &self.board, inbox) {
                Ok(answers) => answers.into_iter().for_each(|it| self.answer_later(it)),
                Err(error) => tracing::warn!(%error, "not a message in a stream"),
            }
        }
    }

    pub(crate) async fn request(&self, id: u64, frame: Bytes, aside: Aside) -> Answer {
        let unavailable = |cause| RequestError::NotSent { cause };
        let answer = self.board.wait_for(id, aside).map_err(unavailable)?;
        if let Err(error) = self.send(frame).await {
            self.board.forget(id);
            return Err(error);
        }
        match answer.await {
            Ok(answer) => answer,
            Err(_) => Err(RequestError::Lost { cause: self.board.closed().await.cause }),
        }
    }

    pub(crate) async fn send(&self, frame: Bytes) -> Result<(), RequestError> {
        let response = self.http.post(&self.messages, &frame, &[]).await;
        let response = response.inspect_err(|error| {
            if let RequestError::Unreachable { cause } = error {
                self.board.close(cause);
            }
        })?;
        if !response.status.is_success() {
            return Err(refusal(response).await);
        }
        // The answer comes on the stream, perhaps before this body ends.
        self.tasks.spawn(drain(response.body));
        Ok(())
    }

    /// Posts a message that nobody waits for.
    pub(crate) fn send_later(&self, frame: Bytes) {
        let this = self.clone();
        self.tasks.spawn(async move {
            if let Ok(Err(error)) = timeout(Duration::from_secs(5), this.send(frame)).await {
                tracing::debug!(%error, "a note to a server was lost");
            }
        });
    }

    /// Posts the answer to a question of the server when it is known.
    fn answer_later(&self, answer: Later) {
        let Ok(room) = Arc::clone(&self.board.replies).try_acquire_owned() else {
            tracing::debug!("a question was left without an answer: too many are under way");
            return;
        };
        let this = self.clone();
        self.tasks.spawn(async move {
            let answered = async {
                let sent = this.send(answer.await);
                if let Ok(Err(error)) = timeout(Duration::from_secs(5), sent).await {
                    tracing::debug!(%error, "an answer to a server was lost");
                }
            };
            tokio::select! {
                () = answered => {}
                () = this.stop.cancelled() => {}
            }
            drop(room);
        });
    }

    pub(crate) fn close(&self) {
        self.stop.cancel();
    }
}

/// The address in the first event. It must be on the server we asked: our headers go there too.
async fn endpoint(events: &mut Events, url: &Uri) -> Result<Uri, ConnectError> {
    let lost = || RequestError::Lost { cause: "the stream ended before its address".to_owned() };
    loop {
        let (event, message) = events.next().await?.ok_or_else(lost)?;
        if event.event != "endpoint" {
            continue;
        }
        let text = String::from_utf8_lossy(&message.text).trim().to_owned();
        let messages = resolve(url, &text);
        let messages = messages.ok_or_else(|| ConnectError::Address { text: text.clone() })?;
        let origin = |it: &Uri| (it.scheme().cloned(), it.authority().cloned());
        if origin(&messages) != origin(url) {
            return Err(ConnectError::ForeignAddress { to: authority(&messages) });
        }
        return Ok(messages);
    }
}

/// `text`, seen from `base`.
fn resolve(base: &Uri, text: &str) -> Option<Uri> {
    if text.contains("://") {
        return text.parse().ok();
    }
    let path = if text.starts_with('/') {
        text.to_owned()
    } else {
        let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{folder}/{text}")
    };
    let parts = base.clone().into_parts();
    Uri::builder()
        .scheme(parts.scheme?)
        .authority(parts.authority?)
        .path_and_query(path)
        .build()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_seen_from_the_stream() {
        let base: Uri = "http://h:1/a/sse".parse().unwrap();
        let resolved = |text| resolve(&base, text).map(|it| it.to_string());
        assert_eq!(resolved("/m?s=1").as_deref(), Some("http://h:1/m?s=1"));
        assert_eq!(resolved("m").as_deref(), Some("http://h:1/a/m"));
        assert_eq!(resolved("http://x/m").as_deref(), Some("http://x/m"));
        assert_eq!(resolved("//x y"), None);
    }
}
