//! What the wire put aside of a result, as the catalogue knows it.

use std::{
    io::{self, Read},
    sync::Arc,
};

use toolcrib_catalogue::{Aside, AsideField, AsidePart, AsidePlace};
use toolcrib_wire::{Field, Place, Spooled, SpooledPart};

/// What was put aside, for whoever deals with it.
pub(super) fn put(spooled: Arc<Spooled>) -> Arc<dyn Aside> {
    let parts = spooled.parts.iter();
    let parts = parts.map(|it| AsidePart {
        place: place(it.place),
        at: it.at,
        within: it.within,
        size: it.size,
    });
    Arc::new(Put { parts: parts.collect(), spooled })
}

#[derive(Debug)]
struct Put {
    parts: Vec<AsidePart>,
    spooled: Arc<Spooled>,
}

impl Put {
    fn part(&self, part: usize) -> io::Result<&SpooledPart> {
        let none = || io::Error::new(io::ErrorKind::NotFound, "no such part was put aside");
        self.spooled.parts.get(part).ok_or_else(none)
    }
}

impl Aside for Put {
    fn parts(&self) -> &[AsidePart] {
        &self.parts
    }

    fn open(&self, part: usize) -> io::Result<Box<dyn Read + Send>> {
        self.part(part).map(SpooledPart::open)
    }

    fn open_raw(&self, part: usize) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(self.part(part)?.open_raw()))
    }
}

fn place(place: Place) -> AsidePlace {
    match place {
        Place::Structure => AsidePlace::Structure,
        Place::Content(at, field) => AsidePlace::Content(
            at,
            match field {
                Field::Text => AsideField::Text,
                Field::Data => AsideField::Data,
                Field::ResourceText => AsideField::ResourceText,
                Field::ResourceBlob => AsideField::ResourceBlob,
            },
        ),
    }
}
