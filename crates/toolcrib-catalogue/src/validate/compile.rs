//! From a schema as it is written to a [`Plan`].
//!
//! A queue, not recursion: how deep references lead is for the guard to judge, not for the stack.

use std::{collections::VecDeque, rc::Rc};

use hashbrown::HashMap;
use regex::{Regex, RegexBuilder};

use super::{
    Formats,
    dialect::dialect,
    format::Format,
    given::{Given, Kind},
    number::Divisor,
    plan::{
        Contains, Id, Lists, More, Numbers, Objects, Pattern, Plan, Rule, Texts, Types, Values,
    },
};
use crate::schema::{
    Dialect, MAX_BYTES, MAX_PATTERNS, MAX_SUBSCHEMAS, Place, Places, SchemaFault, admit, key_of,
    quoted,
};

/// What a pattern may take of memory once it is ready, and what its search may keep.
const PATTERN_SIZE: usize = 128 * 1024;

/// What a pattern of few states takes at most.
const SMALL_PATTERN: usize = 12 * 1024;

/// Reads a schema, with the guard before it.
pub(super) fn compile(text: &str, formats: Formats) -> Result<Plan, SchemaFault> {
    if text.len() > MAX_BYTES {
        return Err(SchemaFault::TooLarge(text.len()));
    }
    let root = Given::parse(text).map_err(|it| SchemaFault::Unreadable(it.to_string()))?;
    let dialect = dialect(&root)?;
    let places = Places::find(&root, dialect)?;
    let mut compiler = Compiler {
        places: &places,
        formats,
        plan: Plan::default(),
        ids: HashMap::new(),
        queue: VecDeque::new(),
        patterns: HashMap::new(),
    };
    compiler.id(Place { node: &root, resource: 0 }, String::new())?;
    compiler.run()?;
    let plan = compiler.plan;
    admit(&plan)?;
    Ok(plan)
}

struct Compiler<'p, 's> {
    places: &'p Places<'s>,
    formats: Formats,
    plan: Plan,
    ids: HashMap<(usize, usize), Id>,
    queue: VecDeque<(Id, Place<'s>, Rc<str>)>,
    patterns: HashMap<String, Result<Pattern, String>>,
}

impl<'s> Compiler<'_, 's> {
    /// The number of a schema's rule; the rule itself is made when its turn comes.
    fn id(&mut self, place: Place<'s>, at: String) -> Result<Id, SchemaFault> {
        let key = (key_of(place.node), place.resource);
        if let Some(&id) = self.ids.get(&key) {
            return Ok(id);
        }
        if self.plan.rules.len() > MAX_SUBSCHEMAS {
            return Err(SchemaFault::TooMany);
        }
        let id = Id::try_from(self.plan.rules.len()).unwrap_or(Id::MAX);
        self.plan.rules.push(Rule { at: quoted(&at).into(), ..Rule::default() });
        self.ids.insert(key, id);
        self.queue.push_back((id, place, at.into()));
        Ok(id)
    }

    fn run(&mut self) -> Result<(), SchemaFault> {
        while let Some((id, place, at)) = self.queue.pop_front() {
            let rule = self.rule(place, &at)?;
            if let Some(slot) = self.plan.rules.get_mut(id as usize) {
                *slot = rule;
            }
        }
        Ok(())
    }

    fn rule(&mut self, place: Place<'s>, at: &str) -> Result<Rule, SchemaFault> {
        let resource = u32::try_from(place.resource).unwrap_or(u32::MAX);
        let mut rule = Rule { at: quoted(at).into(), resource, ..Rule::default() };
        let members = match &place.node.kind {
            Kind::Bool(verdict) => {
                rule.verdict = Some(*verdict);
                return Ok(rule);
            }
            Kind::Object(members) => members,
            _ => {
                let why = "a schema must be an object or a boolean".to_owned();
                return Err(SchemaFault::Malformed { at: quoted(at), why });
            }
        };
        let dialect = self.places.dialect(place);
        let node = Node { place, at, dialect };
        if dialect <= Dialect::Draft7 && place.node.get("$ref").is_some() {
            rule.more = self.more(&node, true)?;
            return Ok(rule);
        }
        let has = |keys: &[&str]| members.iter().any(|(key, _)| keys.contains(&&**key));
        rule.types = types(&node);
        rule.values = node.list("enum").map(|list| Values {
            cost: list.iter().map(|it| 1 + it.length() / 64).sum::<usize>() / 4,
            list: list.iter().cloned().map(Given::into_owned).collect(),
        });
        if dialect > Dialect::Draft4 {
            rule.constant = node.get("const").cloned().map(|it| Box::new(it.into_owned()));
        }
        if has(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) {
            rule.numbers = Some(numbers(&node)?);
        }
        if has(&["minLength", "maxLength", "pattern", "format"]) {
            rule.texts = Some(self.texts(&node)?);
        }
        let of_objects = [
            "properties",
            "patternProperties",
            "additionalProperties",
            "propertyNames",
            "required",
            "minProperties",
            "maxProperties",
            "dependentRequired",
            "dependencies",
        ];
        if has(&of_objects) {
            rule.objects = Some(self.objects(&node)?);
        }
        let of_lists = [
            "items",
            "prefixItems",
            "additionalItems",
            "contains",
            "minItems",
            "maxItems",
            "uniqueItems",
        ];
        if has(&of_lists) {
            rule.lists = Some(self.lists(&node)?);
        }
        rule.more = self.more(&node, false)?;
        Ok(rule)
    }

