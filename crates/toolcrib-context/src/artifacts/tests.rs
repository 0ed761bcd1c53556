//! The store and what can be read from it, as a whole.

mod store;
mod pages;
mod json;
mod tables;
mod selectors;
mod limits;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use super::{Content, New, Piece, ReadLimits, Selector, read_piece};

/// A folder that goes away with the test.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let unique = format!("toolcrib-artifacts-{}-{next}", std::process::id());
        let path = std::env::temp_dir().join(unique);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// What lies in it, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        let names = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            names.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

pub(super) fn of(owner: &str) -> New {
    New { owner: owner.to_owned(), media_type: "text/plain".to_owned(), ..New::default() }
}

/// What a query of a URI gives of a content.
pub(super) fn ask(
    content: impl AsRef<[u8]>,
    media_type: &str,
    query: &str,
) -> Result<Piece, String> {
    let selector = Selector::from_query(query).map_err(|error| error.to_string())?;
    let mut content = std::io::Cursor::new(content.as_ref());
    read_piece(&mut content, media_type, &selector, &ReadLimits::default())
        .map_err(|error| error.to_string())
}

/// All pages from a selector on.
pub(super) fn pages(
    content: &mut dyn Content,
    media_type: &str,
    first: Selector,
    limits: &ReadLimits,
) -> Vec<Piece> {
    let (mut pages, mut next) = (Vec::new(), Some(first));
    while let Some(selector) = next {
        assert!(pages.len() < 10_000, "this does not end: {selector:?}");
        let piece = read_piece(content, media_type, &selector, limits).unwrap();
        next = piece.next.clone();
        pages.push(piece);
    }
    pages
}
