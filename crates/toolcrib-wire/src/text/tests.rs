//! Tests of what is masked, and of what stays.

use std::{borrow::Cow, time::Duration};

use proptest::prelude::*;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use super::*;

#[test]
fn nothing_reaches_a_terminal_that_it_would_act_on() {
    assert_eq!(plain(b"a\x1b[2Jb\r\n"), "a\\u{1b}[2Jb");
    assert_eq!(plain("x\u{9b}y\u{202e}z\u{e0041}é".as_bytes()), "x\\u{9b}y\\u{202e}z\\u{e0041}é");
}

#[test]
fn secrets_go_the_longer_first() {
    let masker = Masker::new(["hunter22".into(), "hunter22-more".into(), "on".into()]);
    assert_eq!(masker.mask("on hunter22-more, hunter22"), "on ****, ****");
    assert_eq!(format!("{masker:?}"), "Masker(2 values)");
    let both = masker.and(Masker::new(["third-one".into()])).and(Masker::default());
    assert_eq!(both.mask("third-one hunter22"), "**** ****");
}

fn known() -> Masker {
    Masker::new([
        "p/ä ss\"wö&rd".to_owned(),
        "first line\nsecond line".to_owned(),
        "**star".to_owned(),
    ])
}

#[test]
fn a_value_goes_in_each_of_its_forms() {
    let masker = known();
    let value = "p/ä ss\"wö&rd";
    let json = json!(value).to_string();
    let twice = json!(json).to_string();
    let forms = [
        value,
        &json,
        &twice,
        r#"p\/ä ss\"wö&rd"#,
        r#"p/\u00e4 ss\"w\u00f6&rd"#,
        "p%2F%C3%A4%20ss%22w%C3%B6%26rd",
        "p%2f%c3%a4%20ss%22w%c3%b6%26rd",
        "p%2F%C3%A4+ss%22w%C3%B6%26rd",
    ];
    for form in forms {
        let masked = masker.mask(&format!("a {form} b")).replace(['"', '\\'], "");
        assert_eq!(masked, "a **** b", "{form}");
    }
    assert_eq!(masker.mask("log: second line"), "log: ****");
    assert_eq!(masker.mask("first line\nsecond line."), "****.");
    assert_eq!(masker.mask_known("ghp_0123456789012345678901234567890123456789")[..4], *"ghp_");
}

#[test]
fn a_value_goes_in_each_of_its_encodings() {
    use base64::{Engine, engine::general_purpose::STANDARD};

    let value = "Zq8?planted>SECRET~77";
    let masker = Masker::new([value.to_owned()]);
    let hex: String = value.bytes().map(|it| format!("{it:02x}")).collect();
    let percent: String = value.bytes().map(|it| format!("%{it:02X}")).collect();
    for form in [hex.clone(), hex.to_uppercase(), percent.clone(), percent.to_lowercase()] {
        assert_eq!(masker.mask_known(&format!("a {form} b")), "a **** b", "{form}");
    }
    for before in ["", "a", "ab", "user:", "someone:"] {
        for after in ["", "x", "xy", "xyz"] {
            let basic = STANDARD.encode(format!("{before}{value}{after}"));
            for form in [basic.clone(), basic.replace('+', "-").replace('/', "_")] {
                let masked = masker.mask_known(&form).into_owned();
                let left = masked.replace("****", "");
                // What is left is what stood around it, and at most one letter on either side.
                assert!(masked.contains("****"), "{form}");
                assert!(left.len() <= 4 * (before.len() + after.len()).div_ceil(3) + 6, "{masked}");
            }
        }
    }
    assert_eq!(Masker::default().margin(), 8 * 1024);
    assert_eq!(Masker::new(["x".repeat(10_000)]).margin(), 60_000);
}

/// Long enough for any shape, and no words.
fn random(length: usize) -> String {
    "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0z".chars().cycle().take(length).collect()
}

