//! Limits, with a clock that stands where the test puts it.

use super::*;

const MS: Duration = Duration::from_millis(1);

fn rate(calls: u32, per: u64, burst: u32) -> Limit {
    let rate = Rate { calls, per: Duration::from_secs(per), burst };
    Limit { rate: Some(rate), concurrent: None }
}

fn at_a_time(concurrent: u32) -> Limit {
    Limit { rate: None, concurrent: Some(concurrent) }
}

/// Rules of group `a`, of the tools `slow*`, and of one source.
fn limits(group: Limit, tool: Limit, source: Limit) -> Limits {
    let settings = LimitSettings {
        all: Limit::default(),
        groups: vec![("a".to_owned(), group)],
        tools: vec![(Pattern("slow*".to_owned()), tool)],
    };
    let tools = ["slow", "slower", "quick"];
    Limits::build(&settings, tools, &[("db".into(), source)], &Limits::default())
}

fn asks<'a>(group: &'a str, tool: &'a str) -> Asks<'a> {
    Asks { group: Some(group), tool, source: Some(0) }
}

#[test]
fn ten_a_second_with_a_burst_of_twenty_is_a_hundred_and_twenty_in_ten_seconds() {
    let none = Limit::default();
    let limits = limits(rate(10, 1, 20), none, none);
    let mut accepted = 0;
    for step in 0..10_000 {
        let now = limits.begin + step * MS;
        // Three tries each millisecond.
        accepted += (0..3).filter(|_| limits.admit_at(asks("a", "quick"), now).is_ok()).count();
    }
    assert!((118..=122).contains(&accepted), "{accepted}");
    assert!(limits.admit_at(asks("b", "quick"), limits.begin + 9_999 * MS).is_ok());
}

#[test]
fn whoever_waits_as_long_as_is_said_is_let_in() {
    let none = Limit::default();
    let limits = limits(rate(3, 60, 2), none, none);
    let mut now = limits.begin + 5 * MS;
    for _ in 0..2 {
        drop(limits.admit_at(asks("a", "quick"), now).unwrap());
    }
    for _ in 0..5 {
        let limited = limits.admit_at(asks("a", "quick"), now).unwrap_err();
        let early = now + limited.wait - Duration::from_nanos(1);
        assert!(limits.admit_at(asks("a", "quick"), early).is_err());
        now += limited.wait;
        drop(limits.admit_at(asks("a", "quick"), now).unwrap());
    }
}

#[test]
fn a_call_that_one_rule_refuses_is_not_counted_by_the_others() {
    let limits = limits(rate(5, 3600, 5), rate(1, 3600, 1), rate(9, 3600, 9));
    let now = limits.begin;
    drop(limits.admit_at(asks("a", "slow"), now).unwrap());
    for _ in 0..100 {
        let limited = limits.admit_at(asks("a", "slow"), now).unwrap_err();
        assert_eq!(limited.by, Rule::Tool("slow".into()));
    }
    // Four of five are left to the group, eight of nine to the source.
    let group = (0..9).filter(|_| limits.admit_at(asks("a", "quick"), now).is_ok());
    assert_eq!(group.count(), 4);
    let source = (0..9).filter(|_| limits.admit_at(asks("b", "quick"), now).is_ok());
    assert_eq!(source.count(), 4);
}

#[test]
fn each_tool_that_fits_a_pattern_counts_for_itself() {
    let none = Limit::default();
    let limits = limits(none, rate(1, 3600, 1), none);
    for tool in ["slow", "slower"] {
        drop(limits.admit_at(asks("a", tool), limits.begin).unwrap());
        // Of all groups together.
        assert!(limits.admit_at(asks("b", tool), limits.begin).is_err());
    }
}

#[test]
fn the_rule_that_says_most_of_a_tool_counts() {
    let rule = |name: &str, most| (Pattern(name.to_owned()), at_a_time(most));
    let tools = vec![rule("*", 1), rule("db_read", 3), rule("db_read*", 2), rule("db_*", 4)];
    let settings = LimitSettings { tools, ..LimitSettings::default() };
    let most = |name| settings.of_tool(name).and_then(|it| it.concurrent);
    assert_eq!(
        [most("x"), most("db_read"), most("db_reads"), most("db_x")].map(Option::unwrap),
        [1, 3, 2, 4]
    );
}

#[test]
fn a_place_is_free_again_when_its_call_is_over() {
    let none = Limit::default();
    let limits = limits(at_a_time(2), at_a_time(1), none);
    let first = limits.admit(asks("a", "slow")).unwrap();
    let refused = limits.admit(asks("a", "slow")).unwrap_err();
    assert_eq!((refused.by, refused.why), (Rule::Tool("slow".into()), Full::Concurrent(1)));
    let second = limits.admit(asks("a", "quick")).unwrap();
    let refused = limits.admit(asks("a", "slower")).unwrap_err();
    assert_eq!(refused.by, Rule::Group("a".into()));
    drop(first);
    let third = limits.admit(asks("a", "slow")).unwrap();
    drop((second, third));
    let all: Vec<_> = (0..3).map(|_| limits.admit(asks("a", "quick"))).collect();
    assert_eq!(all.iter().filter(|it| it.is_ok()).count(), 2);
}

