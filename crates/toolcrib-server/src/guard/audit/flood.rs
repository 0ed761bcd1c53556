//! Events that anybody can cause, kept from filling a disk: so many of a kind are told in a time, and of the rest how
//! many there were. The same holds for the refused calls of one caller.

use std::collections::HashMap;

/// How many of a kind are told, in how many seconds.
type Share = (u32, u64);

/// Of what anybody who reaches us can cause.
const CHEAP: Share = (50, 1);
const CHEAP_KINDS: [&str; 3] = ["unauthorized", "forbidden", "too_many"];

/// Of what a server can cause by what it lists: a large one may well come with a thousand at once.
const LISTED: Share = (1000, 60);
const LISTED_KINDS: [&str; 4] = ["drift", "poison", "schema", "clash"];

/// Of what nobody outside can cause at will.
const OWN: Share = (1000, 1);

/// Of the refused calls of one caller.
const REFUSALS: Share = (1000, 60);

/// Of so many callers it is known how many calls were refused; all others count as one.
const MOST_CALLERS: usize = 1000;

/// What was told of each kind.
#[derive(Debug, Default)]
pub(crate) struct Floods {
    kinds: Vec<(&'static str, Told)>,
    /// By who it is, and its group.
    callers: HashMap<(String, String), Told>,
}

#[derive(Debug, Default)]
struct Told {
    /// Which stretch of time it is about.
    stretch: u64,
    told: u32,
    /// How many were not.
    more: u64,
}

impl Told {
    fn is_one_more(&mut self, (most, seconds): Share, second: u64, full: bool) -> bool {
        let stretch = second / seconds;
        if self.stretch != stretch {
            (self.stretch, self.told) = (stretch, 0);
        }
        if full || most <= self.told {
            self.more += 1;
            return false;
        }
        self.told += 1;
        true
    }

    /// How many were counted before this stretch; in the end, all of them.
    fn take(&mut self, (_, seconds): Share, second: u64, all: bool) -> Option<u64> {
        let over = 0 < self.more && (all || self.stretch != second / seconds);
        over.then(|| std::mem::take(&mut self.more))
    }
}

fn share(kind: &str) -> Share {
    match kind {
        _ if CHEAP_KINDS.contains(&kind) => CHEAP,
        _ if LISTED_KINDS.contains(&kind) => LISTED,
        _ => OWN,
    }
}

impl Floods {
    /// Whether one more is told; where not, it is counted.
    pub(crate) fn is_one_more(&mut self, name: &'static str, second: u64, full: bool) -> bool {
        let at = self.kinds.iter().position(|it| it.0 == name).unwrap_or_else(|| {
            self.kinds.push((name, Told::default()));
            self.kinds.len() - 1
        });
        self.kinds[at].1.is_one_more(share(name), second, full)
    }

    /// Whether one more refused call of a caller is told; where not, how many were counted by now.
    pub(crate) fn is_one_more_of(
        &mut self,
        who: &str,
        group: &str,
        second: u64,
    ) -> Result<(), u64> {
        let mut key = (who.to_owned(), group.to_owned());
        if MOST_CALLERS <= self.callers.len() && !self.callers.contains_key(&key) {
            let stretch = second / REFUSALS.1;
            self.callers.retain(|_, it| 0 < it.more || it.stretch == stretch);
            if MOST_CALLERS <= self.callers.len() {
                key = ("others".to_owned(), String::new());
            }
        }
        let caller = self.callers.entry(key).or_default();
        if caller.is_one_more(REFUSALS, second, false) { Ok(()) } else { Err(caller.more) }
    }

    /// Whether everything was told.
    pub(crate) fn is_calm(&self) -> bool {
        let kinds = self.kinds.iter().map(|(_, it)| it);
        kinds.chain(self.callers.values()).all(|it| it.more == 0)
    }

    /// What was counted and is over; in the end, all of it.
    pub(crate) fn take(&mut self, second: u64, all: bool) -> Vec<(&'static str, u64)> {
        let taken = self.kinds.iter_mut();
        taken.filter_map(|(name, it)| Some((*name, it.take(share(name), second, all)?))).collect()
    }

    /// The same of refused calls: who, the group, how many.
    pub(crate) fn take_refusals(&mut self, second: u64, all: bool) -> Vec<(String, String, u64)> {
        let taken = self.callers.iter_mut().filter_map(|((who, group), it)| {
            Some((who.clone(), group.clone(), it.take(REFUSALS, second, all)?))
        });
        let taken = taken.collect();
        self.callers.retain(|_, it| it.stretch == second / REFUSALS.1);
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_told_or_counted() {
        let mut floods = Floods::default();
        let mut told = 0;
        for at in 0..5000_u64 {
            told += u64::from(floods.is_one_more("unauthorized", at / 1000, at % 1000 == 7));
        }
        assert_eq!(told, 250);
        assert!(!floods.is_calm());
        assert_eq!(floods.take(4, false), []);
        assert_eq!(floods.take(5, false), [("unauthorized", 4750)]);
        assert!(floods.is_calm());
        assert!(floods.is_one_more("drift", 5, false));
        assert!(!floods.is_one_more("drift", 5, true));
        assert_eq!(floods.take(5, true), [("drift", 1)]);
    }

    #[test]
    fn what_servers_and_callers_can_cause_is_told_a_thousand_times_a_minute() {
        let mut floods = Floods::default();
        let drifts = (0..3000).filter(|it| floods.is_one_more("drift", it / 100, false)).count();
        assert_eq!(drifts, 1000);
        assert_eq!(floods.take(59, false), []);
        assert_eq!(floods.take(60, false), [("drift", 2000)]);
        let told = (0..3000).filter(|it| floods.is_one_more_of("a", "g", it / 100).is_ok()).count();
        assert_eq!(told, 1000);
        assert_eq!(floods.is_one_more_of("a", "g", 30), Err(2001));
        assert_eq!(floods.is_one_more_of("b", "g", 1), Ok(()));
        assert_eq!(floods.take_refusals(31, false), []);
        assert_eq!(floods.take_refusals(61, false), [("a".to_owned(), "g".to_owned(), 2001)]);
        assert!(floods.is_calm() && floods.callers.is_empty());
        // However many there are.
        let told =
            (0..5000).filter(|it| floods.is_one_more_of(&it.to_string(), "g", 70).is_ok()).count();
        assert_eq!((told, floods.callers.len()), (2000, MOST_CALLERS + 1));
    }
}
