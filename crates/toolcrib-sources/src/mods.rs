//! Mods written in Rust, for those who embed the crates, and what a tool is to all kinds of mods.

use std::{fmt, sync::Arc};

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use toolcrib_catalogue::{
    Annotations, BoxFuture, CallContext, CallError, ClientError, Json, Problem, Source,
    SourceState, Tool,
};
use toolcrib_wire::json::member;

/// Something that brings tools along.
///
/// ```
/// use toolcrib_sources::mods::{AgentTool, Mod, ModSource};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Search {
///     /// What to look for.
///     query: String,
/// }
///
/// #[derive(Debug)]
/// struct SearchMod;
///
/// impl Mod for SearchMod {
///     fn name(&self) -> &str {
///         "search_mod"
///     }
///
///     fn get_tools(&self) -> Vec<AgentTool> {
///         let search = |it: Search| async move { Ok::<_, String>(format!("found {}", it.query)) };
///         vec![AgentTool::new("search", "Searches.", search)]
///     }
/// }
///
/// let source = ModSource::new(&SearchMod);
/// let tool = &toolcrib_catalogue::Source::tools(&source)[0];
/// assert_eq!(tool.name, "search");
/// assert!(tool.raw.as_str().contains("What to look for."));
/// ```
pub trait Mod: Send + Sync + fmt::Debug {
    /// Its name; the last segment of it is its label.
    fn name(&self) -> &str;

    /// Its tools.
    fn get_tools(&self) -> Vec<AgentTool>;
}

/// What runs when a tool is called: arguments in, a result of MCP out.
pub type Func =
    Arc<dyn Fn(Json, CallContext) -> BoxFuture<'static, Result<Json, CallError>> + Send + Sync>;

/// A tool with what runs behind it.
#[derive(Clone)]
pub struct AgentTool {
    /// What it is called.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The schema of its arguments.
    pub input_schema: Json,
    /// What it says of itself; listed only where it says anything.
    pub annotations: Annotations,
    /// What runs.
    pub func: Func,
}

impl fmt::Debug for AgentTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentTool").field("name", &self.name).finish_non_exhaustive()
    }
}

impl AgentTool {
    /// A tool whose arguments are a type of Rust: its schema comes from that type, and arguments that do
    /// not fit it are refused with `Invalid input: …`. An error becomes `Error: …`.
    pub fn new<A, R, E, F>(
        name: impl Into<String>,
        description: impl Into<String>,
        func: impl Fn(A) -> F + Send + Sync + 'static,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        R: Serialize,
        E: fmt::Display,
        F: Future<Output = Result<R, E>> + Send + 'static,
    {
        let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<A>();
        let func = move |arguments: Json, _: CallContext| -> BoxFuture<'static, _> {
            match arguments.read::<A>() {
                Ok(arguments) => {
                    let running = func(arguments);
                    Box::pin(async move {
                        Ok(match running.await {
                            Ok(value) => result(&value),
                            Err(error) => failure(&format!("Error: {error}")),
                        })
                    })
                }
                Err(error) => {
                    let text = format!("Invalid input: {error}");
                    Box::pin(async move { Ok(failure(&text)) })
                }
            }
        };
        Self {
            name: name.into(),
            description: description.into(),
            input_schema: Json::of(&schema).unwrap_or_else(|_| Json::empty_object()),
            annotations: Annotations::default(),
            func: Arc::new(func),
        }
    }

    /// The same tool, saying this of itself.
    #[must_use]
    pub fn with_annotations(self, annotations: Annotations) -> Self {
        Self { annotations, ..self }
    }

    /// Runs it.
    pub async fn execute(&self, arguments: Json) -> Result<Json, CallError> {
        (self.func)(arguments, CallContext::default()).await
    }

    /// Its definition as MCP has it.
    pub fn to_mcp(&self) -> Value {
        let description = match self.description.as_str() {
            "" => format!("Tool: {}", self.name),
            text => text.to_owned(),
        };
        let mut schema: Value = self.input_schema.get().unwrap_or_default();
        if schema.as_object().is_none_or(serde_json::Map::is_empty) {
            schema = json!({ "type": "object", "properties": {} });
        }
        let mut written =
            json!({ "name": self.name, "description": description, "inputSchema": schema });
        if self.annotations != Annotations::default() {
            written["annotations"] = json!(self.annotations);
        }
        written
    }
}

/// A value as a result of MCP: text as it is, objects and lists as JSON and as structure.
fn result(value: &impl Serialize) -> Json {
    let value = match serde_json::to_value(value) {
        Ok(value) => value,
        Err(error) => return failure(&format!("Error: the result is not JSON: {error}")),
    };
    let text = |text: String| json!([{ "type": "text", "text": text }]);
    let result = match value {
        Value::Null => json!({ "content": [], "isError": false }),
        Value::String(it) => json!({ "content": text(it), "isError": false }),
        Value::Object(_) => {
            json!({ "content": text(value.to_string()), "structuredContent": value, "isError": false })
        }
        Value::Array(_) => json!({
            "content": text(value.to_string()), "structuredContent": { "result": value },
            "isError": false,
        }),
        other => json!({ "content": text(other.to_string()), "isError": false }),
    };
    Json::of(&result).unwrap_or_else(|_| Json::empty_object())
}

