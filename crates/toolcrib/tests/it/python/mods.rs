//! Mods: Python modules that `network.yaml` names.

use serde_json::json;

use super::Caller;
use crate::{
    kit::{Folder, toolcrib},
    serving::Serving,
};

const MOD: &str = "
from openagents.models.tool import AgentTool

class SearchMod:
    def __init__(self, config):
        self.config = config

    def get_tools(self):
        async def search(query: str):
            return f\"{self.config['prefix']}{query}\"
        return [AgentTool(name='search', description='Searches.', input_schema={'type': 'object',
            'properties': {'query': {'type': 'string'}}, 'required': ['query']}, func=search)]
";

fn with_mod(settings: &str) -> Folder {
    let folder = Folder::new();
    folder.write("mods/search_mod.py", MOD);
    folder.write("network.yaml", settings);
    folder
}

#[test]
fn a_mod_serves_tools_and_gets_its_config() {
    let folder = with_mod("mods: [{ name: mods.search_mod, config: { prefix: '> ' } }]\n");
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    assert_eq!(caller.text("search", &json!({ "query": "x" })), "> x");
    let tools = toolcrib(folder.path(), &["tools", "--json"]).json();
    assert_eq!(
        (&tools[0]["source"], &tools[0]["server"]),
        (&json!("mod"), &json!("mods.search_mod"))
    );
}

#[test]
fn a_mod_may_be_named_by_a_bare_word() {
    let folder = with_mod("mods: [mods.search_mod]\n");
    folder.write("mods/search_mod.py", MOD.replace("{self.config['prefix']}", "bare "));
    let run = toolcrib(folder.path(), &["call", "search", "query=y"]);
    assert_eq!(run.out, "bare y\n", "{}", run.transcript());
}

#[test]
fn an_openagents_file_names_its_mods_under_network() {
    let folder = with_mod(
        "network:\n  name: n\n  mods:\n    - { name: mods.search_mod, enabled: true, config: { prefix: '' } }\n    \
         - { name: mods.other, enabled: false }\n",
    );
    let run = toolcrib(folder.path(), &["call", "search", "query=y"]);
    assert_eq!(run.out, "y\n", "{}", run.transcript());
}

#[test]
fn a_mod_and_a_tool_of_one_name_refuse_the_start_with_the_seeds_sentence() {
    let folder = with_mod("mods: [{ name: mods.search_mod, config: { prefix: '' } }]\n");
    folder.write("tools/t.py", "from openagents import tool\n@tool\ndef search(): 'x'\n");
    for command in [&["serve", "--listen", "127.0.0.1:0"][..], &["tools"]] {
        let run = toolcrib(folder.path(), command);
        assert_eq!(run.code, 2, "{}", run.transcript());
        let sentence = "Tool name conflict: 'search' is defined in both 'mod:search_mod' and 'workspace'. Tool names must be unique.";
        assert!(run.err.contains(sentence), "{}", run.err);
    }
}

#[test]
fn a_mod_that_is_not_there_is_a_problem_and_hides_nothing() {
    let folder = with_mod(
        "mods: [{ name: mods.missing }, { name: mods.search_mod, config: { prefix: '' } }]\n",
    );
    let run = toolcrib(folder.path(), &["check", "--json"]);
    assert_eq!(run.code, 1);
    let problem = &run.json()["problems"][0];
    assert!(problem["subject"].as_str().unwrap().starts_with("mods.missing"), "{problem}");
    assert_eq!(run.json()["tools"], 1);
}
