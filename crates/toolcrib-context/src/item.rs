//! The nouns of this crate: items of a session, envelopes of results, references to artifacts.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What an item of a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemKind {
    /// What the user said.
    UserTurn,
    /// What the agent said.
    AgentMsg,
    /// That a tool was called.
    ToolCall,
    /// What came of it.
    ToolResult,
    /// A piece of a document.
    DocSnippet,
    /// A document that was looked up.
    RetrievedDoc,
    /// Something to remember.
    MemoryFact,
    /// Where a plan stands.
    PlanState,
    /// A rule to keep to.
    Policy,
}

/// How far something may be shown, from everybody to nobody.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Sensitivity {
    /// To everybody.
    #[default]
    Public,
    /// Within the house.
    Internal,
    /// To those concerned.
    Confidential,
    /// To nobody.
    Restricted,
}

/// What a prompt is built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// To choose a tool.
    Route,
    /// To write its arguments.
    Call,
    /// To read its result.
    Interpret,
    /// To answer the user.
    Answer,
}

/// One thing that happened in a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContextItem {
    /// Its own in the session.
    pub id: String,
    /// What it is.
    pub kind: ItemKind,
    /// What it says.
    pub text: String,
    /// How many tokens that is, where it is known; 0 where it is not.
    #[serde(default)]
    pub token_estimate: u64,
    /// How far it may be shown.
    #[serde(default)]
    pub sensitivity: Sensitivity,
    /// Whatever else is known of it.
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// What it follows from: the call of a result, the question of a call.
    #[serde(default)]
    pub parent_id: Option<String>,
    /// Where the whole of it is kept, if the text is not the whole.
    #[serde(default)]
    pub artifact_ref: Option<ArtifactRef>,
}

impl ContextItem {
    /// An item that nothing else is known of.
    pub fn new(id: impl Into<String>, kind: ItemKind, text: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            kind,
            text: text.into(),
            token_estimate: 0,
            sensitivity: Sensitivity::Public,
            metadata: Map::new(),
            parent_id: None,
            artifact_ref: None,
        }
    }
}

/// Something that is kept elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactRef {
    /// What to ask for it by.
    pub handle: String,
    /// What it is, such as `image/png`.
    pub media_type: String,
    /// How large it is.
    pub size_bytes: u64,
    /// What people call it.
    #[serde(default)]
    pub label: String,
    /// SHA-256 of its bytes in hex, once it is stored.
    #[serde(default)]
    pub content_hash: Option<String>,
}

/// Whether a call went well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It did.
    Ok,
    /// It did not, and the tool said so.
    Error,
    /// In part.
    Partial,
}

/// What came of a call, small enough for a prompt; the rest is in artifacts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultEnvelope {
    /// Whether it went well.
    pub status: Status,
    /// The beginning of what it says.
    pub summary: String,
    /// Lines of the form `key: value`.
    pub facts: Vec<String>,
    /// What else came along.
    pub artifacts: Vec<ArtifactRef>,
    /// Ways to look into the artifacts.
    pub views: Vec<ViewSpec>,
    /// Where it came from: the tool, the protocol, what the server said of single parts.
    pub provenance: Map<String, Value>,
}

/// A way to look into an artifact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ViewSpec {
    /// Its own among the views.
    pub view_id: String,
    /// What people call it.
    pub label: String,
    /// What to ask the artifact for.
    pub selector: Map<String, Value>,
    /// The artifact.
    pub artifact_ref: ArtifactRef,
}
