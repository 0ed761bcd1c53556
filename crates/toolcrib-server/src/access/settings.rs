//! What is configured of who may see what.

use toolcrib_bus::Pattern as EventPattern;

use super::{Lists, Pattern, Scraping};
use crate::shape::{GroupShape, Shapes};

/// What is configured.
#[derive(Debug, Clone, Default)]
pub struct AccessSettings {
    /// The group of those who have the main token, and of those who need none.
    pub default_group: String,
    /// The main token.
    pub token: Option<String>,
    /// Whether callers without a token are let in although groups have tokens.
    pub anonymous: bool,
    /// Whether a token is needed although none is left: the last one was taken back, and that opens no door.
    pub closed: bool,
    /// Whether a proxy stands in front of us: whatever it hands on seems to come from this machine, so nobody does.
    pub behind_proxy: bool,
    /// What everybody is held to.
    pub lists: Lists,
    /// The groups.
    pub groups: Vec<GroupSettings>,
    /// In what shape groups get things.
    pub shapes: Shapes,
    /// Who may read `/metrics`, besides operators.
    pub scraping: Scraping,
}

/// One group.
#[derive(Debug, Clone, Default)]
pub struct GroupSettings {
    /// Its name.
    pub name: String,
    /// Its tokens.
    pub tokens: Vec<String>,
    /// Its tokens of which only the digests are known: BLAKE3 of their bytes.
    pub digests: Vec<[u8; 32]>,
    /// What it is held to, besides what everybody is.
    pub lists: Lists,
    /// Resources that it sees although it sees no tool of their server, by URI.
    pub resources: Vec<Pattern>,
    /// Prompts that it sees although it sees no tool of their server, by public name.
    pub prompts: Vec<Pattern>,
    /// The events that it may read and publish; those of the tools it may call where nothing is said.
    pub events: Option<Vec<EventPattern>>,
    /// In what shape it gets things.
    pub shape: GroupShape,
    /// Whether it may look at other groups' calls, and do what changes how the gateway runs.
    pub operator: bool,
}
