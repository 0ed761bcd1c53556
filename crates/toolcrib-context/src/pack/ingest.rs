//! How items come in, and the firewall: what is too large to be shown is kept aside.

use serde_json::{Map, Value};

use super::{
    ContextManager, Entry,
    options::{AboveFloor, Classifier, Redaction, Secrets},
    render::{self, Cost},
};
use crate::{
    ArtifactRef, ContextItem, ItemKind, ResultEnvelope, Sensitivity, Status, detect_sensitivity,
    extract_facts, generate_views, mcp_result_to_envelope, scrub_secrets,
};

const SUMMARY_CHARS: usize = 500;

/// Why an item was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IngestError {
    /// Ids are what items refer to each other by.
    #[error("there is an item `{id}` already; give each item an id of its own")]
    Duplicate {
        /// The id.
        id: String,
    },
    /// There is nothing of this handle.
    #[error("nothing is kept under `{handle}`")]
    NotKept {
        /// The handle.
        handle: String,
    },
    /// What is kept there may not be shown.
    #[error("what is kept under `{handle}` is too sensitive to be shown")]
    TooSensitive {
        /// The handle.
        handle: String,
    },
}

/// What a tool gave back, as text.
#[derive(Debug, Clone, Copy, Default)]
pub struct ToolResult<'a> {
    /// The call that it is the result of.
    pub tool_call_id: &'a str,
    /// All of it.
    pub raw_output: &'a str,
    /// The tool.
    pub tool_name: &'a str,
    /// What it is; `text/plain` if nothing is said.
    pub media_type: &'a str,
    /// How far it may be shown.
    pub sensitivity: Sensitivity,
}

/// What a result came to on its way in.
#[derive(Debug, Default)]
struct Aside {
    handles: Vec<String>,
    attachments: Vec<String>,
    envelope: Option<ResultEnvelope>,
}

impl ContextManager {
    /// Takes an item as it is; a result that is too large is kept aside, and its beginning shown.
    ///
    /// # Errors
    /// There is an item of this id.
    pub fn ingest(&mut self, item: ContextItem) -> Result<(), IngestError> {
        self.check(&item.id)?;
        let mut aside = Aside {
            handles: item.artifact_ref.iter().map(|it| it.handle.clone()).collect(),
            ..Aside::default()
        };
        if item.kind != ItemKind::ToolResult || item.artifact_ref.is_some() || !self.is_large(&item)
        {
            self.admit(item, aside);
            return Ok(());
        }
        let item = self.classify(item);
        let (item, envelope) = self.firewall(item);
        aside.handles = item.artifact_ref.iter().map(|it| it.handle.clone()).collect();
        aside.envelope = Some(envelope);
        self.admit(item, aside);
        Ok(())
    }

    /// Takes what a tool gave back. All of it is kept; what is short is shown whole as well.
    ///
    /// # Errors
    /// The call has a result already.
    pub fn ingest_tool_result(
        &mut self,
        result: ToolResult<'_>,
    ) -> Result<(ContextItem, ResultEnvelope), IngestError> {
        let media_type =
            if result.media_type.is_empty() { "text/plain" } else { result.media_type };
        let mut metadata = Map::new();
        metadata.insert("tool_name".to_owned(), Value::from(result.tool_name));
        metadata.insert("media_type".to_owned(), Value::from(media_type));
        let item = ContextItem {
            sensitivity: result.sensitivity,
            metadata,
            parent_id: Some(result.tool_call_id.to_owned()),
            ..result_item(result.tool_call_id, result.raw_output)
        };
        self.check(&item.id)?;
        let item = self.classify(item);
        let large = self.is_large(&item);
        let (item, mut envelope) = self.firewall(item);
        if large {
            let handles = handles_of(&item);
            let envelope_kept = Some(envelope.clone());
            let aside = Aside { handles, envelope: envelope_kept, ..Aside::default() };
            return Ok((self.admit(item, aside), envelope));
        }
        envelope.provenance.insert("tool_name".to_owned(), Value::from(result.tool_name));
        let item = ContextItem {
            text: result.raw_output.to_owned(),
            token_estimate: self.options.counter.count(result.raw_output),
            ..item
        };
        let item = self.admit(item, Aside::default());
        envelope.summary.clone_from(&item.text);
        Ok((item, envelope))
    }