    /// The rule of the schema under a keyword.
    fn one(&mut self, node: &Node<'_, 's>, key: &str) -> Result<Option<Id>, SchemaFault> {
        let Some(inner) = node.get(key) else { return Ok(None) };
        self.inner(node, inner, &format!("{}/{key}", node.at)).map(Some)
    }

    fn inner(
        &mut self,
        node: &Node<'_, 's>,
        inner: &'s Given<'s>,
        at: &str,
    ) -> Result<Id, SchemaFault> {
        let place = self.places.inside(node.place, inner);
        self.id(place, at.to_owned())
    }

    fn many(&mut self, node: &Node<'_, 's>, key: &str) -> Result<Vec<Id>, SchemaFault> {
        let list = node.list(key).unwrap_or_default().iter().enumerate();
        list.map(|(index, it)| self.inner(node, it, &format!("{}/{key}/{index}", node.at)))
            .collect()
    }

    fn texts(&mut self, node: &Node<'_, 's>) -> Result<Box<Texts>, SchemaFault> {
        let mut texts = Texts {
            min: node.count("minLength"),
            max: node.count("maxLength"),
            ..Texts::default()
        };
        if let Some(text) = node.text("pattern") {
            match self.pattern(text, &format!("{}/pattern", node.at)) {
                Ok(pattern) => texts.pattern = Some((quoted(text).into(), pattern)),
                // The rest of the schema is still worth something.
                Err(fault @ SchemaFault::Pattern { .. }) => self.plan.unchecked.push(fault),
                Err(fault) => return Err(fault),
            }
        }
        if self.formats == Formats::Asserted {
            texts.format = node.text("format").and_then(|it| Format::named(it, node.dialect));
        }
        Ok(Box::new(texts))
    }

    /// A pattern, in the engine whose time is linear in the text that it searches.
    fn pattern(&mut self, text: &str, at: &str) -> Result<Pattern, SchemaFault> {
        if self.patterns.len() > MAX_PATTERNS {
            return Err(SchemaFault::TooManyPatterns);
        }
        let ready = self.patterns.entry_ref(text).or_insert_with(|| build(text));
        ready.clone().map_err(|why| SchemaFault::Pattern {
            at: quoted(at),
            pattern: quoted(text),
            why,
        })
    }

    fn objects(&mut self, node: &Node<'_, 's>) -> Result<Box<Objects>, SchemaFault> {
        let mut objects = Objects {
            additional: self.one(node, "additionalProperties")?,
            names: self.one(node, "propertyNames")?,
            min: node.count("minProperties"),
            max: node.count("maxProperties"),
            required: names(node.get("required")),
            ..Objects::default()
        };
        for (name, inner) in node.members("properties") {
            let id = self.inner(node, inner, &format!("{}/properties/{name}", node.at))?;
            objects.properties.insert((&**name).into(), id);
        }
        for (text, inner) in node.members("patternProperties") {
            let at = format!("{}/patternProperties/{text}", node.at);
            objects.patterns.push((self.pattern(text, &at)?, self.inner(node, inner, &at)?));
        }
        let key =
            if node.dialect <= Dialect::Draft7 { "dependencies" } else { "dependentRequired" };
        for (name, needed) in node.members(key).iter().filter(|(_, it)| it.list().is_some()) {
            objects.dependent.push(((&**name).into(), names(Some(needed))));
        }
        Ok(Box::new(objects))
    }

