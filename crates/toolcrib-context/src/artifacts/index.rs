//! What a store holds, by id and by owner, and how many bytes that is.
//!
//! Nobody can push out what belongs to another: room is made from the owner's own, oldest first, or not at all.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Artifact, ArtifactId, Limits, StoreError};

/// What there is. Sums are kept, never counted anew.
#[derive(Debug, Default)]
pub(super) struct Index {
    all: HashMap<ArtifactId, Artifact>,
    owners: BTreeMap<String, Owned>,
    /// Bytes of everything that is stored or about to be.
    used: u64,
    count: usize,
    /// Bytes that are being written.
    pub(super) in_flight: u64,
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

    /// Makes room and keeps it; gives back what has to go for it. Where there cannot be room, nothing goes.
    pub(super) fn reserve(
        &mut self,
        owner: &str,
        size: u64,
        limits: &Limits,
    ) -> Result<Vec<Artifact>, StoreError> {
        let none = Owned::default();
        let owned = self.owners.get(owner).unwrap_or(&none);
        let fits = |used: u64, count: usize, own: u64| {
            used + size <= limits.quota_bytes
                && own + size <= limits.owner_quota_bytes
                && count < limits.max_count
        };
        let (mut used, mut count, mut own) = (self.used, self.count, owned.used);
        let mut victims = Vec::new();
        let mut oldest = owned.ids.iter();
        while !fits(used, count, own) {
            let Some((_, id)) = oldest.next() else {
                return Err(StoreError::Full { size, quota: limits.quota_bytes });
            };
            if let Some(victim) = self.all.get(id) {
                used -= victim.size_bytes;
                own -= victim.size_bytes;
                count -= 1;
                victims.push(victim.clone());
            }
        }
        for victim in &victims {
            self.remove(&victim.id);
        }
        let owned = self.owners.entry(owner.to_owned()).or_default();
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
        if let Some(owned) = self.owners.get_mut(&artifact.owner) {
            owned.ids.remove(&(artifact.created, artifact.id.clone()));
        }
        self.release(&artifact.owner, artifact.size_bytes);
        Some(artifact)
    }

    /// What is no longer to be kept at `now`.
    pub(super) fn expired(&self, now: u64) -> Vec<ArtifactId> {
        self.all.values().filter(|it| it.expires <= now).map(|it| it.id.clone()).collect()
    }
}
