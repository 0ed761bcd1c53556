//! What tools need besides Python: named in `tools/requirements.txt`, or in a PEP 723 header of a file, and
//! installed into an environment of our own before anything is served. Never during a call.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use serde::Deserialize;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::Command,
    time::timeout,
};
use toolcrib_catalogue::Problem;
use toolcrib_wire::text::plain;

use super::{Settings, interpreter, loading};

/// How long an installation may take.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// The file that says what was installed. It is written last.
const MARK: &str = "toolcrib-installed";

/// What the tools of a workspace need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Needs {
    /// The lines of a requirements file.
    lines: Vec<String>,
    /// Where they stand.
    named_in: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Header {
    dependencies: Vec<String>,
}

/// Reads what tools need; nothing where they need nothing.
fn needs(workspace: &Path, problems: &mut Vec<Problem>) -> Option<Needs> {
    let (mut lines, mut named_in) = (Vec::new(), Vec::new());
    if let Ok(text) = fs::read_to_string(workspace.join("tools/requirements.txt")) {
        let own = text.lines().map(str::trim).filter(|it| !it.is_empty() && !it.starts_with('#'));
        lines.extend(own.map(ToOwned::to_owned));
        named_in.push("tools/requirements.txt".to_owned());
    }
    for file in loading::files(workspace).0 {
        match header(file.text.as_deref().unwrap_or_default()) {
            Ok(found) if found.is_empty() => {}
            Ok(found) => {
                lines.extend(found);
                named_in.push(file.file);
            }
            Err(cause) => {
                let message = format!("its `# /// script` header cannot be read: {cause}");
                problems.push(Problem::new(file.file, message));
            }
        }
    }
    lines.sort();
    lines.dedup();
    (!lines.is_empty()).then_some(Needs { lines, named_in })
}

/// The packages that a PEP 723 header of a file names.
fn header(text: &str) -> Result<Vec<String>, String> {
    let mut lines = text.lines().skip_while(|it| it.trim_end() != "# /// script").skip(1);
    let mut inside = String::new();
    for line in lines.by_ref() {
        if line.trim_end() == "# ///" {
            let header: Header =
                toml::from_str(&inside).map_err(|error| error.message().to_owned())?;
            return Ok(header.dependencies);
        }
        let Some(rest) = line.strip_prefix('#') else { break };
        inside.push_str(rest.strip_prefix(' ').unwrap_or(rest));
        inside.push('\n');
    }
    Ok(Vec::new())
}

/// Sees to it that the interpreter has what tools need: installs it, or where that is not asked for says
/// that it is missing. `tell` hears how it goes on.
pub async fn prepare(settings: &mut Settings, install: bool, tell: &(dyn Fn(&str) + Sync)) {
    let mut problems = Vec::new();
    let needs = needs(&settings.workspace, &mut problems);
    if let Some(needs) = needs
        && let Ok(base) = interpreter::find(&settings.interpreters, &settings.env).await
    {
        let venv = settings.home.with_file_name("venv");
        let mark = needs.mark(&base.path, &base.version);
        let installed = fs::read_to_string(venv.join(MARK)).is_ok_and(|it| it == mark);
        let done = match (installed, install) {
            (true, _) => Ok(()),
            (false, true) => needs.install(settings, &base.path, &venv, &mark, tell).await,
            (false, false) => Err(needs.missing()),
        };
        match done {
            Ok(()) => settings.interpreters = vec![venv.join("bin/python")],
            Err(problem) => problems.push(problem),
        }
    }
    settings.problems.extend(problems);
}

impl Needs {
    /// What tells one installation from another.
    fn mark(&self, python: &Path, version: &str) -> String {
        format!("{}\n{version}\n{}\n", python.display(), self.lines.join("\n"))
    }

    fn missing(&self) -> Problem {
        let message = format!("{} packages that it names are not installed", self.lines.len());
        let hint = "`toolcrib serve` installs them into .toolcrib/venv when it starts";
        Problem::new(self.named_in.join(", "), message).hint(hint)
    }

    async fn install(
        &self,
        settings: &Settings,
        base: &Path,
        venv: &Path,
        mark: &str,
        tell: &(dyn Fn(&str) + Sync),
    ) -> Result<(), Problem> {
        let failed = |cause: String| {
            let message = format!("its packages cannot be installed: {cause}");
            let hint = "mend the list and start again; tools that need them do not load until then";
            Problem::new(self.named_in.join(", "), message).hint(hint)
        };
        tell(&format!("installing {} packages for tools/", self.lines.len()));
        let list = settings.home.with_file_name("requirements.txt");
        let written = || -> io::Result<()> {
            if venv.exists() {
                fs::remove_dir_all(venv)?;
            }
            fs::create_dir_all(venv.parent().unwrap_or(venv))?;
            fs::write(&list, self.lines.join("\n"))
        };
        written().map_err(|error| failed(error.to_string()))?;
        for command in commands(settings, base, venv, &list).await {
            run(command, settings, tell).await.map_err(failed)?;
        }
        show_base(settings, base, venv).await;
        fs::write(venv.join(MARK), mark).map_err(|error| failed(error.to_string()))
    }
}

