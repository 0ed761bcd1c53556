//! The page and its files, which are part of the binary. They are the same for everybody and say nothing of this
//! gateway, so they are public, as `/healthz` is.

use std::sync::LazyLock;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode,
    header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
        X_FRAME_OPTIONS,
    },
};

use crate::http::{Body, not_allowed, typed};

/// What a page may do: run our own files, talk to us, and show pictures and sounds that it was given as data.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
    media-src data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Nobody else's page gets to see what we answer, not even as a picture.
pub(crate) const RESOURCE_POLICY: HeaderName =
    HeaderName::from_static("cross-origin-resource-policy");

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// One file.
#[derive(Debug)]
struct File {
    path: &'static str,
    media_type: &'static str,
    content: Bytes,
    etag: String,
}

macro_rules! ours {
    ($name:literal) => {
        ($name, SCRIPT, include_str!(concat!("../../console/", $name)))
    };
}

/// The names, kinds and contents of all files.
const FILES: [(&str, &str, &str); 17] = [
    ("", "text/html; charset=utf-8", include_str!("../../console/index.html")),
    ("style.css", "text/css; charset=utf-8", include_str!("../../console/style.css")),
    ("icon.svg", "image/svg+xml", include_str!("../../console/icon.svg")),
    ours!("app.js"),
    ours!("ask.js"),
    ours!("parts.js"),
    ours!("schema.js"),
    ours!("form.js"),
    ours!("result.js"),
    ours!("tools.js"),
    ours!("calls.js"),
    ours!("servers.js"),
    ours!("events.js"),
    ours!("context.js"),
    ("preact.mjs", SCRIPT, include_str!("../../../../vendor/preact/preact.mjs")),
    ("hooks.mjs", SCRIPT, include_str!("../../../../vendor/preact/hooks.mjs")),
    ("htm.mjs", SCRIPT, include_str!("../../../../vendor/htm/htm.mjs")),
];

static SERVED: LazyLock<Vec<File>> = LazyLock::new(|| FILES.into_iter().map(File::new).collect());

impl File {
    fn new((path, media_type, text): (&'static str, &'static str, &'static str)) -> Self {
        // A bare name means nothing to a browser.
        let text = text.replace("from\"preact\"", "from\"./preact.mjs\"");
        let etag = format!("\"{}\"", &blake3::hash(text.as_bytes()).to_hex()[..32]);
        Self { path, media_type, content: text.into(), etag }
    }
}

/// The file at this path, if there is one.
fn find(path: &str) -> Option<&'static File> {
    let name = match path {
        "/" => "",
        _ => path.strip_prefix("/console/").filter(|it| !it.is_empty())?,
    };
    SERVED.iter().find(|it| it.path == name)
}

/// Whether this path is open to everybody.
pub(crate) fn is_file(path: &str) -> bool {
    find(path).is_some()
}

/// Serves a file.
pub(crate) fn serve(method: &Method, path: &str, headers: &HeaderMap) -> Response<Body> {
    let Some(file) = find(path) else { return not_allowed("GET") };
    if !matches!(*method, Method::GET | Method::HEAD) {
        return not_allowed("GET, HEAD");
    }
    let known = headers.get_all(IF_NONE_MATCH).iter().filter_map(|it| it.to_str().ok());
    let known = known.flat_map(|it| it.split(',')).any(|it| it.trim() == file.etag || it == "*");
    let (status, content) = match known {
        true => (StatusCode::NOT_MODIFIED, Bytes::new()),
        false => (StatusCode::OK, file.content.clone()),
    };
    let mut response = typed(status, file.media_type, Body::whole(content));
    let headers = response.headers_mut();
    if let Ok(etag) = HeaderValue::try_from(file.etag.as_str()) {
        headers.insert(ETAG, etag);
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Our own scripts, without what others wrote.
    fn own() -> impl Iterator<Item = (&'static str, &'static str)> {
        FILES.into_iter().filter(|it| !it.0.ends_with(".mjs")).map(|(name, _, text)| (name, text))
    }

    #[test]
    fn no_file_makes_markup_or_code_of_text() {
        let banned = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "dangerouslySetInnerHTML",
            "document.write",
            "DOMParser",
            "createContextualFragment",
            "srcdoc",
            "eval(",
            "new Function",
            "javascript:",
            "localStorage.setItem('token",
            "document.cookie",
        ];
        for (name, text) in own() {
            for word in banned {
                assert!(!text.contains(word), "{name}: {word}");
            }
        }
    }

    #[test]
    fn the_page_has_no_script_of_its_own_and_asks_nobody_else() {
        let (_, page) = own().next().unwrap();
        for tag in page.split("<script").skip(1) {
            assert!(tag.contains("src=\"console/") && tag.contains("></script>"), "{tag}");
        }
        assert!(!page.contains("style=") && !page.contains(" on"), "{page}");
        for (name, text) in own() {
            let text = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("http://") && !text.contains("https://"), "{name}");
            assert!(!text.contains("//cdn"), "{name}");
        }
    }

    #[test]
    fn whatever_a_script_imports_is_served() {
        for file in SERVED.iter().filter(|it| it.media_type == SCRIPT) {
            let text = std::str::from_utf8(&file.content).unwrap();
            for after in text.split("from").skip(1) {
                let Some(quoted) = after.trim_start().strip_prefix(['"', '\'']) else { continue };
                let name = quoted.split(['"', '\'']).next().unwrap();
                // Words in a text are no import.
                if name.contains(' ') || name.is_empty() {
                    continue;
                }
                let name =
                    name.strip_prefix("./").unwrap_or_else(|| panic!("{}: {name}", file.path));
                assert!(is_file(&format!("/console/{name}")), "{}: {name}", file.path);
            }
        }
    }

    #[test]
    fn all_of_it_is_small() {
        let size: usize = SERVED.iter().map(|it| it.content.len()).sum();
        assert!(size < 150_000, "{size} bytes");
    }

    #[test]
    fn a_file_that_is_known_is_not_sent_again() {
        let mut headers = HeaderMap::new();
        let first = serve(&Method::GET, "/", &headers);
        assert_eq!(first.status(), StatusCode::OK);
        headers.insert(IF_NONE_MATCH, first.headers()[ETAG].clone());
        assert_eq!(serve(&Method::GET, "/", &headers).status(), StatusCode::NOT_MODIFIED);
        assert_eq!(serve(&Method::GET, "/console/app.js", &headers).status(), StatusCode::OK);
        let refused = serve(&Method::POST, "/", &headers);
        assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert!(!is_file("/console/") && !is_file("/console/../app.js") && !is_file("/app.js"));
    }
}
