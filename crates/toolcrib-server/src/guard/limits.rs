//! How often something may be called, and how many calls of it may run at a time.
//!
//! Rules are of the whole gateway, of a group, of a tool (all groups together) and of a source. A call
//! passes all that concern it or none: where one refuses, nothing is spent at the others. What tools call
//! among each other counts for tool and source only; the group has paid for the call it made.
//!
//! A rule counts in one number (GCRA): the moment at which all calls that were let in would have been
//! due, had they come one by one. How far that may lie ahead of now is the burst. There is no queue, no
//! timer, and nothing that grows with callers: the rules follow from what is configured and listed.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use crate::access::Pattern;

/// So many calls in so much time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// How many, in the long run.
    pub calls: u32,
    /// In how much time.
    pub per: Duration,
    /// How many at once, after a pause.
    pub burst: u32,
}

/// What something is held to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limit {
    /// How often it may be called.
    pub rate: Option<Rate>,
    /// How many calls may run at a time.
    pub concurrent: Option<u32>,
}

/// The limits that are configured, but for those of sources, which come with them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LimitSettings {
    /// Of all groups together.
    pub all: Limit,
    /// Of groups, by name.
    pub groups: Vec<(String, Limit)>,
    /// Of tools: each that fits a pattern is held to it by itself.
    pub tools: Vec<(Pattern, Limit)>,
}

/// Which rule it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Rule {
    Gateway,
    Group(Arc<str>),
    Tool(Arc<str>),
    Source(Arc<str>),
}

/// A call that is not let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Limited {
    /// By which rule; of several, the one that takes longest.
    pub(crate) by: Rule,
    pub(crate) why: Full,
    /// After how long it is worth trying again.
    pub(crate) wait: Duration,
}

/// What is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    Rate(Rate),
    Concurrent(u32),
}

/// All rules in force.
#[derive(Debug)]
pub(crate) struct Limits {
    /// When counting began. Rules that stay over a reload count on from there.
    begin: Instant,
    all: Option<Arc<Bucket>>,
    groups: HashMap<Arc<str>, Arc<Bucket>>,
    tools: HashMap<Arc<str>, Arc<Bucket>>,
    /// In the order of the sources.
    sources: Vec<Option<Arc<Bucket>>>,
}

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asks<'a> {
    /// Nothing where a tool calls another.
    pub(crate) group: Option<&'a str>,
    pub(crate) tool: &'a str,
    /// Nothing where the gateway itself answers.
    pub(crate) source: Option<usize>,
}

/// A call that was let in, for as long as it runs.
#[derive(Debug, Default)]
pub(crate) struct Permit([Option<Arc<Bucket>>; 4]);

/// When there is no telling, as with calls that run.
const SOON: Duration = Duration::from_secs(1);

/// Of how many tools that are gone it is remembered that they were called just now.
const MOST_GONE: usize = 10_000;

#[derive(Debug)]
struct Bucket {
    rule: Rule,
    limit: Limit,
    /// Nanoseconds from the beginning to when what was let in is due.
    due: AtomicU64,
    running: AtomicU32,
}

impl Default for Limits {
    fn default() -> Self {
        let begin = Instant::now();
        Self {
            begin,
            all: None,
            groups: HashMap::new(),
            tools: HashMap::new(),
            sources: Vec::new(),
        }
    }
}

