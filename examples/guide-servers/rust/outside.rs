//! Tools that reach outside, each within a fence: an address, a query, a file.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use serde_json::{Value, json};
use toolcrib::{catalogue::Annotations, sources::mods::AgentTool};

use super::{
    DESTROYS, Fault, GuideMod, READS, Said, Shelf,
    arguments::{ApiCall, Encoding, ExecuteQuery, GetCachedResource, Method, ReadFile},
    failed, invalid,
    items::Item,
};

const MOST_BYTES: usize = 1024 * 1024;
const CACHED: usize = 128;

impl GuideMod {
    pub(super) fn outside_tools(&self) -> Vec<AgentTool> {
        let reaches = Annotations { open_world_hint: Some(true), ..DESTROYS };
        vec![
            self.tool(
                "api_call",
                "Call an endpoint of the one HTTP address that is allowed",
                reaches,
                api_call,
            ),
            self.tool(
                "execute_query",
                "Read from the table items with a small part of SQL: SELECT columns FROM items WHERE column = ? AND column < ?",
                READS,
                execute_query,
            ),
            self.tool("read_file", "Read a text file of the data folder", READS, read_file),
            self.tool(
                "get_cached_resource",
                "Get a text by its key; it is read once and then remembered",
                READS,
                get_cached_resource,
            ),
        ]
    }
}

async fn api_call(shelf: Arc<Shelf>, call: ApiCall) -> Said {
    // Compared as text, up to the slash that ends the host: two programs may read an odd address in two ways.
    let rest = shelf.place.api.as_ref().and_then(|it| call.endpoint.strip_prefix(it.as_str()));
    if !rest.is_some_and(|it| it.starts_with('/')) {
        return invalid("endpoint is not at the address that is allowed");
    }
    if call.method == Method::Get && call.body.is_some() {
        return invalid("body: a GET has none");
    }
    let method = json!(call.method);
    let method = method.as_str().unwrap_or_default();
    let sent = call.body.map(|it| Value::Object(it).to_string());
    let mut request = http::Request::builder().method(method).uri(&call.endpoint);
    if sent.is_some() {
        request = request.header("Content-Type", "application/json");
    }
    let request = request.body(Full::<Bytes>::from(sent.unwrap_or_default()));
    let Ok(request) = request else { return invalid("endpoint is no address") };
    let fetched = tokio::time::timeout(Duration::from_secs(5), fetch(request)).await;
    let Ok(Some((status, body))) = fetched else {
        return failed("the endpoint cannot be reached");
    };
    Ok((format!("{method} gave {status}"), json!({ "status": status, "body": body })))
}

/// Sends a request. A redirect is an answer like any other.
async fn fetch(request: http::Request<Full<Bytes>>) -> Option<(u16, String)> {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let response = client.request(request).await.ok()?;
    let status = response.status().as_u16();
    let body = Limited::new(response.into_body(), MOST_BYTES).collect().await.ok()?;
    Some((status, String::from_utf8_lossy(&body.to_bytes()).into_owned()))
}

const COLUMNS: [&str; 5] = ["id", "title", "category", "status", "weight"];

/// A column, how it is compared, and with which `?`.
type Condition = (&'static str, char);

/// The words of a query, read one by one.
struct Words<'a> {
    words: Vec<&'a str>,
    at: usize,
}