    /// Takes the result of a call as MCP has it. What came with the text is kept, under the seed's handle and
    /// the id of the call: a second picture of the same tool is another picture.
    ///
    /// # Errors
    /// The call has a result already.
    pub fn ingest_mcp_result(
        &mut self,
        tool_call_id: &str,
        result: &Value,
        tool_name: &str,
    ) -> Result<(ContextItem, ResultEnvelope), IngestError> {
        let (mut envelope, binaries, full_text) = mcp_result_to_envelope(result, tool_name);
        let mut metadata = Map::new();
        metadata.insert("tool_name".to_owned(), Value::from(tool_name));
        metadata.insert("protocol".to_owned(), Value::from("mcp"));
        let item = ContextItem {
            metadata,
            parent_id: Some(tool_call_id.to_owned()),
            ..result_item(tool_call_id, full_text)
        };
        self.check(&item.id)?;
        for (handle, binary) in binaries {
            let kept = format!("{handle}#{tool_call_id}");
            let kept = self.artifacts.keep(kept, binary.bytes, &binary.media_type, binary.label);
            for artifact in envelope.artifacts.iter_mut().filter(|it| it.handle == handle) {
                artifact.handle.clone_from(&kept.handle);
                artifact.content_hash.clone_from(&kept.content_hash);
            }
        }
        let attachments = hashes(&envelope.artifacts);
        let mut item = self.classify(item);
        item.token_estimate = self.options.counter.count(&item.text);
        if self.is_large(&item) {
            let (shown, whole) = self.firewall(item);
            item = shown;
            envelope.summary = whole.summary;
            let new = |it: &String| !envelope.facts.contains(it);
            let facts: Vec<String> = whole.facts.into_iter().filter(new).collect();
            envelope.facts.splice(0..0, facts);
            envelope.artifacts.extend(whole.artifacts);
            envelope.views.extend(whole.views);
        }
        if self.options.secrets == Secrets::Scrub {
            envelope.summary = self.shown(&envelope.summary);
            envelope.facts = envelope.facts.iter().map(|it| self.shown(it)).collect();
        }
        let handles = envelope.artifacts.iter().map(|it| it.handle.clone()).collect();
        let aside = Aside { handles, attachments, envelope: Some(envelope.clone()) };
        Ok((self.admit(item, aside), envelope))
    }

    /// Takes a piece of what is kept aside, so that it is shown in packs from now on.
    ///
    /// # Errors
    /// Nothing is kept under this handle, or what it belongs to may not be shown.
    pub fn ingest_piece(
        &mut self,
        handle: &str,
        selector: &str,
        text: &str,
        parent_id: Option<&str>,
    ) -> Result<ContextItem, IngestError> {
        if self.artifacts.get(handle).is_none() {
            return Err(IngestError::NotKept { handle: handle.to_owned() });
        }
        let is_source = |it: &&Entry| {
            it.item.artifact_ref.as_ref().is_some_and(|it| it.handle == handle)
                || it.handles.iter().any(|it| it == handle)
        };
        let sensitivity = self.entries.iter().find(is_source).map(|it| it.item.sensitivity);
        let sensitivity = sensitivity.unwrap_or_default();
        if self.options.floor <= sensitivity {
            return Err(IngestError::TooSensitive { handle: handle.to_owned() });
        }
        let id = format!("drilldown:{handle}:{selector}:{}", self.entries.len());
        self.check(&id)?;
        let item = ContextItem {
            sensitivity,
            parent_id: parent_id.map(str::to_owned),
            ..ContextItem::new(id, ItemKind::ToolResult, text)
        };
        let handles = vec![handle.to_owned()];
        Ok(self.admit(item, Aside { handles, ..Aside::default() }))
    }

    /// Takes an envelope that somebody else made of a result; nothing more is taken out of it.
    ///
    /// # Errors
    /// The call has a result already.
    pub fn ingest_envelope(
        &mut self,
        tool_call_id: &str,
        envelope: &ResultEnvelope,
        tool_name: &str,
    ) -> Result<ContextItem, IngestError> {
        let mut metadata = Map::new();
        metadata.insert("tool_name".to_owned(), Value::from(tool_name));
        let item = ContextItem {
            metadata,
            parent_id: Some(tool_call_id.to_owned()),
            ..result_item(tool_call_id, envelope.summary.as_str())
        };
        self.check(&item.id)?;
        let aside = Aside {
            handles: envelope.artifacts.iter().map(|it| it.handle.clone()).collect(),
            attachments: hashes(&envelope.artifacts),
            envelope: Some(envelope.clone()),
        };
        Ok(self.admit(item, aside))
    }

    fn check(&self, id: &str) -> Result<(), IngestError> {
        if self.by_id.contains_key(id) {
            return Err(IngestError::Duplicate { id: id.to_owned() });
        }
        Ok(())
    }

    fn is_large(&self, item: &ContextItem) -> bool {
        // Most texts are short enough in bytes already.
        self.options.inline_up_to < item.text.len()
            && self.options.inline_up_to < item.text.chars().count()
    }

