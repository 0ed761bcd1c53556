//! Events that anybody can cause, kept from filling a disk: so many of a kind are told each second, and of the rest
//! how many there were.

/// How many of a kind are told in a second.
const MOST: u32 = 50;

/// How many of what nobody outside can cause at will.
const MOST_OWN: u32 = 1000;

/// Kinds that anybody who reaches us can cause.
const CHEAP: [&str; 3] = ["unauthorized", "forbidden", "too_many"];

/// What was told of each kind.
#[derive(Debug, Default)]
pub(crate) struct Floods(Vec<Kind>);

#[derive(Debug)]
struct Kind {
    name: &'static str,
    second: u64,
    told: u32,
    /// How many were not.
    more: u64,
}

impl Floods {
    /// Whether one more is told; where not, it is counted.
    pub(crate) fn is_one_more(&mut self, name: &'static str, second: u64, full: bool) -> bool {
        let at = self.0.iter().position(|it| it.name == name).unwrap_or_else(|| {
            self.0.push(Kind { name, second, told: 0, more: 0 });
            self.0.len() - 1
        });
        let kind = &mut self.0[at];
        if kind.second != second {
            (kind.second, kind.told) = (second, 0);
        }
        let most = if CHEAP.contains(&name) { MOST } else { MOST_OWN };
        if full || most <= kind.told {
            kind.more += 1;
            return false;
        }
        kind.told += 1;
        true
    }

    /// Whether everything was told.
    pub(crate) fn is_calm(&self) -> bool {
        self.0.iter().all(|it| it.more == 0)
    }

    /// What was counted before this second; in the end, all of it.
    pub(crate) fn take(&mut self, second: u64, all: bool) -> Vec<(&'static str, u64)> {
        let over = |it: &&mut Kind| 0 < it.more && (all || it.second != second);
        let over = self.0.iter_mut().filter(over);
        over.map(|it| (it.name, std::mem::take(&mut it.more))).collect()
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
}
