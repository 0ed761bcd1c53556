//! What the model gets to see: few tools, no flooding results, honest packs.
//!
//! In reading order: what a tool looks like to somebody who chooses one ([`SelectableItem`]), what came of a
//! call ([`ResultEnvelope`]), what a session was ([`ContextItem`]), how all that becomes a prompt under a
//! token budget, how tools are found, and where results are kept that are too large to show.
//!
//! Files are touched by the artifacts and by the reader of sessions, by nothing else. There is no network here.

mod item;

pub use item::{
    ArtifactRef, ContextItem, ItemKind, Phase, ResultEnvelope, Sensitivity, Status, ViewSpec,
};
