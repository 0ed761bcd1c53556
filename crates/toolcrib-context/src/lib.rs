//! What the model gets to see: few tools, no flooding results, honest packs.
//!
//! In reading order: what a tool looks like to somebody who chooses one ([`SelectableItem`]), what came of a
//! call ([`ResultEnvelope`]), what a session was ([`ContextItem`]), how all that becomes a prompt under a
//! token budget, how tools are found, and where results are kept that are too large to show.
//!
//! Files are touched by the artifacts and by the reader of sessions, by nothing else. There is no network here.

mod item;
mod pytext;
mod words;
mod tokens;
mod facts;
mod sensitivity;
mod selectable;
mod envelope;
mod session;
mod pack;
pub mod search;
pub mod artifacts;
mod views;

pub use envelope::{Binaries, Binary, mcp_result_to_envelope};
pub use facts::extract_facts;
pub use item::{
    ArtifactRef, ContextItem, ItemKind, Phase, ResultEnvelope, Sensitivity, Status, ViewSpec,
};
pub use pack::{
    AboveFloor, Budgets, BuildOptions, BuildStats, Classifier, ContextManager, ContextPack,
    DropReason, IngestError, ItemVerdict, KeptArtifacts, ManagerOptions, Overflow, PackError,
    Redaction, Scoring, Secrets, ToolResult, UnknownRedaction,
};
pub use selectable::{
    SelectableItem, fingerprint, infer_namespace, mcp_tool_to_selectable, unique_ids,
};
pub use sensitivity::{SECRET_MASK, detect_sensitivity, scrub_secrets};
pub use session::{
    RecordLimits, Recorder, SessionError, SessionLimits, load_mcp_session_jsonl, read_session,
    write_line,
};
pub use tokens::{Counter, UnknownCounter};
pub use views::{DrilldownError, drilldown, generate_views};
