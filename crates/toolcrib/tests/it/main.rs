//! All integration tests, in one binary: against real processes and real sockets.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "these are tests"
)]

mod kit;
mod tidy;
mod upstreams;
mod connections;
mod oddities;
mod processes;
mod cli;
mod first;
mod packs;
mod config;
mod vectors;
mod fuzz;
mod real;
mod readme;
mod reference;
mod serving;
mod gateway;
mod guarded;
mod guide;
mod hands;
mod audit;
mod door;
mod siege;
mod reload;
mod relay;
mod spool;
mod owner;
mod frames;
mod endurance;
mod security;
mod clients;
mod rmcp_client;
mod conformance;
mod python;
mod events;
mod context;
mod artifacts;
mod search;
mod limits;
mod console;
mod observability;
