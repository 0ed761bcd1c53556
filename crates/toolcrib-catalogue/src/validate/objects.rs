//! What a schema says about objects.

use std::borrow::Cow;

use super::{
    faults::{Path, Sink},
    given::{Given, Kind},
    plan::Objects,
    run::{Run, Seen},
    told as telling,
};

pub(super) fn check(
    run: &mut Run<'_>,
    rule: &Objects,
    map: &[(Cow<'_, str>, Given<'_>)],
    path: &Path<'_>,
    sink: &mut Sink,
    own: &mut Option<Seen>,
) -> bool {
    let mut fits = telling::size(rule.min, rule.max, map.len(), path, sink, telling::PROPERTIES);
    fits &= required(run, rule, map, path, sink);
    for (index, (key, value)) in map.iter().enumerate() {
        if !fits && !sink.loud || run.exhausted {
            return false;
        }
        fits &= member(run, rule, key, value, path, sink, || Seen::mark(own, index));
    }
    fits
}

fn member(
    run: &mut Run<'_>,
    rule: &Objects,
    key: &str,
    value: &Given<'_>,
    path: &Path<'_>,
    sink: &mut Sink,
    mut mark: impl FnMut(),
) -> bool {
    let here = path.key(key);
    let mut fits = true;
    let mut known = false;
    if let Some(&id) = rule.properties.get(key) {
        known = true;
        fits &= run.eval(id, value, &here, sink, None);
    }
    for (pattern, id) in &rule.patterns {
        if run.spend(1 + pattern.cost(key)) && pattern.regex.is_match(key) {
            known = true;
            fits &= run.eval(*id, value, &here, sink, None);
        }
    }
    if known {
        mark();
    } else if let Some(id) = rule.additional {
        mark();
        if run.plan.rule(id).is_never() {
            fits = false;
            let guess = run.guess(sink);
            let names = rule.properties.keys().map(|it| &**it).filter(|_| guess);
            sink.put(|| telling::unknown(key, path, "additionalProperties", names.collect()));
        } else {
            fits &= run.eval(id, value, &here, sink, None);
        }
    }
    if let Some(names) = rule.names {
        let name = Given { at: 0, end: 0, kind: Kind::Text(key.into()) };
        if !run.eval(names, &name, &here, &mut Sink::quiet(), None) {
            fits = false;
            if sink.loud {
                let mut inner = Sink::loud();
                run.eval(names, &name, &here, &mut inner, None);
                sink.put(|| telling::bad_name(&here, &inner.faults));
            }
        }
    }
    fits
}

/// `required` and what members need beside them.
fn required(
    run: &mut Run<'_>,
    rule: &Objects,
    map: &[(Cow<'_, str>, Given<'_>)],
    path: &Path<'_>,
    sink: &mut Sink,
) -> bool {
    let has = |name: &str| map.iter().any(|(key, _)| key == name);
    let mut fits = true;
    for name in &rule.required {
        if !run.spend(map.len() / 8) {
            return false;
        }
        if !has(name) {
            fits = false;
            let guess = run.guess(sink);
            sink.put(|| telling::missing(name, path, rule, map, guess));
        }
    }
    for (name, needed) in &rule.dependent {
        if !run.spend(1 + map.len() / 8) || !has(name) {
            continue;
        }
        for other in needed {
            if run.spend(map.len() / 8) && !has(other) {
                fits = false;
                sink.put(|| telling::needed(other, name, path));
            }
        }
    }
    fits
}
