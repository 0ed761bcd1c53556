//! Events, on both buses.

#[cfg(feature = "nats")]
mod broker;
mod suite;
#[cfg(feature = "nats")]
mod nats;
