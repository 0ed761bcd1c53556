//! The schemas of a document as one schema that stands alone.
//!
//! A schema is copied as it is written. What it refers to, in whatever file, is copied once under `$defs`,
//! so that recursion stays recursion and nothing grows. Only what is a schema is looked into: a `$ref` in
//! an example is an example.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::references::{Documents, Place, shorten};

/// How many schemas may stand in one, and how much text.
const SCHEMAS: usize = 2000;
const TEXT: usize = 256 * 1024;

/// How many schemas there may be with every reference written out: that many are looked at for one value.
const WRITTEN_OUT: u64 = 1_000_000;

/// How many references may lead from one to the next: whoever follows them needs room for that.
const CHAIN: usize = 256;

/// Keywords that hold a schema, a list of them, or a mapping to them.
const ONE: [&str; 12] = [
    "items",
    "additionalItems",
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "contentSchema",
];
const LIST: [&str; 5] = ["allOf", "anyOf", "oneOf", "prefixItems", "items"];
const MAPPING: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// Keywords that give a schema a name or a base; no reference needs them any more.
const BASES: [&str; 6] =
    ["$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary"];

/// Makes schemas stand alone, with what they share under one roof.
#[derive(Debug)]
pub(super) struct Schemas<'a> {
    documents: &'a Documents,
    /// What is under `$defs`, in the order in which it was met.
    defs: Vec<Def<'a>>,
    /// How many of them are copied.
    done: usize,
    known: HashMap<usize, usize>,
    names: HashSet<String>,
    /// What the schemas that are at the roots need.
    roots: Needs,
    schemas: usize,
    text: usize,
    /// It says something that only draft 7 understands.
    pub(super) old: bool,
}

#[derive(Debug)]
struct Def<'a> {
    name: String,
    place: Place<'a>,
    body: Value,
    needs: Needs,
}

/// How many schemas one holds, and which others it refers to, as often as it does.
#[derive(Debug, Default, Clone)]
struct Needs {
    own: u64,
    defs: Vec<usize>,
}

/// One schema while it is copied.
struct Copying<'a> {
    /// The whole to which it belongs: references may be meant from there.
    home: Place<'a>,
    needs: Needs,
}

impl<'a> Schemas<'a> {
    pub(super) fn new(documents: &'a Documents) -> Self {
        Self {
            documents,
            defs: Vec::new(),
            done: 0,
            known: HashMap::new(),
            names: HashSet::new(),
            roots: Needs::default(),
            schemas: 0,
            text: 0,
            old: false,
        }
    }

    /// The schema at a place, where a reference stands for what it names.
    pub(super) fn root(&mut self, place: Place<'a>) -> Result<Value, String> {
        let place = self.plain(place)?;
        let names = place.get("$defs").and_then(Place::mapping).into_iter().flatten();
        self.names.extend(names.map(|(name, _)| name.clone()));
        let mut copying = Copying { home: place, needs: Needs::default() };
        let mut schema = self.copy(place, &mut copying)?;
        // In draft 7 nothing beside a `$ref` counts, and a root has more to say.
        if let Some(map) = schema.as_object_mut()
            && let Some(reference) = map.shift_remove("$ref")
        {
            let all = map.entry("allOf").or_insert_with(|| json!([]));
            if let Some(all) = all.as_array_mut() {
                all.push(json!({ "$ref": reference }));
            }
        }
        self.roots.own += copying.needs.own;
        self.roots.defs.extend(copying.needs.defs);
        self.copy_defs()?;
        Ok(schema)
    }

    /// What the schemas share.
    pub(super) fn defs(&self) -> Map<String, Value> {
        self.defs.iter().map(|it| (it.name.clone(), it.body.clone())).collect()
    }

    /// About how long they all are.
    pub(super) fn text(&self) -> usize {
        self.text
    }

    /// What a `$ref` that we wrote stands for.
    pub(super) fn def(&self, reference: &str) -> Option<&Value> {
        let name = reference.strip_prefix("#/$defs/")?;
        self.defs.iter().find(|it| it.name == name).map(|it| &it.body)
    }

