//! One look at a definition before anybody else sees it: what it hashes to, whether its schemas can be used,
//! what about it is suspicious, and in which words it goes on.

use std::sync::Arc;

use bytes::Bytes;

use crate::{
    Checked, Formats, Json, OnFault, Problem, Severity, Tool, extract_schema,
    lock::{self, ToolHash},
    poison::{self, Finding, Verdict},
};

/// A definition, looked at.
#[derive(Debug)]
pub struct Look {
    /// The tool as it goes on: without hidden and control characters, and without a schema that would be too
    /// much for whoever reads it, or leads elsewhere. Its `name` is still what its source knows it by.
    pub tool: Arc<Tool>,
    /// The hash of what its source gave.
    pub hash: ToolHash,
    /// The schema of its arguments.
    pub input: Checked,
    /// The schema of its structured result, if it has one.
    pub output: Option<Checked>,
    /// What is suspicious about it, the surest first.
    pub findings: Vec<Finding>,
    /// Why it is not served at all.
    refused: Option<String>,
}

impl Look {
    /// Looks at a definition.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use toolcrib_catalogue::{Json, Look, OnFault, Tool};
    ///
    /// let given = Json::parse(r#"{"name":"a","description":"Adds.\u200b","inputSchema":{"$ref":"http://x/y"}}"#)?;
    /// let look = Look::at(&Arc::new(Tool::read(given)?), OnFault::RefuseRemote);
    /// assert_eq!(look.tool.description.as_deref(), Some("Adds."));
    /// assert!(look.refused().unwrap().contains("nothing is ever fetched"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn at(tool: &Arc<Tool>, on_fault: OnFault) -> Self {
        let hash = lock::hash(tool);
        let findings = poison::inspect(tool);
        let (mut shown, mut refused) = (Arc::clone(tool), too_long(tool));
        match cleaned(tool) {
            Some(Ok(clean)) => shown = Arc::new(clean),
            Some(Err(cause)) => refused = refused.or(Some(cause)),
            None => {}
        }
        let schema = tool.checks.clone().unwrap_or_else(|| extract_schema(&shown));
        let input = Checked::read(&schema, Formats::Asserted, on_fault);
        let read = |it: &Json| Checked::read(it, Formats::Asserted, OnFault::Permit);
        let output = shown.output_schema.as_ref().map(read);
        if let Checked::Refused(fault) = &input {
            refused = refused.or_else(|| Some(fault.to_string()));
        }
        let faults = [Some(&input), output.as_ref()].map(|it| it.and_then(Checked::fault));
        // Whoever is handed a reference may follow it.
        let heavy = faults.map(|it| it.is_some_and(|it| it.is_heavy() || it.is_remote()));
        if heavy != [false, false] {
            shown = Arc::new(lightened(&shown, heavy));
        }
        Self { tool: shown, hash, input, output, findings, refused }
    }

    /// Why the tool is not served, if it is not.
    pub fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// What all that is suspicious about it comes to.
    pub fn verdict(&self) -> Verdict {
        Verdict::of(&self.findings)
    }

    /// What is wrong with it, said of `subject`: a refusal, or schemas that cannot be used. What is suspicious
    /// is told by [`Look::suspicions`].
    pub fn problems(&self, subject: &str) -> Vec<Problem> {
        if let Some(cause) = &self.refused {
            return vec![Problem::new(subject, format!("{cause}; the tool is not served"))];
        }
        let mut problems = Vec::new();
        if let Some(fault) = self.input.fault() {
            let message = format!("{fault}; its arguments are not checked");
            problems.push(Problem::new(subject, message));
        }
        if let Some(fault) = self.output.as_ref().and_then(Checked::fault) {
            let message = format!("in its output, {fault}; its results are not checked");
            problems.push(Problem::new(subject, message));
        }
        if let Checked::Strict(validator) = &self.input {
            let unchecked = validator.unchecked().iter();
            problems.extend(unchecked.map(|it| {
                Problem::new(subject, format!("{it}; until then this pattern is not checked"))
            }));
        }
        problems
    }

    /// What about the tool somebody should look at; nothing where it comes to little.
    pub fn suspicions(&self, subject: &str) -> Option<Problem> {
        suspicions(&self.findings, subject)
    }
}

