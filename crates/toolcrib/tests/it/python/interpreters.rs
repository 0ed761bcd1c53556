//! Every Python from 3.9 on that is installed here.

use std::{path::PathBuf, process::Command};

use serde_json::json;

use super::{Caller, repository, workspace};
use crate::serving::Serving;

/// The interpreters that can be found, by version.
pub(crate) fn installed() -> Vec<(String, PathBuf)> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let root = std::env::var_os("PYENV_ROOT").map_or_else(|| home.join(".pyenv"), PathBuf::from);
    let mut found = Vec::new();
    for minor in 9..=14 {
        let version = format!("3.{minor}");
        let prefix = format!("{version}.");
        let versions = std::fs::read_dir(root.join("versions")).into_iter().flatten().flatten();
        let own = versions
            .filter(|it| it.file_name().to_string_lossy().starts_with(&prefix))
            .map(|it| it.path().join("bin/python3"));
        let named = [PathBuf::from(format!("python{version}"))];
        let works = |it: &PathBuf| {
            let print = "import sys; print('.'.join(map(str, sys.version_info[:2])))";
            let run = Command::new(it).args(["-I", "-c", print]).output();
            run.is_ok_and(|it| it.stdout.trim_ascii() == version.as_bytes())
        };
        match own.chain(named).find(works) {
            Some(path) => found.push((version, path)),
            None => println!("NOT RUN: there is no Python {version} here"),
        }
    }
    assert!(!found.is_empty(), "there is no Python here");
    found
}

#[test]
fn tools_run_under_every_python() {
    for (version, path) in installed() {
        let folder = workspace(
            "import sys\nfrom typing import Optional\n@tool\ndef version(full: Optional[bool] = None) -> str:\n    \
             return '.'.join(map(str, sys.version_info[:2]))\n\
             @tool\nasync def later() -> dict:\n    return {'a': [1, None]}\n",
        );
        folder.write("network.yaml", json!({ "python": { "interpreter": path } }).to_string());
        let serving = Serving::start(folder.path());
        let mut caller = Caller::new(&serving);
        assert_eq!(caller.text("version", &json!({})), version);
        assert_eq!(
            caller.call("later", &json!({}))["structuredContent"],
            json!({ "a": [1, null] })
        );
    }
}

/// The oldest, and one with pydantic; all of them in a full run.
#[test]
fn the_package_passes_its_own_tests() {
    let tests = repository("tests/python");
    let mut all = installed();
    if std::env::var_os("TOOLCRIB_FULL").is_none() {
        all.truncate(1);
    }
    let venv = repository(".tools/venv/bin/python");
    let with_pydantic = venv.exists().then(|| ("with pydantic".to_owned(), venv));
    for (version, path) in all.into_iter().chain(with_pydantic) {
        let mut command = Command::new(&path);
        command.args(["-m", "unittest", "discover", "-q", "-s"]).arg(&tests).arg("-t").arg(&tests);
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        let run = crate::kit::run(&mut command);
        assert_eq!(run.code, 0, "Python {version}: {}", run.err);
        println!("Python {version}: {}", run.err.lines().next_back().unwrap_or_default());
    }
}

#[test]
fn the_interpreter_is_the_one_a_person_would_expect() {
    let folder = workspace("import sys\n@tool\ndef prefix() -> str:\n    return sys.prefix\n");
    let made = Command::new("python3")
        .args(["-m", "venv", "--without-pip", ".venv"])
        .current_dir(folder.path())
        .status();
    assert!(made.unwrap().success());
    let run = crate::kit::toolcrib(folder.path(), &["call", "prefix"]);
    assert!(run.out.trim().ends_with(".venv"), "{}", run.transcript());
}

/// A package that is made here, so that nothing has to be fetched.
fn wheel(folder: &std::path::Path) {
    let script = "import sys, zipfile\n\
        with zipfile.ZipFile(sys.argv[1] + '/greeting_words-1.0-py3-none-any.whl', 'w') as wheel:\n    \
        wheel.writestr('greeting_words.py', 'WORD = \"Servus\"\\n')\n    \
        info = 'greeting_words-1.0.dist-info/'\n    \
        wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: greeting-words\\nVersion: 1.0\\n')\n    \
        wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n    \
        wheel.writestr(info + 'RECORD', '')\n";
    let made = Command::new("python3").args(["-c", script]).arg(folder).status().unwrap();
    assert!(made.success());
}

#[test]
fn what_tools_need_is_installed_when_the_gateway_starts() {
    let folder =
        workspace("from greeting_words import WORD\n@tool\ndef word() -> str:\n    return WORD\n");
    wheel(folder.path());
    folder.write("tools/requirements.txt", "greeting-words==1.0\n");
    let missing = crate::kit::toolcrib(folder.path(), &["check", "--json"]).json();
    let text = missing["problems"].to_string();
    assert!(text.contains("packages that it names are not installed"), "{text}");
    assert!(text.contains("ModuleNotFoundError"), "{text}");
    let place = folder.path().to_str().unwrap();
    let env = [("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", place)];
    let serving = Serving::start_with(folder.path(), &env);
    assert_eq!(Caller::new(&serving).text("word", &json!({})), "Servus");
    drop(serving);
    // It is there now, for every command and without any installer.
    let run = crate::kit::toolcrib(folder.path(), &["call", "word"]);
    assert_eq!(run.out, "Servus\n", "{}", run.transcript());
    folder.write("tools/requirements.txt", "no-such-package-here==1.0\n");
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolcrib"));
    command.args(["serve", "--stdio"]).envs(env).current_dir(folder.path());
    let run = crate::kit::run(command.stdin(std::process::Stdio::null()));
    assert_eq!(run.code, 0, "the rest is served: {}", run.transcript());
}
