//! Where results are kept that are too large to show, and how one looks into them.
//!
//! A [`Store`] is a folder. Whoever stores something gets an [`Artifact`] with an id that cannot be guessed;
//! whoever has the id asks for a [`Piece`] by a [`Selector`]: some lines, some rows, a value by path, what a
//! search finds, a sum. A piece is never larger than its reader allows, says where it stands in the whole, and
//! carries the selector that goes on behind it. What is stored may be of any size: nothing here reads it whole.
//!
//! All of this is synchronous work on files; a server does it where it may block.

mod id;
mod store;
mod found;
mod index;
mod writer;
mod selector;
mod query;
mod piece;
mod watch;
mod text;
mod format;
mod json;
mod slice;
mod decimal;
mod jsonpath;
mod locate;
mod list;
mod path;
mod table;
mod rows;
mod grep;
mod aggregate;
mod shape;
mod unescape;

pub use id::{ArtifactId, BadId};
pub use json::JsonType;
pub use piece::{Body, Piece, PieceError, ReadLimits, Unit, read_piece};
pub use query::{artifact_uri, parse_artifact_uri};
pub use selector::{Aggregate, Measure, Range, Selector, SelectorError, Test};
pub use shape::{Field, Kind, Shape, describe};
pub use store::{Artifact, Limits, New, Quota, Store, StoreError};
pub use unescape::unescape_json_string;
pub use writer::Writer;

use std::io::{Read, Seek};

/// The content of an artifact: a file, or bytes in memory.
pub trait Content: Read + Seek {}

impl<T: Read + Seek> Content for T {}

#[cfg(test)]
mod tests;
