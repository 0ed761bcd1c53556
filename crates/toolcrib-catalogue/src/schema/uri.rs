//! References against the address they stand under (RFC 3986, part 5). Nothing is ever fetched.

struct Parts<'u> {
    scheme: Option<&'u str>,
    authority: Option<&'u str>,
    path: &'u str,
    query: Option<&'u str>,
}

/// The address that `reference` means under `base`, and its fragment, both as written.
pub(super) fn resolve(base: &str, reference: &str) -> (String, String) {
    let (reference, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    let (base, _) = base.split_once('#').unwrap_or((base, ""));
    if reference.is_empty() {
        return (base.to_owned(), fragment.to_owned());
    }
    let (given, under) = (parts(reference), parts(base));
    let whole = if given.scheme.is_some() {
        Parts { path: given.path, ..given }
    } else if given.authority.is_some() {
        Parts { scheme: under.scheme, ..given }
    } else if given.path.is_empty() {
        Parts { query: given.query, ..under }
    } else {
        let path = match (given.path.starts_with('/'), under.path.rfind('/')) {
            (true, _) => given.path.to_owned(),
            (false, Some(end)) => format!("{}{}", &under.path[..=end], given.path),
            (false, None) if under.authority.is_some() => format!("/{}", given.path),
            (false, None) => given.path.to_owned(),
        };
        let path = without_dots(&path);
        return (write(&Parts { path: &path, query: given.query, ..under }), fragment.to_owned());
    };
    (write(&whole), fragment.to_owned())
}

/// Whether a reference is an address of its own, whatever it stands under.
pub(super) fn is_whole(reference: &str) -> bool {
    let parts = parts(reference.split('#').next().unwrap_or_default());
    parts.scheme.is_some() || parts.authority.is_some()
}

/// A fragment with its %-escapes read; `None` where they are no text.
pub(super) fn decoded(fragment: &str) -> Option<String> {
    let bytes = fragment.as_bytes();
    let mut read = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let escaped = fragment.get(at + 1..at + 3).filter(|_| byte == b'%');
        match escaped.and_then(|it| u8::from_str_radix(it, 16).ok()) {
            Some(byte) => {
                read.push(byte);
                at += 3;
            }
            None => {
                read.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(read).ok()
}

fn parts(uri: &str) -> Parts<'_> {
    let (rest, query) = match uri.split_once('?') {
        Some((rest, query)) => (rest, Some(query)),
        None => (uri, None),
    };
    let is_scheme = |it: &str| {
        it.starts_with(|c: char| c.is_ascii_alphabetic())
            && it.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    let (scheme, rest) = match rest.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (Some(scheme), rest),
        _ => (None, rest),
    };
    match rest.strip_prefix("//") {
        Some(rest) => {
            let end = rest.find('/').unwrap_or(rest.len());
            Parts { scheme, authority: Some(&rest[..end]), path: &rest[end..], query }
        }
        None => Parts { scheme, authority: None, path: rest, query },
    }
}

fn write(parts: &Parts<'_>) -> String {
    let mut uri = String::new();
    if let Some(scheme) = parts.scheme {
        uri.push_str(scheme);
        uri.push(':');
    }
    if let Some(authority) = parts.authority {
        uri.push_str("//");
        uri.push_str(authority);
    }
    uri.push_str(parts.path);
    if let Some(query) = parts.query {
        uri.push('?');
        uri.push_str(query);
    }
    uri
}

fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let steps: Vec<&str> = path.split('/').collect();
    for (index, step) in steps.iter().enumerate() {
        let last = index + 1 == steps.len();
        match *step {
            ".." => {
                if kept.len() > 1 {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            "." if last => kept.push(""),
            "." => {}
            step => kept.push(step),
        }
    }
    kept.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_resolve_as_the_rfc_shows() {
        let base = "http://a/b/c/d;p?q";
        for (reference, whole) in [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("g;x=1/../y", "http://a/b/c/y"),
        ] {
            assert_eq!(resolve(base, reference), (whole.to_owned(), String::new()), "{reference}");
        }
        assert_eq!(resolve("http://a", "g#x").0, "http://a/g");
        assert_eq!(
            resolve("urn:uuid:1", "#/a%25b"),
            ("urn:uuid:1".to_owned(), "/a%25b".to_owned())
        );
        assert_eq!(decoded("/a%25b%"), Some("/a%b%".to_owned()));
        assert_eq!(decoded("%ff"), None);
    }
}