    fn lists(&mut self, node: &Node<'_, 's>) -> Result<Box<Lists>, SchemaFault> {
        let mut lists = Lists {
            min: node.count("minItems"),
            max: node.count("maxItems"),
            unique: matches!(node.get("uniqueItems").map(|it| &it.kind), Some(Kind::Bool(true))),
            ..Lists::default()
        };
        if node.dialect == Dialect::Draft2020 {
            lists.first = self.many(node, "prefixItems")?;
            lists.rest = self.one(node, "items")?;
        } else if node.list("items").is_some() {
            lists.first = self.many(node, "items")?;
            lists.rest = self.one(node, "additionalItems")?;
        } else {
            lists.rest = self.one(node, "items")?;
        }
        if node.dialect > Dialect::Draft4
            && let Some(rule) = self.one(node, "contains")?
        {
            let bounded = node.dialect >= Dialect::Draft2019;
            let count = |key| node.count(key).filter(|_| bounded);
            lists.contains = Some(Contains {
                rule,
                min: count("minContains").unwrap_or(1),
                max: count("maxContains"),
                counts: node.dialect == Dialect::Draft2020,
            });
        }
        Ok(Box::new(lists))
    }

    fn more(&mut self, node: &Node<'_, 's>, only: bool) -> Result<Option<Box<More>>, SchemaFault> {
        let mut more = More::default();
        if let Some(reference) = node.text("$ref") {
            more.reference = Some(self.reference(node, reference, "$ref")?);
        }
        if only {
            return Ok(Some(Box::new(more)));
        }
        if node.dialect == Dialect::Draft2020
            && let Some(reference) = node.text("$dynamicRef")
        {
            self.dynamic(node, reference, &mut more)?;
        }
        // Without the anchors that would redirect it, it is a reference like any other.
        if node.dialect == Dialect::Draft2019
            && let Some(reference) = node.text("$recursiveRef")
        {
            more.all_of.push(self.reference(node, reference, "$recursiveRef")?);
        }
        more.all_of.extend(self.many(node, "allOf")?);
        more.any_of = self.many(node, "anyOf")?;
        more.one_of = self.many(node, "oneOf")?;
        more.not = self.one(node, "not")?;
        if node.dialect >= Dialect::Draft7
            && let Some(condition) = self.one(node, "if")?
        {
            more.condition = Some((condition, self.one(node, "then")?, self.one(node, "else")?));
        }
        let key = if node.dialect <= Dialect::Draft7 { "dependencies" } else { "dependentSchemas" };
        for (name, inner) in node.members(key).iter().filter(|(_, it)| it.list().is_none()) {
            let id = self.inner(node, inner, &format!("{}/{key}/{name}", node.at))?;
            more.dependent.push(((&**name).into(), id));
        }
        if node.dialect >= Dialect::Draft2019 {
            more.unevaluated_properties = self.one(node, "unevaluatedProperties")?;
            more.unevaluated_items = self.one(node, "unevaluatedItems")?;
        }
        Ok(Some(Box::new(more)).filter(|it| !it.is_empty()))
    }

    fn reference(
        &mut self,
        node: &Node<'_, 's>,
        reference: &str,
        key: &str,
    ) -> Result<Id, SchemaFault> {
        let place = self.places.resolve(node.place, reference, &quoted(node.at))?;
        self.id(place, format!("{}/{key}", node.at))
    }

    /// A reference that leads to the outermost anchor of its name on the way that a check has taken.
    fn dynamic(
        &mut self,
        node: &Node<'_, 's>,
        reference: &str,
        more: &mut More,
    ) -> Result<(), SchemaFault> {
        let place = self.places.resolve(node.place, reference, &quoted(node.at))?;
        let id = self.id(place, format!("{}/$dynamicRef", node.at))?;
        let name = reference.split_once('#').map(|(_, name)| name).unwrap_or_default();
        if place.node.get("$dynamicAnchor").and_then(Given::text) != Some(name) {
            more.all_of.push(id);
            return Ok(());
        }
        let resources = &self.places.resources;
        for (index, resource) in resources.iter().enumerate() {
            if let Some(&anchor) = resource.dynamic.get(name) {
                let target = Place { node: anchor, resource: index };
                let id = self.id(target, format!("{}/$dynamicRef", node.at))?;
                let index = u32::try_from(index).unwrap_or(u32::MAX);
                self.plan.dynamic.insert((index, name.into()), id);
            }
        }
        more.dynamic = Some((name.into(), id));
        Ok(())
    }
}

