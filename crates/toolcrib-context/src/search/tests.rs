//! Tests of the index as a whole.

use proptest::prelude::*;

use super::*;

fn document<'a>(name: &'a str, description: &'a str) -> Document<'a> {
    Document { name, description, ..Document::default() }
}

/// An index of `server.name: description` lines.
fn index(tools: &[&str]) -> Index {
    let mut index = Index::default();
    for tool in tools {
        set(&mut index, tool);
    }
    index
}

fn set(index: &mut Index, tool: &str) {
    let (name, description) = tool.split_once(": ").unwrap();
    let (server, own_name) = name.split_once('.').unwrap_or(("", name));
    index.set(name.into(), &Document { server, ..document(own_name, description) });
}

fn found(index: &Index, query: &str) -> String {
    let shown = |it: &Hit| match it.also.join("+") {
        also if also.is_empty() => it.key.to_string(),
        also => format!("{}+{also}", it.key),
    };
    index.search(query, 5).iter().map(shown).collect::<Vec<_>>().join(" ")
}

#[test]
fn names_are_found_however_they_are_written() {
    let index = index(&[
        "a.createIssue: x",
        "b.HTTPServerStart: x",
        "c.list_S3_buckets: x",
        "d.OAuth2Token: x",
        "e.re-index: x",
    ]);
    let first = |query| found(&index, query).split(' ').next().unwrap().to_owned();
    assert_eq!(first("create issues"), "a.createIssue");
    assert_eq!(first("start an http server"), "b.HTTPServerStart");
    assert_eq!(first("s3"), "c.list_S3_buckets");
    assert_eq!(first("oauth"), "d.OAuth2Token");
    assert_eq!(first("reindex"), "e.re-index");
    assert_eq!(first("re-index"), "e.re-index");
}

#[test]
fn words_are_found_in_all_places() {
    let mut index = Index::default();
    let tool = Document {
        name: "alpha",
        title: "beta",
        description: "gamma",
        server: "delta",
        tags: vec!["epsilon".into()],
        schema: Some(r#"{"properties": {"zeta": {"description": "eta", "enum": ["theta"]}}}"#),
        cost_hint: 0.0,
    };
    index.set("it".into(), &tool);
    index.set("other".into(), &document("other", "tool"));
    for query in ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"] {
        assert_eq!(found(&index, query), "it", "{query}");
    }
}

#[test]
fn slips_abbreviations_and_compounds_are_forgiven() {
    let index = index(&["a.dashboards: x", "b.repository: x", "c.rollback: x", "d.web_hook: x"]);
    assert_eq!(found(&index, "dashbord"), "a.dashboards");
    assert_eq!(found(&index, "dashbaords"), "a.dashboards");
    assert_eq!(found(&index, "repo"), "b.repository");
    assert_eq!(found(&index, "roll back"), "c.rollback");
    assert_eq!(found(&index, "webhook"), "d.web_hook");
    assert_eq!(index.nearest("reposittory rollbak x"), ["repository", "rollback"]);
}

#[test]
fn other_scripts_and_accents_are_no_obstacle() {
    let index = index(&[
        "a.検索: ファイルを検索する",
        "b.löschen: Datei löschen",
        "c.поиск: Найти файлы",
        "d.파일: 파일 읽기",
    ]);
    assert_eq!(found(&index, "ファイル"), "a.検索");
    assert_eq!(found(&index, "loschen"), "b.löschen");
    assert_eq!(found(&index, "Поиск"), "c.поиск");
    assert_eq!(found(&index, "읽기"), "d.파일");
}

#[test]
fn nothing_is_found_by_nothing_and_by_what_has_nothing_to_do_with_it() {
    let index = index(&["git.commit: Record changes", "git.push: Upload commits"]);
    for query in ["", "  ", "the", "?!", "qwrtzp xkcdvb", "\u{0}", "検"] {
        assert_eq!(found(&index, query), "", "{query}");
    }
    assert_eq!(Index::default().search("commit", 5), []);
    assert_eq!(index.search("commit", 0), []);
}

