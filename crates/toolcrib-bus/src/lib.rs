//! Events that are on disk before anybody hears that they are.
//!
//! In reading order: `name` says what an event may be called and who asks for which; `event` is the
//! envelope; `bus` is the port; `store` is the file; `writer` the one thread that changes it; `tail` what
//! was written last; `embedded` puts them together. `nats`, a feature, brings what is in the file to NATS
//! JetStream, where several gateways read it.
//!
//! The rule a reader would get wrong: an answer to [`Bus::append`] means that the event survives a power
//! cut. Everything that changes the file goes through one thread, which commits what has gathered as one
//! transaction, and answers after that.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use toolcrib_bus::{Bus, Draft, Embedded, Filter, Settings, Start};
//!
//! let folder = std::env::temp_dir().join(format!("bus-{}", std::process::id()));
//! std::fs::create_dir_all(&folder)?;
//! let bus = Embedded::open(&folder.join("events.db"), Settings::default())?;
//! let mut follower = bus.follow(Filter::of(["task.*"])?, Start::New).await?;
//! let event = Draft::new("task.run", r#"{"n":1}"#).event()?;
//! let receipt = bus.append(event).await?;
//! assert_eq!(receipt.seq, 1);
//! assert_eq!(follower.next().await?.records[0].seq, 1);
//! bus.close().await;
//! # std::fs::remove_dir_all(&folder)?; Ok(()) }
//! ```

mod name;
mod event;
mod bus;
mod store;
mod consumers;
mod tail;
mod writer;
mod follower;
mod embedded;
#[cfg(feature = "nats")]
mod outbox;
#[cfg(feature = "nats")]
mod nats;

pub use bus::{
    Batch, BoxFuture, Bus, BusError, BusState, ConsumerState, DeadLetter, Delivery, Follow,
    Outcome, Receipt, Settled, Start, Wish,
};
pub use embedded::{Embedded, Settings, Synchronous, Verified};
pub use event::{Draft, Event, Record, now_ms, rfc3339};
pub use name::{ConsumerName, Filter, NameError, Pattern, check_name};
#[cfg(feature = "nats")]
pub use nats::{Login, Nats, NatsSettings};
