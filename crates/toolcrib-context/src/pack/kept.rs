//! What a manager keeps aside, in memory, as long as it lives.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use crate::ArtifactRef;

/// Whole results and what came with them, by handle.
#[derive(Debug, Default)]
pub struct KeptArtifacts {
    by_handle: BTreeMap<String, (ArtifactRef, Vec<u8>)>,
}

impl KeptArtifacts {
    /// What is kept under a handle.
    pub fn get(&self, handle: &str) -> Option<&[u8]> {
        self.by_handle.get(handle).map(|(_, bytes)| bytes.as_slice())
    }

    /// Everything that is kept, by handle.
    pub fn refs(&self) -> impl Iterator<Item = &ArtifactRef> {
        self.by_handle.values().map(|(artifact, _)| artifact)
    }

    /// Keeps something. Handles have the id of an item or a call in them, so none comes twice.
    pub(crate) fn keep(
        &mut self,
        handle: String,
        bytes: Vec<u8>,
        media_type: &str,
        label: String,
    ) -> ArtifactRef {
        let artifact = ArtifactRef {
            handle: handle.clone(),
            media_type: media_type.to_owned(),
            size_bytes: bytes.len() as u64,
            label,
            content_hash: Some(hex(&Sha256::digest(&bytes))),
        };
        self.by_handle.insert(handle, (artifact.clone(), bytes));
        artifact
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|it| format!("{it:02x}")).collect()
}
