//! What servers listed when they were last seen, kept in a file: nobody has to wait until a server has
//! started to hear what it can do. The file is ours alone; one that cannot be read is as good as none.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use toolcrib_catalogue::{Json, Offers, Resource, Tool};

use super::{config::ServerConfig, listing::Listed};

/// A larger file is neither written nor read.
const MAX_SIZE: u64 = 64 * 1024 * 1024;

/// What this version writes, and the only one it reads.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    servers: Vec<Server>,
}

#[derive(Serialize, Deserialize)]
struct Server {
    name: String,
    /// Stands for how the server is started or reached: another server may have got its name.
    way: String,
    tools: Vec<Box<RawValue>>,
    prompts: Vec<Box<RawValue>>,
    resources: Vec<(String, Box<RawValue>)>,
    templates: Vec<(String, Box<RawValue>)>,
}

/// What servers listed, by name.
#[derive(Debug, Default)]
pub(super) struct Memory(HashMap<String, (String, Listed)>);

impl Memory {
    /// Reads a file.
    pub(super) fn read(path: &Path) -> Self {
        match read(path) {
            Ok(memory) => memory,
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    tracing::warn!(%error, "what servers last listed cannot be read");
                }
                Self::default()
            }
        }
    }

    /// What a server listed, if it is still the same server.
    pub(super) fn of(&self, config: &ServerConfig) -> Option<Listed> {
        let (way, listed) = self.0.get(&config.name)?;
        (*way == way_of(config)).then(|| listed.clone())
    }
}

/// Writes what these servers listed, in one moment: whoever reads sees all or what was there before.
pub(super) fn write(path: &Path, servers: &[(ServerConfig, Arc<Listed>)]) -> io::Result<()> {
    let servers = servers.iter().filter_map(|(config, listed)| written(config, listed)).collect();
    let text = serde_json::to_vec(&File { version: VERSION, servers })?;
    if MAX_SIZE < text.len() as u64 {
        return Err(io::Error::other(format!("it would be larger than {MAX_SIZE} bytes")));
    }
    let draft = path.with_extension("new");
    let mut options = std::fs::OpenOptions::new();
    // Whatever is left of an earlier try; a link there would lead elsewhere.
    std::fs::remove_file(&draft).ok();
    let mut file = options.write(true).create_new(true).mode(0o600).open(&draft)?;
    file.write_all(&text)?;
    file.sync_all()?;
    std::fs::rename(draft, path)
}

fn read(path: &Path) -> io::Result<Memory> {
    let found = std::fs::symlink_metadata(path)?;
    if !found.is_file() || MAX_SIZE < found.len() {
        return Err(io::Error::other("it is no file, or too large"));
    }
    let file: File = serde_json::from_slice(&std::fs::read(path)?)?;
    if file.version != VERSION {
        return Err(io::Error::other(format!("version {} is unknown", file.version)));
    }
    let tool = |raw: Box<RawValue>| Tool::read(Json::parse(raw.get().to_owned()).ok()?).ok();
    let tools =
        |list: Vec<Box<RawValue>>| list.into_iter().filter_map(tool).map(Arc::new).collect();
    let resource = |(uri, raw): (String, Box<RawValue>)| {
        Some(Resource { uri, raw: Json::parse(raw.get().to_owned()).ok()? })
    };
    let resources = |list: Vec<_>| list.into_iter().filter_map(resource).collect();
    let listed = |server: Server| {
        let offers = Offers {
            prompts: tools(server.prompts),
            resources: resources(server.resources),
            templates: resources(server.templates),
            ..Offers::default()
        };
        let listed = Listed { tools: tools(server.tools), offers, ..Listed::default() };
        (server.name, (server.way, listed))
    };
    Ok(Memory(file.servers.into_iter().map(listed).collect()))
}

fn written(config: &ServerConfig, listed: &Listed) -> Option<Server> {
    let raw = |json: &Json| RawValue::from_string(json.to_string()).ok();
    let tools = |list: &[Arc<Tool>]| list.iter().map(|it| raw(&it.raw)).collect::<Option<_>>();
    let resources = |list: &[Resource]| {
        list.iter().map(|it| Some((it.uri.clone(), raw(&it.raw)?))).collect::<Option<_>>()
    };
    Some(Server {
        name: config.name.clone(),
        way: way_of(config),
        tools: tools(&listed.tools)?,
        prompts: tools(&listed.offers.prompts)?,
        resources: resources(&listed.offers.resources)?,
        templates: resources(&listed.offers.templates)?,
    })
}

/// How a server is started or reached, as it is written, so without the values of variables.
fn way_of(config: &ServerConfig) -> String {
    let mut hasher = DefaultHasher::new();
    let ServerConfig { transport, command, args, cwd, url, .. } = config;
    format!("{transport:?} {command:?} {args:?} {cwd:?} {url:?}").hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{Filled, Transport};

    #[test]
    fn what_was_listed_comes_back_to_the_letter_and_only_to_the_same_server() {
        let folder = std::env::temp_dir().join(format!("toolcrib-memory-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("lists.json");
        assert!(Memory::read(&path).0.is_empty());
        let mut config = ServerConfig::new("a", Transport::Stdio);
        config.command = Some(Filled::literal("x"));
        let raw = r#"{"name":"t","inputSchema":{"n":1e400, "é":"\u00e9"}}"#;
        let tool = Arc::new(Tool::read(Json::parse(raw).unwrap()).unwrap());
        let listed = Listed { tools: [tool].into(), ..Listed::default() };
        write(&path, &[(config.clone(), Arc::new(listed))]).unwrap();
        let found = Memory::read(&path).of(&config).unwrap();
        assert_eq!(found.tools[0].raw.to_string(), raw);
        config.command = Some(Filled::literal("y"));
        assert!(Memory::read(&path).of(&config).is_none());
        for broken in ["", "{", r#"{"version":2,"servers":[]}"#, "[1]"] {
            std::fs::write(&path, broken).unwrap();
            assert!(Memory::read(&path).0.is_empty(), "{broken}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
