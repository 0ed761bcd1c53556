//! The arguments of the tools, as types. Their schemas follow from them.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use serde_json::{Map, Value};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchWeb {
    /// What to look for
    #[schemars(length(min = 1, max = 200))]
    pub(super) query: String,
    /// How many results to show
    #[serde(default = "ten", deserialize_with = "whole")]
    #[schemars(range(min = 1, max = 50))]
    pub(super) limit: u32,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AnalyzeCode {
    /// The source code
    #[schemars(length(min = 1, max = 10000))]
    pub(super) code: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateItem {
    /// What the item is called
    #[schemars(length(min = 1, max = 100), regex(pattern = r"^[^\x00-\x1f\x7f]*$"))]
    pub(super) title: String,
    /// What to know about it
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1000))]
    pub(super) description: String,
    /// Kind of item
    #[serde(default = "general")]
    #[schemars(regex(pattern = "^[a-z]{1,20}$"))]
    pub(super) category: String,
    /// Kilograms
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64", range(min = 0, max = 1000))]
    pub(super) weight: Option<f64>,
}

/// What gets or deletes one item.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ById {
    /// Id of an item, such as item-3
    #[schemars(regex(pattern = "^item-[0-9]{1,6}$"))]
    pub(super) id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UpdateItem {
    /// Id of an item, such as item-3
    #[schemars(regex(pattern = "^item-[0-9]{1,6}$"))]
    pub(super) id: String,
    /// What the item is called
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        with = "String",
        length(min = 1, max = 100),
        regex(pattern = r"^[^\x00-\x1f\x7f]*$")
    )]
    title: Option<String>,
    /// What to know about it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 1000))]
    description: Option<String>,
    /// Whether it is in use
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Status")]
    status: Option<Status>,
    /// Kilograms
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64", range(min = 0, max = 1000))]
    weight: Option<f64>,
}

impl UpdateItem {
    /// The id, and what to change.
    pub(super) fn split(self) -> (String, Changes) {
        let Self { id, title, description, status, weight } = self;
        (id, Changes { title, description, status, weight })
    }
}

#[derive(Deserialize, JsonSchema, PartialEq, Default)]
#[serde(deny_unknown_fields)]
#[schemars(inline, extend("minProperties" = 1))]
pub(super) struct Changes {
    /// What the item is called
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        with = "String",
        length(min = 1, max = 100),
        regex(pattern = r"^[^\x00-\x1f\x7f]*$")
    )]
    pub(super) title: Option<String>,
    /// What to know about it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 1000))]
    pub(super) description: Option<String>,
    /// Whether it is in use
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Status")]
    pub(super) status: Option<Status>,
    /// Kilograms
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64", range(min = 0, max = 1000))]
    pub(super) weight: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(super) enum Status {
    Active,
    Archived,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchItems {
    /// Part of the title
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 200))]
    pub(super) query: String,
    /// Kind of item
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", regex(pattern = "^[a-z]{1,20}$"))]
    pub(super) category: Option<String>,
    /// Whether it is in use
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Status")]
    pub(super) status: Option<Status>,
    /// How many items to show
    #[serde(default = "twenty", deserialize_with = "whole")]
    #[schemars(range(min = 1, max = 100))]
    pub(super) limit: u32,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListItems {
    /// Which page, from 1
    #[serde(default = "one", deserialize_with = "whole")]
    #[schemars(range(min = 1, max = 1000000))]
    pub(super) page: u32,
    /// Items per page
    #[serde(default = "twenty", deserialize_with = "whole")]
    #[schemars(range(min = 1, max = 100))]
    pub(super) limit: u32,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BatchUpdate {
    /// Ids, each with what to change
    #[schemars(length(min = 1, max = 50))]
    pub(super) items: Vec<Change>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(super) struct Change {
    /// Id of an item, such as item-3
    #[schemars(regex(pattern = "^item-[0-9]{1,6}$"))]
    pub(super) id: String,
    /// What to change
    pub(super) changes: Changes,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct BatchGetItems {
    /// Ids of the items
    #[schemars(
        length(min = 1, max = 50),
        inner(regex(pattern = "^item-[0-9]{1,6}$")),
        extend("uniqueItems" = true)
    )]
    pub(super) item_ids: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteDatabase {
    /// Which database
    #[schemars(extend("enum" = ["guide"]))]
    pub(super) name: String,
    /// That this is really meant
    pub(super) confirm: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EnsureUserExists {
    /// Name to sign in with
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]{2,30}$"))]
    pub(super) username: String,
    /// Where to write to
    #[schemars(email, length(max = 254))]
    pub(super) email: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ApiCall {
    /// Address to call
    #[schemars(url, length(max = 2000))]
    pub(super) endpoint: String,
    /// What to do there
    #[serde(default)]
    pub(super) method: Method,
    /// Sent as JSON
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Map<String, Value>")]
    pub(super) body: Option<Map<String, Value>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schemars(inline)]
pub(super) enum Method {
    #[default]
    Get,
    Post,
    Put,
    Delete,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExecuteQuery {
    /// The SELECT; a ? stands for each value
    #[schemars(length(min = 1, max = 1000))]
    pub(super) query: String,
    /// The values, in order
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 20),
        extend("items" = { "type": ["string", "number", "boolean"] })
    )]
    pub(super) params: Vec<Value>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadFile {
    /// Where it is in that folder
    #[schemars(length(min = 1, max = 255))]
    pub(super) path: String,
    /// How its bytes are to be read
    #[serde(default)]
    pub(super) encoding: Encoding,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) enum Encoding {
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    #[serde(rename = "latin1")]
    Latin1,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GetCachedResource {
    /// Name of the text
    #[schemars(regex(pattern = "^[a-z]{1,20}$"))]
    pub(super) key: String,
}

fn one() -> u32 {
    1
}

fn ten() -> u32 {
    10
}

fn twenty() -> u32 {
    20
}

fn general() -> String {
    "general".to_owned()
}

/// `2.0` is an integer in JSON Schema, and none to serde.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let number = f64::deserialize(deserializer)?;
    let text = format!("{number:.0}");
    let whole = number.fract() == 0.0;
    text.parse().ok().filter(|_| whole).ok_or_else(|| D::Error::custom("not a whole number"))
}
