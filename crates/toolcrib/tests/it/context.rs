//! What the model gets to see: few tools in the list, no flooding results, calls on record.

mod large;
mod recorded;
mod views;
