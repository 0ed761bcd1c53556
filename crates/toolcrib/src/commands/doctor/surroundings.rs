//! What surrounds a gateway: the port, who may come in, who may change its files, room on the disk.

use std::{
    fs,
    io::ErrorKind,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
};

use tokio::net::TcpListener;
use toolcrib::{Network, Owner, Workspace};
use toolcrib_server::Access;

use super::Line;
use crate::terminal::word;

/// What a token has at least that nobody guesses.
const SHORTEST: usize = 16;

/// Below this much room something will soon go wrong; below this much it does.
const LITTLE: u64 = 1 << 30;
const TOO_LITTLE: u64 = 100 << 20;

/// Whether we could listen where we are told to.
pub(super) async fn address(workspace: &Workspace, network: &Network) -> Line {
    let address = network.listen;
    let Err(cause) = TcpListener::bind(address).await else {
        return Line::ok("address", format!("{address} is free"));
    };
    let ours = Owner::of(&workspace.folder).connect().await.is_ok();
    match cause.kind() {
        ErrorKind::AddrInUse if ours => Line::ok(
            "address",
            format!("{address} is in use, and a gateway of this workspace runs"),
        ),
        ErrorKind::AddrInUse => {
            let cure = "end the program that has it, or set another `listen` in network.yaml";
            Line::error("address", format!("{address} is in use by another program")).cure(cure)
        }
        ErrorKind::PermissionDenied => {
            let cure = "choose a port from 1024 on: `listen` in network.yaml";
            Line::error("address", format!("{address} may not be used by you")).cure(cure)
        }
        _ => {
            let cure = "set `listen` in network.yaml to an address of this machine";
            Line::error("address", format!("{address}: {cause}")).cure(cure)
        }
    }
}

/// Who may come in.
pub(super) fn tokens(network: &Network) -> Vec<Line> {
    let access = Access::new(&network.access);
    let public = !network.listen.ip().is_loopback();
    if !access.has_tokens() {
        return vec![match public {
            true => {
                Line::error("tokens", "the address can be reached by others, and there is no token")
                    .cure("`toolcrib token new GROUP` makes one; or listen on 127.0.0.1")
            }
            false => Line::ok("tokens", "none: everybody on this machine may ask"),
        }];
    }
    let groups = network.access.groups.iter().flat_map(|it| &it.tokens);
    let short = |it: &&String| it.chars().count() < SHORTEST;
    let short = network.access.token.iter().chain(groups).filter(short).count();
    let mut lines = vec![match short {
        0 => Line::ok("tokens", "callers need one"),
        number => {
            let message = format!("{number} of them have less than {SHORTEST} characters");
            Line::warning("tokens", message).cure("take longer ones: `toolcrib token new GROUP`")
        }
    }];
    if public && !network.behind_proxy && network.tls.is_none() {
        let line = Line::error("tls", "the address can be reached by others, and nobody encrypts");
        lines.push(
            line.cure("set `tls` in network.yaml, or `behind_proxy: true` where a proxy does it"),
        );
    }
    lines
}

/// Whether others can read a file that holds a secret.
pub(super) fn secret_file(subject: &str, path: &Path) -> Option<Line> {
    let shown = path.display();
    let about = match fs::metadata(path) {
        Ok(about) => about,
        Err(error) => {
            let line = Line::error(subject, format!("`{shown}`: {error}"));
            return Some(line.cure("write the path of a file that is there, in network.yaml"));
        }
    };
    (about.permissions().mode() & 0o004 != 0).then(|| {
        let cure = format!("chmod o-r {}", word(&path.to_string_lossy()));
        Line::warning(subject, format!("everybody can read `{shown}`")).cure(cure)
    })
}

/// Whether others can change what is run in our name, or read what is kept.
pub(super) fn rights(folder: &Path) -> Vec<Line> {
    let mut lines = Vec::new();
    for name in ["", "mcp.json", "network.yaml", "tools", "events", "mods", "toolcrib.lock"] {
        let path = folder.join(name);
        let Ok(about) = fs::metadata(&path) else { continue };
        // In a folder with this mark each may change only what is their own.
        let sticky = about.is_dir() && about.permissions().mode() & 0o1000 != 0;
        if about.permissions().mode() & 0o002 != 0 && !sticky {
            let cure = format!("chmod o-w {}", word(&path.to_string_lossy()));
            let message = "everybody can change it, and what stands there is run as you";
            lines.push(Line::error(&path.display().to_string(), message).cure(cure));
        }
    }
    let data = folder.join(".toolcrib");
    if let Ok(about) = fs::symlink_metadata(&data) {
        let subject = data.display().to_string();
        let own = rustix::process::geteuid().as_raw();
        if about.uid() != own {
            let cure = format!("chown -R {own} {}", word(&subject));
            lines.push(Line::error(&subject, "it belongs to somebody else").cure(cure));
        } else if about.permissions().mode() & 0o077 != 0 {
            let cure = format!("chmod 700 {}", word(&subject));
            lines.push(Line::warning(&subject, "others can look into it").cure(cure));
        }
    }
    if lines.is_empty() {
        lines.push(Line::ok("rights", "only you can change what is run"));
    }
    lines
}

/// How much room there is for what is kept.
pub(super) fn room(folder: &Path) -> Line {
    let found = match rustix::fs::statvfs(folder) {
        Ok(found) => found,
        Err(error) => {
            return Line::warning("disk", format!("how much is free cannot be told: {error}"));
        }
    };
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let message = format!("{} free", amount(free));
    let cure = "make room: events, stored results and the audit record are kept there";
    match free {
        ..TOO_LITTLE => Line::error("disk", message).cure(cure),
        TOO_LITTLE..LITTLE => Line::warning("disk", message).cure(cure),
        _ => Line::ok("disk", message),
    }
}

fn amount(bytes: u64) -> String {
    match bytes >> 30 {
        0 => format!("{} MB", bytes >> 20),
        whole => format!("{whole} GB"),
    }
}
