//! A value against a [`Plan`].
//!
//! One walk serves two ends: quietly, to know whether the value fits, and loudly, to say what is
//! wrong with it. Every step is counted, so that no pair of schema and value takes longer than a
//! known time, and frames are counted too, so that none takes more stack than a thread has.

use super::{
    faults::{Fault, Path, Sink, told},
    given::{Given, Kind},
    number::Decimal,
    objects,
    plan::{Id, Lists, More, Numbers, Plan, Rule, Texts},
    told as telling,
};

/// Steps that one check may take: some tens of nanoseconds each.
const STEPS: u64 = 250_000;

/// How often it may be asked what was meant by a word: it takes as long as thousands of steps.
const GUESSES: u32 = 12;

/// Rules that may be open one inside of the other. A frame takes some hundred bytes of stack.
const FRAMES: u32 = 800;

pub(super) struct Run<'r> {
    pub(super) plan: &'r Plan,
    steps: u64,
    frames: u32,
    guesses: u32,
    /// Out of steps or frames: whatever is said from then on means nothing.
    pub(super) exhausted: bool,
    /// The resources on the way here, for dynamic references.
    scope: Vec<u32>,
}

/// Which members of an object or a list some schema has had a say about.
pub(super) struct Seen(pub(super) Vec<bool>);

impl Seen {
    fn new(value: &Given<'_>) -> Self {
        let length = match &value.kind {
            Kind::List(list) => list.len(),
            Kind::Object(map) => map.len(),
            _ => 0,
        };
        Self(vec![false; length])
    }

    pub(super) fn mark(seen: &mut Option<Self>, index: usize) {
        if let Some(mark) = seen.as_mut().and_then(|it| it.0.get_mut(index)) {
            *mark = true;
        }
    }

    fn merge(&mut self, other: &Self) {
        for (mine, its) in self.0.iter_mut().zip(&other.0) {
            *mine |= its;
        }
    }
}

impl<'r> Run<'r> {
    pub(super) fn new(plan: &'r Plan) -> Self {
        Self {
            plan,
            steps: STEPS,
            frames: 0,
            guesses: GUESSES,
            exhausted: false,
            scope: Vec::new(),
        }
    }

    /// Takes steps; says whether there were enough left.
    pub(super) fn spend(&mut self, steps: usize) -> bool {
        match self.steps.checked_sub(steps as u64) {
            Some(left) => self.steps = left,
            None => self.exhausted = true,
        }
        !self.exhausted
    }

    /// Whether to look for what was meant.
    pub(super) fn guess(&mut self, sink: &Sink) -> bool {
        let left = sink.loud.then(|| self.guesses.checked_sub(1)).flatten();
        self.guesses = left.unwrap_or(self.guesses);
        left.is_some()
    }

    /// Holds `value` against a rule. What it looked at is added to `seen`.
    pub(super) fn eval(
        &mut self,
        id: Id,
        value: &Given<'_>,
        path: &Path<'_>,
        sink: &mut Sink,
        seen: Option<&mut Seen>,
    ) -> bool {
        let rule = self.plan.rule(id);
        if self.frames == FRAMES {
            self.exhausted = true;
        }
        // A number may be as long as the text that it came in, and is read digit by digit.
        let digits = if let Kind::Number(it) = &value.kind { it.len() / 16 } else { 0 };
        if !self.spend(1 + digits) {
            return false;
        }
        if let Some(verdict) = rule.verdict {
            let say = || ("not be given".to_owned(), String::new());
            return sink.test(verdict, path, "false", say);
        }
        self.frames += 1;
        let scoped =
            !self.plan.dynamic.is_empty() && self.scope.last().copied() != Some(rule.resource);
        if scoped {
            self.scope.push(rule.resource);
        }
        let fits = self.rule(rule, value, path, sink, seen);
        if scoped {
            self.scope.pop();
        }
        self.frames -= 1;
        fits
    }