/// How the environment is made and filled: by uv where it is there, since that takes a tenth of the time.
async fn commands(settings: &Settings, base: &Path, venv: &Path, list: &Path) -> [Vec<PathBuf>; 2] {
    let words = |it: &[&str]| it.iter().map(PathBuf::from).collect::<Vec<PathBuf>>();
    let python = venv.join("bin/python");
    let uv = words(&["uv", "--version"]);
    if run(uv, settings, &|_: &str| {}).await.is_ok() {
        let make = [words(&["uv", "venv", "--quiet", "--python"]), vec![base.into(), venv.into()]];
        let fill = [
            words(&["uv", "pip", "install", "--python"]),
            vec![python],
            words(&["-r"]),
            vec![list.into()],
        ];
        return [make.concat(), fill.concat()];
    }
    let make = [vec![base.into()], words(&["-m", "venv"]), vec![venv.into()]];
    let pip = words(&["-m", "pip", "install", "--disable-pip-version-check", "--no-input", "-r"]);
    let fill = [vec![python], pip, vec![list.into()]];
    [make.concat(), fill.concat()]
}

/// Runs a command and tells its lines. The last one is the cause where it fails.
async fn run(
    words: Vec<PathBuf>,
    settings: &Settings,
    tell: &(dyn Fn(&str) + Sync),
) -> Result<(), String> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(&settings.workspace);
    command
        .env_clear()
        .envs(settings.env.iter().cloned())
        .envs(settings.install_env.iter().cloned());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let out = child.stdout.take().map(|it| BufReader::new(it.take(64 << 20)).lines());
    let err = child.stderr.take().map(|it| BufReader::new(it.take(64 << 20)).lines());
    let (Some(mut out), Some(mut err)) = (out, err) else {
        return Err("it has no pipes".to_owned());
    };
    let telling = async {
        while let Ok(Some(line)) = out.next_line().await {
            tell(&plain(line.as_bytes()));
        }
    };
    let failing = async {
        let mut last = String::new();
        while let Ok(Some(line)) = err.next_line().await {
            if !line.trim().is_empty() {
                last = plain(line.trim().as_bytes());
                tell(&last);
            }
        }
        last
    };
    let waiting = async { tokio::join!(telling, failing, child.wait()) };
    match timeout(PATIENCE, waiting).await {
        Ok(((), _, Ok(status))) if status.success() => Ok(()),
        Ok(((), last, _)) if !last.is_empty() => Err(settings.masker.mask(&last).into_owned()),
        Ok(_) => Err(format!("`{}` failed", words[0].display())),
        Err(_) => Err(format!("it takes more than {} minutes", PATIENCE.as_secs() / 60)),
    }
}

/// What an environment of the workspace's own has stays to be had.
async fn show_base(settings: &Settings, base: &Path, venv: &Path) {
    let ask = "import sys, sysconfig; print(sysconfig.get_path('purelib') if sys.prefix != sys.base_prefix else '')";
    let mut command = Command::new(base);
    command.args(["-I", "-c", ask]).env_clear().envs(settings.env.iter().cloned());
    let Ok(output) = command.stdin(Stdio::null()).kill_on_drop(true).output().await else { return };
    let packages = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let inside = fs::read_dir(venv.join("lib")).into_iter().flatten().flatten().next();
    if let Some(inside) = inside.filter(|_| !packages.is_empty()) {
        fs::write(inside.path().join("site-packages/toolcrib-base.pth"), packages + "\n").ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_names_packages() {
        let text = "#!/usr/bin/env python3\n# /// script\n# requires-python = \">=3.9\"\n# dependencies = [\n#   \"requests<3\",\n#   \"rich\",\n# ]\n# ///\nimport rich\n";
        assert_eq!(header(text).unwrap(), ["requests<3", "rich"]);
        assert!(header("import os\n").unwrap().is_empty());
        assert!(header("# /// script\n# dependencies = [\n# ///\n").is_err());
        assert!(header("# /// script\n# dependencies = []\nimport os\n").unwrap().is_empty());
    }
}
