//! Where schemas stand in a schema: dialects, addresses, anchors, and what a reference leads to.

use std::borrow::Cow;

use hashbrown::HashMap;

use super::{
    fault::{SchemaFault, quoted},
    guard::{MAX_DEPTH, MAX_SUBSCHEMAS},
    uri,
};
use crate::validate::given::Given;

/// What a schema without an address stands under.
const NOWHERE: &str = "schema:/";

/// The revision of JSON Schema that a schema is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Dialect {
    Draft4,
    Draft6,
    Draft7,
    Draft2019,
    Draft2020,
}

impl Dialect {
    fn of(uri: &str) -> Option<Self> {
        let uri = uri.strip_suffix('#').unwrap_or(uri);
        let name = uri.strip_prefix("https://").or_else(|| uri.strip_prefix("http://"))?;
        Some(match name {
            "json-schema.org/draft/2020-12/schema" => Self::Draft2020,
            "json-schema.org/draft/2019-09/schema" => Self::Draft2019,
            "json-schema.org/draft-07/schema" => Self::Draft7,
            "json-schema.org/draft-06/schema" => Self::Draft6,
            "json-schema.org/draft-04/schema" => Self::Draft4,
            _ => return None,
        })
    }

    /// Up to draft 7, what stands beside a reference is not read.
    fn reference_stands_alone(self) -> bool {
        self <= Self::Draft7
    }

    fn id(self) -> &'static str {
        if self == Self::Draft4 { "id" } else { "$id" }
    }
}

/// A schema with an address of its own.
pub(crate) struct Resource<'s> {
    uri: String,
    pub(crate) dialect: Dialect,
    root: &'s Given<'s>,
    anchors: HashMap<&'s str, &'s Given<'s>>,
    pub(crate) dynamic: HashMap<&'s str, &'s Given<'s>>,
}

/// A schema, and the resource that it is a part of.
#[derive(Clone, Copy)]
pub(crate) struct Place<'s> {
    pub(crate) node: &'s Given<'s>,
    pub(crate) resource: usize,
}

pub(crate) struct Places<'s> {
    pub(crate) resources: Vec<Resource<'s>>,
    by_uri: HashMap<String, usize>,
    /// By the address of the node in memory, which stays while the schema is read.
    home: HashMap<usize, usize>,
    count: usize,
    /// References that were met: in which resource, and where.
    references: Vec<(usize, &'s str, String)>,
}

/// Keywords that make a reference.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Keywords under which values stand, in which nothing is a schema.
const VALUES: [&str; 5] = ["const", "enum", "default", "examples", "example"];

/// The key of a node.
pub(crate) fn key_of(node: &Given<'_>) -> usize {
    std::ptr::from_ref(node).addr()
}

impl<'s> Places<'s> {
    /// Walks the whole schema once.
    pub(crate) fn find(root: &'s Given<'s>, dialect: Dialect) -> Result<Self, SchemaFault> {
        let first = Resource {
            uri: NOWHERE.to_owned(),
            dialect,
            root,
            anchors: HashMap::new(),
            dynamic: HashMap::new(),
        };
        let mut places = Self {
            resources: vec![first],
            by_uri: HashMap::from_iter([(NOWHERE.to_owned(), 0)]),
            home: HashMap::new(),
            count: 0,
            references: Vec::new(),
        };
        places.visit(root, 0, 0, &mut String::new())?;
        places.stay_inside()?;
        Ok(places)
    }

    /// Refuses what leads outside, also where nothing leads to it: whoever gets the schema from us may follow it.
    fn stay_inside(&self) -> Result<(), SchemaFault> {
        for (resource, reference, at) in &self.references {
            let (uri, _) = uri::resolve(&self.resources[*resource].uri, reference);
            if !self.by_uri.contains_key(&uri) {
                return Err(SchemaFault::Remote { at: quoted(at), uri: quoted(&uri) });
            }
        }
        Ok(())
    }

    /// Looks for references under a keyword that nobody here knows. Only whole addresses count there.
    fn search(&mut self, node: &'s Given<'s>, resource: usize, at: &str) {
        for it in node.list().into_iter().flatten() {
            self.search(it, resource, at);
        }
        for (key, value) in node.members().into_iter().flatten() {
            if VALUES.contains(&&**key) {
                continue;
            }
            match value.text().filter(|_| REFERENCES.contains(&&**key)) {
                Some(text) if uri::is_whole(text) => {
                    self.references.push((resource, text, at.to_owned()));
                }
                _ => self.search(value, resource, at),
            }
        }
    }

    /// The dialect that the schema says it is written in, if it says so.
    pub(crate) fn declared(root: &Given<'_>, at: &str) -> Result<Option<Dialect>, SchemaFault> {
        let Some(uri) = root.get("$schema").and_then(Given::text) else { return Ok(None) };
        let unknown = || SchemaFault::RemoteDialect { at: at.to_owned(), uri: quoted(uri) };
        Dialect::of(uri).map(Some).ok_or_else(unknown)
    }

    /// The place of a schema that stands inside of `from`.
    pub(crate) fn inside(&self, from: Place<'s>, node: &'s Given<'s>) -> Place<'s> {
        let resource = self.home.get(&key_of(node)).copied().unwrap_or(from.resource);
        Place { node, resource }
    }

    pub(crate) fn dialect(&self, place: Place<'_>) -> Dialect {
        self.resources[place.resource].dialect
    }

    /// What a reference leads to.
    pub(crate) fn resolve(
        &self,
        from: Place<'s>,
        reference: &str,
        at: &str,
    ) -> Result<Place<'s>, SchemaFault> {
        let (uri, fragment) = uri::resolve(&self.resources[from.resource].uri, reference);
        let Some(&resource) = self.by_uri.get(&uri) else {
            return Err(SchemaFault::Remote { at: at.to_owned(), uri: quoted(&uri) });
        };
        let found = uri::decoded(&fragment).and_then(|it| self.within(resource, &it));
        found.ok_or_else(|| SchemaFault::Unresolved {
            at: at.to_owned(),
            reference: quoted(reference),
        })
    }

