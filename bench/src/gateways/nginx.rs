//! nginx as a plain forwarder with one worker: bytes in, bytes out, the practical limit.

use std::{net::SocketAddr, path::Path, process::Command, time::Duration};

use super::Way;
use crate::{
    failure::Failure,
    process::{Folder, Process, Work, children_of, free_port, listens},
};

/// Starts it. Below `/files/` it serves what is in its folder `files`.
pub(crate) fn start(
    program: &Path,
    upstream: SocketAddr,
) -> Result<(Process, SocketAddr), Failure> {
    let folder = Folder::new("nginx")?;
    let address = free_port()?;
    std::fs::create_dir_all(folder.path().join("files"))?;
    folder.write("nginx.conf", config(folder.path(), address, upstream))?;
    let mut command = Command::new(program);
    command.arg("-p").arg(folder.path()).arg("-c").arg(folder.path().join("nginx.conf"));
    let mut process = Process::start(&mut command, folder)?;
    // It listens before it has a worker.
    let id = process.id();
    let begun = || listens(address) && children_of(id).is_ok_and(|it| !it.is_empty());
    process.wait(Duration::from_secs(20), |_| begun().then_some(()))?;
    process.count(Work::Children)?;
    Ok((process, address))
}

/// The way through it to a server.
pub(crate) fn way(address: SocketAddr, path: String, tools: usize) -> Way {
    Way::http(address, path, tools)
}

/// As its documentation has it for a proxy that keeps connections; what is not said here is its default.
/// The limits on requests a connection are raised: we do not measure how connections are made. `sendfile` is
/// on, as packages have it, for the files that it serves itself.
fn config(folder: &Path, address: SocketAddr, upstream: SocketAddr) -> String {
    let folder = folder.display();
    format!(
        r#"
worker_processes 1;
daemon off;
pid {folder}/pid;
error_log stderr;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000000;
  keepalive_timeout 600s;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  upstream bench {{
    server {upstream};
    keepalive 128;
    keepalive_requests 1000000000;
  }}
  server {{
    listen {address};
    location /files/ {{
      root {folder};
    }}
    location / {{
      proxy_pass http://bench;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
    }}
  }}
}}
"#
    )
}