    fn rule(
        &mut self,
        rule: &'r Rule,
        value: &Given<'_>,
        path: &Path<'_>,
        sink: &mut Sink,
        seen: Option<&mut Seen>,
    ) -> bool {
        let more = rule.more.as_deref();
        let unevaluated =
            |it: &More| it.unevaluated_properties.is_some() || it.unevaluated_items.is_some();
        let tracks = seen.is_some() || more.is_some_and(unevaluated);
        let mut own = tracks.then(|| Seen::new(value));
        let mut fits = self.plain(rule, value, path, sink);
        if !fits && !sink.loud {
            return false;
        }
        fits &= match &value.kind {
            Kind::Number(it) => {
                rule.numbers.as_ref().is_none_or(|rule| numbers(rule, it, path, sink))
            }
            Kind::Text(it) => {
                rule.texts.as_ref().is_none_or(|rule| self.texts(rule, it, path, sink))
            }
            Kind::List(list) => {
                rule.lists.as_ref().is_none_or(|rule| self.lists(rule, list, path, sink, &mut own))
            }
            Kind::Object(map) => rule
                .objects
                .as_ref()
                .is_none_or(|rule| objects::check(self, rule, map, path, sink, &mut own)),
            Kind::Null | Kind::Bool(_) => true,
        };
        if let Some(more) = more
            && (fits || sink.loud)
        {
            fits &= self.more(more, value, path, sink, &mut own);
            if fits || sink.loud {
                fits &= self.unevaluated(rule, value, path, sink, &mut own);
            }
        }
        if let (Some(seen), Some(own)) = (seen, own) {
            seen.merge(&own);
        }
        fits
    }

    /// `type`, `enum` and `const`.
    fn plain(&mut self, rule: &Rule, value: &Given<'_>, path: &Path<'_>, sink: &mut Sink) -> bool {
        if let Some(types) = rule.types {
            let fits = types.take(value);
            let say = || (format!("be {}", types.told()), told(value));
            if !sink.test(fits, path, "type", say) {
                // What else is wrong with a value of the wrong type helps nobody.
                return false;
            }
        }
        if let Some(values) = &rule.values {
            let cost = values.cost + values.list.len() * value.comparing();
            let fits = self.spend(cost) && values.list.iter().any(|it| it.same(value));
            if !fits {
                let guess = self.guess(sink);
                sink.put(|| telling::not_one_of(&values.list, value, path, guess));
                return false;
            }
        }
        match &rule.constant {
            Some(constant) => {
                let cost = constant.length() / 256 + value.comparing();
                let fits = self.spend(cost) && constant.same(value);
                let say = || (format!("be {}", told(constant)), told(value));
                sink.test(fits, path, "const", say)
            }
            None => true,
        }
    }

    fn texts(&mut self, rule: &Texts, text: &str, path: &Path<'_>, sink: &mut Sink) -> bool {
        // Counting is linear in the text.
        if !self.spend(text.len() / 32) {
            return false;
        }
        let mut fits = true;
        if rule.min.is_some() || rule.max.is_some() {
            let length = text.chars().count() as u64;
            let characters = |count: u64| telling::counted(count, "character");
            let found = || characters(length);
            fits &= sink.test(rule.min.is_none_or(|it| it <= length), path, "minLength", || {
                let least = rule.min.unwrap_or_default();
                (format!("have at least {}", characters(least)), found())
            });
            fits &= sink.test(rule.max.is_none_or(|it| length <= it), path, "maxLength", || {
                let most = rule.max.unwrap_or_default();
                (format!("have at most {}", characters(most)), found())
            });
        }
        if let Some((written, pattern)) = &rule.pattern {
            let say = || (format!("match {written}"), super::faults::text_told(text));
            let matches = self.spend(pattern.cost(text)) && pattern.regex.is_match(text);
            fits &= sink.test(matches, path, "pattern", say);
        }
        if let Some(format) = rule.format {
            let say = || (format!("be {}", format.told()), super::faults::text_told(text));
            let fitting = self.spend(format.cost(text)) && format.fits(text);
            fits &= sink.test(fitting, path, "format", say);
        }
        fits
    }