fn failure(text: &str) -> Json {
    let result = json!({ "content": [{ "type": "text", "text": text }], "isError": true });
    Json::of(&result).unwrap_or_else(|_| Json::empty_object())
}

/// The tools of a mod, as a source.
#[derive(Debug)]
pub struct ModSource {
    name: String,
    tools: Arc<[Arc<Tool>]>,
    behind: Vec<AgentTool>,
    problems: Vec<Problem>,
}

impl ModSource {
    /// Takes a mod's tools, once.
    pub fn new(from: &dyn Mod) -> Self {
        let (mut tools, mut problems) = (Vec::new(), Vec::new());
        let behind = from.get_tools();
        for it in &behind {
            let read = Json::of(&it.to_mcp()).map_err(|error| error.to_string());
            match read.and_then(|it| Tool::read(it).map_err(|fault| fault.to_string())) {
                Ok(tool) => tools.push(Arc::new(tool)),
                Err(fault) => problems.push(Problem::new(format!("mod {}", from.name()), fault)),
            }
        }
        Self { name: from.name().to_owned(), tools: tools.into(), behind, problems }
    }
}

impl Source for ModSource {
    fn label(&self) -> &str {
        &self.name
    }

    fn state(&self) -> SourceState {
        SourceState::Ready
    }

    fn tools(&self) -> Arc<[Arc<Tool>]> {
        Arc::clone(&self.tools)
    }

    fn problems(&self) -> Vec<Problem> {
        self.problems.clone()
    }

    fn version(&self) -> u64 {
        0
    }

    fn changed_since(&self, _version: u64) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn calls_others(&self) -> bool {
        true
    }

    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Json,
        context: CallContext,
    ) -> BoxFuture<'a, Result<Json, CallError>> {
        Box::pin(async move {
            let text = params.as_bytes();
            let name: Option<String> =
                member(text, "name").and_then(|at| serde_json::from_slice(&text[at]).ok());
            let tool = self.behind.iter().find(|it| Some(&it.name) == name.as_ref());
            let Some(tool) = tool.filter(|_| method == "tools/call") else {
                let cause = format!("mod `{}` has no such tool", self.name);
                return Err(CallError::Client(ClientError::Refused(cause)));
            };
            let arguments = member(text, "arguments").map(|at| text[at].to_vec());
            let arguments = arguments.map(|it| Json::from_scanned(it.into()));
            let arguments = arguments.filter(Json::is_object).unwrap_or_else(Json::empty_object);
            (tool.func)(arguments, context).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize, JsonSchema)]
    struct Add {
        a: i64,
        b: i64,
    }

    #[derive(Debug)]
    struct Sums;

    impl Mod for Sums {
        fn name(&self) -> &str {
            "mods.sums"
        }

        fn get_tools(&self) -> Vec<AgentTool> {
            let add = |it: Add| async move {
                it.a.checked_add(it.b).map(|sum| json!({ "sum": sum })).ok_or("too large")
            };
            vec![AgentTool::new("add", "Adds.", add)]
        }
    }

    async fn call(arguments: &str) -> Value {
        let params = Json::parse(format!(r#"{{"name":"add","arguments":{arguments}}}"#)).unwrap();
        let answer =
            ModSource::new(&Sums).request("tools/call", params, CallContext::default()).await;
        answer.unwrap().get().unwrap()
    }

    #[test]
    fn annotations_are_listed_where_there_are_any() {
        let [add] = &Sums.get_tools()[..] else { panic!("one tool") };
        assert_eq!(add.to_mcp().get("annotations"), None);
        let hints = Annotations { read_only_hint: Some(true), ..Annotations::default() };
        let written = add.clone().with_annotations(hints).to_mcp();
        assert_eq!(written["annotations"], json!({ "readOnlyHint": true }));
    }

    #[tokio::test]
    async fn a_tool_takes_and_gives_types_of_rust() {
        let added = call(r#"{"a":1,"b":2}"#).await;
        assert_eq!(added["structuredContent"], json!({ "sum": 3 }));
        let refused = call(r#"{"a":1}"#).await;
        assert_eq!(refused["isError"], true);
        assert_eq!(
            refused["content"][0]["text"],
            "Invalid input: missing field `b` at line 1 column 7"
        );
        let failed = call(&format!(r#"{{"a":{},"b":1}}"#, i64::MAX)).await;
        assert_eq!(failed["content"][0]["text"], "Error: too large");
        let schema = ModSource::new(&Sums).tools()[0].input_schema.clone().unwrap();
        assert_eq!(schema.get::<Value>().unwrap()["required"], json!(["a", "b"]));
    }
}
