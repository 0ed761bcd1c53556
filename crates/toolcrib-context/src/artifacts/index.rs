//! What a store holds, by id and by owner, and how many bytes that is.
//!
//! Nobody can push out what belongs to another: room is made from the owner's own, oldest first, or not at all.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Artifact, ArtifactId, Limits, Quota, StoreError};

/// What there is. Sums are kept, never counted anew.
#[derive(Debug, Default)]
pub(super) struct Index {
    all: HashMap<ArtifactId, Artifact>,
    owners: BTreeMap<String, Owned>,
    /// Bytes of everything that is stored or about to be.
    used: u64,
    count: usize,
    /// By when they go.
    by_expiry: BTreeSet<(u64, ArtifactId)>,
    /// Bytes that are being written.
    in_flight: u64,
    /// The same, of each owner.
    writing: HashMap<String, u64>,
}

#[derive(Debug, Default)]
struct Owned {
    /// By age.
    ids: BTreeSet<(u64, ArtifactId)>,
    used: u64,
    count: usize,
}

impl Index {
    pub(super) fn get(&self, id: &ArtifactId) -> Option<&Artifact> {
        self.all.get(id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Artifact> {
        self.all.values()
    }

    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// So many bytes more are being written, or why they cannot be. What nobody could keep need not be written.
    pub(super) fn write(
        &mut self,
        owner: &str,
        size: u64,
        limits: &Limits,
    ) -> Result<(), StoreError> {
        let own = self.writing.get(owner).copied().unwrap_or_default();
        let refused = if limits.quota_bytes < self.in_flight + size {
            Some((Quota::Writing, limits.quota_bytes))
        } else if limits.owner_quota_bytes < own + size {
            Some((Quota::GroupBytes, limits.owner_quota_bytes))
        } else {
            None
        };
        if let Some((of, quota)) = refused {
            return Err(StoreError::Full { size, quota, of });
        }
        self.in_flight += size;
        *self.writing.entry(owner.to_owned()).or_default() += size;
        Ok(())
    }

    /// They no longer are.
    pub(super) fn written(&mut self, owner: &str, size: u64) {
        self.in_flight = self.in_flight.saturating_sub(size);
        if let Some(own) = self.writing.get_mut(owner) {
            *own = own.saturating_sub(size);
            if *own == 0 {
                self.writing.remove(owner);
            }
        }
    }

    /// Makes room and keeps it; gives back what has to go for it. Where there cannot be room, nothing goes. What came
    /// from the same call stays: the parts of a result must not push each other out.
    pub(super) fn reserve(
        &mut self,
        new: &Artifact,
        limits: &Limits,
    ) -> Result<Vec<Artifact>, StoreError> {
        let (owner, size) = (&new.owner, new.size_bytes);
        let none = Owned::default();
        let owned = self.owners.get(owner).unwrap_or(&none);
        let mut room =
            Room { used: self.used, count: self.count, own: owned.used, own_count: owned.count };
        let mut victims = Vec::new();
        let spared = |it: &&Artifact| !new.call.is_empty() && it.call == new.call;
        let mut oldest =
            owned.ids.iter().filter_map(|(_, id)| self.all.get(id)).filter(|it| !spared(it));
        while let Some((of, quota)) = room.lacks(size, limits) {
            let Some(victim) = oldest.next() else {
                return Err(StoreError::Full { size, quota, of });
            };
            room.used -= victim.size_bytes;
            room.own -= victim.size_bytes;
            room.count -= 1;
            room.own_count -= 1;
            victims.push(victim.clone());
        }
        for victim in &victims {
            self.remove(&victim.id);
        }
        let owned = self.owners.entry(owner.clone()).or_default();
        owned.used += size;
        owned.count += 1;
        self.used += size;
        self.count += 1;
        Ok(victims)
    }

    /// Gives back what was reserved.
    pub(super) fn release(&mut self, owner: &str, size: u64) {
        self.used = self.used.saturating_sub(size);
        self.count = self.count.saturating_sub(1);
        if let Some(owned) = self.owners.get_mut(owner) {
            owned.used = owned.used.saturating_sub(size);
            owned.count = owned.count.saturating_sub(1);
            if owned.count == 0 {
                self.owners.remove(owner);
            }
        }
    }

    /// Puts in what room was reserved for.
    pub(super) fn fill(&mut self, artifact: Artifact) {
        if let Some(owned) = self.owners.get_mut(&artifact.owner) {
            owned.ids.insert((artifact.created, artifact.id.clone()));
        }
        self.by_expiry.insert((artifact.expires, artifact.id.clone()));
        self.all.insert(artifact.id.clone(), artifact);
    }

    /// Puts in what was found, whether or not there is room.
    pub(super) fn adopt(&mut self, artifact: Artifact) {
        let owned = self.owners.entry(artifact.owner.clone()).or_default();
        owned.used += artifact.size_bytes;
        owned.count += 1;
        self.used += artifact.size_bytes;
        self.count += 1;
        self.fill(artifact);
    }

    pub(super) fn remove(&mut self, id: &ArtifactId) -> Option<Artifact> {
        let artifact = self.all.remove(id)?;
        self.by_expiry.remove(&(artifact.expires, artifact.id.clone()));
        if let Some(owned) = self.owners.get_mut(&artifact.owner) {
            owned.ids.remove(&(artifact.created, artifact.id.clone()));
        }
        self.release(&artifact.owner, artifact.size_bytes);
        Some(artifact)
    }

    /// Takes out what is no longer to be kept at `now`, whosever it is.
    pub(super) fn take_expired(&mut self, now: u64, most: usize) -> Vec<ArtifactId> {
        let expired = self.by_expiry.iter().take_while(|(expires, _)| *expires <= now);
        let expired: Vec<ArtifactId> = expired.take(most).map(|(_, id)| id.clone()).collect();
        for id in &expired {
            self.remove(id);
        }
        expired
    }
}

/// What is taken up while room is made.
struct Room {
    used: u64,
    count: usize,
    own: u64,
    own_count: usize,
}

impl Room {
    /// The limit that stands in the way of so many bytes more; those of the owner alone are said first.
    fn lacks(&self, size: u64, limits: &Limits) -> Option<(Quota, u64)> {
        let full = [
            (
                limits.owner_quota_bytes < self.own + size,
                Quota::GroupBytes,
                limits.owner_quota_bytes,
            ),
            (
                limits.owner_max_count <= self.own_count,
                Quota::GroupCount,
                limits.owner_max_count as u64,
            ),
            (limits.quota_bytes < self.used + size, Quota::Bytes, limits.quota_bytes),
            (limits.max_count <= self.count, Quota::Count, limits.max_count as u64),
        ];
        full.into_iter().find(|(full, ..)| *full).map(|(_, of, quota)| (of, quota))
    }
}
