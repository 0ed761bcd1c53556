//! Documents against the official schemas of AsyncAPI.
//!
//! What does not fit is told, and costs nothing: a document without `info` still has tools.

use std::{collections::BTreeSet, sync::OnceLock};

use jsonschema::{
    ValidationError, Validator,
    error::{TypeKind, ValidationErrorKind},
};
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use serde_json::Value;

use super::references::shorten;

/// More than a schema is.
const LARGEST: usize = 1 << 20;

/// How many faults of one document are told.
const TOLD: usize = 5;

/// How many are counted.
const COUNTED: usize = 1000;

/// Which official schema a document is held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    V3_0,
    V3_1,
}

impl Version {
    /// The text that the official schema wants to see.
    pub(super) fn written(self) -> &'static str {
        match self {
            Self::V3_0 => "3.0.0",
            Self::V3_1 => "3.1.0",
        }
    }

    /// The schema, compiled when it is first needed: it is large, and most workspaces have no events.
    fn validator(self) -> Option<&'static Validator> {
        static V3_0: OnceLock<Option<Validator>> = OnceLock::new();
        static V3_1: OnceLock<Option<Validator>> = OnceLock::new();
        // Packed by `build.rs`.
        let (place, packed): (_, &[u8]) = match self {
            Self::V3_0 => (&V3_0, include_bytes!(concat!(env!("OUT_DIR"), "/3.0.0.json"))),
            Self::V3_1 => (&V3_1, include_bytes!(concat!(env!("OUT_DIR"), "/3.1.0.json"))),
        };
        let compiled = place.get_or_init(|| {
            let text = decompress_to_vec_zlib_with_limit(packed, LARGEST).ok()?;
            let schema: Value = serde_json::from_slice(&text).ok()?;
            jsonschema::options().build(&schema).ok()
        });
        compiled.as_ref()
    }
}

/// One thing that the official schema does not allow.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Misfit {
    /// `channels: task: address`.
    pub(super) place: String,
    pub(super) what: String,
}

/// What the official schema does not allow, and how much more there is.
pub(super) fn misfits(version: Version, document: &Value) -> (Vec<Misfit>, usize) {
    let Some(validator) = version.validator() else { return (Vec::new(), 0) };
    if validator.is_valid(document) {
        return (Vec::new(), 0);
    }
    let mut all = BTreeSet::new();
    for error in validator.iter_errors(document).take(COUNTED) {
        collect(&error, 0, &mut all);
    }
    let more = all.len().saturating_sub(TOLD);
    (all.into_iter().take(TOLD).collect(), more)
}

/// Of alternatives that all failed, the one that was probably meant is told.
fn collect(error: &ValidationError<'_>, depth: usize, all: &mut BTreeSet<Misfit>) {
    let context = match error.kind() {
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            context.as_slice()
        }
        _ => &[],
    };
    let meant = context.iter().filter(|it| !it.is_empty()).min_by_key(|it| distance(it));
    match meant {
        Some(errors) if depth < 16 => errors.iter().for_each(|it| collect(it, depth + 1, all)),
        _ => {
            let place: Vec<String> = error
                .instance_path()
                .as_str()
                .split('/')
                .skip(1)
                .map(|it| shorten(&it.replace("~1", "/").replace("~0", "~")))
                .collect();
            all.insert(Misfit { place: place.join(": "), what: words(error) });
        }
    }
}

/// How far an alternative is from what was written: one that looks into it is nearer than one that wants
/// something else altogether, such as a reference.
fn distance(errors: &[ValidationError<'_>]) -> (bool, std::cmp::Reverse<usize>, usize) {
    let other = errors.iter().any(|it| match it.kind() {
        ValidationErrorKind::Required { property } => property == "$ref",
        ValidationErrorKind::Type { .. } => true,
        _ => false,
    });
    let depth = |it: &ValidationError<'_>| it.instance_path().as_str().matches('/').count();
    (other, std::cmp::Reverse(errors.iter().map(depth).max().unwrap_or_default()), errors.len())
}

fn words(error: &ValidationError<'_>) -> String {
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            format!("`{}` is required", shorten(property.as_str().unwrap_or_default()))
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let names: Vec<String> = unexpected.iter().take(5).map(|it| shorten(it)).collect();
            format!("`{}` is not known here", names.join("`, `"))
        }
        ValidationErrorKind::Type { kind: TypeKind::Single(it) } => {
            format!("it must be of type {it}")
        }
        ValidationErrorKind::Enum { options } => {
            format!("it must be one of {}", shorten(&options.to_string()))
        }
        ValidationErrorKind::OneOfMultipleValid { .. } => {
            "it fits several forms of which it must have one".to_owned()
        }
        ValidationErrorKind::Not { .. } | ValidationErrorKind::FalseSchema => {
            "it is not allowed here".to_owned()
        }
        _ => {
            let text = error.masked_with("it").to_string();
            shorten(&text)
        }
    }
}
