//! The guard before a schema: what it may cost is known before any value meets it.
//!
//! A schema comes from a server that nobody vouches for. Its text is capped, its nesting, the number
//! of its schemas; references lead nowhere but into itself, never round in a circle, and may not
//! multiply. What a value then makes of it is bounded again while it is checked (`validate::run`),
//! since a schema that is about itself costs what the value makes it cost.

use super::fault::SchemaFault;
use crate::validate::plan::{Plan, Rule};

/// Bytes of a schema's text.
pub(crate) const MAX_BYTES: usize = 256 * 1024;
/// Schemas inside of schemas.
pub(crate) const MAX_DEPTH: usize = 64;
/// Schemas in all.
pub(crate) const MAX_SUBSCHEMAS: usize = 2000;
/// Schemas that one value passes through one inside of the other: references to references.
pub(crate) const MAX_CHAIN: u32 = 200;
/// Schemas that are held against one value, all references followed.
pub(crate) const MAX_WORK: u64 = 100_000;
/// Different patterns in one schema.
pub(crate) const MAX_PATTERNS: usize = 250;

#[derive(Clone, Copy)]
enum Seen {
    Not,
    Open,
    Done { work: u64, chain: u32 },
}

/// Refuses what would be too much work for a single value, or would never end.
pub(crate) fn admit(plan: &Plan) -> Result<(), SchemaFault> {
    let mut seen = vec![Seen::Not; plan.rules.len()];
    // A stack of our own: a chain of references may be as long as the schema.
    let mut stack: Vec<usize> = Vec::new();
    for start in 0..plan.rules.len() {
        stack.push(start);
        while let Some(&id) = stack.last() {
            let rule = &plan.rules[id];
            match seen[id] {
                Seen::Done { .. } => {
                    stack.pop();
                }
                Seen::Not => {
                    seen[id] = Seen::Open;
                    for next in rule.beside() {
                        match seen[next as usize] {
                            Seen::Not => stack.push(next as usize),
                            Seen::Open => return Err(SchemaFault::Loop(rule.at.to_string())),
                            Seen::Done { .. } => {}
                        }
                    }
                }
                Seen::Open => {
                    seen[id] = sum(rule, &seen)?;
                    stack.pop();
                }
            }
        }
    }
    Ok(())
}

fn sum(rule: &Rule, seen: &[Seen]) -> Result<Seen, SchemaFault> {
    let (mut all, mut longest) = (1_u64, 1_u32);
    for next in rule.beside() {
        match seen[next as usize] {
            Seen::Done { work, chain } => {
                all = all.saturating_add(work);
                longest = longest.max(chain + 1);
            }
            Seen::Not | Seen::Open => return Err(SchemaFault::Loop(rule.at.to_string())),
        }
    }
    if longest > MAX_CHAIN {
        return Err(SchemaFault::Chain(rule.at.to_string()));
    }
    if all > MAX_WORK {
        return Err(SchemaFault::TooMuchWork(rule.at.to_string()));
    }
    Ok(Seen::Done { work: all, chain: longest })
}
