//! What stands between a call and the tool: whether the tool is what was accepted, whether the arguments fit,
//! whether it was made before, whether it may be made now, and what is told of the call afterwards.
//!
//! Nothing here depends on who asks; [`crate::Access`] decides that.

pub(crate) mod arguments;
pub(crate) mod cache;
pub(crate) mod limits;
pub(crate) mod looking;
pub(crate) mod remarks;
pub(crate) mod repeats;
pub(crate) mod results;
pub(crate) mod rules;
pub(crate) mod story;
pub(crate) mod audit;
pub(crate) mod ids;
pub(crate) mod telling;

pub(crate) use looking::{Held, Looking, Noticed, Standing};
pub(crate) use story::{Ended, Story};
