//! What is remembered of deliveries, and the oldest forgotten where that grows too much.

use std::collections::{BTreeMap, HashMap};

/// A delivery: whose, which consumer of that name, and the place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) consumer: String,
    pub(crate) born: u64,
    pub(crate) place: u64,
}

#[derive(Debug)]
pub(crate) struct Bounded<V> {
    most: usize,
    next: u64,
    by_key: HashMap<Key, (u64, V)>,
    by_age: BTreeMap<u64, Key>,
}

impl<V> Bounded<V> {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, next: 0, by_key: HashMap::new(), by_age: BTreeMap::new() }
    }

    pub(crate) fn insert(&mut self, key: Key, value: V) {
        self.next += 1;
        self.by_age.insert(self.next, key.clone());
        if let Some((age, _)) = self.by_key.insert(key, (self.next, value)) {
            self.by_age.remove(&age);
        }
        if self.most < self.by_age.len()
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.by_key.remove(&oldest);
        }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&V> {
        self.by_key.get(key).map(|(_, value)| value)
    }

    /// Forgets all of one consumer.
    pub(crate) fn forget(&mut self, consumer: &str) {
        self.by_key.retain(|key, _| key.consumer != consumer);
        self.by_age.retain(|_, key| key.consumer != consumer);
    }

    pub(crate) fn remove(&mut self, key: &Key) {
        if let Some((age, _)) = self.by_key.remove(key) {
            self.by_age.remove(&age);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_first() {
        let key = |place| Key { consumer: "a".into(), born: 1, place };
        let mut bounded = Bounded::new(2);
        bounded.insert(key(1), "one");
        bounded.insert(key(2), "two");
        bounded.insert(key(1), "one, again");
        bounded.insert(key(3), "three");
        assert_eq!((bounded.get(&key(2)), bounded.get(&key(1))), (None, Some(&"one, again")));
        bounded.remove(&key(1));
        assert_eq!((bounded.by_key.len(), bounded.by_age.len()), (1, 1));
    }
}
