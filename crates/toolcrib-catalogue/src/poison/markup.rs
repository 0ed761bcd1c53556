//! Blocks that are hidden by how a text is laid out or marked up, and markup that fetches.

use super::{Kind, Signal, phrases::floor};

/// How far a tag or an address is read.
const REACH: usize = 400;
/// How many tags, and how many links, of one text are looked at.
const TAGS: usize = 1000;
/// So many line ends, or spaces, in a row push the rest out of sight.
const LINES: usize = 20;
const SPACES: usize = 150;

const ROLE: &str = "imitates the marks that part a conversation";
const BLOCK: &str = "marks a block as addressed to the model";
const UNSEEN: &str = "has a part that a page would not show";
const FETCH: &str = "has markup that fetches from elsewhere when it is shown";
const SCRIPT: &str = "has markup that runs when it is shown";
const PUSHED: &str = "pushes text out of sight";

/// Marks of the templates that models are trained with.
const ROLES: [&str; 16] = [
    "<|im_start|>",
    "<|im_end|>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "[inst]",
    "[/inst]",
    "<<sys>>",
    "<|endoftext|>",
    "<|start_header_id|>",
    "<start_of_turn>",
    "<|eot_id|>",
    "\n\nhuman:",
    "\n\nassistant:",
    "</tool_response>",
    "</function_results>",
];

/// Names of tags by which a block asks for the model's attention.
const BLOCKS: [&str; 22] = [
    "important",
    "system",
    "secret",
    "hidden",
    "instruction",
    "instructions",
    "critical",
    "urgent",
    "admin",
    "override",
    "directive",
    "system_prompt",
    "systemprompt",
    "sys",
    "priority",
    "mandatory",
    "internal",
    "assistant",
    "ai",
    "prompt",
    "system-reminder",
    "attention",
];

pub(super) fn look(text: &str, mut tell: impl FnMut(Signal<'_>)) {
    layout(text, &mut tell);
    if !text.bytes().any(|it| matches!(it, b'<' | b'[' | b'#' | b':' | b'(')) {
        return;
    }
    let lower = text.to_ascii_lowercase();
    for role in ROLES {
        if let Some(at) = lower.find(role) {
            tell(signal(Kind::Instruction, ROLE, 0.8, from(text, at)));
        }
    }
    for (at, _) in lower.match_indices('<').take(TAGS) {
        let tail = lower.get(at..floor(&lower, at + REACH)).unwrap_or_default();
        if let Some((kind, says, weight)) = tag(tail, text.get(at + 1..).unwrap_or_default()) {
            tell(signal(kind, says, weight, from(text, at)));
        }
    }
    for (at, _) in lower.match_indices("](").take(TAGS) {
        let tail = lower.get(at + 2..floor(&lower, at + 2 + REACH)).unwrap_or_default();
        let target = tail.split(')').next().unwrap_or_default().trim_start();
        let begin = lower.get(floor(&lower, at.saturating_sub(REACH))..at).unwrap_or_default();
        let image =
            begin.rfind('[').is_some_and(|it| begin.get(..it).is_some_and(|b| b.ends_with('!')));
        if let Some((kind, says, weight)) = link(target, image) {
            tell(signal(kind, says, weight, from(text, at)));
        }
    }
    for line in lower.lines() {
        let bare = line.trim_start_matches(['#', '*', ' ', '[', '-', '=', '>', '/', '(']);
        let head = bare.trim_start_matches(['_', '<']);
        let role = [
            "system:",
            "system]",
            "system prompt:",
            "system message",
            "assistant:",
            "system instruction",
            "system override",
        ];
        if bare.len() < line.len() && role.iter().any(|it| head.starts_with(it)) {
            tell(signal(Kind::Instruction, ROLE, 0.6, line));
        }
    }
}

fn signal<'a>(kind: Kind, says: &'static str, weight: f64, evidence: &'a str) -> Signal<'a> {
    Signal { kind, says, weight, evidence }
}

fn from(text: &str, at: usize) -> &str {
    text.get(at..floor(text, at + REACH)).unwrap_or_default()
}

/// What is wrong with a tag; `tail` begins with its `<`, `written` with its name as it was written.
fn tag(tail: &str, written: &str) -> Option<(Kind, &'static str, f64)> {
    let inner = tail.get(1..)?;
    if inner.starts_with("!--") {
        return Some((Kind::Instruction, UNSEEN, 0.55));
    }
    let end = inner.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-'))?;
    let name = inner.get(..end)?;
    let attributes = inner.get(end..)?.split('>').next()?;
    let closed = inner.get(end..)?.contains('>');
    match name {
        "script" | "iframe" | "object" | "embed" | "svg" if closed => {
            // Whoever only names the tag neither fills nor closes it.
            let named = attributes.is_empty() && !tail.contains(&format!("</{name}"));
            Some((Kind::Fetching, SCRIPT, if named { 0.3 } else { 0.8 }))
        }
        "img" | "video" | "audio" | "source" | "link" | "input" if attributes.contains("://") => {
            Some((Kind::Fetching, FETCH, 0.7))
        }
        "img" if attributes.contains("onerror") => Some((Kind::Fetching, SCRIPT, 0.8)),
        "meta" if attributes.contains("refresh") => Some((Kind::Fetching, FETCH, 0.7)),
        "details" if closed => Some((Kind::Instruction, UNSEEN, 0.3)),
        _ if hides(attributes) => Some((Kind::Instruction, UNSEEN, 0.7)),
        _ if closed && attributes.trim().is_empty() && BLOCKS.contains(&name) => {
            // `<system>` may be a placeholder in a pattern; shouting and line ends are not.
            let loud = written.starts_with(|c: char| c.is_ascii_uppercase());
            let closes = tail.contains(&format!("</{name}"));
            Some((Kind::Instruction, BLOCK, if loud || closes { 0.6 } else { 0.3 }))
        }
        _ => None,
    }
}

fn hides(attributes: &str) -> bool {
    let style = attributes.replace(' ', "");
    [
        "display:none",
        "font-size:0",
        "visibility:hidden",
        "opacity:0;",
        "opacity:0\"",
        "color:white",
        "color:#fff",
        "color:transparent",
    ]
    .iter()
    .any(|it| style.contains(it))
        || attributes.split_whitespace().any(|it| it == "hidden")
}

fn link(target: &str, image: bool) -> Option<(Kind, &'static str, f64)> {
    if target.starts_with("javascript:")
        || target.starts_with("data:text/html")
        || target.starts_with("vbscript:")
    {
        return Some((Kind::Fetching, SCRIPT, 0.8));
    }
    let query = target.split_once('?').map(|it| it.1);
    let blank = target.contains(['{', '<', '$']) || target.contains("%7b");
    match (image && target.contains("//"), query) {
        (true, Some(_)) => Some((Kind::Fetching, FETCH, 0.7)),
        (true, None) => Some((Kind::Fetching, FETCH, if blank { 0.6 } else { 0.3 })),
        (false, Some(_)) if blank => Some((Kind::Fetching, FETCH, 0.6)),
        _ => None,
    }
}

/// Long stretches of nothing with something after them.
fn layout(text: &str, tell: &mut impl FnMut(Signal<'_>)) {
    let (mut lines, mut spaces) = (0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '\n' => (lines, spaces) = (lines + 1, 0),
            _ if c.is_whitespace() => spaces += 1,
            _ => {
                if lines > LINES || spaces > SPACES {
                    tell(signal(Kind::Oversized, PUSHED, 0.6, from(text, at)));
                    return;
                }
                (lines, spaces) = (0, 0);
            }
        }
    }
}
