//! What a gateway would make of definitions, for whoever only wants to know.

use toolcrib_catalogue::{
    Listing,
    lock::{Place, Way},
};

use super::{Looking, looking::NoticedKind, rules::Rules};

/// Something to be known of a tool's definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// In which listing the tool is.
    pub listing: usize,
    /// The tool, as its source calls it.
    pub tool: String,
    /// What it is about.
    pub about: About,
    /// In words.
    pub message: String,
    /// Whether nobody is served with the tool because of it.
    pub held: bool,
}

/// What a remark is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// The definition is not what was accepted.
    Drift,
    /// It looks poisoned.
    Poison,
    /// Its schema, or a text in it, cannot be used.
    Schema,
}

/// Looks at what is listed as a gateway does that has just been started under these rules.
pub fn remarks(listings: &[Listing], ways: &[Option<&Way>], rules: &Rules) -> Vec<Remark> {
    let mut looked = listings.to_vec();
    let noticed = Looking::default().look(&mut looked, ways, rules);
    let places: Vec<Place> = listings.iter().map(|it| Place::of(&it.origin)).collect();
    let remark = |it: super::Noticed| {
        let about = match it.kind {
            NoticedKind::Drift { .. } => About::Drift,
            NoticedKind::Poison => About::Poison,
            NoticedKind::Schema => About::Schema,
            // Names are the catalogue's own business, and how servers are started is no tool's.
            NoticedKind::Clash | NoticedKind::Way { .. } => return None,
        };
        let listing = places.iter().position(|place| *place == it.place)?;
        Some(Remark { listing, tool: it.tool, about, message: it.message, held: it.held })
    };
    noticed.into_iter().filter_map(remark).collect()
}