    fn lists(
        &mut self,
        rule: &Lists,
        list: &[Given<'_>],
        path: &Path<'_>,
        sink: &mut Sink,
        own: &mut Option<Seen>,
    ) -> bool {
        let mut fits = telling::size(rule.min, rule.max, list.len(), path, sink, telling::ITEMS);
        let length: usize = list.iter().map(Given::length).sum();
        if rule.unique && self.spend(list.len() + length / 16) {
            let twice = Given::repeated(list);
            fits &= sink.test(twice.is_none(), path, "uniqueItems", || {
                let (first, second) = twice.unwrap_or_default();
                ("have no two equal items".to_owned(), format!("[{first}] and [{second}] alike"))
            });
        }
        for (index, item) in list.iter().enumerate() {
            if !fits && !sink.loud || self.exhausted {
                return false;
            }
            let Some(inner) = rule.first.get(index).copied().or(rule.rest) else { break };
            Seen::mark(own, index);
            fits &= self.eval(inner, item, &path.index(index), sink, None);
        }
        if let Some(contains) = &rule.contains {
            let mut count = 0_u64;
            for (index, item) in list.iter().enumerate() {
                let path = path.index(index);
                if self.eval(contains.rule, item, &path, &mut Sink::quiet(), None) {
                    count += 1;
                    if contains.counts {
                        Seen::mark(own, index);
                    }
                }
            }
            let enough = contains.min <= count;
            let keyword = if contains.min == 1 { "contains" } else { "minContains" };
            fits &= sink.test(enough, path, keyword, || {
                let least = telling::counted(contains.min, "item");
                (
                    format!("hold at least {least} of the kind that `contains` asks for"),
                    count.to_string(),
                )
            });
            fits &=
                sink.test(contains.max.is_none_or(|it| count <= it), path, "maxContains", || {
                    let most = telling::counted(contains.max.unwrap_or_default(), "item");
                    (
                        format!("hold at most {most} of the kind that `contains` asks for"),
                        count.to_string(),
                    )
                });
        }
        fits
    }

    /// The other schemas about the same value.
    fn more(
        &mut self,
        more: &More,
        value: &Given<'_>,
        path: &Path<'_>,
        sink: &mut Sink,
        own: &mut Option<Seen>,
    ) -> bool {
        let dynamic = more.dynamic.as_ref().map(|(name, id)| self.outermost(name, *id));
        let mut fits = true;
        for id in more.reference.into_iter().chain(dynamic).chain(more.all_of.iter().copied()) {
            fits &= self.eval(id, value, path, sink, own.as_mut());
            if !fits && !sink.loud {
                return false;
            }
        }
        for (name, id) in &more.dependent {
            let Some(map) = value.members() else { break };
            if self.spend(1 + map.len() / 8) && value.get(name).is_some() {
                fits &= self.eval(*id, value, path, sink, own.as_mut());
            }
        }
        if !more.any_of.is_empty() {
            fits &= self.any_of(&more.any_of, value, path, sink, own);
        }
        if !more.one_of.is_empty() && (fits || sink.loud) {
            fits &= self.one_of(&more.one_of, value, path, sink, own);
        }
        if let Some(not) = more.not {
            let fitting = self.eval(not, value, path, &mut Sink::quiet(), None);
            fits &= sink.test(!fitting, path, "not", || {
                ("not be what `not` rules out".to_owned(), told(value))
            });
        }
        if let Some((condition, then, otherwise)) = more.condition {
            let holds = self.quietly(condition, value, path, own);
            if let Some(id) = if holds { then } else { otherwise } {
                fits &= self.eval(id, value, path, sink, own.as_mut());
            }
        }
        fits && !self.exhausted
    }

    /// Whether a value fits; what was looked at counts only if it does.
    fn quietly(
        &mut self,
        id: Id,
        value: &Given<'_>,
        path: &Path<'_>,
        own: &mut Option<Seen>,
    ) -> bool {
        let mut seen = own.as_ref().map(|_| Seen::new(value));
        let fits = self.eval(id, value, path, &mut Sink::quiet(), seen.as_mut());
        if let (true, Some(own), Some(seen)) = (fits, own, seen) {
            own.merge(&seen);
        }
        fits
    }

    fn any_of(
        &mut self,
        forms: &[Id],
        value: &Given<'_>,
        path: &Path<'_>,
        sink: &mut Sink,
        own: &mut Option<Seen>,
    ) -> bool {
        let mut fits = false;
        for &form in forms {
            fits |= self.quietly(form, value, path, own);
            // Every form that fits has a say about what was looked at.
            if fits && own.is_none() || self.exhausted {
                break;
            }
        }
        if !fits && sink.loud {
            telling::nearest_form(self, "anyOf", forms, value, path, sink);
        }
        fits
    }

    fn one_of(
        &mut self,
        forms: &[Id],
        value: &Given<'_>,
        path: &Path<'_>,
        sink: &mut Sink,
        own: &mut Option<Seen>,
    ) -> bool {
        let mut fitting = Vec::new();
        for (index, &form) in forms.iter().enumerate() {
            if self.quietly(form, value, path, own) {
                fitting.push(index);
            }
            if fitting.len() > 1 || self.exhausted {
                break;
            }
        }
        match fitting.as_slice() {
            [_] => true,
            [] => {
                if sink.loud {
                    telling::nearest_form(self, "oneOf", forms, value, path, sink);
                }
                false
            }
            [one, two, ..] => {
                let total = forms.len();
                sink.test(false, path, "oneOf", || {
                    (
                        format!("fit exactly one of {total} forms"),
                        format!("a value that fits form {} and form {}", one + 1, two + 1),
                    )
                })
            }
        }
    }

    /// What a dynamic reference leads to: the outermost anchor of its name on the way here.
    fn outermost(&mut self, name: &str, otherwise: Id) -> Id {
        self.spend(self.scope.len());
        let anchor = |resource: &u32| self.plan.dynamic.get(&(*resource, name.into())).copied();
        self.scope.iter().find_map(anchor).unwrap_or(otherwise)
    }

    fn unevaluated(
        &mut self,
        rule: &'r Rule,
        value: &Given<'_>,
        path: &Path<'_>,
        sink: &mut Sink,
        own: &mut Option<Seen>,
    ) -> bool {
        let (Some(more), Some(seen)) = (&rule.more, own) else { return true };
        let mut fits = true;
        if let (Some(id), Some(map)) = (more.unevaluated_properties, value.members()) {
            for (index, (key, item)) in map.iter().enumerate() {
                if std::mem::replace(&mut seen.0[index], true) {
                    continue;
                }
                if self.plan.rule(id).is_never() {
                    fits = false;
                    let guess = self.guess(sink);
                    let names = guess.then(|| telling::names(self.plan, rule, 0));
                    let (names, keyword) = (names.unwrap_or_default(), "unevaluatedProperties");
                    sink.put(|| telling::unknown(key, path, keyword, names));
                } else {
                    fits &= self.eval(id, item, &path.key(key), sink, None);
                }
            }
        }
        if let (Some(id), Some(list)) = (more.unevaluated_items, value.list()) {
            for (index, item) in list.iter().enumerate() {
                if !std::mem::replace(&mut seen.0[index], true) {
                    fits &= self.eval(id, item, &path.index(index), sink, None);
                }
            }
        }
        fits
    }
}

fn numbers(rule: &Numbers, written: &str, path: &Path<'_>, sink: &mut Sink) -> bool {
    let number = Decimal::read(written);
    let found = || super::faults::short(written);
    let mut fits = true;
    let mut bound = |limit: &Option<Box<str>>,
                     keyword,
                     words: &str,
                     holds: fn(&Decimal<'_>, &Decimal<'_>) -> bool| {
        if let Some(limit) = limit {
            let say = || (format!("be {words} {limit}"), found());
            fits &= sink.test(holds(&number, &Decimal::read(limit)), path, keyword, say);
        }
    };
    bound(&rule.minimum, "minimum", "at least", |it, limit| limit <= it);
    bound(&rule.maximum, "maximum", "at most", |it, limit| it <= limit);
    bound(&rule.above, "exclusiveMinimum", "more than", |it, limit| limit < it);
    bound(&rule.below, "exclusiveMaximum", "less than", |it, limit| it < limit);
    if let Some((written, divisor)) = &rule.multiple {
        let say = || (format!("be a multiple of {written}"), found());
        fits &= sink.test(number.is_multiple_of(*divisor), path, "multipleOf", say);
    }
    fits
}

/// A fault of the plain kind.
pub(super) fn fault(
    path: &Path<'_>,
    keyword: &'static str,
    expected: String,
    found: String,
) -> Fault {
    Fault { path: path.pointer(), keyword, expected, found, nearest: None }
}