/// What findings come to, said of a tool.
pub fn suspicions(findings: &[Finding], subject: &str) -> Option<Problem> {
    let (severity, verdict) = match Verdict::of(findings) {
        Verdict::Clean => return None,
        Verdict::Suspicious => (Severity::Warning, "may be poisoned"),
        Verdict::Poisoned => (Severity::Problem, "looks poisoned"),
    };
    let reasons: Vec<&str> = findings.iter().take(3).map(|it| it.reason.as_str()).collect();
    let score = poison::score(findings);
    let message = format!("its definition {verdict} (score {score:.2}): {}", reasons.join("; "));
    let hint = "read it; if it is meant so, leave it, else take the tool out with `exclude`";
    Some(Problem::of(severity, subject, message).hint(hint))
}

/// A text of a definition that nobody will read, and that every prompt would carry.
fn too_long(tool: &Tool) -> Option<String> {
    let texts = [("description", &tool.description), ("title", &tool.title)];
    let long = |it: &Option<String>| it.as_ref().map_or(0, String::len);
    let (name, text) = texts.into_iter().find(|(_, it)| poison::LONG_TEXT < long(it))?;
    Some(format!("its {name} has {} bytes; at most {} are allowed", long(text), poison::LONG_TEXT))
}

/// The tool without hidden and control characters, if it has any. Its name stays: it is how its source is
/// asked, and clients see another one.
fn cleaned(tool: &Tool) -> Option<Result<Tool, String>> {
    let text = tool.raw.as_str();
    let plain = |it: u8| matches!(it, b' '..=b'~' | b'\n' | b'\t' | b'\r') && it != b'\\';
    if text.bytes().all(plain) {
        return None;
    }
    let clean = clean_strings(text)?;
    // Two keys that differ only in what nobody sees would become one.
    if !lock::has_unique_keys(&clean) {
        return Some(Err("members of its definition differ only in hidden characters".to_owned()));
    }
    let read = Json::parse(clean).ok().and_then(|it| Tool::read(it).ok());
    let read = read.map(|it| Tool { name: tool.name.clone(), ..it });
    Some(read.ok_or_else(|| "without hidden characters it is no definition".to_owned()))
}

/// JSON with its strings cleaned, if any had to be; everything else to the letter.
fn clean_strings(text: &str) -> Option<String> {
    let (mut out, mut done, mut at) = (String::new(), 0, 0);
    let bytes = text.as_bytes();
    while let Some(begin) = bytes[at..].iter().position(|it| *it == b'"').map(|it| at + it) {
        let mut end = begin + 1;
        while let Some(byte) = bytes.get(end).filter(|it| **it != b'"') {
            end += if *byte == b'\\' { 2 } else { 1 };
        }
        at = (end + 1).min(bytes.len());
        let Ok(value) = serde_json::from_str::<String>(text.get(begin..at)?) else { continue };
        if let std::borrow::Cow::Owned(clean) = poison::clean(&value) {
            out.push_str(&text[done..begin]);
            out.push_str(&serde_json::Value::from(clean).to_string());
            done = at;
        }
    }
    if done == 0 {
        return None;
    }
    out.push_str(&text[done..]);
    Some(out)
}

