//! The schema of a tool's arguments.

use bytes::Bytes;

use crate::{Json, Tool};

mod fault;
mod guard;
mod places;
mod uri;

pub use fault::{OnFault, SchemaFault};

pub(crate) use fault::quoted;
pub(crate) use guard::{MAX_BYTES, MAX_PATTERNS, MAX_SUBSCHEMAS, admit};
pub(crate) use places::{Dialect, Place, Places, key_of};

const NO_ARGUMENTS: &[u8] = br#"{"type":"object","properties":{}}"#;

/// The schema of `tool`'s arguments, as its source gave it; one that takes anything and asks for
/// nothing where there is none.
///
/// ```
/// use toolcrib_catalogue::{Json, Tool, extract_schema};
///
/// let given = Tool::read(Json::parse(r#"{"name":"a","inputSchema":{"type":"object"}}"#)?)?;
/// assert_eq!(extract_schema(&given).as_str(), r#"{"type":"object"}"#);
///
/// let none = Tool::read(Json::parse(r#"{"name":"a"}"#)?)?;
/// assert_eq!(extract_schema(&none).as_str(), r#"{"type":"object","properties":{}}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn extract_schema(tool: &Tool) -> Json {
    let none = || Json::from_scanned(Bytes::from_static(NO_ARGUMENTS));
    tool.input_schema.clone().unwrap_or_else(none)
}
