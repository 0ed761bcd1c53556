//! Where a tool comes from, as the lock writes it: `server:git`.

use std::fmt;

use serde::Serialize;

use crate::Origin;

/// The source of a tool, as one word. Together with the name that the source gives a tool it is the
/// tool's identity.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Place(Box<str>);

impl Place {
    /// The place of a source.
    ///
    /// ```
    /// use toolcrib_catalogue::{Origin, lock::Place};
    ///
    /// let place = Place::of(&Origin::Upstream("git".to_owned()));
    /// assert_eq!(place.as_str(), "server:git");
    /// assert_eq!(place.origin(), Origin::Upstream("git".to_owned()));
    /// ```
    pub fn of(origin: &Origin) -> Self {
        Self(match origin {
            Origin::Upstream(server) => format!("server:{server}").into(),
            Origin::Mod(name) => format!("mod:{name}").into(),
            Origin::Workspace => "workspace".into(),
            Origin::Events => "events".into(),
        })
    }

    /// Reads what [`Place::as_str`] gave.
    pub(super) fn read(word: &str) -> Option<Self> {
        let known = match word.split_once(':') {
            Some((kind, _)) => matches!(kind, "server" | "mod"),
            None => matches!(word, "workspace" | "events"),
        };
        known.then(|| Self(word.into()))
    }

    /// The word.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The source it stands for.
    pub fn origin(&self) -> Origin {
        match self.0.split_once(':') {
            Some(("mod", name)) => Origin::Mod(name.to_owned()),
            Some((_, name)) => Origin::Upstream(name.to_owned()),
            None if &*self.0 == "events" => Origin::Events,
            None => Origin::Workspace,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
