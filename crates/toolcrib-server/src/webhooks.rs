//! Webhooks: events are posted to an address until it has taken them. Each is a durable consumer, so
//! nothing is lost while the other end, or we, are away.
//!
//! Signed as Standard Webhooks says: the id, the time and the body under HMAC-SHA256 with the secret that
//! both know.

use std::{fmt, sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header::CONTENT_TYPE};
use ring::hmac;
use tokio::task::JoinSet;
use toolcrib_bus::{
    Bus, ConsumerName, Delivery, Filter, NameError, Outcome, Pattern, Start, Wish, now_ms,
};
use toolcrib_wire::{ConnectError, Endpoint, Hook, RequestError};

use crate::gateway::Gateway;

/// So many are on their way at a time.
const AT_ONCE: usize = 8;

/// The longest pause between two attempts.
const LONGEST: Duration = Duration::from_secs(300);

/// Whose consumers these are. No group can be called so by accident.
const OWNER: &str = "@webhooks";

/// Somebody who is told of events.
#[derive(Clone)]
pub struct Webhook {
    /// What it is called.
    pub name: String,
    /// Where it is.
    pub endpoint: Endpoint,
    /// Which events it is told of; all where there is none.
    pub asked: Vec<Pattern>,
    /// What both know.
    pub secret: Option<Secret>,
    /// How often each is tried.
    pub attempts: u32,
    /// How long one attempt may take.
    pub timeout: Duration,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A secret that signs.
#[derive(Clone)]
pub struct Secret(hmac::Key);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("****")
    }
}

impl Secret {
    /// A secret as it is written: `whsec_` and base64, or anything else as it stands.
    pub fn new(text: &str) -> Option<Self> {
        let bytes = match text.strip_prefix("whsec_") {
            Some(encoded) => STANDARD.decode(encoded.trim()).ok()?,
            None => text.as_bytes().to_vec(),
        };
        (!bytes.is_empty()).then(|| Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    /// What goes along with a message.
    fn sign(&self, id: &str, seconds: u64, body: &str) -> String {
        let signed = hmac::sign(&self.0, format!("{id}.{seconds}.{body}").as_bytes());
        format!("v1,{}", STANDARD.encode(signed))
    }
}

/// Why a webhook cannot be.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// Its name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Its address, or its certificates.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// There is nothing to be told of.
    #[error("there is no event bus")]
    NoBus,
}

impl Webhook {
    /// Tells it of events until the gateway stops.
    pub async fn start(self, gateway: &Arc<Gateway>) -> Result<(), WebhookError> {
        let bus = gateway.bus().ok().cloned().ok_or(WebhookError::NoBus)?;
        let consumer = ConsumerName::new(OWNER, &self.name)?;
        let hook = Hook::new(&self.endpoint)?;
        let filter = Filter { asked: self.asked.clone(), allowed: None };
        let wish = Wish {
            filter: Some(filter),
            // What was before it is not its business.
            start: Start::New,
            max: AT_ONCE,
            // An attempt that we do not live to see the end of is made again.
            patience: self.timeout * 2 + Duration::from_secs(5),
            attempts: self.attempts,
            ..Wish::new(consumer)
        };
        // It is to be told of all that comes from now on.
        let known = bus.fetch(&Wish { max: 0, ..wish.clone() }, Duration::ZERO).await;
        if let Err(error) = known {
            tracing::warn!(%error, webhook = self.name, "it may miss the first events");
        }
        let tidy = hook.clone();
        gateway.spawn(async move {
            tokio::select! {
                () = self.tell(&*bus, wish, hook) => {}
                () = tidy.keep_tidy() => {}
            }
        });
        Ok(())
    }

    /// Never returns.
    async fn tell(self, bus: &dyn Bus, wish: Wish, hook: Hook) {
        loop {
            let found = match bus.fetch(&wish, Duration::from_secs(30)).await {
                Ok(found) => found,
                Err(error) => {
                    tracing::debug!(%error, webhook = self.name, "events cannot be had");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    continue;
                }
            };
            let mut posting = JoinSet::new();
            for delivery in found {
                let (this, hook) = (self.clone(), hook.clone());
                posting
                    .spawn(async move { (delivery.record.seq, this.post(&hook, &delivery).await) });
            }
            let mut outcomes = Vec::new();
            while let Some(posted) = posting.join_next().await {
                outcomes.extend(posted.ok());
            }
            if !outcomes.is_empty()
                && let Err(error) = bus.settle(&wish.consumer, outcomes).await
            {
                tracing::warn!(%error, webhook = self.name, "it may be told of events twice");
            }
        }
    }

    async fn post(&self, hook: &Hook, delivery: &Delivery) -> Outcome {
        let body = delivery.record.cloud_event();
        let headers = self.headers(&delivery.record.id, &body);
        let posted =
            tokio::time::timeout(self.timeout, hook.post(Bytes::from(body), headers)).await;
        let cause = match posted {
            Ok(Ok(())) => return Outcome::Done,
            Ok(Err(RequestError::Http { status: 410, .. })) => {
                return Outcome::Dead("it answered HTTP 410: gone for good".to_owned());
            }
            Ok(Err(RequestError::Http { retry_after: Some(seconds), .. }))
                if delivery.attempt < self.attempts =>
            {
                return Outcome::Again(Duration::from_secs(seconds).min(LONGEST));
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} s", self.timeout.as_secs()),
        };
        tracing::debug!(cause, webhook = self.name, seq = delivery.record.seq, "not taken");
        if self.attempts <= delivery.attempt {
            return Outcome::Dead(format!("{cause}, {} times", delivery.attempt));
        }
        Outcome::Again(pause(delivery.attempt))
    }

    fn headers(&self, id: &str, body: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let kind = HeaderValue::from_static("application/cloudevents+json; charset=utf-8");
        headers.insert(CONTENT_TYPE, kind);
        // An id may hold what no header can; what is signed is what is sent.
        let shown: String =
            id.chars().map(|c| if c.is_ascii_graphic() { c } else { '_' }).collect();
        let seconds = now_ms() / 1000;
        let mut texts =
            vec![("webhook-id", shown.clone()), ("webhook-timestamp", seconds.to_string())];
        if let Some(secret) = &self.secret {
            texts.push(("webhook-signature", secret.sign(&shown, seconds, body)));
        }
        for (name, text) in texts {
            if let Ok(value) = HeaderValue::from_str(&text) {
                headers.insert(name, value);
            }
        }
        headers
    }
}

/// How long to wait after so many attempts: twice as long each time, and never quite the same.
fn pause(attempt: u32) -> Duration {
    let whole =
        Duration::from_secs(1).saturating_mul(1 << attempt.saturating_sub(1).min(16)).min(LONGEST);
    let mut byte = [0];
    getrandom::fill(&mut byte).ok();
    whole.mul_f64(0.75 + f64::from(byte[0]) / 512.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the Standard Webhooks specification.
    #[test]
    fn a_signature_is_the_one_that_others_make() {
        let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let body = r#"{"test": 2432232314}"#;
        let signed = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(format!("{secret:?}"), "****");
        assert!(Secret::new("").is_none() && Secret::new("whsec_%%").is_none());
    }

    #[test]
    fn pauses_grow_and_end_at_five_minutes() {
        for (attempt, least, most) in [(1, 0.7, 1.3), (4, 5.9, 10.1), (30, 220.0, 376.0)] {
            let found = pause(attempt).as_secs_f64();
            assert!((least..most).contains(&found), "{attempt}: {found}");
        }
    }
}
