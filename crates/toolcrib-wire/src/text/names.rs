//! Names that say of a value that it is a secret.
//!
//! Names are read word by word: `apiKey`, `api-key`, `API_KEY` and `apikey` are one name. What comes last is what the
//! value is, so `token_count` is a number and `page_token` a place in a list, and both are left alone.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

/// Without any of these a name has nothing to do with secrets; most names are decided here.
const TRACES: [&str; 18] = [
    "pass",
    "pwd",
    "secret",
    "token",
    "cred",
    "auth",
    "cookie",
    "key",
    "jwt",
    "bearer",
    "session",
    "otp",
    "sid",
    "mnemonic",
    "connection",
    "dsn",
    "phrase",
    "recovery",
];

/// Secret, whatever stands before.
const SECRETS: [&str; 26] = [
    "password",
    "passwords",
    "passwort",
    "passkey",
    "mnemonic",
    "dsn",
    "passwd",
    "pwd",
    "passphrase",
    "passphrases",
    "passcode",
    "secret",
    "secrets",
    "credential",
    "credentials",
    "creds",
    "authorization",
    "cookie",
    "cookies",
    "jwt",
    "bearer",
    "otp",
    "totp",
    "sessid",
    "sessionid",
    "sid",
];

/// What begins with one of these in a single word, such as `pgpassword`, is meant too.
const ENDINGS: [&str; 7] =
    ["password", "passwd", "passphrase", "secret", "apikey", "secretkey", "privatekey"];

/// A key of this sort is a secret; others sort, name or lock nothing.
const KEYS: [&str; 22] = [
    "api",
    "access",
    "private",
    "secret",
    "encryption",
    "signing",
    "auth",
    "client",
    "service",
    "master",
    "ssh",
    "session",
    "subscription",
    "app",
    "account",
    "shared",
    "storage",
    "webhook",
    "license",
    "deploy",
    "bot",
    "rsa",
];

/// A token of this sort is a place, a piece of text or an amount.
const HARMLESS_TOKENS: [&str; 31] = [
    "page",
    "next",
    "previous",
    "prev",
    "continuation",
    "continue",
    "cursor",
    "sync",
    "start",
    "end",
    "progress",
    "max",
    "min",
    "num",
    "total",
    "prompt",
    "completion",
    "input",
    "output",
    "cached",
    "reasoning",
    "budget",
    "stop",
    "eos",
    "bos",
    "pad",
    "unk",
    "special",
    "per",
    "mask",
    "resume",
];

/// Something about a secret that is none: how long it is, where it stands, when it ends.
const ABOUT: [&str; 57] = [
    "count",
    "counts",
    "length",
    "len",
    "limit",
    "limits",
    "type",
    "types",
    "name",
    "names",
    "used",
    "usage",
    "policy",
    "expires",
    "expiry",
    "expiration",
    "expired",
    "at",
    "in",
    "url",
    "uri",
    "endpoint",
    "path",
    "file",
    "budget",
    "size",
    "rate",
    "cost",
    "max",
    "min",
    "index",
    "total",
    "required",
    "enabled",
    "disabled",
    "strength",
    "field",
    "fields",
    "status",
    "hint",
    "rules",
    "reset",
    "updated",
    "changed",
    "created",
    "version",
    "ttl",
    "age",
    "scope",
    "scopes",
    "env",
    "ref",
    "arn",
    "prefix",
    "manager",
    "domain",
    "method",
];

/// Words that say of what stands before them that this is it.
const ITSELF: [&str; 10] =
    ["value", "values", "string", "str", "text", "plain", "plaintext", "raw", "pem", "v"];

/// Whether a value under this name is probably a secret.
///
/// ```
/// use toolcrib_wire::text::names_secret;
///
/// assert!(names_secret("apiKey") && names_secret("X-Api-Key") && names_secret("DB_PASSWORD"));
/// assert!(!names_secret("max_tokens") && !names_secret("nextPageToken") && !names_secret("secretary"));
/// ```
pub fn names_secret(name: &str) -> bool {
    static TRACE: LazyLock<Option<AhoCorasick>> =
        LazyLock::new(|| AhoCorasick::builder().ascii_case_insensitive(true).build(TRACES).ok());
    // A separator may stand within a trace, but then a shorter one is left of it (`pass_word`, `api key`).
    if TRACE.as_ref().is_some_and(|it| !it.is_match(name)) {
        return false;
    }
    let words = words(name);
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    // `tokenValue` and `privateKeyPem` are what `token` and `private_key` are.
    let mut found = are_secret(&words);
    while !found && words.last().is_some_and(|it| ITSELF.contains(it)) {
        words.pop();
        found = are_secret(&words);
    }
    found
}

fn are_secret(words: &[&str]) -> bool {
    let Some((&last, before)) = words.split_last() else { return false };
    if ABOUT.contains(&last) {
        return false;
    }
    let held = words.iter().any(|it| SECRETS.contains(it) && (*it == last || !is_only_last(it)));
    held || ENDINGS.iter().any(|it| last.ends_with(it))
        || is_secret_token(last, before)
        || is_secret_key(last, before)
        || is_pair(last, before)
}

