//! NATS, and what befalls it.
