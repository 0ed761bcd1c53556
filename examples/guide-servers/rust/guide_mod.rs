//! The mod: what its tools share, and which they are.
//!
//! A mod runs inside the gateway, which holds arguments against the schemas before a tool sees them. The schemas
//! come from the types in `arguments`, so the tools check nothing that a type or a schema can say.

mod arguments;
mod items;
mod outside;

use std::{collections::BTreeMap, fmt, io::Write, path::PathBuf, sync::Arc};

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use toolcrib::{
    catalogue::{Annotations, BoxFuture, CallContext, Json, NameStyle, Origin, Source, ToolFilter},
    server::{Access, AccessSettings, Gateway, Input, Limit, Settings},
    sources::mods::{AgentTool, Mod, ModSource},
};

use items::Item;

/// Where the mod works.
#[derive(Debug)]
pub(crate) struct Place {
    /// The folder that files are read from.
    pub(crate) data: PathBuf,
    /// The one address that may be called.
    pub(crate) api: Option<String>,
    /// Gets a line for every call.
    pub(crate) log: Option<PathBuf>,
}

/// What the tools share.
#[derive(Debug)]
struct Shelf {
    place: Place,
    items: Mutex<Vec<Item>>,
    /// How many items there ever were.
    created: Mutex<usize>,
    users: Mutex<BTreeMap<String, String>>,
    /// Texts that were read, the one used last at the end.
    cache: Mutex<Vec<(String, String)>>,
    fetches: Mutex<u64>,
}

/// Why a tool did not do what it was asked.
enum Fault {
    /// The arguments have the right form and still make no sense.
    Invalid(String),
    /// It could not be done.
    Failed(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(why) => write!(f, "Invalid input: {why}"),
            Self::Failed(why) => write!(f, "Error: {why}"),
        }
    }
}

/// A text, and the same as a structure.
type Said = Result<(String, Value), Fault>;

fn invalid<T>(why: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Invalid(why.into()))
}

fn failed<T>(why: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Failed(why.into()))
}

/// The mod.
#[derive(Debug)]
pub(crate) struct GuideMod(Arc<Shelf>);

impl GuideMod {
    pub(crate) fn new(place: Place) -> Self {
        let items = items::samples();
        Self(Arc::new(Shelf {
            place,
            created: Mutex::new(items.len()),
            items: Mutex::new(items),
            users: Mutex::default(),
            cache: Mutex::default(),
            fetches: Mutex::default(),
        }))
    }

    /// A tool whose arguments are a type.
    fn tool<A, F>(
        &self,
        name: &'static str,
        description: &str,
        annotations: Annotations,
        run: fn(Arc<Shelf>, A) -> F,
    ) -> AgentTool
    where
        A: DeserializeOwned + JsonSchema + 'static,
        F: Future<Output = Said> + Send + 'static,
    {
        let shelf = Arc::clone(&self.0);
        let func = move |arguments: Json, _: CallContext| -> BoxFuture<'static, _> {
            shelf.log(&format!("call {name}"));
            let running = arguments.read::<A>().map(|it| run(Arc::clone(&shelf), it));
            Box::pin(async move {
                let said = match running {
                    Ok(running) => running.await,
                    Err(error) => invalid(error.to_string()),
                };
                Ok(result(said))
            })
        };
        AgentTool {
            name: name.to_owned(),
            description: description.to_owned(),
            input_schema: Json::of(&schemars::schema_for!(A))
                .unwrap_or_else(|_| Json::empty_object()),
            annotations,
            func: Arc::new(func),
        }
    }
}

impl Mod for GuideMod {
    fn name(&self) -> &str {
        "guide_mod"
    }

    fn get_tools(&self) -> Vec<AgentTool> {
        [self.item_tools(), self.other_tools(), self.outside_tools()].concat()
    }
}

impl Shelf {
    /// A log that cannot be written is no reason to fail a call.
    fn log(&self, line: &str) {
        let Some(file) = &self.place.log else { return };
        let opened = std::fs::OpenOptions::new().create(true).append(true).open(file);
        opened.and_then(|mut it| writeln!(it, "{line}")).ok();
    }
}

/// A result of MCP.
fn result(said: Said) -> Json {
    let content = |text: String| json!([{ "type": "text", "text": text }]);
    let result = match said {
        Ok((text, structure)) => {
            json!({ "content": content(text), "structuredContent": structure, "isError": false })
        }
        Err(fault) => json!({ "content": content(fault.to_string()), "isError": true }),
    };
    Json::of(&result).unwrap_or_else(|_| Json::empty_object())
}

/// All four hints, as a tool that only reads has them.
const READS: Annotations = Annotations {
    read_only_hint: Some(true),
    destructive_hint: Some(false),
    idempotent_hint: Some(true),
    open_world_hint: Some(false),
};
const WRITES: Annotations =
    Annotations { read_only_hint: Some(false), idempotent_hint: Some(false), ..READS };
const WRITES_ONCE: Annotations = Annotations { idempotent_hint: Some(true), ..WRITES };
const DESTROYS: Annotations = Annotations { destructive_hint: Some(true), ..WRITES };

/// A gateway that serves the mod to everybody who comes.
pub(crate) fn gateway(guide: &GuideMod) -> Arc<Gateway> {
    let source: Arc<dyn Source> = Arc::new(ModSource::new(guide));
    let input = Input {
        source: Some(source),
        origin: Origin::Mod(guide.name().to_owned()),
        style: NameStyle::Bare,
        filter: ToolFilter::default(),
        required: true,
        way: None,
        limit: Limit::default(),
    };
    let access = AccessSettings { default_group: "guest".to_owned(), ..AccessSettings::default() };
    let settings = Settings {
        name: "guide-rust".to_owned(),
        version: "1.0.0".to_owned(),
        ..Settings::default()
    };
    Gateway::start(vec![input], Access::new(&access), settings)
}