    /// Whether a value can be nested without end and still fit. Fails where to look at one value would
    /// mean to look at too many schemas.
    pub(super) fn recursive(&self) -> Result<bool, String> {
        let mut costs = vec![None; self.defs.len()];
        let mut walk = Walk { defs: &self.defs, costs: &mut costs, recursive: false };
        let cost = walk.cost(&self.roots, 0);
        if WRITTEN_OUT < cost {
            return Err("its references lead to too many schemas".to_owned());
        }
        Ok(walk.recursive)
    }

    /// What a place refers to in the end, out of the wrapping that names its format.
    fn plain(&mut self, place: Place<'a>) -> Result<Place<'a>, String> {
        let place = self.bare(place)?;
        let Some(format) = place.get("schemaFormat").filter(|_| place.get("schema").is_some())
        else {
            return Ok(place);
        };
        let format = format.value.as_str().ok_or("its `schemaFormat` must be text")?;
        self.old |= format.contains("draft-07");
        if !understood(format) {
            return Err(format!("schemas in the format `{}` are not understood", shorten(format)));
        }
        let Some(schema) = place.get("schema") else { return Ok(place) };
        self.bare(schema)
    }

    /// What a place refers to in the end, as long as it does nothing else.
    fn bare(&self, mut place: Place<'a>) -> Result<Place<'a>, String> {
        let mut been = Vec::new();
        while let Some(reference) = place.reference()
            && place.mapping().is_some_and(|it| it.len() == 1)
        {
            if been.contains(&place.identity()) {
                return Err(format!("`{}` leads back to itself", shorten(reference)));
            }
            been.push(place.identity());
            place = self.documents.resolve(place.file, reference)?;
        }
        Ok(place)
    }

    fn copy_defs(&mut self) -> Result<(), String> {
        while let Some(def) = self.defs.get(self.done) {
            let place = def.place;
            let mut copying = Copying { home: place, needs: Needs::default() };
            let body = self.copy(place, &mut copying)?;
            let def = &mut self.defs[self.done];
            (def.body, def.needs) = (body, copying.needs);
            self.done += 1;
        }
        Ok(())
    }

    fn copy(&mut self, place: Place<'a>, copying: &mut Copying<'a>) -> Result<Value, String> {
        self.schemas += 1;
        copying.needs.own += 1;
        if SCHEMAS < self.schemas {
            return Err(format!("it holds more than {SCHEMAS} schemas"));
        }
        let Some(map) = place.mapping() else { return self.verbatim(place.value) };
        let mut copy = Map::new();
        for (key, value) in map {
            if BASES.contains(&key.as_str()) && value.is_string() {
                continue;
            }
            if key == "$schema" {
                self.old |= value.as_str().is_some_and(|it| it.contains("/draft-0"));
                continue;
            }
            let at = Place { value, ..place };
            copy.insert(key.clone(), self.keyword(key, at, copying)?);
        }
        Ok(Value::Object(copy))
    }

    fn keyword(
        &mut self,
        key: &str,
        at: Place<'a>,
        copying: &mut Copying<'a>,
    ) -> Result<Value, String> {
        self.weigh(key.len() + 8)?;
        match (key, at.value) {
            ("$ref", Value::String(reference)) => self.reference(reference, at, copying),
            ("$dynamicRef" | "$recursiveRef", _) => Err(format!("`{key}` is not understood")),
            (key, Value::Array(list)) if LIST.contains(&key) => {
                let list = list.iter().map(|value| self.copy(Place { value, ..at }, copying));
                list.collect::<Result<_, _>>().map(Value::Array)
            }
            (key, Value::Object(map)) if MAPPING.contains(&key) => {
                self.old |= key == "dependencies";
                let mut copy = Map::new();
                for (name, value) in map {
                    self.weigh(name.len() + 8)?;
                    let schema = value.is_object() || value.is_boolean();
                    let it = Place { value, ..at };
                    let value =
                        if schema { self.copy(it, copying)? } else { self.verbatim(value)? };
                    copy.insert(name.clone(), value);
                }
                Ok(Value::Object(copy))
            }
            (key, Value::Object(_)) if ONE.contains(&key) => self.copy(at, copying),
            (_, value) => self.verbatim(value),
        }
    }

    fn reference(
        &mut self,
        reference: &str,
        at: Place<'a>,
        copying: &mut Copying<'a>,
    ) -> Result<Value, String> {
        let found = self.documents.resolve(at.file, reference);
        // Schemas that were written elsewhere mean their own beginning by `#`.
        let found = found.or_else(|fault| {
            let own = reference.strip_prefix('#').filter(|_| at.file == copying.home.file);
            let own = own.and_then(|pointer| copying.home.value.pointer(pointer));
            own.map(|value| Place { value, ..at }).ok_or(fault)
        })?;
        let target = self.plain(found)?;
        let index = match self.known.get(&target.identity()) {
            Some(index) => *index,
            None => {
                let name = self.name(reference, target);
                self.known.insert(target.identity(), self.defs.len());
                let (body, needs) = (Value::Null, Needs::default());
                self.defs.push(Def { name, place: target, body, needs });
                self.defs.len() - 1
            }
        };
        copying.needs.defs.push(index);
        Ok(Value::String(format!("#/$defs/{}", self.defs[index].name)))
    }

    /// A name that nothing else has: the last word of the reference.
    fn name(&mut self, reference: &str, target: Place<'a>) -> String {
        let (_, pointer) = reference.split_once('#').unwrap_or_default();
        let shown = self.documents.shown(target.file);
        let file = shown.rsplit('/').next().and_then(|it| it.split('.').next()).unwrap_or_default();
        let last = pointer.rsplit('/').next().filter(|it| !it.is_empty()).unwrap_or(file);
        let legal = |c: char| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' };
        let stem: String = last.chars().take(64).map(legal).collect();
        let mut name = stem.clone();
        let mut number = 1;
        while !self.names.insert(name.clone()) {
            number += 1;
            name = format!("{stem}_{number}");
        }
        name
    }

    /// A value that is no schema.
    fn verbatim(&mut self, value: &Value) -> Result<Value, String> {
        let mut open = vec![value];
        while let Some(it) = open.pop() {
            self.weigh(match it {
                Value::String(text) => text.len() + 2,
                Value::Object(map) => {
                    open.extend(map.values());
                    map.keys().map(|key| key.len() + 4).sum()
                }
                Value::Array(list) => {
                    open.extend(list);
                    list.len()
                }
                Value::Number(it) => it.as_str().len(),
                Value::Null | Value::Bool(_) => 4,
            })?;
        }
        Ok(value.clone())
    }

    fn weigh(&mut self, text: usize) -> Result<(), String> {
        self.text += text;
        if TEXT < self.text {
            return Err(format!("it is larger than {} KiB", TEXT / 1024));
        }
        Ok(())
    }
}

/// Counts schemas with every reference written out.
struct Walk<'w, 'a> {
    defs: &'w [Def<'a>],
    costs: &'w mut Vec<Option<u64>>,
    recursive: bool,
}

impl Walk<'_, '_> {
    fn cost(&mut self, needs: &Needs, depth: usize) -> u64 {
        if CHAIN < depth {
            return u64::MAX;
        }
        let defs = self.defs;
        let mut sum = needs.own;
        for &at in &needs.defs {
            let cost = match self.costs[at] {
                // On the way to itself.
                Some(0) => {
                    self.recursive = true;
                    1
                }
                Some(known) => known,
                None => {
                    self.costs[at] = Some(0);
                    let cost = self.cost(&defs[at].needs, depth + 1).max(1);
                    self.costs[at] = Some(cost);
                    cost
                }
            };
            sum = sum.saturating_add(cost);
        }
        sum
    }
}

/// Whether a format is JSON Schema, whatever it is called.
fn understood(format: &str) -> bool {
    let kind = format.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let kind = kind.trim_end_matches("+json").trim_end_matches("+yaml");
    let known =
        ["application/vnd.aai.asyncapi", "application/schema", "application/vnd.oai.openapi"];
    known.contains(&kind)
}
