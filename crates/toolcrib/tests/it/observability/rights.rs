//! Who may read what is counted.

use super::metrics;
use crate::{
    console::rights::{A, BOSS, folder},
    serving::Serving,
};

const SCRAPER: (&str, &str) = ("Authorization", "Bearer SECRET_TOKEN_OF_METRICS");

#[test]
fn where_there_are_tokens_an_operator_may() {
    let folder = folder();
    let serving = Serving::start(folder.path());
    let status = |headers: &[(&str, &str)]| serving.get("/metrics", headers).status;
    assert_eq!((status(&[]), status(&[A])), (401, 403));
    assert_eq!(status(&[("Authorization", "Bearer nobody-has-this")]), 401);
    metrics(&serving, &[BOSS]);
    let refused = serving.get("/metrics", &[A]);
    assert!(refused.body.contains("this is for operators"), "{refused:?}");
    assert!(!refused.body.contains("toolcrib_"), "{refused:?}");
    assert_eq!(serving.request("POST", "/metrics", &[BOSS], "{}").status, 405);
    assert_eq!(serving.get("/metrics/", &[BOSS]).status, 404);
    let page = metrics(&serving, &[BOSS]);
    let status = |code: &str| page.sum("toolcrib_http_responses_total", &[("status", code)]);
    assert_eq!((status("401"), status("403")), (2.0, 2.0));
}

#[test]
fn a_token_for_this_alone_is_good_for_nothing_else() {
    let folder = folder();
    let rules = std::fs::read_to_string(folder.file("network.yaml")).unwrap();
    folder.write("network.yaml", format!("{rules}\nmetrics: {{ token_env: SCRAPING }}\n"));
    let env = [("SCRAPING", "SECRET_TOKEN_OF_METRICS")];
    let serving = Serving::start_with(folder.path(), &env);
    metrics(&serving, &[SCRAPER]);
    metrics(&serving, &[BOSS]);
    assert_eq!(serving.get("/metrics", &[SCRAPER, A]).status, 401, "two are none");
    for path in ["/mcp", "/readyz", "/api/me", "/events"] {
        assert_eq!(serving.get(path, &[SCRAPER]).status, 401, "{path}");
    }
    assert_eq!(serving.get("/metrics", &[]).status, 401);
    assert_eq!(serving.get("/metrics", &[A]).status, 403);
}

#[test]
fn open_means_everybody_who_reaches_us_and_no_page_of_another_site() {
    let folder = folder();
    let rules = std::fs::read_to_string(folder.file("network.yaml")).unwrap();
    folder.write("network.yaml", format!("{rules}\nmetrics: {{ open: true }}\n"));
    let serving = Serving::start(folder.path());
    metrics(&serving, &[]);
    metrics(&serving, &[A]);
    assert_eq!(serving.get("/metrics", &[("Host", "evil.example")]).status, 403);
    assert_eq!(serving.get("/metrics", &[("Origin", "https://evil.example")]).status, 403);
    assert_eq!(serving.get("/readyz", &[]).status, 401);
    // The rules are read again with all others.
    folder.write("network.yaml", rules);
    crate::kit::soon("it is closed again", || serving.get("/metrics", &[]).status == 401);
}

#[test]
fn without_tokens_whoever_is_on_this_machine_may_and_nobody_through_a_proxy() {
    let folder = crate::kit::Folder::workspace(&serde_json::json!({}));
    let serving = Serving::start(folder.path());
    metrics(&serving, &[]);
    assert_eq!(serving.get("/metrics", &[("X-Forwarded-For", "203.0.113.9")]).status, 403);
}