#[test]
fn a_question_of_fillers_alone_can_be_a_name() {
    assert_eq!(found(&index(&["a.who_am_i: x", "b.now: y"]), "who am I"), "a.who_am_i");
}

#[test]
fn of_equals_the_cheaper_comes_first_then_the_name() {
    let mut index = Index::default();
    for (key, server, cost_hint) in [("c", "x", 1.0), ("b", "y", f64::NAN), ("a", "z", 1.0)] {
        let tool = Document { server, cost_hint, ..document("fetch", "Fetch it") };
        index.set(key.into(), &tool);
    }
    assert_eq!(found(&index, "fetch"), "b a c");
}

#[test]
fn variants_take_one_place_and_the_plainest_stands_for_them() {
    let mut tools = Vec::new();
    for (name, description) in
        [("export_log", "Export the audit log"), ("read_log", "Read the audit log")]
    {
        tools.push(format!("s.{name}: {description}"));
        tools.extend((2..12).map(|it| format!("s.{name}_r{it}: {description}, edition {it}")));
    }
    let index = index(&tools.iter().map(String::as_str).collect::<Vec<_>>());
    let hits = index.search("export the log", 5);
    assert_eq!((&*hits[0].key, hits[0].also.len()), ("s.export_log", 10));
    assert_eq!((&*hits[1].key, hits[1].also.len()), ("s.read_log", 10));
    // Who asks for one of them gets that one.
    assert_eq!(&*index.search("export log r7", 5)[0].key, "s.export_log_r7");
}

#[test]
fn what_is_really_different_is_never_put_together() {
    let actions = ["create", "list", "close", "delete", "update"];
    let things = ["issue", "comment", "branch", "label", "release", "issue_comment"];
    let mut tools = Vec::new();
    for server in ["github", "gitlab"] {
        for (action, thing) in actions.iter().flat_map(|it| things.map(|thing| (*it, thing))) {
            let named = thing.replace('_', " ");
            tools.push(format!("{server}.{action}_{thing}: {action} a {named} of a project"));
        }
    }
    let index = index(&tools.iter().map(String::as_str).collect::<Vec<_>>());
    for tool in &tools {
        let (name, description) = tool.split_once(": ").unwrap();
        let server = name.split('.').next().unwrap();
        let hits = index.search(&format!("{description} on {server}"), 5);
        assert_eq!((&*hits[0].key, &*hits[0].also), (name, &[][..]));
    }
}

#[test]
fn a_name_tells_tools_apart_that_are_described_alike() {
    let index = index(&[
        "s.lock_door: Change how the front door of the house stands",
        "s.unbolt_door: Change how the front door of the house stands",
    ]);
    assert_eq!(index.search("front door of the house", 5).len(), 2);
}

#[test]
fn a_text_that_repeats_a_word_does_not_win_by_it() {
    let shouted = "invoice ".repeat(130_000);
    let mut index = index(&["bill.find_invoice: Find an invoice", "bill.pay: Pay a bill"]);
    index.set("spam".into(), &document("spam", &shouted));
    let everything: String = (0..100_000).map(|it| format!("w{it} ")).collect();
    index.set("all".into(), &document("all", &format!("{everything} invoice")));
    assert!(found(&index, "find an invoice").starts_with("bill.find_invoice"));
    assert!(found(&index, "pay").starts_with("bill.pay"));
    assert!(index.tools.iter().flatten().all(|it| it.terms.len() < 2 * MAX_WORDS));
}

#[test]
fn a_query_of_any_length_is_read_as_far_as_is_sensible() {
    let index = index(&["a.commit: Record changes"]);
    let long = format!("commit {}", "ключ ".repeat(1_000_000));
    assert_eq!(found(&index, &long), "a.commit");
}

