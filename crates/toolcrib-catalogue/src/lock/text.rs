//! The file: how a lock is written and read.
//!
//! ```text
//! version 1
//!
//! source server:git 0f3c…
//!   command "uvx"
//!   transport "stdio"
//! tool server:git commit 77ab…
//!   description "Records changes.\n"
//!   description "They stay."
//!   inputSchema.properties.message {"type":"string"}
//! end
//! ```
//!
//! A line is words: a bare word, or a text in JSON where it has other characters than bare words may
//! have. An indented line is a fact of the head line above it: a path and a value. A text that has
//! several lines is written as several, each with the same path. The line of a tool ends with `unkept`
//! where its definition is too long to be kept. `end` shows that nothing was cut off. Lines that begin
//! with `#` may stand above the version; further down a tool could be lost in one.

mod read;
mod words;

use std::borrow::Cow;

use super::{
    Lock,
    canonical::{Ink, Node},
};

pub(super) use read::read;
use words::push_word;

const VERSION: &str = "1";
/// Ends the line of a tool whose definition does not stand below it.
const UNKEPT: &str = "unkept";

const HEADING: &str = "\
# What every tool was when somebody accepted it. Written by `toolcrib lock`, compared by
# `toolcrib lock --check`. Meant for git: a line that changes is a tool that changed.
";

pub(super) fn write(lock: &Lock) -> String {
    let mut out = format!("{HEADING}version {VERSION}\n");
    for (place, pins) in &lock.sources {
        out.push_str("\nsource ");
        push_word(&mut out, place.as_str());
        if let Some(way) = &pins.way {
            out.push_str(&format!(" {}", way.hash()));
        }
        out.push('\n');
        if let Some(way) = &pins.way {
            push_facts(&mut out, &way.to_string());
        }
        for (name, pin) in &pins.tools {
            out.push_str("tool ");
            push_word(&mut out, place.as_str());
            out.push(' ');
            push_word(&mut out, name);
            match &pin.definition {
                Some(definition) => {
                    out.push_str(&format!(" {}\n", pin.hash));
                    push_facts(&mut out, definition);
                }
                None => out.push_str(&format!(" {} {UNKEPT}\n", pin.hash)),
            }
        }
    }
    out.push_str("\nend\n");
    out
}

/// Writes a definition, one fact a line.
fn push_facts(out: &mut String, canonical: &str) {
    if let Some(node) = Node::read(canonical) {
        for (key, value) in node.members().iter().filter(|(key, _)| key != "name") {
            push_fact(out, &mut vec![key], value);
        }
    }
}

fn push_fact<'a>(out: &mut String, path: &mut Vec<&'a str>, value: &'a Node<'_>) {
    if !value.members().is_empty() && is_taken_apart(path) && value.has_unique_keys() {
        for (key, value) in value.members() {
            path.push(key);
            push_fact(out, path, value);
            path.pop();
        }
        return;
    }
    match value.text().filter(|it| !it.is_empty()) {
        Some(text) => {
            for line in text.split_inclusive('\n') {
                push_line(out, path, &Node::Text(Cow::Borrowed(line)));
            }
        }
        None => push_line(out, path, value),
    }
}

fn push_line(out: &mut String, path: &[&str], value: &Node<'_>) {
    out.push_str("  ");
    for (place, part) in path.iter().enumerate() {
        if place > 0 {
            out.push('.');
        }
        push_word(out, part);
    }
    out.push(' ');
    value.push(out, Ink::Visible);
    out.push('\n');
}

/// Arguments and annotations get a line each; what is inside of them does not.
fn is_taken_apart(path: &[&str]) -> bool {
    let schema = ["inputSchema", "outputSchema"];
    match path {
        [one] => *one == "annotations" || schema.contains(one),
        [one, other] => {
            schema.contains(one) && ["properties", "$defs", "definitions"].contains(other)
        }
        _ => false,
    }
}
