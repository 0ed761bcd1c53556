//! What else is recorded: who was turned away, what was read again, which definitions are not what they were.

use std::net::IpAddr;

use super::{Audit, EventRecord};
use crate::{
    access::{Access, Caller},
    guard::{Noticed, looking::NoticedKind},
};

impl Audit {
    /// Somebody was not let in.
    pub(crate) fn turned_away(&self, event: &'static str, client: IpAddr, path: &str) {
        let path = self.mask(path);
        let (client, subject) = (Some(client), Some(path.as_str()));
        self.event(event, &EventRecord { client, subject, ..EventRecord::default() });
    }

    /// The rules were read again.
    pub(crate) fn reloaded(&self, before: &Access, after: &Access) {
        self.event("reload", &EventRecord::default());
        let gone = |it: &Caller, others: &Access| !others.holders().any(|other| other == *it);
        let removed = before.holders().filter(|it| gone(it, after));
        let added = after.holders().filter(|it| gone(it, before));
        let all = removed.map(|it| ("removed", it)).chain(added.map(|it| ("added", it)));
        for (subject, holder) in all {
            let who = holder.name(self.salt());
            let (who, group) = (Some(who.as_str()), Some(&*holder.group));
            let subject = Some(subject);
            self.event("token", &EventRecord { who, group, subject, ..EventRecord::default() });
        }
    }

    /// A file was read again.
    pub(crate) fn read_again(&self, subject: &str) {
        let subject = self.mask(subject);
        self.event("reload", &EventRecord { subject: Some(&subject), ..EventRecord::default() });
    }

    /// The rules were to be read again, and were not taken.
    pub(crate) fn reload_refused(&self, cause: &str) {
        let cause = self.mask(cause);
        let (subject, cause) = (Some("refused"), Some(cause.as_str()));
        self.event("reload", &EventRecord { subject, cause, ..EventRecord::default() });
    }

    /// Whoever runs the gateway did something to it.
    pub(crate) fn did(&self, caller: &Caller, what: &'static str, subject: &str) {
        let (who, subject) = (caller.name(self.salt()), self.mask(subject));
        let record = EventRecord {
            who: Some(&who),
            group: Some(&caller.group),
            client: caller.address,
            subject: Some(&subject),
            ..EventRecord::default()
        };
        self.event(what, &record);
    }

    /// Something was found out about a definition.
    pub(crate) fn noticed(&self, noticed: &Noticed) {
        let hex = |hash: &[u8; 32]| super::chain::hex(hash);
        let (event, before, after) = match &noticed.kind {
            NoticedKind::Drift { before, now } | NoticedKind::Way { before, now } => {
                ("drift", before.map(|it| hex(it.as_bytes())), Some(hex(now.as_bytes())))
            }
            NoticedKind::Poison => ("poison", None, None),
            NoticedKind::Schema => ("schema", None, None),
            NoticedKind::Clash => ("clash", None, None),
        };
        let place = noticed.place.as_str();
        let subject = match noticed.tool.as_str() {
            // No tool is meant: it is the server itself.
            "" => self.mask(place),
            tool => self.mask(&format!("{place} {tool}")),
        };
        let outcome = if noticed.held { "held back" } else { "served nevertheless" };
        let cause = self.mask(&format!("{outcome}: {}", noticed.message));
        let record = EventRecord {
            subject: Some(&subject),
            before: before.as_deref(),
            after: after.as_deref(),
            cause: Some(&cause),
            ..EventRecord::default()
        };
        self.event(event, &record);
    }
}