impl<'a> Words<'a> {
    fn of(query: &'a str) -> Self {
        let in_word = |it: char| it.is_ascii_alphabetic() || it == '_';
        let (mut words, mut rest) = (Vec::new(), query);
        loop {
            rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
            let Some(first) = rest.chars().next() else { break };
            let end = if in_word(first) {
                rest.find(|it| !in_word(it)).unwrap_or(rest.len())
            } else {
                first.len_utf8()
            };
            let (word, after) = rest.split_at(end);
            words.push(word);
            rest = after;
        }
        Self { words, at: 0 }
    }

    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.at).copied()
    }

    fn take(&mut self, allowed: &[&'static str]) -> Result<&'static str, Fault> {
        let word = self.peek().unwrap_or_default();
        let found = allowed.iter().find(|it| it.eq_ignore_ascii_case(word));
        let expected =
            || format!("query: expected {} at word {}", allowed.join(" or "), self.at + 1);
        let found = found.copied().ok_or_else(|| Fault::Invalid(expected()))?;
        self.at += 1;
        Ok(found)
    }
}

/// Reads `SELECT … FROM items [WHERE column = ? AND …]`. A value can only be a `?`.
fn read_query(query: &str) -> Result<(Vec<&'static str>, Vec<Condition>), Fault> {
    let mut words = Words::of(query);
    words.take(&["select"])?;
    let first = words.take(&["*", "id", "title", "category", "status", "weight"])?;
    let mut columns = vec![first];
    while first != "*" && words.peek() == Some(",") {
        words.take(&[","])?;
        columns.push(words.take(&COLUMNS)?);
    }
    words.take(&["from"])?;
    words.take(&["items"])?;
    let mut conditions = Vec::new();
    while words.peek().is_some() {
        words.take(if conditions.is_empty() { &["where"] } else { &["and"] })?;
        let column = words.take(&COLUMNS)?;
        let sign = words.take(&["=", "<", ">"])?;
        words.take(&["?"])?;
        conditions.push((column, sign.chars().next().unwrap_or('=')));
    }
    Ok((if first == "*" { COLUMNS.to_vec() } else { columns }, conditions))
}

fn cell(item: &Item, column: &str) -> Value {
    match column {
        "id" => json!(item.id),
        "title" => json!(item.title),
        "category" => json!(item.category),
        "status" => json!(item.status),
        _ => json!(item.weight),
    }
}

/// Whether a condition holds; nothing where the two cannot be compared.
fn holds(cell: &Value, sign: char, value: &Value) -> Option<bool> {
    let order = match (cell, value) {
        (Value::String(cell), Value::String(value)) => cell.cmp(value),
        (Value::Number(cell), Value::Number(value)) => {
            cell.as_f64()?.partial_cmp(&value.as_f64()?)?
        }
        _ => return None,
    };
    Some(match sign {
        '<' => order.is_lt(),
        '>' => order.is_gt(),
        _ => order.is_eq(),
    })
}

async fn execute_query(shelf: Arc<Shelf>, ExecuteQuery { query, params }: ExecuteQuery) -> Said {
    let (columns, conditions) = read_query(&query)?;
    let (asked, given) = (conditions.len(), params.len());
    if asked != given {
        return invalid(format!("params: the query has {asked} ?, and there are {given} values"));
    }
    for ((column, _), value) in conditions.iter().zip(&params) {
        let fits = if *column == "weight" { value.is_number() } else { value.is_string() };
        if !fits {
            return invalid(format!("params: that is no value for {column}"));
        }
    }
    let fits = |item: &&Item| {
        let mut all = conditions.iter().zip(&params);
        all.all(|((column, sign), value)| holds(&cell(item, column), *sign, value) == Some(true))
    };
    let items = shelf.items.lock();
    let row = |it: &Item| columns.iter().map(|column| cell(it, column)).collect::<Vec<_>>();
    let mut rows: Vec<_> = items.iter().filter(fits).map(row).collect();
    let said = format!("{} rows", rows.len());
    rows.truncate(100);
    Ok((said, json!({ "columns": columns, "rows": rows })))
}

/// Reads a file of the data folder. What is outside and what is not there get the same answer.
fn read_inside(shelf: &Shelf, path: &str, encoding: Encoding) -> Result<String, Fault> {
    let read = || {
        let folder = shelf.place.data.canonicalize().ok()?;
        // This follows `..` and links, so what is compared is the file that would be opened.
        let file = folder.join(path).canonicalize().ok()?;
        let about = file.metadata().ok()?;
        let small = about.is_file() && about.len() <= MOST_BYTES as u64;
        let inside = file != folder && file.starts_with(&folder);
        (small && inside).then(|| std::fs::read(&file).ok())?
    };
    let Some(bytes) = read() else { return invalid("path: the data folder has no such file") };
    match encoding {
        Encoding::Latin1 => Ok(bytes.into_iter().map(char::from).collect()),
        Encoding::Utf8 => String::from_utf8(bytes).or_else(|_| failed("the file is not utf-8")),
    }
}

async fn read_file(shelf: Arc<Shelf>, ReadFile { path, encoding }: ReadFile) -> Said {
    let text = read_inside(&shelf, &path, encoding)?;
    Ok((text.clone(), json!({ "path": path, "text": text })))
}

async fn get_cached_resource(shelf: Arc<Shelf>, wanted: GetCachedResource) -> Said {
    let key = wanted.key;
    let mut cache = shelf.cache.lock();
    let known = cache.iter().position(|it| it.0 == key).map(|at| cache.remove(at).1);
    let text = match known {
        Some(text) => text,
        None => {
            let text = read_inside(&shelf, &format!("{key}.txt"), Encoding::Utf8)?;
            *shelf.fetches.lock() += 1;
            text
        }
    };
    // Whoever is used goes to the end, the first one leaves.
    cache.push((key.clone(), text.clone()));
    if cache.len() > CACHED {
        cache.remove(0);
    }
    let fetches = *shelf.fetches.lock();
    Ok((text.clone(), json!({ "key": key, "text": text, "fetches": fetches })))
}