fn tokens() -> Vec<String> {
    let of = |begin: &str, length: usize| format!("{begin}{}", random(length));
    let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P";
    let pem = format!(
        "-----BEGIN RSA PRIVATE KEY-----\n{}\n{}\n-----END RSA PRIVATE KEY-----",
        random(64),
        random(40)
    );
    let mut tokens: Vec<String> = [
        ("ghp_", 36),
        ("gho_", 36),
        ("ghs_", 36),
        ("github_pat_", 82),
        ("glpat-", 20),
        ("sk-", 48),
        ("sk-proj-", 60),
        ("sk-ant-api03-", 90),
        ("AIza", 35),
        ("xoxb-123456789012-1234567890123-", 24),
        ("sk_live_", 24),
        ("rk_live_", 24),
        ("npm_", 36),
        ("pypi-AgEIcHlwaS5vcmc", 120),
        ("hf_", 34),
        ("whsec_", 32),
        ("xapp-1-A0-", 40),
    ]
    .map(|(begin, length)| of(begin, length))
    .into();
    tokens.extend([
        "AKIAIOSFODNN7EXAMPLE".to_owned(),
        "ASIA0123456789ABCDEF".to_owned(),
        jwt.to_owned(),
        pem,
    ]);
    tokens
}

#[test]
fn tokens_go_wherever_they_stand() {
    let masker = Masker::default();
    for token in tokens() {
        assert!(is_token(&token), "{token}");
        let places = [
            "{}",
            "a {} b",
            "({})",
            "x={}",
            "\"{}\"",
            "line\n{}\nline",
            "\x1b[0m{}\x1b[0m",
            "a\\n{}",
            "%20{}",
            "{}, {}",
        ];
        for place in places {
            let masked = masker.mask(&place.replace("{}", &token)).into_owned();
            assert_eq!(masked, place.replace("{}", "****"), "{token}");
        }
        let text = json!({ "a": [format!("see\n{token}")] }).to_string();
        assert_eq!(masker.mask_json(&text), r#"{"a":["see\n****"]}"#);
        let quoted = json!(text).to_string();
        let twice = masker.mask(&quoted).into_owned();
        let bare = token.rsplit('\n').nth(1).unwrap_or(&token);
        assert!(!twice.contains(bare), "{twice}");
    }
}

#[track_caller]
fn check(text: &str, expected: &str) {
    let masked = Masker::default().mask(text).into_owned();
    assert_eq!(masked, expected);
    assert_eq!(Masker::default().mask(&masked), expected, "again");
}

#[test]
fn credentials_go_and_what_stands_around_them_stays() {
    check("Authorization: Bearer abc123def456", "Authorization: Bearer ****");
    check("using bearer aGVsbG8gd29ybGQgaGVsbG8", "using bearer ****");
    check("authorization: Basic dXNlcjpwYXNz", "authorization: Basic ****");
    check("sent Basic dXNlcjpwYXNzd29yZA== to it", "sent Basic **** to it");
    check("postgres://bob:s3cret@db/x", "postgres://bob:****@db/x");
    check("nats://u:p@ss@h:1,nats://u:q@k", "nats://u:****@h:1,nats://u:****@k");
    check("redis://:hunter22@localhost", "redis://:****@localhost");
    check(r"https:\/\/u:pw@h\/", r"https:\/\/u:****@h\/");
    check("https://0123456789abcdef01234567@sentry.io/1", "https://****@sentry.io/1");
    check("GET /mcp?token=abc&x=1 HTTP", "GET /mcp?token=****&x=1 HTTP");
    check("GET /?a=1&api_key=k%20k", "GET /?a=1&api_key=****");
    check("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG+bPx", "aws_secret_access_key = ****");
    check("DB_PASSWORD=hunter2 ./run", "DB_PASSWORD=**** ./run");
    check(r#"args {"password": "it's \"so\"", "a": 1}"#, r#"args {"password": "****", "a": 1}"#);
    check(r#""{\"api_key\":\"k\\\"k\",\"b\":2}""#, r#""{\"api_key\":\"****\",\"b\":2}""#);
    check("{'clientSecret': 'x y', 'n': 2}", "{'clientSecret': '****', 'n': 2}");
    check("Cookie: a=b; c=d\nHost: x", "Cookie: ****\nHost: x");
    let long = format!("secret_{}_token{}", "a".repeat(50), "_b".repeat(40));
    check(&format!("{long}_key_password=hunter2"), &format!("{long}_key_password=****"));
    check("x-api-key: 0a1b2c3d4e", "x-api-key: ****");
    check("\x1b[3mtoken\x1b[0m\x1b[2m=\x1b[0mabcdef", "\x1b[3mtoken\x1b[0m\x1b[2m=\x1b[0m****");
    check("-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBgkqhkiG9w0B\\nAQE", "****");
}

/// Whatever is not a secret stays, to the letter, and is not even copied.
#[test]
fn ordinary_text_stays() {
    let picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let ordinary = [
        picture,
        "d41d8cd98f00b204e9800998ecf8427e da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "018f4e3c-7b5a-7c3d-9f2e-1a2b3c4d5e6f",
        "the task-management-system2024-overview-page is a risk-adjusted desk-reference",
        "sk-learn-style-names-are-long-and-harmless",
        "max_tokens: 4096, token_count=128, tokens_used = 12, nextPageToken: CAUQAA1234567",
        "Basic information about bearer authentication; Bearer tokens are described below",
        "a password is needed; the password: ask the administrator",
        "secret: ballots stay secret. token: a piece of text",
        "the variable `GITHUB_TOKEN` is not set",
        "network.yaml: external_access: auth_token: it is empty",
        "https://example.org:8443/a@b?x=1 mailto:a@b.c ssh://git@github.com/x/y.git http://[::1]:80/",
        "if token == expected { std::token::next() }",
        r#""password": "${DB_PASSWORD}", "api_key": """#,
        "password=None token=null",
        "-----BEGIN PRIVATE KEY----- is how such a file begins",
        "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQ==\n-----END CERTIFICATE-----",
        "npm_config_registry=https://registry.npmjs.org npm_package_version",
        "eyJhIjoxfQ== and eyJhIjoxfQ.short",
        "AKIA is how ids of keys begin; AIza too; ghp_short",
        "",
        "****",
    ];
    for text in ordinary {
        assert!(
            matches!(Masker::default().mask(text), Cow::Borrowed(_)),
            "{}",
            Masker::default().mask(text)
        );
        let quoted = json!({ "text": text }).to_string();
        assert!(matches!(Masker::default().mask_json(&quoted), Cow::Borrowed(_)), "{quoted}");
    }
}

#[track_caller]
fn check_json(value: &Value, expected: &Value) {
    let masker = Masker::new(["configured-value".to_owned()]);
    let masked = masker.mask_json(&value.to_string()).into_owned();
    assert_eq!(serde_json::from_str::<Value>(&masked).unwrap(), *expected);
    assert_eq!(masker.mask_json(&masked), masked, "again");
}

#[test]
fn names_say_what_is_secret() {
    check_json(
        &json!({ "password": "x", "user": "u", "pin": [{ "apiKey": 12, "n": 1.50 }], "token": true, "max_tokens": 5 }),
        &json!({ "password": "****", "user": "u", "pin": [{ "apiKey": "****", "n": 1.50 }], "token": true, "max_tokens": 5 }),
    );
    check_json(
        &json!({ "credentials": { "user": "u", "deep": ["v", 7, null, {}] }, "after": "stays" }),
        &json!({ "credentials": { "user": "****", "deep": ["****", "****", null, {}] }, "after": "stays" }),
    );
    let inner = json!({ "client_secret": "x", "n": [1] }).to_string();
    let masked = json!({ "client_secret": "****", "n": [1] }).to_string();
    check_json(&json!({ "body": inner, "o": 1 }), &json!({ "body": masked, "o": 1 }));
    check_json(
        &json!({ "body": json!([inner]).to_string() }),
        &json!({ "body": json!([masked]).to_string() }),
    );
    check_json(&json!({ "configured-value": "a configured-value" }), &json!({ "****": "a ****" }));
    check_json(&json!("password"), &json!("password"));
}

#[test]
fn json_that_is_cut_off_is_masked_too() {
    let masker = Masker::default();
    assert_eq!(masker.mask_json(r#"{"a": 1, "password": "hunt"#), r#"{"a": 1, "password": "****""#);
    assert_eq!(masker.mask_json(r#"{"a": "Bearer abc123def"#), r#"{"a": "Bearer ****"#);
    assert_eq!(masker.mask_json("not JSON: token=abcdef"), "not JSON: token=****");
    let deep = "[".repeat(100_000) + r#"{"password":"x1"}"#;
    assert!(masker.mask_json(&deep).ends_with(r#"{"password":"****"}"#));
    let mut packed = json!({ "password": "hunter22" }).to_string();
    for _ in 0..8 {
        packed = json!({ "p": packed }).to_string();
    }
    assert!(!masker.mask_json(&packed).contains("hunter22"));
}

/// What looks like the beginning of something at every step takes no more time than anything else.
#[test]
fn hostile_text_takes_no_more_time_than_its_length() {
    let masker = Masker::new(["aaaaaaab".to_owned(), "aaaaaaaaaaaaaaaaaaaaaaaaaaaac".to_owned()]);
    for piece in HOSTILE {
        let time = |bytes: usize| {
            let text = piece.repeat(bytes / piece.len());
            let begin = cpu_time();
            masker.mask(&text);
            masker.mask_json(&text);
            cpu_time() - begin
        };
        time(1 << 12);
        let (short, long) = (time(1 << 13), time(1 << 17));
        // Sixteen times the text: linear is 16 times, quadratic 256 times.
        let most = short.max(Duration::from_millis(2)) * 40;
        assert!(long < most, "{piece}: {short:?}, {long:?}");
    }
}

/// What this thread has worked; what other processes do does not count.
fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.try_into().unwrap(), now.tv_nsec.try_into().unwrap())
}

const HOSTILE: [&str; 26] = [
    "a",
    "eyJ",
    "eyJaaaaaaaa.",
    "ghp_",
    "sk-",
    "://",
    "://a:",
    "://a@",
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN ",
    "password=",
    "password: ",
    "\"password\":\"",
    "\\",
    "token\\\\\\\"",
    "Bearer ",
    "Basic QUFB",
    "{",
    "[\"",
    "\"",
    "Cookie: ",
    "token",
    "eyJ-",
    "a-secret-b-",
    "AIza-",
    "token=a&",
];

/// Pieces of which the worst texts are made.
fn pieces() -> impl Strategy<Value = String> {
    let words = vec![
        "ghp_",
        "0123456789abcdefABCDEF0123456789abcdef",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "\n",
        "https://",
        "u:",
        "@",
        "password",
        "token",
        "=",
        ":",
        "\"",
        "'",
        "\\",
        "{",
        "}",
        "[",
        "]",
        ",",
        "Bearer ",
        "Basic ",
        "dXNlcjpwYXNz",
        "eyJhbGciOiJI",
        ".",
        "****",
        "*",
        "**star",
        "cookie",
        ": ",
        "é",
        "\u{1b}[0m",
        "%20",
        "first line",
        "second line",
        "sk-",
        "1",
        "null",
        " ",
    ];
    let piece =
        prop_oneof![12 => prop::sample::select(words).prop_map(String::from), 1 => any::<String>()];
    prop::collection::vec(piece, 0..24).prop_map(|it| it.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn masking_twice_is_masking_once(text in pieces()) {
        let masker = known();
        let once = masker.mask(&text).into_owned();
        prop_assert_eq!(masker.mask(&once), once.as_str());
        let once = masker.mask_json(&text).into_owned();
        prop_assert_eq!(masker.mask_json(&once), once.as_str());
    }

    /// JSON stays JSON, and has no secret under any name, nor any that was planted.
    #[test]
    fn nothing_planted_is_left(before in pieces(), after in pieces(), which in 0_usize..21, name in "[a-z]{1,8}") {
        let masker = Masker::new(["pl4nted/värde\"x".to_owned()]);
        let token = tokens()[which].clone();
        let value = json!({ name: [before, "pl4nted/värde\"x", { "deep": format!("{before} {token}\n{after}") }],
            "k": { "apiKey": "named-secret" }, "text": json!({ "password": "named-secret" }).to_string() });
        let masked = masker.mask_json(&value.to_string()).into_owned();
        let read: Value = serde_json::from_str(&masked).unwrap();
        let deep = read.to_string();
        for secret in ["pl4nted", "named-secret", json!(token).to_string().trim_matches('"')] {
            prop_assert!(!deep.contains(secret), "{}", deep);
        }
        let text = format!("{before}pl4nted/värde\"x{after}");
        prop_assert!(!masker.mask(&text).contains("pl4nted/värde"));
    }

    #[test]
    fn words_and_numbers_stay(text in "([a-zé]{1,12}[ ,.\n]|[0-9a-f]{8,64} |[0-9]{1,9}[-: ]){0,40}") {
        prop_assert!(matches!(Masker::default().mask(&text), Cow::Borrowed(_)));
    }
}
