//! How much of what costs goes on at the same time. Whoever may look could else make the gateway read its records, count
//! its lists or hold streams open for them until nothing is left for others: so each kind has few places, and one caller
//! has a share of them.

use std::{collections::HashMap, net::IpAddr, sync::Arc, time::Duration};

use http::StatusCode;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Fault;
use crate::access::{Access, Caller};

/// What takes a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// A stream or a download, for as long as it is open.
    Watching,
    /// Going through the audit record.
    Reading,
    /// What lists cost.
    Counting,
    Searching,
    /// Making a prompt of a session.
    Packing,
}

impl Kind {
    /// How many there are at the same time, and how many of them are one caller's.
    fn places(self) -> (usize, usize) {
        match self {
            Self::Watching => (64, 8),
            Self::Reading | Self::Searching => (4, 2),
            Self::Counting | Self::Packing => (2, 1),
        }
    }

    /// How long a place is waited for. A stream ends when somebody goes, which nobody waits for.
    fn patience(self) -> Duration {
        match self {
            Self::Watching => Duration::ZERO,
            _ => Duration::from_secs(5),
        }
    }
}

/// How many requests of one kind one caller may have waiting.
const MOST_WAITING: usize = 16;

/// Whose places they are.
type Who = (Option<[u8; 32]>, Option<IpAddr>);

/// The places of all kinds.
#[derive(Debug, Default)]
pub(super) struct Room {
    taken: Mutex<Taken>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Taken {
    of: HashMap<(Kind, Who), Share>,
    all: HashMap<Kind, usize>,
}

#[derive(Debug, Default)]
struct Share {
    inside: usize,
    waiting: usize,
}

/// A place that is taken, until this is dropped. It goes along with the work, which may outlive whoever asked for it.
#[derive(Debug)]
pub(super) struct Place {
    room: Arc<Room>,
    kind: Kind,
    who: Who,
}

/// Somebody who waits.
struct Waiting<'a>(&'a Room, (Kind, Who));

impl Room {
    /// Takes a place; waits a little where there is none.
    pub(super) async fn enter(
        self: &Arc<Self>,
        kind: Kind,
        caller: &Caller,
    ) -> Result<Place, Fault> {
        let key = (kind, Access::share(caller));
        let Some(_waiting) = Waiting::new(self, key) else {
            return Err(too_many("you ask for too much at once: wait for the answers"));
        };
        let entered = async {
            loop {
                let freed = self.freed.notified();
                if let Some(place) = self.take(kind, caller) {
                    return place;
                }
                freed.await;
            }
        };
        match tokio::time::timeout(kind.patience(), entered).await {
            Ok(place) => Ok(place),
            Err(_late) => Err(self.full(kind, caller)),
        }
    }

    /// Takes a place if there is one now.
    pub(super) fn take(self: &Arc<Self>, kind: Kind, caller: &Caller) -> Option<Place> {
        let (places, share) = kind.places();
        let who = Access::share(caller);
        let mut taken = self.taken.lock();
        if places <= taken.all.get(&kind).copied().unwrap_or_default() {
            return None;
        }
        let own = taken.of.entry((kind, who)).or_default();
        if share <= own.inside {
            return None;
        }
        own.inside += 1;
        *taken.all.entry(kind).or_default() += 1;
        Some(Place { room: Arc::clone(self), kind, who })
    }

    /// Why there is no place: the caller has had theirs, or others have.
    pub(super) fn full(&self, kind: Kind, caller: &Caller) -> Fault {
        let own = self.taken.lock().of.get(&(kind, Access::share(caller))).map(|it| it.inside);
        match (kind, own) {
            (Kind::Watching, Some(own)) if kind.places().1 <= own => {
                too_many("you watch or download as often as one caller may: close something")
            }
            (_, Some(own)) if kind.places().1 <= own => {
                too_many("what you asked for before is still being done: try again")
            }
            _ => Fault::unavailable("too many ask for that just now: try again"),
        }
    }

    fn change(&self, key: (Kind, Who), change: impl FnOnce(&mut Share)) {
        let mut taken = self.taken.lock();
        let own = taken.of.entry(key).or_default();
        change(own);
        if own.inside == 0 && own.waiting == 0 {
            taken.of.remove(&key);
        }
    }
}

impl<'a> Waiting<'a> {
    fn new(room: &'a Room, key: (Kind, Who)) -> Option<Self> {
        let mut taken = room.taken.lock();
        let own = taken.of.entry(key).or_default();
        (own.waiting < MOST_WAITING).then(|| {
            own.waiting += 1;
            Self(room, key)
        })
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.change(self.1, |it| it.waiting -= 1);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.change((self.kind, self.who), |it| it.inside -= 1);
        if let Some(all) = self.room.taken.lock().all.get_mut(&self.kind) {
            *all -= 1;
        }
        self.room.freed.notify_waiters();
    }
}

fn too_many(message: &str) -> Fault {
    Fault::new(StatusCode::TOO_MANY_REQUESTS, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{AccessSettings, GroupSettings};

    fn callers() -> Vec<Caller> {
        let group = |name: &str| GroupSettings {
            name: name.to_owned(),
            tokens: vec![format!("token-{name}")],
            ..GroupSettings::default()
        };
        let groups = ["a", "b", "c"].map(group).to_vec();
        Access::new(&AccessSettings { groups, ..AccessSettings::default() }).holders().collect()
    }

    #[test]
    fn nobody_takes_all_places_and_whoever_goes_leaves_theirs() {
        let (room, callers) = (Arc::new(Room::default()), callers());
        let mut places = Vec::new();
        while let Some(place) = room.take(Kind::Watching, &callers[0]) {
            places.push(place);
        }
        assert_eq!(places.len(), 8);
        let full = room.full(Kind::Watching, &callers[0]);
        assert_eq!(full.status, StatusCode::TOO_MANY_REQUESTS);
        assert!(room.take(Kind::Watching, &callers[1]).is_some());
        places.pop();
        assert!(room.take(Kind::Watching, &callers[0]).is_some());
        drop(places);
        assert!(room.taken.lock().of.is_empty(), "nothing grows with callers");
    }

    #[tokio::test(start_paused = true)]
    async fn what_costs_is_waited_for_and_refused_in_the_end() {
        let (room, callers) = (Arc::new(Room::default()), callers());
        let first = room.enter(Kind::Packing, &callers[0]).await.unwrap();
        let own = room.enter(Kind::Packing, &callers[0]).await.unwrap_err();
        assert_eq!(own.status, StatusCode::TOO_MANY_REQUESTS, "{own:?}");
        let _second = room.enter(Kind::Packing, &callers[1]).await.unwrap();
        let others = room.enter(Kind::Packing, &callers[2]).await.unwrap_err();
        assert_eq!(others.status, StatusCode::SERVICE_UNAVAILABLE, "{others:?}");
        // Whoever waits gets the place that is left.
        let (entered, ()) = tokio::join!(room.enter(Kind::Packing, &callers[2]), async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            drop(first);
        });
        assert!(entered.is_ok());
    }
}