    /// The item with its label raised, if there is reason to. What is looked at is the whole text.
    fn classify(&self, mut item: ContextItem) -> ContextItem {
        if self.options.classifier == Classifier::ByShape {
            let found = detect_sensitivity(&item.text);
            if item.sensitivity < found {
                item.sensitivity = found;
                let by = Value::from("shape");
                item.metadata.insert("sensitivity_raised_by".to_owned(), by);
            }
        }
        item
    }

    /// The beginning of a result, and the envelope of the whole, which is kept under the item's own id.
    fn firewall(&mut self, item: ContextItem) -> (ContextItem, ResultEnvelope) {
        let media_type = item.metadata.get("media_type").and_then(Value::as_str);
        let media_type = media_type.unwrap_or("text/plain").to_owned();
        let summary = beginning(&item.text);
        let mut facts = extract_facts(&item.text);
        if self.options.secrets == Secrets::Scrub {
            facts = facts.iter().map(|it| scrub_secrets(it).into_owned()).collect();
        }
        let artifact = self.artifacts.keep(
            format!("artifact:{}", item.id),
            item.text.into_bytes(),
            &media_type,
            format!("raw tool result for {}", item.id),
        );
        let whole = self.artifacts.get(&artifact.handle).unwrap_or_default();
        let views = generate_views(&artifact, whole);
        let mut provenance = Map::new();
        provenance.insert("source_item_id".to_owned(), Value::from(item.id.as_str()));
        let envelope = ResultEnvelope {
            status: Status::Ok,
            summary: self.shown(&summary),
            facts,
            artifacts: vec![artifact.clone()],
            views,
            provenance,
        };
        let item =
            ContextItem { text: summary, token_estimate: 0, artifact_ref: Some(artifact), ..item };
        (item, envelope)
    }

    fn shown(&self, text: &str) -> String {
        match self.options.secrets {
            Secrets::Show => text.to_owned(),
            Secrets::Scrub => scrub_secrets(text).into_owned(),
        }
    }

    /// The last step of every way in: what is shown of an item, and what that costs, is settled here.
    fn admit(&mut self, item: ContextItem, aside: Aside) -> ContextItem {
        let Aside { mut handles, attachments, mut envelope } = aside;
        let mut item = self.classify(item);
        if self.options.secrets == Secrets::Scrub {
            item.text = scrub_secrets(&item.text).into_owned();
        }
        let mut hidden = false;
        if self.options.floor <= item.sensitivity {
            envelope = None;
            match &self.options.above_floor {
                AboveFloor::Drop => hidden = true,
                AboveFloor::Redact(ways) => {
                    let ways = if ways.is_empty() { &[Redaction::Mask][..] } else { ways };
                    for way in ways {
                        redact(&mut item, *way, &mut handles);
                    }
                }
            }
        }
        let counter = self.options.counter;
        let cost = Cost::of(counter, &render::section(&item, &handles));
        let entry = Entry {
            hidden,
            cost: cost.stated(counter, item.token_estimate),
            words: if hidden { Vec::new() } else { self.lexicon.learn(&item.text) },
            handles,
            attachments,
            envelope,
            item: item.clone(),
        };
        self.by_id.insert(item.id.clone(), self.entries.len());
        self.entries.push(entry);
        item
    }
}

fn result_item(tool_call_id: &str, text: impl Into<String>) -> ContextItem {
    ContextItem::new(format!("result:{tool_call_id}"), ItemKind::ToolResult, text)
}

fn handles_of(item: &ContextItem) -> Vec<String> {
    item.artifact_ref.iter().map(|it| it.handle.clone()).collect()
}

fn hashes(artifacts: &[ArtifactRef]) -> Vec<String> {
    let mut hashes: Vec<String> =
        artifacts.iter().filter_map(|it| it.content_hash.clone()).collect();
    hashes.sort_unstable();
    hashes
}

fn redact(item: &mut ContextItem, way: Redaction, handles: &mut Vec<String>) {
    match way {
        Redaction::Mask => {
            let label = match item.sensitivity {
                Sensitivity::Public => "public",
                Sensitivity::Internal => "internal",
                Sensitivity::Confidential => "confidential",
                Sensitivity::Restricted => "restricted",
            };
            item.text = format!("[REDACTED: {label}]");
            item.token_estimate = 0;
            item.artifact_ref = None;
            handles.clear();
        }
        Redaction::Secret => item.text = scrub_secrets(&item.text).into_owned(),
    }
}

/// The first paragraph, and no more than 500 characters of it.
fn beginning(text: &str) -> String {
    let paragraph = text.trim_start().split("\n\n").next().unwrap_or_default().trim();
    match paragraph.char_indices().nth(SUMMARY_CHARS) {
        None => paragraph.to_owned(),
        Some((end, _)) => format!("{}…", &paragraph[..end]),
    }
}