    fn within(&self, resource: usize, fragment: &str) -> Option<Place<'s>> {
        let home = &self.resources[resource];
        if !fragment.is_empty() && !fragment.starts_with('/') {
            let node = home.anchors.get(fragment).or_else(|| home.dynamic.get(fragment))?;
            return Some(Place { node, resource });
        }
        let mut place = Place { node: home.root, resource };
        for step in fragment.split('/').skip(1) {
            let step: Cow<'_, str> = match step.contains('~') {
                true => step.replace("~1", "/").replace("~0", "~").into(),
                false => step.into(),
            };
            let next = match place.node.list() {
                Some(list) => list.get(step.parse::<usize>().ok()?)?,
                None => place.node.get(&step)?,
            };
            place = self.inside(place, next);
        }
        Some(place)
    }

    fn visit(
        &mut self,
        node: &'s Given<'s>,
        resource: usize,
        depth: usize,
        at: &mut String,
    ) -> Result<(), SchemaFault> {
        self.count += 1;
        if self.count > MAX_SUBSCHEMAS {
            return Err(SchemaFault::TooMany);
        }
        if depth > MAX_DEPTH {
            return Err(SchemaFault::TooDeep(quoted(at)));
        }
        let Some(members) = node.members() else { return Ok(()) };
        let resource = self.enter(node, resource, at)?;
        self.home.insert(key_of(node), resource);
        let dialect = self.resources[resource].dialect;
        for (key, value) in members {
            let length = at.len();
            at.push('/');
            at.push_str(key);
            match holds(key, value, dialect) {
                Holds::Nothing => match value.text().filter(|_| REFERENCES.contains(&&**key)) {
                    Some(text) => self.references.push((resource, text, at.clone())),
                    None if VALUES.contains(&&**key) => {}
                    None => self.search(value, resource, at),
                },
                Holds::One => self.visit(value, resource, depth + 1, at)?,
                Holds::List => {
                    for (index, it) in value.list().into_iter().flatten().enumerate() {
                        self.visit_in(it, resource, depth, at, &index.to_string())?;
                    }
                }
                Holds::Map => {
                    for (name, it) in value.members().into_iter().flatten() {
                        self.visit_in(it, resource, depth, at, name)?;
                    }
                }
            }
            at.truncate(length);
        }
        Ok(())
    }

    fn visit_in(
        &mut self,
        node: &'s Given<'s>,
        resource: usize,
        depth: usize,
        at: &mut String,
        step: &str,
    ) -> Result<(), SchemaFault> {
        let length = at.len();
        at.push('/');
        at.push_str(step);
        self.visit(node, resource, depth + 1, at)?;
        at.truncate(length);
        Ok(())
    }

    /// Notes the address and the anchors of a schema; says which resource it belongs to.
    fn enter(&mut self, node: &'s Given<'s>, outer: usize, at: &str) -> Result<usize, SchemaFault> {
        let outer_dialect = self.resources[outer].dialect;
        let text = |key: &str| node.get(key).and_then(Given::text);
        if outer_dialect.reference_stands_alone() && node.get("$ref").is_some() {
            return Ok(outer);
        }
        let mut resource = outer;
        if let Some(id) = text(outer_dialect.id()) {
            let (uri, anchor) = uri::resolve(&self.resources[outer].uri, id);
            if !id.starts_with('#') {
                let dialect = Self::declared(node, at)?.unwrap_or(outer_dialect);
                resource = self.add(uri, dialect, node, at);
            }
            if !anchor.is_empty()
                && outer_dialect.reference_stands_alone()
                && let Some(name) = id.split('#').nth(1)
            {
                self.resources[resource].anchors.insert(name, node);
            }
        }
        if self.resources[resource].dialect >= Dialect::Draft2019 {
            if let Some(name) = text("$anchor") {
                self.resources[resource].anchors.insert(name, node);
            }
            if let Some(name) = text("$dynamicAnchor") {
                self.resources[resource].dynamic.insert(name, node);
            }
        }
        Ok(resource)
    }

    fn add(&mut self, uri: String, dialect: Dialect, root: &'s Given<'s>, at: &str) -> usize {
        if at.is_empty() {
            // The root keeps its place; it is found under either name.
            self.resources[0].uri.clone_from(&uri);
            self.by_uri.insert(uri, 0);
            return 0;
        }
        let index = self.resources.len();
        self.by_uri.entry(uri.clone()).or_insert(index);
        let (anchors, dynamic) = (HashMap::new(), HashMap::new());
        self.resources.push(Resource { uri, dialect, root, anchors, dynamic });
        index
    }
}

enum Holds {
    Nothing,
    One,
    List,
    Map,
}

/// What schemas stand under a keyword.
fn holds(key: &str, value: &Given<'_>, dialect: Dialect) -> Holds {
    match key {
        "additionalProperties"
        | "additionalItems"
        | "contains"
        | "propertyNames"
        | "not"
        | "if"
        | "then"
        | "else"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "contentSchema" => Holds::One,
        "items" if value.list().is_some() && dialect < Dialect::Draft2020 => Holds::List,
        "items" => Holds::One,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Holds::List,
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
        | "dependencies" => Holds::Map,
        _ => Holds::Nothing,
    }
}
