//! Documents that people wrote: the seed's, and the official examples of AsyncAPI.
//!
//! The examples are not ours to carry: they are read from `$TOOLCRIB_DATA` (by default `../shared`).

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use toolcrib::{
    catalogue::Json,
    sources::asyncapi::{EventTool, Loaded, load},
};

use super::TASKS;
use crate::kit::Folder;

#[test]
fn the_seeds_document_is_one_tool() {
    let folder = Folder::new();
    folder.write("events/task_coordination.yaml", TASKS);
    let Loaded { tools, problems, referenced, broken: _ } = load(folder.path());
    assert_eq!((problems, referenced), (Vec::new(), Vec::new()));
    let [tool] = tools.as_slice() else { panic!("{tools:?}") };
    assert_eq!(
        (tool.name.as_str(), tool.description.as_str(), tool.address.as_str()),
        ("delegate_task", "Delegate a task to a worker agent", "task.delegate")
    );
    let schema = json!({
        "type": "object",
        "required": ["task_id", "task_type", "instructions"],
        "properties": {
            "task_id": { "type": "string", "description": "Unique identifier for the task" },
            "task_type": { "type": "string", "enum": ["download", "analyze", "convert"] },
            "instructions": { "type": "string", "description": "Detailed instructions" },
        },
    });
    // As text: the order of keys is part of it.
    assert_eq!(tool.input_schema.to_string(), schema.to_string());

    let good = r#"{"task_id": "t1", "task_type": "analyze", "instructions": "go", "n": 1e400}"#;
    let emission = tool.emission(&Json::parse(good).unwrap()).unwrap();
    assert_eq!((emission.name.as_str(), emission.data.as_str()), ("task.delegate", good));
    let bad = Json::parse(r#"{"task_id": 7, "task_type": "guess"}"#).unwrap();
    insta::assert_snapshot!(tool.emission(&bad).unwrap_err(), @r#"/instructions: is missing (required); /task_id: must be a string (type), found 7; /task_type: must be one of "download", "analyze", "convert" (enum), found "guess""#);
}

fn examples() -> Option<PathBuf> {
    let folder = std::env::var_os("TOOLCRIB_DATA").map(PathBuf::from);
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = folder.unwrap_or(beside).join("data/asyncapi-examples");
    if folder.is_dir() {
        return Some(folder);
    }
    println!("NOT RUN: there are no AsyncAPI documents in {}", folder.display());
    None
}

/// All documents below a folder, and whatever else they refer to.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|it| it == "yml" || it == "yaml") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// A document in which every operation says that it is a tool, and how many there are.
fn enabled(text: &str) -> (String, usize) {
    let (mut out, mut inside, mut count) = (String::new(), false, 0);
    for line in text.lines() {
        out.push_str(line);
        out.push('\n');
        if !line.starts_with([' ', '#']) && !line.is_empty() {
            inside = line.trim_end() == "operations:";
        } else if inside
            && line.starts_with("  ")
            && !line.starts_with("   ")
            && line.trim_end().ends_with(':')
        {
            out.push_str("    x-agent-tool: { enabled: true }\n");
            count += 1;
        }
    }
    (out, count)
}

/// Copies a document to `events/`, and the folders beside it to where it looks for them.
fn workspace(path: &Path, text: &str) -> Folder {
    let folder = Folder::new();
    folder.write("events/document.yaml", text);
    let beside = path.parent().unwrap().parent().unwrap().join("common");
    let others = if beside.is_dir() { files(&beside) } else { Vec::new() };
    for file in others {
        let name = file.strip_prefix(beside.parent().unwrap()).unwrap();
        folder.write(name.to_str().unwrap(), fs::read(&file).unwrap());
    }
    folder
}

#[test]
fn every_operation_of_the_official_examples_is_a_tool_or_told() {
    let Some(folder) = examples() else { return };
    let (mut documents, mut operations, mut tools, mut told) = (0, 0, 0, 0);
    for path in files(&folder) {
        let text = fs::read_to_string(&path).unwrap();
        if !text.starts_with("asyncapi:") {
            continue;
        }
        let (text, count) = enabled(&text);
        let whole: Value = serde_saphyr::from_str(&text).unwrap();
        let ids: Vec<&String> = whole["operations"].as_object().unwrap().keys().collect();
        assert_eq!(ids.len(), count, "{}", path.display());
        let loaded = load(workspace(&path, &text).path());
        documents += 1;
        for id in ids {
            operations += 1;
            match loaded.tools.iter().find(|it| it.operation == *id) {
                Some(tool) => {
                    tools += 1;
                    hold(tool);
                }
                None => {
                    told += 1;
                    let subject = format!("events/document.yaml: operations: {id}");
                    let said = loaded.problems.iter().find(|it| it.subject.starts_with(&subject));
                    let said =
                        said.unwrap_or_else(|| panic!("{}: {id}: nothing said", path.display()));
                    println!("{}: {said}", path.display());
                }
            }
        }
        for problem in &loaded.problems {
            println!("{}: {problem}", path.display());
        }
    }
    println!("{documents} documents, {operations} operations: {tools} tools, {told} told");
    assert!(0 < tools);
}

/// A schema that any client can use: an object, valid, and complete in itself.
fn hold(tool: &EventTool) {
    assert_eq!(tool.input_schema["type"], "object");
    let schemas = [Some(&tool.input_schema), tool.reply.as_ref().and_then(|it| it.schema.as_ref())];
    for schema in schemas.into_iter().flatten() {
        jsonschema::validator_for(schema).unwrap();
        let text = schema.to_string();
        for reference in text.split(r#""$ref":""#).skip(1) {
            assert!(reference.starts_with("#/$defs/"), "{text}");
        }
    }
}
