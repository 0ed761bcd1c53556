//! What cannot be run here is held against what it is about: the image, the unit, the manifest.

use std::{fs, path::Path, process::Command};

use serde_json::Value;
use toolcrib::{Network, Workspace, sources::mcp::Lists};

use crate::kit::{Folder, run};

fn root(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The instructions of a Dockerfile: lines that go on are one, comments are none.
fn instructions(text: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = text.lines().filter(|it| !it.trim_start().starts_with('#')).collect();
    let joined = lines.join("\n").replace("\\\n", " ");
    let lines = joined.lines().filter(|it| !it.trim().is_empty());
    let pair = |it: &str| {
        let (word, rest) = it.trim().split_once(' ').unwrap_or_else(|| panic!("{it}"));
        (word.to_owned(), rest.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    lines.map(pair).collect()
}

/// The command line of a container is one that toolcrib understands.
fn understood(args: &[String]) {
    let known = run(Command::new(env!("CARGO_BIN_EXE_toolcrib")).args(args).arg("--help"));
    assert_eq!(known.code, 0, "{args:?}: {}", known.err);
}

#[test]
fn the_dockerfile_makes_a_gateway_that_is_nobody_in_particular() {
    let all = instructions(&root("Dockerfile"));
    let words = "FROM WORKDIR COPY RUN USER VOLUME EXPOSE HEALTHCHECK ENTRYPOINT CMD";
    let words: Vec<&str> = words.split(' ').collect();
    for (word, _) in &all {
        assert!(words.contains(&word.as_str()), "{word}");
    }
    let of = |word: &str| -> Vec<&str> {
        all.iter().filter(|(it, _)| it == word).map(|(_, rest)| rest.as_str()).collect()
    };
    let manifest: toml::Table = root("Cargo.toml").parse().unwrap();
    let version = manifest["workspace"]["package"]["rust-version"].as_str().unwrap();
    assert_eq!(of("FROM")[0], format!("rust:{version}-bookworm AS build"));
    assert!(manifest["profile"].get("dist").is_some() && of("RUN")[0].contains("--profile dist"));
    assert!(of("RUN").iter().all(|it| !it.contains("curl") && !it.contains("sudo")));
    let user: u32 = of("USER")[0].parse().unwrap();
    assert!(0 < user && of("RUN")[1].contains(&format!("--uid {user} ")));
    let at = |word: &str| all.iter().rposition(|(it, _)| it == word).unwrap();
    assert!(at("FROM") < at("USER") && at("USER") < at("ENTRYPOINT"));
    assert!(of("HEALTHCHECK")[0].contains(&format!("127.0.0.1:{}/healthz", of("EXPOSE")[0])));
    let entry: Vec<String> = serde_json::from_str(of("ENTRYPOINT")[0]).unwrap();
    assert_eq!(entry.last().unwrap(), "toolcrib");
    understood(&serde_json::from_str::<Vec<String>>(of("CMD")[0]).unwrap());
}

#[test]
fn systemd_understands_the_unit() {
    let unit = root("packaging/toolcrib.service");
    let start =
        unit.lines().find_map(|it| it.strip_prefix("ExecStart=/usr/local/bin/toolcrib ")).unwrap();
    understood(&start.split(' ').map(str::to_owned).collect::<Vec<_>>());
    for hard in
        ["NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet=\n", "User=toolcrib"]
    {
        assert!(unit.contains(hard), "{hard}");
    }
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        println!("NOT RUN: there is no systemd-analyze here");
        return;
    }
    // It looks whether the program is there.
    let folder = Folder::new();
    let unit = unit.replace("/usr/local/bin/toolcrib", env!("CARGO_BIN_EXE_toolcrib"));
    let file = folder.write("toolcrib.service", unit);
    let said = run(Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&file));
    let about = format!("{}{}", said.out, said.err);
    let ours: Vec<&str> = about.lines().filter(|it| it.contains("toolcrib")).collect();
    assert_eq!(ours, [""; 0]);
}

#[test]
fn the_manifest_is_one_gateway_that_would_start() {
    let text = root("packaging/kubernetes.yaml");
    let parts: Vec<Value> =
        text.split("\n---\n").map(|it| serde_saphyr::from_str(it).unwrap()).collect();
    let kind = |kind: &str| parts.iter().find(|it| it["kind"] == kind).unwrap();
    for part in &parts {
        assert_eq!(part["metadata"]["name"], "toolcrib", "{part}");
    }
    let spec = &kind("Deployment")["spec"];
    assert_eq!((&spec["replicas"], &spec["strategy"]["type"]), (&1.into(), &"Recreate".into()));
    let labels = &spec["template"]["metadata"]["labels"];
    assert_eq!(&spec["selector"]["matchLabels"], labels);
    assert_eq!(&kind("Service")["spec"]["selector"], labels);
    let pod = &spec["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    let container = &pod["containers"][0];
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    let volumes: Vec<&Value> =
        pod["volumes"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    for mount in container["volumeMounts"].as_array().unwrap() {
        assert!(volumes.contains(&&mount["name"]), "{mount}");
    }
    let user =
        instructions(&root("Dockerfile")).into_iter().find(|(it, _)| it == "USER").unwrap().1;
    assert_eq!(pod["securityContext"]["runAsUser"].to_string(), user);
    let args: Vec<String> = serde_json::from_value(container["args"].clone()).unwrap();
    understood(&args);
    // Its files are read as a gateway would, with what the secret brings.
    let folder = Folder::new();
    for (name, text) in kind("ConfigMap")["data"].as_object().unwrap() {
        folder.write(name, text.as_str().unwrap());
    }
    let secret = |name: &str| Some(kind("Secret")["stringData"][name].as_str()?.to_owned());
    let network = Network::read(folder.path(), &secret).unwrap();
    assert!(network.problems.is_empty() && network.warnings.is_empty(), "{network:?}");
    assert_eq!(network.listen.port(), 8700);
    assert!(network.access.token.is_some() && network.behind_proxy);
    let workspace = Workspace::open(folder.path(), &secret, Lists::Tools).unwrap();
    assert!(workspace.problems.is_empty() && workspace.warnings.is_empty());
}
