//! `toolcrib artifact`: stored results, and pieces of them.
//!
//! The files are read where they lie. They do not change once they are there, so it does not matter whether a
//! gateway runs.

use std::{
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use serde_json::{Map, Value, json};
use toolcrib_bus::{now_ms, rfc3339};
use toolcrib_context::artifacts::{
    Artifact, ArtifactId, Body, Piece, PieceError, ReadLimits, Selector, Store, artifact_uri,
    parse_artifact_uri,
};

use super::Failure;
use crate::{
    cli::{ArtifactCommand, ReadArtifact},
    terminal::{self, DIM, styled},
};

/// How much is printed at once. A person or a program asks for more than a model should.
const MAX_PIECE: usize = 4 << 20;

/// How long that may take. Whoever does not want to wait so long can end it.
const PATIENCE: Duration = Duration::from_secs(600);

pub(crate) fn run(command: ArtifactCommand) -> Result<ExitCode, Failure> {
    match command {
        ArtifactCommand::List { group, json, workspace } => {
            list(&folder(&workspace)?, group.as_deref(), json)
        }
        ArtifactCommand::Read(asked) => read(&asked),
    }
}

/// Where the artifacts of a workspace lie. A workspace that has stored nothing has no such folder.
fn folder(workspace: &Path) -> Result<PathBuf, Failure> {
    let folder =
        if workspace.is_file() { workspace.parent().unwrap_or(workspace) } else { workspace };
    if !folder.is_dir() {
        return Err(Failure::unusable(format!("there is no folder `{}`", workspace.display())));
    }
    Ok(folder.join(".toolcrib").join("artifacts"))
}

/// The store; nothing where there is none yet.
fn open(folder: &Path) -> Result<Option<Store>, Failure> {
    match Store::look(folder) {
        Ok((store, said)) => {
            for line in said {
                terminal::remark(&terminal::clean(&line));
            }
            Ok(Some(store))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::unusable(format!("`{}`: {error}", folder.display()))),
    }
}

fn list(folder: &Path, group: Option<&str>, as_json: bool) -> Result<ExitCode, Failure> {
    let list = open(folder)?.map(|store| store.list(group)).unwrap_or_default();
    let text = if as_json {
        format!("{:#}\n", Value::from(list.iter().map(listed).collect::<Vec<_>>()))
    } else if list.is_empty() {
        "nothing is stored\n".to_owned()
    } else {
        shown(&list)
    };
    terminal::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn listed(it: &Artifact) -> Value {
    let mut line = json!(it);
    line["created"] = rfc3339(it.created).into();
    line["expires"] = rfc3339(it.expires).into();
    line["uri"] = it.uri().into();
    line
}

fn shown(list: &[Artifact]) -> String {
    let now = now_ms();
    let row = |it: &Artifact| {
        let about = [&it.media_type, &it.tool, &it.owner, &it.label].map(|it| terminal::clean(it));
        let [kind, tool, group, label] =
            about.map(|it| if it.is_empty() { "-".to_owned() } else { it });
        let age = span(now.saturating_sub(it.created));
        let left = span(it.expires.saturating_sub(now));
        [it.id.to_string(), size(it.size_bytes), age, left, kind, tool, group, label]
    };
    let rows: Vec<[String; 8]> = list.iter().map(row).collect();
    terminal::table(["ID", "SIZE", "AGE", "LEFT", "TYPE", "TOOL", "GROUP", "LABEL"], &rows)
}

/// Bytes for a person.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// Milliseconds for a person.
fn span(millis: u64) -> String {
    match millis / 1000 {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

fn read(asked: &ReadArtifact) -> Result<ExitCode, Failure> {
    let (id, selector) = named(asked)?;
    let folder = folder(&asked.workspace)?;
    let artifact = open(&folder)?.and_then(|store| store.find(None, &id).map(|it| (store, it)));
    let Some((store, artifact)) = artifact else {
        let hint = "`toolcrib artifact list` shows what is stored; what has expired is gone";
        let failure = Failure::said_no(format!("there is no artifact `{id}`"));
        return Err(failure.hint(Some(hint.to_owned())));
    };
    if let (Some(out), None) = (&asked.out, &selector) {
        return copy(&store, &artifact, out);
    }
    let selector = selector.unwrap_or_default();
    let deadline = Some(Instant::now() + PATIENCE);
    let limits = ReadLimits { max_bytes: MAX_PIECE, deadline, ..ReadLimits::default() };
    let piece = store.read(&artifact, &selector, &limits)?;
    if let Some(out) = &asked.out {
        write(out, bytes(&piece))?;
    } else if asked.json {
        let text = format!("{:#}\n", json!(piece));
        let watched = terminal::is_watched();
        terminal::print_raw(&if watched { terminal::clean_json(&text) } else { text })?;
    } else {
        terminal::print_bytes(&shown_piece(&piece, terminal::is_watched())?)?;
    }
    if !asked.json {
        remarks(&artifact, &piece);
    }
    Ok(ExitCode::SUCCESS)
}

/// Which artifact, and which piece of it if one is asked for.
fn named(asked: &ReadArtifact) -> Result<(ArtifactId, Option<Selector>), Failure> {
    let unusable = |error: &dyn std::fmt::Display| {
        Failure::unusable(format!("`{}`: {error}", terminal::clean(&asked.id)))
    };
    let (id, said) = match parse_artifact_uri(&asked.id) {
        Some(parsed) => parsed.map_err(|error| unusable(&error))?,
        None => (asked.id.parse::<ArtifactId>().map_err(|error| unusable(&error))?, None),
    };
    let words = words(asked);
    if words.is_empty() {
        return Ok((id, said));
    }
    if said.is_some() {
        return Err(unusable(&"it says already which piece; leave out the options, or its query"));
    }
    let selector = Selector::try_from(words);
    Ok((id, Some(selector.map_err(|error| Failure::unusable(error.to_string()))?)))
}

/// The selector, as a model would write it.
fn words(asked: &ReadArtifact) -> Map<String, Value> {
    let mut words = Map::new();
    let mut add = |word: &str, text: Option<Value>| {
        if let Some(text) = text {
            words.insert(word.to_owned(), text);
        }
    };
    let text = |it: &Option<String>| it.as_deref().map(Value::from);
    add("head", asked.head.map(Value::from));
    add("tail", asked.tail.map(Value::from));
    add("offset", asked.offset.map(Value::from));
    add("lines", text(&asked.lines));
    add("skip", asked.skip.map(Value::from));
    add("rows", text(&asked.rows));
    add("bytes", text(&asked.bytes));
    add("keys", text(&asked.keys));
    add("path", text(&asked.path));
    add("grep", text(&asked.grep));
    add("ignore_case", asked.ignore_case.then_some(Value::Bool(true)));
    add("context", asked.context.map(Value::from));
    let many = |it: &[String]| (!it.is_empty()).then(|| Value::from(it.to_vec()));
    add("count", many(&asked.count));
    add("sum", many(&asked.sum));
    add("min", many(&asked.min));
    add("max", many(&asked.max));
    add("avg", many(&asked.avg));
    add("where", many(&asked.tests));
    add("group_by", text(&asked.group_by));
    add("top", asked.top.map(Value::from));
    add("from", asked.from.map(Value::from));
    words
}

impl From<PieceError> for Failure {
    fn from(error: PieceError) -> Self {
        match error {
            PieceError::Asked(_) => Self::unusable(error.to_string()),
            error => Self::said_no(error.to_string()),
        }
    }
}

/// The whole of it into a file.
fn copy(store: &Store, artifact: &Artifact, out: &Path) -> Result<ExitCode, Failure> {
    let mut content = store.content(artifact)?;
    let failed = |error| Failure::unusable(format!("`{}`: {error}", out.display()));
    let mut file = File::create(out).map_err(failed)?;
    let written = io::copy(&mut content, &mut file).map_err(failed)?;
    terminal::remark(&format!(
        "{written} bytes of {} written",
        terminal::clean(&artifact.media_type)
    ));
    Ok(ExitCode::SUCCESS)
}

fn write(out: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let written = File::create(out).and_then(|mut file| file.write_all(bytes));
    written.map_err(|error| Failure::unusable(format!("`{}`: {error}", out.display())))
}

fn bytes(piece: &Piece) -> &[u8] {
    match &piece.body {
        Body::Text(text) => text.as_bytes(),
        Body::Bytes(bytes) => bytes,
    }
}

/// For a person: nothing that a terminal would take for an order. For a program: as it is.
fn shown_piece(piece: &Piece, watched: bool) -> Result<Vec<u8>, Failure> {
    match &piece.body {
        Body::Text(text) if watched => {
            Ok(format!("{}\n", terminal::clean_lines(text)).into_bytes())
        }
        Body::Text(text) => {
            let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            Ok(format!("{text}{end}").into_bytes())
        }
        Body::Bytes(_) if watched => {
            let kind = terminal::clean(&piece.media_type);
            let hint = "write it to a file with --out FILE, or into a pipe";
            Err(Failure::said_no(format!("bytes of {kind} are nothing for a terminal"))
                .hint(Some(hint.to_owned())))
        }
        Body::Bytes(bytes) => Ok(bytes.clone()),
    }
}

/// Where the piece stands, and how to go on.
fn remarks(artifact: &Artifact, piece: &Piece) {
    let unit = json!(piece.unit);
    let unit = unit.as_str().unwrap_or_default();
    let of = piece.total.map_or_else(String::new, |it| format!(" of {it}"));
    terminal::remark(&format!("{unit} {} to {}{of}", piece.from, piece.to));
    for note in &piece.notes {
        terminal::remark(&terminal::clean(note));
    }
    if let Some(next) = &piece.next {
        let uri = artifact_uri(&artifact.id, Some(next));
        terminal::remark(&format!("more at {}", styled(DIM, &uri)));
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use toolcrib_context::artifacts::read_piece;

    use super::*;
    use crate::cli::{Args, Command};

    /// What is read where this is typed.
    fn meant(typed: &[&str]) -> Result<(String, Option<Selector>), Failure> {
        let line = ["toolcrib", "artifact", "read"].iter().chain(typed);
        match Args::try_parse_from(line).unwrap().command {
            Command::Artifact { what: ArtifactCommand::Read(asked) } => {
                named(&asked).map(|(id, selector)| (id.to_string(), selector))
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_said_of_the_rest_can_be_typed() {
        let id = ArtifactId::random().unwrap();
        let next = [
            "lines=0:5&skip=4194304",
            "head=2000&offset=7",
            "path=$.a&from=9",
            "grep=a%20b&context=2&from=3",
            "sum=a&group_by=b&from=50",
        ];
        for query in next {
            let selector = Selector::from_query(query).unwrap();
            let uri = artifact_uri(&id, Some(&selector));
            let found = meant(&[&uri]).unwrap();
            assert_eq!(found, (id.to_string(), Some(selector)), "{query}");
        }
        let id = id.to_string();
        assert_eq!(meant(&[&id]).unwrap(), (id.clone(), None));
        let uri = format!("toolcrib://artifact/{id}");
        assert_eq!(meant(&[&uri]).unwrap(), (id.clone(), None));
        let lines = Selector::from_query("lines=0:5&skip=7").unwrap();
        let found = meant(&[&uri, "--lines", "0:5", "--skip", "7"]).unwrap();
        assert_eq!(found, (id, Some(lines)));
        let both = meant(&[&format!("{uri}?lines=0:5"), "--head", "3"]).unwrap_err();
        assert!(format!("{both:?}").contains("it says already which piece"), "{both:?}");
        assert!(meant(&[&format!("{uri}?nope=1")]).is_err());
        assert!(meant(&["toolcrib://artifact/nope"]).is_err());
    }

    #[test]
    fn a_terminal_gets_no_orders_and_no_bytes() {
        let piece = |query: &str| {
            let mut content = io::Cursor::new(b"a\x1b[2J\n\xc2\x9bb");
            let selector = Selector::from_query(query).unwrap();
            read_piece(&mut content, "text/plain", &selector, &ReadLimits::default()).unwrap()
        };
        let text = |watched| String::from_utf8(shown_piece(&piece(""), watched).unwrap()).unwrap();
        assert_eq!(text(false), "a\u{1b}[2J\n\u{9b}b\n");
        assert_eq!(text(true), "a\\u{1b}[2J\n\\u{9b}b\n");
        assert_eq!(shown_piece(&piece("bytes=0:3"), false).unwrap(), b"a\x1b[");
        let refused = format!("{:?}", shown_piece(&piece("bytes=0:3"), true).unwrap_err());
        assert!(refused.contains("nothing for a terminal") && refused.contains("--out FILE"));
    }
}
