//! What the console needs to know of a gateway, and what operators do to it.

use std::sync::Arc;

use super::{Gateway, Input};
use crate::{access::Caller, console::Operator};

impl Gateway {
    /// Lets the console do what only the one who started the gateway can do.
    pub fn set_operator(&self, operator: Arc<dyn Operator>) {
        self.console.set_operator(operator);
    }

    /// The sources, in the order in which names are given.
    pub(crate) fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// How many clients stay for a while.
    pub(crate) fn clients(&self) -> usize {
        self.here().len()
    }

    /// Says that the rules were to be read again, and were not taken.
    pub fn reload_refused(&self, cause: &str) {
        if let Some(audit) = self.audit() {
            audit.reload_refused(cause);
        }
    }

    /// Puts on record that an operator did something.
    pub(crate) fn did(&self, caller: &Caller, what: &'static str, subject: &str) {
        tracing::info!(what, subject, group = &*caller.group, "an operator did something");
        if let Some(audit) = self.audit() {
            audit.did(caller, what, subject);
        }
    }
}
