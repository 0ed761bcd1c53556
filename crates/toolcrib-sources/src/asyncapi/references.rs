//! `$ref`, wherever it leads: in one file, to another, over several steps.
//!
//! All files that a document may lead to are there before anything is looked up, so that looking up only
//! borrows.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use serde_json::{Map, Value};

use super::files::{Files, Tree, unescape};

/// How many steps one reference may take.
const STEPS: usize = 64;

/// A document with all files that it leads to.
#[derive(Debug)]
pub(super) struct Documents {
    /// The document first.
    trees: Vec<Arc<Tree>>,
    /// From a file, and how it names another, to that one.
    links: HashMap<(usize, String), Result<usize, String>>,
}

/// A value in one of the files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) file: usize,
    pub(super) value: &'a Value,
}

impl<'a> Place<'a> {
    /// A member of the mapping that this is.
    pub(super) fn get(self, key: &str) -> Option<Self> {
        self.value.get(key).map(|value| Self { value, ..self })
    }

    /// What this is if not a value but the name of one.
    pub(super) fn reference(self) -> Option<&'a str> {
        self.value.get("$ref").and_then(Value::as_str)
    }

    /// This as a mapping.
    pub(super) fn mapping(self) -> Option<&'a Map<String, Value>> {
        self.value.as_object()
    }

    /// Which value this is: equal ones in two places are two.
    pub(super) fn identity(self) -> usize {
        std::ptr::from_ref(self.value).addr()
    }
}

impl Documents {
    /// Reads whatever the document leads to.
    pub(super) fn gather(document: Tree, files: &mut Files) -> Self {
        let mut trees = vec![Arc::new(document)];
        let mut links = HashMap::new();
        let mut open = VecDeque::from([0]);
        while let Some(from) = open.pop_front() {
            let tree = Arc::clone(&trees[from]);
            for target in &tree.outward {
                let found = files.other(&tree, target).map(|other| {
                    let known = trees.iter().position(|it| Arc::ptr_eq(it, &other));
                    known.unwrap_or_else(|| {
                        trees.push(other);
                        open.push_back(trees.len() - 1);
                        trees.len() - 1
                    })
                });
                links.insert((from, target.clone()), found);
            }
        }
        Self { trees, links }
    }

    /// The document itself.
    pub(super) fn root(&self) -> Place<'_> {
        Place { file: 0, value: &self.trees[0].value }
    }

    /// How a file is called.
    pub(super) fn shown(&self, file: usize) -> &str {
        &self.trees[file].shown
    }

    /// What `place` is, or what it refers to in the end.
    pub(super) fn follow<'a>(&'a self, place: Place<'a>) -> Result<Place<'a>, String> {
        self.steps(place, &mut Vec::new())
    }

    /// What `reference` names, when it stands in `file`.
    pub(super) fn resolve(&self, file: usize, reference: &str) -> Result<Place<'_>, String> {
        self.named(file, reference, &mut Vec::new())
    }

    fn steps<'a>(
        &'a self,
        mut place: Place<'a>,
        been: &mut Vec<usize>,
    ) -> Result<Place<'a>, String> {
        while let Some(reference) = place.reference() {
            let here = place.identity();
            if been.contains(&here) {
                return Err(format!("`{}` leads back to itself", shorten(reference)));
            }
            if STEPS <= been.len() {
                return Err(format!("`{}` leads over too many steps", shorten(reference)));
            }
            been.push(here);
            place = self.named(place.file, reference, been)?;
        }
        Ok(place)
    }

    fn named<'a>(
        &'a self,
        file: usize,
        reference: &str,
        been: &mut Vec<usize>,
    ) -> Result<Place<'a>, String> {
        let refuse = |why: &str| format!("`{}` leads nowhere: {why}", shorten(reference));
        let (target, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let file = match target {
            "" => file,
            _ => match self.links.get(&(file, target.to_owned())) {
                Some(Ok(file)) => *file,
                Some(Err(why)) => return Err(refuse(why)),
                None => return Err(refuse("the file was not read")),
            },
        };
        let pointer = unescape(fragment).ok_or_else(|| refuse("its escapes are not UTF-8"))?;
        if !pointer.is_empty() && !pointer.starts_with('/') {
            return Err(refuse("what stands behind `#` must be empty or begin with `/`"));
        }
        let mut place = Place { file, value: &self.trees[file].value };
        for part in pointer.split('/').skip(1) {
            let key = part.replace("~1", "/").replace("~0", "~");
            // A way may lead through what is itself only a reference.
            if place.value.get(&key).is_none() && place.reference().is_some() {
                place = self.steps(place, been)?;
            }
            let found = match place.value {
                Value::Array(list) => key.parse().ok().and_then(|at: usize| list.get(at)),
                other => other.get(&key),
            };
            let why = || refuse(&format!("there is no `{}`", shorten(&key)));
            place = Place { file: place.file, value: found.ok_or_else(why)? };
        }
        Ok(place)
    }
}

/// What a message may quote of a document.
pub(super) fn shorten(text: &str) -> String {
    const LONGEST: usize = 120;
    let mut short = String::new();
    for c in text.chars().take(LONGEST) {
        match c {
            '\'' | '"' | '\\' => short.push(c),
            other => short.extend(other.escape_debug()),
        }
    }
    if text.chars().nth(LONGEST).is_some() {
        short.push('…');
    }
    short
}