/// Words that also begin harmless names, such as `cookie_banner` or `session_store`.
fn is_only_last(word: &str) -> bool {
    matches!(word, "cookie" | "cookies" | "bearer" | "sid" | "otp" | "jwt" | "authorization")
}

fn is_secret_token(last: &str, before: &[&str]) -> bool {
    let harmless = before.iter().any(|it| HARMLESS_TOKENS.contains(it));
    match last {
        "token" => !harmless,
        // Alone they are rather pieces of text, or their number.
        "tokens" => !harmless && !before.is_empty() && before.iter().any(|it| is_whose(it)),
        _ => last
            .strip_suffix("token")
            .is_some_and(|kind| !harmless && !HARMLESS_TOKENS.iter().any(|it| kind.ends_with(it))),
    }
}

/// Whether tokens of this sort open something.
fn is_whose(word: &str) -> bool {
    matches!(
        word,
        "access" | "api" | "auth" | "refresh" | "bearer" | "session" | "id" | "bot" | "user"
    )
}

fn is_secret_key(last: &str, before: &[&str]) -> bool {
    let key = |it: &str| matches!(it, "key" | "keys");
    let joined = last.strip_suffix("keys").or(last.strip_suffix("key"));
    let public = before.contains(&"public");
    let kind = if key(last) { before.last().copied() } else { joined };
    !public && kind.is_some_and(|kind| KEYS.contains(&kind))
}

/// Two words that are one.
fn is_pair(last: &str, before: &[&str]) -> bool {
    matches!(
        (before.last().copied(), last),
        (Some("pass"), "word" | "words" | "phrase" | "code" | "key")
            | (Some("session"), "id")
            | (Some("auth"), "header" | "data" | "string")
            | (Some("connection"), "string")
            | (Some("otp"), "code" | "codes")
            | (Some("recovery"), "code" | "codes" | "phrase")
            | (Some("seed"), "phrase")
            | (Some(_), "pass")
    )
}

/// `HTTPApiKey-2` is http, api, key, 2.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let letters: Vec<char> = name.chars().collect();
    for (at, &c) in letters.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|it| letters.get(it)).copied();
        let after = letters.get(at + 1).copied();
        let humps = c.is_uppercase()
            && (before.is_some_and(|it| it.is_lowercase() || it.is_ascii_digit())
                || before.is_some_and(char::is_uppercase) && after.is_some_and(char::is_lowercase));
        let begins = humps || !c.is_alphanumeric() || c.is_ascii_digit();
        if begins && words.last().is_some_and(|it| !it.is_empty()) {
            words.push(String::new());
        }
        // Numbers tell `password2` from `password`, and nothing else.
        if c.is_alphanumeric()
            && !c.is_ascii_digit()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|it| !it.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets() {
        let secret = "password passwd PASSWORD Password user_password passwordHash password2 pass_word passPhrase \
            secret client_secret clientSecret CLIENTSECRET token access_token accessToken AuthToken authtoken \
            GITHUB_TOKEN github-token refreshToken id_token api_key apiKey APIKey APIKEY x-api-key X-Api-Key \
            OPENAI_API_KEY authorization Authorization proxy-authorization cookie Cookie set-cookie setCookie cookies \
            credential credentials aws.credentials private_key privateKey privatekey PRIVATE-KEY access_key \
            secret_access_key secretAccessKey passphrase session_id sessionId SESSIONID Mcp-Session-Id sid jwt \
            pgpassword PGPASSWORD db_pass csrf_token otp api_tokens signing_key encryptionKey secrets bot_token \
            tokenValue token_string apiKeyValue api_key_value accessTokenV2 privateKeyPem secretValue bearer_value \
            cookie_value otp_code recovery_codes mnemonic seed_phrase connectionString connection_string dsn passkey \
            passwort";
        for name in secret.split_whitespace() {
            assert!(names_secret(name), "{name}");
        }
        assert!(names_secret("api key") && names_secret("Set Cookie") && names_secret("pass word"));
    }

    #[test]
    fn names_of_other_things() {
        let other = "tokens_used max_tokens maxTokens token_count tokenCount tokens total_tokens secretary page_token \
            pageToken nextPageToken next_page_token continuationToken progressToken cursor key keys sort_key primary_key \
            public_key publicKey monkey keyboard turkey hockey passenger passes pass compass bypass author authors \
            authority token_type token_limit password_policy password_length passwordRequired secret_name \
            cookie_banner cookie_consent session sessions session_name sidebar inside side username user id name \
            prompt_tokens completion_tokens input_tokens max_output_tokens cached_tokens tokenizer tokenize \
            idempotency_key foreign_key object_key s3_key cache_key key_id auth_method auth_url keyword keywords \
            broken discretion credit accredited residence startToken stop_token syncToken token_url key_name \
            key_value keyValue text value connection connections page_token_value phrase recovery seed raw_text";
        for name in other.split_whitespace().chain(["", "_", "é", "🔑", "1"]) {
            assert!(!names_secret(name), "{name}");
        }
    }
}
