//! What the workspace asks of every tool and every call.

use toolcrib_catalogue::{
    OnFault,
    lock::{Lock, Pins},
};

use super::{cache::CacheSettings, limits::LimitSettings};

/// What tools and calls are held to.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Whether arguments are checked before anything runs.
    pub arguments: bool,
    /// Whether structured results are.
    pub results: ResultRule,
    /// What becomes of a tool whose schema is at fault.
    pub faulty: OnFault,
    /// What becomes of a tool that is not what was accepted.
    pub pins: Pins,
    /// What was accepted; without it only changes while running are seen.
    pub lock: Option<Lock>,
    /// What becomes of a tool whose definition looks poisoned.
    pub poison: PoisonRule,
    /// How often what may be called, but for single sources.
    pub limits: LimitSettings,
    /// Which results are kept for a while.
    pub cache: CacheSettings,
}

impl Rules {
    /// Names of tools that no tool has: probably slips of the pen.
    pub(crate) fn unmatched<'a>(&'a self, names: &[&str]) -> Vec<(&'static str, &'a str)> {
        let limits = self.limits.tools.iter().map(|(it, _)| ("limits", it));
        let cached = self.cache.tools.iter().map(|(it, _)| ("cache", it));
        let slips =
            limits.chain(cached).filter(|(_, it)| !names.iter().any(|name| it.matches(name)));
        slips.map(|(section, it)| (section, it.0.as_str())).collect()
    }
}

/// What follows where a result does not fit the schema that its tool promised.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResultRule {
    /// Nobody looks.
    Off,
    /// The log says so.
    #[default]
    Warn,
    /// The result says so too, as an error; nothing of it is left out.
    Strict,
}

/// What follows where a definition looks poisoned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PoisonRule {
    /// Nobody looks.
    Off,
    /// The log says so.
    #[default]
    Warn,
    /// Nobody sees the tool.
    Hide,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            arguments: true,
            results: ResultRule::default(),
            faulty: OnFault::default(),
            pins: Pins::default(),
            lock: None,
            poison: PoisonRule::default(),
            limits: LimitSettings::default(),
            cache: CacheSettings::default(),
        }
    }
}