#[test]
fn what_is_not_allowed_is_not_found() {
    let index = index(&["a.push: x", "b.push: x"]);
    let hits = index.search_where("push", 5, |it| it.starts_with('b'));
    assert_eq!(hits.iter().map(|it| &*it.key).collect::<Vec<_>>(), ["b.push"]);
}

#[test]
fn of_very_many_equals_the_same_come_first_whatever_came_first() {
    let mut tools: Vec<String> = (0..5000).map(|it| format!("s{it}.get: x")).collect();
    let forward = index(&tools.iter().map(String::as_str).collect::<Vec<_>>());
    tools.reverse();
    let backward = index(&tools.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(forward.search("get", 9), backward.search("get", 9));
    assert_eq!(found(&forward, "get"), "s0.get s1.get s10.get s100.get s1000.get");
}

#[test]
fn places_are_given_anew_when_most_are_empty() {
    let mut index = Index::default();
    for round in 0..20_u8 {
        let round = char::from(b'a' + round).to_string().repeat(9);
        for at in 0..200 {
            set(&mut index, &format!("s.tool{at}: about {round} and word{at}"));
        }
    }
    assert_eq!(index.len(), 200);
    assert!(index.tools.len() <= 2 * 200 + 1024 + 1, "{}", index.tools.len());
    assert!(index.search("word17", 1)[0].key.contains("tool17"));
    assert_eq!(index.search("ccccccccc", 1), []);
}

const WORDS: &[&str] = &[
    "list",
    "lists",
    "create",
    "createIssue",
    "user",
    "users",
    "file",
    "v2",
    "v3",
    "the",
    "gît",
    "検索",
    "log",
];

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(WORDS), 1..5).prop_map(|it| it.join(" "))
}

/// What is done to an index: a key, and a document or nothing.
fn changes() -> impl Strategy<Value = Vec<(u8, Option<(String, String)>)>> {
    let change = (0_u8..12, prop::option::weighted(0.7, (text(), text())));
    prop::collection::vec(change, 0..40)
}

proptest! {
    #[test]
    fn an_index_that_was_changed_is_the_same_as_one_made_anew(
        changes in changes(),
        query in text(),
        slip in "[a-z]{3,9}",
    ) {
        let mut changed = Index::default();
        let mut wanted = std::collections::BTreeMap::new();
        for (key, tool) in &changes {
            let name: Arc<str> = format!("k{key}").into();
            match tool {
                Some((name_text, text)) => {
                    changed.set(Arc::clone(&name), &document(name_text, text));
                    wanted.insert(name, (name_text, text));
                }
                None => prop_assert_eq!(changed.remove(&name), wanted.remove(&name).is_some()),
            }
        }
        let mut fresh = Index::default();
        for (key, (name, text)) in wanted.iter().rev() {
            fresh.set(Arc::clone(key), &document(name, text));
        }
        prop_assert_eq!(changed.len(), fresh.len());
        for query in [query.as_str(), slip.as_str(), "lsit serach"] {
            prop_assert_eq!(changed.search(query, 4), fresh.search(query, 4));
            prop_assert_eq!(changed.nearest(query), fresh.nearest(query));
        }
        for key in wanted.keys() {
            changed.remove(key);
        }
        prop_assert_eq!(changed.vocabulary.live().count(), 0);
    }

    #[test]
    fn nothing_that_can_be_written_breaks_it(
        name in any::<String>(),
        text in any::<String>(),
        schema in any::<String>(),
        query in any::<String>(),
        top in 0_usize..9,
    ) {
        let mut index = index(&["a.read_file: Read a file", "b.検索: 検索する"]);
        let tool = Document { schema: Some(&schema), server: &name, ..document(&name, &text) };
        index.set(name.as_str().into(), &tool);
        let hits = index.search(&query, top);
        prop_assert!(hits.len() <= top);
        prop_assert!(hits.iter().all(|it| it.score.is_finite() && 0.0 < it.score));
        index.search(&text, top);
        index.nearest(&query);
    }
}