impl Limits {
    /// The rules for these tools and sources. One that is as it was before goes on counting.
    pub(crate) fn build<'a>(
        settings: &LimitSettings,
        tools: impl IntoIterator<Item = &'a str>,
        sources: &[(Arc<str>, Limit)],
        before: &Self,
    ) -> Self {
        let kept = |old: Option<&Arc<Bucket>>, rule: Rule, limit: Limit| {
            let same = old.filter(|it| it.limit == limit && it.rule == rule);
            same.cloned().or_else(|| Bucket::new(rule, limit))
        };
        let group = |(name, limit): &(String, Limit)| {
            let name: Arc<str> = name.as_str().into();
            let bucket = kept(before.groups.get(&name), Rule::Group(Arc::clone(&name)), *limit);
            Some((name, bucket?))
        };
        let tool = |name: &str| {
            let limit = settings.of_tool(name)?;
            let name: Arc<str> = name.into();
            let bucket = kept(before.tools.get(&name), Rule::Tool(Arc::clone(&name)), limit);
            Some((name, bucket?))
        };
        let source = |(at, (name, limit)): (usize, &(Arc<str>, Limit))| {
            let old = before.sources.get(at).and_then(Option::as_ref);
            kept(old, Rule::Source(Arc::clone(name)), *limit)
        };
        let named = |it: &&str| !settings.tools.is_empty() && !it.is_empty();
        let mut tools: HashMap<_, _> = tools.into_iter().filter(named).filter_map(tool).collect();
        // A server that takes a tool off its list for a moment must not make it new by that.
        let now = before.at(Instant::now());
        let gone = before
            .tools
            .iter()
            .filter(|(name, it)| it.counts(now) && settings.of_tool(name) == Some(it.limit));
        for (name, bucket) in gone.take(MOST_GONE) {
            tools.entry(Arc::clone(name)).or_insert_with(|| Arc::clone(bucket));
        }
        Self {
            begin: before.begin,
            all: kept(before.all.as_ref(), Rule::Gateway, settings.all),
            groups: settings.groups.iter().filter_map(group).collect(),
            tools,
            sources: sources.iter().enumerate().map(source).collect(),
        }
    }

    /// A moment, in nanoseconds from the beginning.
    fn at(&self, now: Instant) -> u64 {
        let now = now.saturating_duration_since(self.begin).as_nanos();
        u64::try_from(now).unwrap_or(u64::MAX)
    }

    /// Lets a call in, or says which rule does not.
    pub(crate) fn admit(&self, asks: Asks<'_>) -> Result<Permit, Limited> {
        self.admit_at(asks, Instant::now())
    }

    fn admit_at(&self, asks: Asks<'_>, now: Instant) -> Result<Permit, Limited> {
        let outer = asks.group.is_some();
        let mut permit = Permit(
            [
                self.all.as_ref().filter(|_| outer),
                asks.group.and_then(|it| self.groups.get(it)),
                asks.source.and_then(|at| self.sources.get(at)?.as_ref()),
                self.tools.get(asks.tool),
            ]
            .map(Option::<&Arc<Bucket>>::cloned),
        );
        if permit.0.iter().all(Option::is_none) {
            return Ok(permit);
        }
        let now = self.at(now);
        // First a look, so that whoever will be refused takes nothing from others even for a moment.
        let refusals = permit.0.iter().flatten().filter_map(|it| it.look(now).err());
        if let Some(longest) = refusals.max_by_key(|it| it.wait) {
            permit.0 = Default::default();
            return Err(longest);
        }
        for at in 0..permit.0.len() {
            let taken = permit.0[at].as_ref().map_or(Ok(()), |it| it.take(now));
            if let Err(limited) = taken {
                // Somebody was quicker.
                for bucket in permit.0[..at].iter().flatten() {
                    bucket.give_back();
                }
                permit.0[at..].fill(None);
                return Err(limited);
            }
        }
        Ok(permit)
    }
}

impl LimitSettings {
    /// What a tool is held to: by the rule that says most of it.
    fn of_tool(&self, name: &str) -> Option<Limit> {
        let fits = self.tools.iter().filter(|(it, _)| it.matches(name));
        fits.max_by_key(|(it, _)| (!it.0.contains('*'), it.0.len())).map(|(_, it)| *it)
    }
}

impl Rate {
    /// The time from one call to the next.
    fn every(&self) -> u64 {
        let per = u64::try_from(self.per.as_nanos()).unwrap_or(u64::MAX);
        (per / u64::from(self.calls.max(1))).max(1)
    }

    /// How far ahead of now the last call may be due.
    fn ahead(&self) -> u64 {
        self.every().saturating_mul(u64::from(self.burst.max(1)))
    }
}

impl Bucket {
    fn new(rule: Rule, limit: Limit) -> Option<Arc<Self>> {
        let (due, running) = (AtomicU64::new(0), AtomicU32::new(0));
        let any = limit != Limit::default();
        any.then(|| Arc::new(Self { rule, limit, due, running }))
    }

    /// Whether it still holds anything against the next call.
    fn counts(&self, now: u64) -> bool {
        now < self.due.load(Relaxed) || 0 < self.running.load(Relaxed)
    }