/// The tool with a schema that takes anything in place of those that are too much.
fn lightened(tool: &Tool, [input, output]: [bool; 2]) -> Tool {
    let Ok(raw) = tool.raw.read::<Members<'_>>() else { return tool.clone() };
    let mut text = String::from("{");
    for (key, value) in raw.0 {
        if output && key == "outputSchema" {
            continue;
        }
        let value = if input && key == "inputSchema" { ANYTHING } else { value.get() };
        let comma = if text.len() == 1 { "" } else { "," };
        text.push_str(&format!("{comma}{}:{value}", serde_json::Value::from(key.as_ref())));
    }
    text.push('}');
    let light = Tool::read(Json::from_scanned(Bytes::from(text)));
    light.map_or_else(|_| tool.clone(), |it| Tool { name: tool.name.clone(), ..it })
}

const ANYTHING: &str = r#"{"type":"object"}"#;

/// The members of an object, in their order.
struct Members<'a>(Vec<(std::borrow::Cow<'a, str>, &'a serde_json::value::RawValue)>);

impl<'de> serde::Deserialize<'de> for Members<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(raw: &str) -> Look {
        let tool = Tool::read(Json::parse(raw.to_owned()).unwrap()).unwrap();
        Look::at(&Arc::new(tool), OnFault::RefuseRemote)
    }

    #[test]
    fn what_is_hidden_does_not_go_on_and_the_rest_goes_on_to_the_letter() {
        let raw = r#"{ "name":"a\u200b", "description" : "é\u001b[31m ok\n", "x":1.10e2,"inputSchema":{"type":"object","properties":{"y":{"enum":["b\u202ec"]}}} }"#;
        let shown = look(raw);
        assert_eq!(shown.tool.name, "a\u{200b}");
        assert_eq!(
            shown.tool.raw.as_str(),
            r#"{ "name":"a", "description" : "é ok\n", "x":1.10e2,"inputSchema":{"type":"object","properties":{"y":{"enum":["bc"]}}} }"#
        );
        assert_ne!(shown.verdict(), Verdict::Clean);
        let plain = r#"{"name":"é","description":"\"quoted\" \\ ü"}"#;
        assert_eq!(look(plain).tool.raw.as_str(), plain);
    }

    #[test]
    fn keys_that_would_become_one_refuse_the_tool() {
        let raw = r#"{"name":"a","inputSchema":{"properties":{"x":{},"x\u200b":{}}}}"#;
        assert!(look(raw).refused().unwrap().contains("hidden characters"));
    }

    #[test]
    fn a_schema_that_is_too_much_goes_to_nobody() {
        let deep = format!("{}{}{}", r#"{"not":"#.repeat(100), "{}", "}".repeat(100));
        let raw = format!(r#"{{"name":"a","inputSchema":{deep},"z":[1]}}"#);
        let shown = look(&raw);
        assert_eq!(shown.refused(), None);
        assert_eq!(
            shown.tool.raw.as_str(),
            r#"{"name":"a","inputSchema":{"type":"object"},"z":[1]}"#
        );
        assert!(shown.problems("a")[0].message.ends_with("its arguments are not checked"));
    }

    #[test]
    fn a_promise_that_leads_elsewhere_goes_to_nobody() {
        let raw = r#"{"name":"a","outputSchema":{"$ref":"http://x/y"},"z":1}"#;
        let shown = look(raw);
        assert_eq!(shown.refused(), None);
        assert_eq!(shown.tool.raw.as_str(), r#"{"name":"a","z":1}"#);
        assert!(shown.problems("a")[0].message.ends_with("its results are not checked"));
    }

    #[test]
    fn a_schema_that_is_merely_wrong_goes_on_as_it_is() {
        let raw = r#"{"name":"a","inputSchema":{"properties":{"x":{"required":true}}}}"#;
        let shown = look(raw);
        assert_eq!(shown.tool.raw.as_str(), raw);
        assert!(shown.input.fault().is_some());
    }

    #[test]
    fn a_description_that_nobody_reads_refuses_the_tool() {
        let raw = format!(r#"{{"name":"a","description":"{}"}}"#, "x".repeat(20_000));
        let shown = look(&raw);
        assert_eq!(
            shown.refused(),
            Some("its description has 20000 bytes; at most 16384 are allowed")
        );
    }
}
