//! What should not be shown to everybody, told by its shape.
//!
//! A shape is a claim, not knowledge: what is found is likely a secret, what is not found may be one all the
//! same. Finding only ever raises a label, and scrubbing only ever takes away.

use std::{borrow::Cow, sync::LazyLock};

use regex::{Captures, Regex};

use crate::Sensitivity;

/// What stands where a secret stood.
pub const SECRET_MASK: &str = "[REDACTED-SECRET]";

/// How a kind of secret looks. Where a shape has a group `secret`, that alone is taken out.
const SECRET_SHAPES: [&str; 15] = [
    // Private keys, with all lines between their two marks.
    r"(?s)-----BEGIN (?:(?:RSA|EC|DSA|OPENSSH|PGP|ENCRYPTED) )?PRIVATE KEY-----.*?-----END (?:(?:RSA|EC|DSA|OPENSSH|PGP|ENCRYPTED) )?PRIVATE KEY-----",
    // AWS: four letters for what the id belongs to, then sixteen.
    r"\b(?:A3T[0-9A-Z]|A(?:GP|ID|IP|KI|NP|NV|RO|SI)A)[0-9A-Z]{16}\b",
    // Google.
    r"\bAIza[-_0-9A-Za-z]{35}\b",
    // GitHub: tokens of persons, apps and servers, then the finer ones.
    r"\bgh[oprsu]_[0-9A-Za-z]{36,}\b",
    r"\bgithub_pat_[0-9A-Za-z_]{22,}",
    // Slack: tokens of users and bots, then those of apps.
    r"\bxox[abprs]-[-0-9A-Za-z]{10,}\b",
    r"\bxapp-[0-9]-[-0-9A-Za-z]{10,}",
    // Anthropic, then OpenAI, whose shape is the wider one.
    r"\bsk-ant-[-_0-9A-Za-z]{20,}",
    r"\bsk-(?:proj-)?[-_0-9A-Za-z]{20,}",
    // Stripe and SendGrid.
    r"\b[rs]k_live_[0-9A-Za-z]{16,}",
    r"\bSG\.[-_0-9A-Za-z]{16,}\.[-_0-9A-Za-z]{16,}",
    // JSON web tokens.
    r"\beyJ[-_0-9A-Za-z]+\.eyJ[-_0-9A-Za-z]+\.[-_0-9A-Za-z]+\b",
    // The password in an address, up to the last `@` that a host follows.
    r"[A-Za-z][-+.0-9A-Za-z]*://[^\s:/@]+:(?P<secret>[^\s/]+)@[^\s:/@]",
    // What a caller shows to be let in.
    r"(?i)\bbearer\s+(?P<secret>[-._0-9a-z]{10,})",
    // A value whose name says what it is.
    r#"(?i)\b[-.\w]*(?:api[-_]?key|access[-_]?key|secret|token|password|passwd|pwd)[-.\w]*\s*[:=]\s*(?P<secret>['"]?[^\s'"]{6,}['"]?)"#,
];

/// How things look that concern a person: mail addresses, social security numbers, numbers of cards.
const PERSONAL_SHAPES: [&str; 3] =
    [r"\b[-.+\w]+@[-\w]+\.[-.\w]+\b", r"\b\d{3}-\d{2}-\d{4}\b", r"\b(?:\d[ -]?){13,16}\b"];

static SECRETS: LazyLock<Vec<Regex>> = LazyLock::new(|| compile(&SECRET_SHAPES));
static PERSONAL: LazyLock<Vec<Regex>> = LazyLock::new(|| compile(&PERSONAL_SHAPES));

fn compile(shapes: &[&str]) -> Vec<Regex> {
    let compile = |it: &&str| Regex::new(it).expect("a test compiles every shape");
    shapes.iter().map(compile).collect()
}

/// How far a text may be shown, by what is in it: secrets to nobody, what concerns a person to those
/// concerned, anything else to everybody.
///
/// ```
/// use toolcrib_context::{Sensitivity, detect_sensitivity};
///
/// assert_eq!(detect_sensitivity("password = hunter22x"), Sensitivity::Restricted);
/// assert_eq!(detect_sensitivity("mail a@b.co"), Sensitivity::Confidential);
/// assert_eq!(detect_sensitivity("nothing here"), Sensitivity::Public);
/// ```
pub fn detect_sensitivity(text: &str) -> Sensitivity {
    let secret = |it: &Regex| it.find_iter(text).any(|found| !is_cut_short(found.as_str()));
    if SECRETS.iter().any(secret) {
        return Sensitivity::Restricted;
    }
    if PERSONAL.iter().any(|it| it.is_match(text)) {
        return Sensitivity::Confidential;
    }
    Sensitivity::Public
}

