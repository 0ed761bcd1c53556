//! The example tools of the guide, as a mod in Rust behind a gateway of its own: guide_mod
//!
//! It speaks over standard input and output, so it can stand in an `mcp.json` like any server. `GUIDE_DATA` is the
//! folder that `read_file` reads from, `GUIDE_API` the one address that `api_call` may call, `GUIDE_LOG` a file that
//! gets a line for every call.

// The test of the same name takes this file in too.
#[path = "guide_mod.rs"]
mod guide_mod;

use std::path::{Path, PathBuf};

use guide_mod::{GuideMod, Place};
use toolcrib::server::serve_stdio;

#[tokio::main]
async fn main() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/guide-servers/data");
    let place = Place {
        data: toolcrib::environment("GUIDE_DATA").map_or(data, PathBuf::from),
        api: toolcrib::environment("GUIDE_API"),
        log: toolcrib::environment("GUIDE_LOG").map(PathBuf::from),
    };
    let gateway = guide_mod::gateway(&GuideMod::new(place));
    if let Some(caller) = gateway.access().local(None) {
        serve_stdio(&gateway, caller).await;
    }
    gateway.close().await;
}
