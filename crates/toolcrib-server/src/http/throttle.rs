//! Where wrong tokens come from: whoever tries many is told to wait.
//!
//! A good token is let in all the same. Many clients may come from one address (all of this machine, or
//! all behind a proxy), and one of them must not be able to shut the others out.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// So often a peer may be wrong in the long run.
const EVERY: Duration = Duration::from_millis(100);

/// So many times at once.
const BURST: u32 = 50;

/// More peers than this are not remembered.
const MAX_PEERS: usize = 4_096;

/// For each peer, when its wrong tokens will be forgotten.
#[derive(Debug, Default)]
pub(super) struct Throttle(Mutex<HashMap<IpAddr, Instant>>);

impl Throttle {
    /// Notes a wrong token; returns whether it is one too many.
    pub(super) fn is_too_much(&self, peer: IpAddr, now: Instant) -> bool {
        let mut peers = self.0.lock();
        let peer = network(peer);
        if MAX_PEERS <= peers.len() && !peers.contains_key(&peer) {
            peers.retain(|_, forgotten| now < *forgotten);
            if MAX_PEERS <= peers.len() {
                return true;
            }
        }
        let forgotten = peers.entry(peer).or_insert(now);
        let next = now.max(*forgotten) + EVERY;
        if EVERY * BURST < next - now {
            return true;
        }
        *forgotten = next;
        false
    }
}

/// Whoever has one IPv6 address usually has 2^64.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(it) => Ipv6Addr::from_bits(it.to_bits() >> 64 << 64).into(),
        it @ IpAddr::V4(_) => it,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_may_be_wrong_now_and_then_and_does_not_hinder_others() {
        let throttle = Throttle::default();
        let (now, ada, bob) = (Instant::now(), [10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        assert!((0..BURST).all(|_| !throttle.is_too_much(ada, now)));
        assert!(throttle.is_too_much(ada, now));
        assert!(!throttle.is_too_much(bob, now));
        let later = now + 3 * EVERY;
        let tries = (0..10).filter(|_| !throttle.is_too_much(ada, later));
        assert_eq!(tries.count(), 3);
    }

    #[test]
    fn a_network_is_one_peer() {
        let peer = |text: &str| network(text.parse().unwrap());
        assert_eq!(peer("2001:db8::1"), peer("2001:db8::ffff:1"));
        assert_ne!(peer("2001:db8::1"), peer("2001:db8:0:1::1"));
        assert_eq!(peer("::ffff:10.0.0.1"), peer("10.0.0.1"));
    }

    #[test]
    fn peers_are_not_remembered_without_end() {
        let throttle = Throttle::default();
        let now = Instant::now();
        let peer = |at: u32| IpAddr::from(at.to_be_bytes());
        let count = u32::try_from(MAX_PEERS).unwrap();
        let refused = (0..2 * count).filter(|at| throttle.is_too_much(peer(*at), now));
        assert_eq!(refused.count(), MAX_PEERS);
        assert_eq!(throttle.0.lock().len(), MAX_PEERS);
        assert!(!throttle.is_too_much(peer(count), now + EVERY));
        assert_eq!(throttle.0.lock().len(), 1);
    }
}