impl More {
    fn is_empty(&self) -> bool {
        let single =
            [self.reference, self.not, self.unevaluated_properties, self.unevaluated_items];
        let lists = [&self.all_of, &self.any_of, &self.one_of];
        single.iter().all(Option::is_none)
            && lists.iter().all(|it| it.is_empty())
            && self.dynamic.is_none()
            && self.condition.is_none()
            && self.dependent.is_empty()
    }
}

/// A schema that is being read.
struct Node<'n, 's> {
    place: Place<'s>,
    at: &'n str,
    dialect: Dialect,
}

impl<'s> Node<'_, 's> {
    fn get(&self, key: &str) -> Option<&'s Given<'s>> {
        self.place.node.get(key)
    }

    fn text(&self, key: &str) -> Option<&'s str> {
        self.get(key).and_then(Given::text)
    }

    fn list(&self, key: &str) -> Option<&'s [Given<'s>]> {
        self.get(key).and_then(Given::list)
    }

    fn members(&self, key: &str) -> &'s [(std::borrow::Cow<'s, str>, Given<'s>)] {
        self.get(key).and_then(Given::members).unwrap_or_default()
    }

    fn number(&self, key: &str) -> Option<&'s str> {
        match &self.get(key)?.kind {
            Kind::Number(it) => Some(it),
            _ => None,
        }
    }

    /// A count; `2.0` and `2e0` are too.
    fn count(&self, key: &str) -> Option<u64> {
        let text = self.number(key)?;
        // One that does not fit is larger than anything that could be counted.
        if text.contains(['e', 'E', '-']) {
            return text.parse::<f64>().ok().map(|it| it as u64);
        }
        let whole = text.split_once('.').map_or(text, |(whole, _)| whole);
        Some(whole.parse().unwrap_or(u64::MAX))
    }
}

fn types(node: &Node<'_, '_>) -> Option<Types> {
    let value = node.get("type")?;
    let names = value.text().into_iter();
    let names = names.chain(value.list().into_iter().flatten().filter_map(Given::text));
    Some(names.filter_map(Types::named).fold(Types::default(), Types::or))
}

fn names(list: Option<&Given<'_>>) -> Vec<Box<str>> {
    let list = list.and_then(Given::list).into_iter().flatten();
    list.filter_map(Given::text).map(Into::into).collect()
}

fn numbers(node: &Node<'_, '_>) -> Result<Box<Numbers>, SchemaFault> {
    let own = |key: &str| node.number(key).map(Into::into);
    let mut numbers = Numbers {
        minimum: own("minimum"),
        maximum: own("maximum"),
        above: own("exclusiveMinimum"),
        below: own("exclusiveMaximum"),
        multiple: None,
    };
    let set = |key| matches!(node.get(key).map(|it| &it.kind), Some(Kind::Bool(true)));
    if set("exclusiveMinimum") {
        numbers.above = numbers.minimum.take();
    }
    if set("exclusiveMaximum") {
        numbers.below = numbers.maximum.take();
    }
    if let Some(text) = node.number("multipleOf") {
        let divisor = Divisor::read(text).ok_or_else(|| SchemaFault::Malformed {
            at: quoted(node.at),
            why: "`multipleOf` must be above zero and have at most 19 digits".to_owned(),
        })?;
        numbers.multiple = Some((text.into(), divisor));
    }
    Ok(Box::new(numbers))
}

fn build(text: &str) -> Result<Pattern, String> {
    let odd = || match jsonschema_regex::is_valid_ecma_regex(text) {
        true => "it looks around or back".to_owned(),
        false => "it is not a regular expression".to_owned(),
    };
    let Ok(translated) = jsonschema_regex::to_rust_regex(text) else { return Err(odd()) };
    let limited = |limit: usize| {
        RegexBuilder::new(&translated).size_limit(limit).dfa_size_limit(PATTERN_SIZE).build()
    };
    let (found, large): (Result<Regex, _>, bool) = match limited(SMALL_PATTERN) {
        Err(regex::Error::CompiledTooBig(_)) => (limited(PATTERN_SIZE), true),
        found => (found, false),
    };
    match found {
        Ok(regex) => Ok(Pattern { regex, large }),
        Err(regex::Error::CompiledTooBig(_)) => Err("it repeats too much".to_owned()),
        Err(_) => Err(odd()),
    }
}