#[test]
fn what_tools_call_among_each_other_is_not_the_groups() {
    let none = Limit::default();
    let limits = limits(rate(1, 3600, 1), rate(2, 3600, 2), none);
    let inner = Asks { group: None, tool: "slow", source: Some(0) };
    assert_eq!((0..5).filter(|_| limits.admit(inner).is_ok()).count(), 2);
    assert!(limits.admit(asks("a", "quick")).is_ok());
}

#[test]
fn the_gateway_as_a_whole_may_have_a_limit() {
    let settings = LimitSettings { all: rate(2, 3600, 2), ..LimitSettings::default() };
    let limits = Limits::build(&settings, [], &[], &Limits::default());
    let asks = |group| Asks { group: Some(group), tool: "x", source: None };
    let let_in = ["a", "b", "c"].map(|it| limits.admit(asks(it)).is_ok());
    assert_eq!(let_in, [true, true, false]);
}

#[test]
fn a_rule_that_stays_goes_on_counting() {
    let (hour, none) = (rate(1, 3600, 1), Limit::default());
    let settings =
        |limit| LimitSettings { groups: vec![("a".to_owned(), limit)], ..LimitSettings::default() };
    let before = Limits::build(&settings(hour), ["x"], &[], &Limits::default());
    drop(before.admit(asks("a", "x")).unwrap());
    let same = Limits::build(&settings(hour), ["x", "y"], &[], &before);
    assert!(same.admit(asks("a", "x")).is_err());
    let other = Limits::build(&settings(rate(2, 3600, 2)), ["x"], &[], &same);
    assert!(other.admit(asks("a", "x")).is_ok());
    assert!(Limits::build(&settings(none), ["x"], &[], &other).admit(asks("a", "x")).is_ok());
}

#[test]
fn threads_together_get_no_more_than_there_is() {
    let none = Limit::default();
    // The source is the scarce one: whoever is refused there must leave the group as it was.
    let limits = limits(rate(5_000, 3600, 5_000), none, rate(1_000, 3600, 1_000));
    let now = limits.begin;
    let accepted: usize = std::thread::scope(|scope| {
        let work =
            || (0..5_000).filter(|_| limits.admit_at(asks("a", "quick"), now).is_ok()).count();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|it| it.join().unwrap()).sum()
    });
    assert_eq!(accepted, 1_000);
    let alone = |_: &u32| {
        let asks = Asks { source: None, ..asks("a", "quick") };
        limits.admit_at(asks, now).is_ok()
    };
    assert_eq!((0..9_000).filter(alone).count(), 4_000);
}

#[test]
fn what_is_told_can_be_acted_on() {
    let told = |by, why, wait| Limited { by, why, wait }.told("x");
    let ten = Rate { calls: 10, per: Duration::from_secs(1), burst: 20 };
    let once = Rate { calls: 1, per: Duration::from_secs(3600), burst: 1 };
    insta::assert_snapshot!(
        [
            told(Rule::Group("a".into()), Full::Rate(ten), 301 * MS),
            told(Rule::Tool("x".into()), Full::Rate(once), 3_500_001 * MS),
            told(Rule::Source("db".into()), Full::Concurrent(1), SOON),
            told(Rule::Gateway, Full::Concurrent(4), SOON),
        ]
        .join("\n"),
        @r"
    `x` was not called: group `a` may call tools 10 times a second. Try again in 0.4 s.
    `x` was not called: `x` may be called once an hour. Try again in 3501 s.
    `x` was not called: the server `db` may have 1 call running at a time. Try again in 1.0 s.
    `x` was not called: all callers together may have 4 calls running at a time. Try again in 1.0 s.
    "
    );
}

/// A server that takes a tool off its list and puts it back must not give it a new rate by that.
#[test]
fn a_tool_that_was_gone_for_a_moment_goes_on_counting() {
    let hourly = rate(1, 3600, 1);
    let tools = vec![(Pattern("slow*".to_owned()), hourly)];
    let settings = LimitSettings { tools, ..LimitSettings::default() };
    let sources = [("db".into(), Limit::default())];
    let first = Limits::build(&settings, ["slow"], &sources, &Limits::default());
    drop(first.admit(asks("a", "slow")).unwrap());
    let without = Limits::build(&settings, [], &sources, &first);
    let back = Limits::build(&settings, ["slow"], &sources, &without);
    assert!(back.admit(asks("a", "slow")).is_err());
    // What was not called leaves nothing behind, and neither does what is ruled otherwise by now.
    let other = Limits::build(&settings, ["slower"], &sources, &Limits::default());
    assert!(Limits::build(&settings, [], &sources, &other).tools.is_empty());
    let none = LimitSettings::default();
    assert!(Limits::build(&none, [], &sources, &back).tools.is_empty());
}