/// `text` without the secrets that show by their shape; [`SECRET_MASK`] stands in their places.
///
/// ```
/// use toolcrib_context::scrub_secrets;
///
/// let text = scrub_secrets("postgres://user:p@ss@host/db");
/// assert_eq!(text, "postgres://user:[REDACTED-SECRET]@host/db");
/// ```
pub fn scrub_secrets(text: &str) -> Cow<'_, str> {
    let mut scrubbed = Cow::Borrowed(text);
    for shape in SECRETS.iter() {
        // A replacement that found nothing is not worth a copy.
        if let Cow::Owned(new) = shape.replace_all(&scrubbed, mask) {
            scrubbed = Cow::Owned(new);
        }
    }
    scrubbed
}

fn mask(found: &Captures<'_>) -> String {
    let (whole, begin) = found.get(0).map_or(("", 0), |it| (it.as_str(), it.start()));
    if is_cut_short(whole) {
        return whole.to_owned();
    }
    match found.name("secret") {
        None => SECRET_MASK.to_owned(),
        Some(secret) => {
            let (before, after) =
                (&whole[..secret.start() - begin], &whole[secret.end() - begin..]);
            format!("{before}{SECRET_MASK}{after}")
        }
    }
}

/// Whether this is the beginning of a key of Anthropic's that is too short to be one: the wider shape of
/// OpenAI's keys would take it.
fn is_cut_short(found: &str) -> bool {
    found.starts_with("sk-ant-") && found.len() < "sk-ant-".len() + 20
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_finds_its_kind() {
        let examples = [
            "-----BEGIN RSA PRIVATE KEY-----\nx\n-----END RSA PRIVATE KEY-----".to_owned(),
            "AKIAIOSFODNN7EXAMPLE".to_owned(),
            format!("AIza{}", "x".repeat(35)),
            format!("ghp_{}", "a1".repeat(18)),
            format!("github_pat_{}", "a_".repeat(11)),
            "xoxb-1234567890".to_owned(),
            "xapp-1-ABCDEFGHIJ".to_owned(),
            format!("sk-ant-{}", "a".repeat(24)),
            format!("sk-proj-{}", "b".repeat(24)),
            format!("rk_live_{}", "c".repeat(16)),
            format!("SG.{}.{}", "d".repeat(16), "e".repeat(16)),
            "eyJhbGci.eyJzdWIi.abc".to_owned(),
            "amqp://u:p@h".to_owned(),
            "Bearer abcdefghij12".to_owned(),
            "db_password = hunter22x".to_owned(),
        ];
        for (shape, example) in SECRETS.iter().zip(&examples) {
            assert!(shape.is_match(example), "{shape} does not find {example}");
            assert_eq!(detect_sensitivity(example), Sensitivity::Restricted, "{example}");
            assert!(scrub_secrets(example).contains(SECRET_MASK), "{example}");
        }
    }

    #[test]
    fn only_the_secret_goes() {
        for (text, scrubbed) in [
            ("AKIAIOSFODNN7EXAMPLE", "[REDACTED-SECRET]"),
            ("password = hunter22x", "password = [REDACTED-SECRET]"),
            ("postgres://user:p@ss@host/db", "postgres://user:[REDACTED-SECRET]@host/db"),
            ("Authorization: Bearer abcdefghij12", "Authorization: Bearer [REDACTED-SECRET]"),
            ("api_key: 'abcdef123'", "api_key: [REDACTED-SECRET]"),
            ("nothing here", "nothing here"),
            ("sk-ant-aaaaaaaaaaaaaaaa", "sk-ant-aaaaaaaaaaaaaaaa"),
            ("pwd: short", "pwd: short"),
        ] {
            assert_eq!(scrub_secrets(text), scrubbed, "{text}");
        }
    }

    #[test]
    fn what_concerns_a_person_is_confidential() {
        for text in ["mail a@b.co", "ssn 123-45-6789", "card 4111 1111 1111 1111"] {
            assert_eq!(detect_sensitivity(text), Sensitivity::Confidential, "{text}");
        }
        for text in ["", "nothing here", "12345", "a@b"] {
            assert_eq!(detect_sensitivity(text), Sensitivity::Public, "{text}");
        }
    }
}
