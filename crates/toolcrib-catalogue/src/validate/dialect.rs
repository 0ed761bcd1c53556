//! Which revision of JSON Schema a schema is written in, and whether it is well formed there.

use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use super::given::Given;
use crate::schema::{Dialect, Places, SchemaFault, quoted};

/// Flags in draft 4, numbers from then on.
const EXCLUSIVE: [&str; 2] = ["exclusiveMinimum", "exclusiveMaximum"];

/// The dialect that a schema declares. One that declares none and is not well formed today may be
/// so in an older one: generators still write them.
pub(super) fn dialect(root: &Given<'_>) -> Result<Dialect, SchemaFault> {
    let declared = Places::declared(root, "")?;
    // Whether the schema is too deep to be looked at is seen first.
    Places::find(root, declared.unwrap_or(Dialect::Draft2020))?;
    let value = root.to_value();
    if let Some(dialect) = declared {
        return well_formed(&value, dialect).map(|()| dialect);
    }
    let fault = match well_formed(&value, Dialect::Draft2020) {
        Ok(()) => return Ok(Dialect::Draft2020),
        Err(fault) => fault,
    };
    // A flag of draft 4 does not make all else mean what it meant then.
    let value = without_flags(value);
    let known = [Dialect::Draft2020, Dialect::Draft7, Dialect::Draft4];
    known.into_iter().find(|it| well_formed(&value, *it).is_ok()).ok_or(fault)
}

/// `exclusiveMinimum` and `exclusiveMaximum` were flags once, and are understood as such wherever they are.
fn without_flags(value: Value) -> Value {
    match value {
        Value::Object(mut members) => {
            members.retain(|key, it| !(EXCLUSIVE.contains(&key.as_str()) && it.is_boolean()));
            Value::Object(members.into_iter().map(|(key, it)| (key, without_flags(it))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_flags).collect()),
        other => other,
    }
}

fn well_formed(schema: &Value, dialect: Dialect) -> Result<(), SchemaFault> {
    use jsonschema::{draft4, draft6, draft7, draft201909, draft202012};
    let result = match dialect {
        Dialect::Draft4 => draft4::meta::validate(schema),
        Dialect::Draft6 => draft6::meta::validate(schema),
        Dialect::Draft7 => draft7::meta::validate(schema),
        Dialect::Draft2019 => draft201909::meta::validate(schema),
        Dialect::Draft2020 => draft202012::meta::validate(schema),
    };
    result.map_err(|error| SchemaFault::Malformed {
        at: quoted(error.instance_path().as_str()),
        why: match error.kind() {
            ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. } => {
                format!("`{}` cannot stand there", quoted(&error.instance().to_string()))
            }
            _ => quoted(&error.to_string()),
        },
    })
}
