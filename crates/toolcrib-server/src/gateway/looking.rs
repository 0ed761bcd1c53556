//! What the console needs to know of a gateway, and what operators do to it.

use std::sync::Arc;

use super::Gateway;
use crate::{access::Caller, console::Operator};

impl Gateway {
    /// Lets the console do what only the one who started the gateway can do.
    pub fn set_operator(&self, operator: Arc<dyn Operator>) {
        self.console.set_operator(operator);
    }

    /// How many clients stay for a while.
    pub(crate) fn clients(&self) -> usize {
        self.here().len()
    }

    /// Puts on record that files were read again, and what came of it.
    pub fn reloaded(&self, subject: &str) {
        if let Some(audit) = self.audit() {
            audit.read_again(subject);
        }
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