    fn refuse(&self, why: Full, wait: Duration) -> Limited {
        Limited { by: self.rule.clone(), why, wait }
    }

    /// When what was let in would be due with one more; or how long that is too far ahead.
    fn next(rate: &Rate, due: u64, now: u64) -> Result<u64, Duration> {
        let next = due.max(now).saturating_add(rate.every());
        match (next - now).saturating_sub(rate.ahead()) {
            0 => Ok(next),
            over => Err(Duration::from_nanos(over)),
        }
    }

    fn look(&self, now: u64) -> Result<(), Limited> {
        if let Some(most) = self.limit.concurrent.filter(|it| *it <= self.running.load(Relaxed)) {
            return Err(self.refuse(Full::Concurrent(most), SOON));
        }
        let Some(rate) = self.limit.rate else { return Ok(()) };
        let next = Self::next(&rate, self.due.load(Relaxed), now);
        next.map(drop).map_err(|wait| self.refuse(Full::Rate(rate), wait))
    }

    /// Takes one call, of both or of neither.
    fn take(&self, now: u64) -> Result<(), Limited> {
        if let Some(most) = self.limit.concurrent {
            let more = |it: u32| (it < most).then_some(it + 1);
            if self.running.fetch_update(Relaxed, Relaxed, more).is_err() {
                return Err(self.refuse(Full::Concurrent(most), SOON));
            }
        }
        let Some(rate) = self.limit.rate else { return Ok(()) };
        let next = |due| Self::next(&rate, due, now).ok();
        self.due.fetch_update(Relaxed, Relaxed, next).map(drop).map_err(|due| {
            self.ended();
            let wait = Self::next(&rate, due, now).err().unwrap_or_default();
            self.refuse(Full::Rate(rate), wait)
        })
    }

    /// The call was not made after all.
    fn give_back(&self) {
        if let Some(rate) = self.limit.rate {
            self.due.fetch_sub(rate.every(), Relaxed);
        }
    }

    /// The call is over.
    fn ended(&self) {
        if self.limit.concurrent.is_some() {
            self.running.fetch_sub(1, Relaxed);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        for bucket in self.0.iter().flatten() {
            bucket.ended();
        }
    }
}

impl Rule {
    /// What kind of rule it is.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Gateway => "limits of the gateway",
            Self::Group(_) => "limits of the group",
            Self::Tool(_) => "limits of the tool",
            Self::Source(_) => "limits of the server",
        }
    }
}

impl Limited {
    /// What a model can act on.
    pub(crate) fn told(&self, tool: &str) -> String {
        let who = match &self.by {
            Rule::Gateway => "all callers together".to_owned(),
            Rule::Group(name) => format!("group `{name}`"),
            Rule::Tool(_) => format!("`{tool}`"),
            Rule::Source(name) => format!("the server `{name}`"),
        };
        let verb = match &self.by {
            Rule::Gateway | Rule::Group(_) => "call tools",
            Rule::Tool(_) | Rule::Source(_) => "be called",
        };
        let wait = brief(self.wait);
        match self.why {
            Full::Rate(rate) => {
                format!("`{tool}` was not called: {who} may {verb} {rate}. Try again in {wait}.")
            }
            Full::Concurrent(most) => {
                let calls = if most == 1 { "call" } else { "calls" };
                let rule = format!("{who} may have {most} {calls} running at a time");
                format!("`{tool}` was not called: {rule}. Try again in {wait}.")
            }
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.per.as_secs() {
            1 => "a second".to_owned(),
            60 => "a minute".to_owned(),
            3600 => "an hour".to_owned(),
            seconds => format!("in {seconds} s"),
        };
        match self.calls {
            1 => write!(f, "once {unit}"),
            calls => write!(f, "{calls} times {unit}"),
        }
    }
}

/// A time to wait, rounded up: whoever comes back a little early is refused again.
fn brief(wait: Duration) -> String {
    let tenths = wait.as_millis().div_ceil(100).max(1);
    if tenths < 100 {
        format!("{}.{} s", tenths / 10, tenths % 10)
    } else {
        format!("{} s", tenths.div_ceil(10))
    }
}

#[cfg(test)]
mod tests;
