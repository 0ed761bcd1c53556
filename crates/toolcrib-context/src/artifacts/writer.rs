//! Storing, as the bytes come.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Write},
    path::PathBuf,
    sync::Arc,
    time::SystemTime,
};

use sha2::{Digest, Sha256};

use super::{Artifact, ArtifactId, Shape, StoreError, describe, store::Shared};

/// Takes the bytes of one artifact. Dropped before [`Writer::finish`], it leaves nothing behind.
pub struct Writer {
    shared: Arc<Shared>,
    artifact: Artifact,
    out: BufWriter<File>,
    hash: Sha256,
    /// What goes away with this.
    parts: Parts,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, artifact: Artifact) -> Result<Self, StoreError> {
        let path = shared.folder.join(format!("{}.data.part", artifact.id));
        let file = match create(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                shared.make_again()?;
                create(&path)
            }
            created => created,
        }?;
        let owner = artifact.owner.clone();
        let parts = Parts { shared: Arc::clone(&shared), owner, paths: vec![path], written: 0 };
        let out = BufWriter::with_capacity(64 * 1024, file);
        Ok(Self { shared, artifact, out, hash: Sha256::new(), parts })
    }

    /// What it is going to be called.
    pub fn id(&self) -> &ArtifactId {
        &self.artifact.id
    }

    /// Says what it is, once that is known.
    pub fn set_media_type(&mut self, media_type: impl Into<String>) {
        self.artifact.media_type = media_type.into();
    }

    /// What has been written so far, looked through; it is called what it turns out to be.
    pub fn describe(&mut self) -> io::Result<Shape> {
        self.out.flush()?;
        let path = self.parts.paths.first().ok_or_else(|| io::Error::other("it is gone"))?;
        let shape = describe(&mut File::open(path)?, &self.artifact.media_type)?;
        self.artifact.media_type.clone_from(&shape.media_type);
        Ok(shape)
    }

    /// How many bytes there are so far.
    pub fn written(&self) -> u64 {
        self.parts.written
    }

    /// Looks at what was written, calls it what it is, and makes it an artifact.
    pub fn finish_described(mut self) -> Result<(Artifact, Shape), StoreError> {
        self.out.flush()?;
        let path =
            self.parts.paths.first().ok_or_else(|| io::Error::other("nothing was written"))?;
        let shape = describe(&mut File::open(path)?, &self.artifact.media_type)?;
        self.artifact.media_type.clone_from(&shape.media_type);
        Ok((self.finish()?, shape))
    }

    /// Makes it an artifact: on the disk, and to be found. Older ones of its owner go where there is no room.
    pub fn finish(mut self) -> Result<Artifact, StoreError> {
        self.out.flush()?;
        self.out.get_ref().sync_data()?;
        self.artifact.size_bytes = self.parts.written;
        self.artifact.content_hash = hex(&self.hash.finalize_reset());
        let meta = self.shared.folder.join(format!("{}.json.part", self.artifact.id));
        let text = serde_json::to_vec(&self.artifact).map_err(io::Error::from)?;
        self.parts.paths.push(meta.clone());
        let mut file = create(&meta)?;
        file.write_all(&text)?;
        file.sync_all()?;
        drop(file);
        // What has expired is in nobody's way.
        self.shared.sweep_in_passing();
        let (owner, size) = (self.artifact.owner.clone(), self.artifact.size_bytes);
        let reserve = || self.shared.index.lock().reserve(&self.artifact, &self.shared.limits);
        let victims = match reserve() {
            Err(StoreError::Full { .. }) if 0 < self.shared.sweep(SystemTime::now()) => reserve(),
            reserved => reserved,
        }?;
        for victim in victims {
            // What cannot be removed now is tried again when the store is opened next.
            self.shared.erase(&victim.id).ok();
        }
        if let Err(error) = self.settle() {
            self.shared.index.lock().release(&owner, size);
            self.shared.erase(&self.artifact.id).ok();
            return Err(error.into());
        }
        self.parts.paths.clear();
        self.shared.index.lock().fill(self.artifact.clone());
        Ok(self.artifact.clone())
    }

    /// Gives the files their names.
    fn settle(&self) -> io::Result<()> {
        let [data, meta] = self.parts.paths.as_slice() else {
            return Err(io::Error::other("there is nothing to name"));
        };
        fs::rename(data, self.shared.data(&self.artifact.id))?;
        fs::rename(meta, self.shared.meta(&self.artifact.id))?;
        sync_folder(&self.shared)
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.parts.grow(bytes.len() as u64)?;
        self.out.write_all(bytes)?;
        self.hash.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("id", &self.artifact.id).finish_non_exhaustive()
    }
}

/// Files that have no name yet.
struct Parts {
    shared: Arc<Shared>,
    owner: String,
    paths: Vec<PathBuf>,
    written: u64,
}

impl Parts {
    /// Room for more bytes, or why there is none.
    fn grow(&mut self, more: u64) -> io::Result<()> {
        let limits = &self.shared.limits;
        if limits.max_bytes < self.written + more {
            return Err(full(StoreError::TooLarge { limit: limits.max_bytes }));
        }
        // The disk holds twice the quota at most, however many write at once.
        self.shared.index.lock().write(&self.owner, more, limits).map_err(full)?;
        self.written += more;
        Ok(())
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.shared.index.lock().written(&self.owner, self.written);
        for path in &self.paths {
            // What is left is cleaned up when the store is opened next.
            fs::remove_file(path).ok();
        }
    }
}

fn full(error: StoreError) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, error)
}

/// A new file for its owner alone.
fn create(path: &PathBuf) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Names are part of the folder: they are safe once it is.
fn sync_folder(shared: &Shared) -> io::Result<()> {
    #[cfg(unix)]
    File::open(&shared.folder)?.sync_all()?;
    Ok(())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a `String` cannot fail.
        write!(text, "{byte:02x}").ok();
        text
    })
}
