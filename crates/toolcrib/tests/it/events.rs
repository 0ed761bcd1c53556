//! Event tools.

mod documents;
mod malformed;
