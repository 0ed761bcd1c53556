//! `toolcrib new tool NAME`: a file to start from, and a test of it.

use std::{fs, io::Write, path::Path, process::ExitCode};

use super::Failure;
use crate::terminal::{self, BOLD, styled};

pub(super) const TOOL: &str = r#""""The tool `NAME`. What is saved here is served a moment later."""

from toolcrib import tool


@tool(read_only=True)
def NAME(name: str, times: int = 1) -> str:
    """Greet somebody.

    Args:
        name: Who is greeted
        times: How often
    """
    if times < 1:
        raise ValueError("times must be at least 1")
    return " ".join([f"Hello, {name}!"] * times)
"#;

const TEST: &str = r#""""A test of the tool `NAME`, as a client would call it: python3 -m unittest discover tests"""

import json
import subprocess
import unittest
from pathlib import Path

WORKSPACE = Path(__file__).resolve().parent.parent


def call(tool, **arguments):
    command = ["toolcrib", "call", "-w", WORKSPACE, tool, "--args", json.dumps(arguments), "--json"]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=False).stdout)


class NAME_test(unittest.TestCase):
    def test_it_greets(self):
        result = call("NAME", name="World", times=2)
        self.assertFalse(result["isError"])
        self.assertEqual(result["content"][0]["text"], "Hello, World! Hello, World!")

    def test_it_says_what_is_wrong(self):
        result = call("NAME", name="World", times=0)
        self.assertTrue(result["isError"])
        self.assertEqual(result["content"][0]["text"], "Invalid input: times must be at least 1")


if __name__ == "__main__":
    unittest.main()
"#;

/// Words that no function can be called.
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

pub(crate) fn tool(folder: &Path, name: &str) -> Result<ExitCode, Failure> {
    check(name)?;
    if !folder.is_dir() {
        return Err(Failure::unusable(format!("there is no folder `{}`", folder.display())));
    }
    let file = write(folder, &format!("tools/{name}.py"), &TOOL.replace("NAME", name))?;
    let test = write(folder, &format!("tests/test_{name}.py"), &TEST.replace("NAME", name))?;
    let place =
        if folder == Path::new(".") { String::new() } else { format!(" -w {}", folder.display()) };
    let text = format!(
        "wrote {} and {test}\ntry it: toolcrib call{place} {name} name=World\n",
        styled(BOLD, &file)
    );
    terminal::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The name of a function, as the guides want names to be.
fn check(name: &str) -> Result<(), Failure> {
    let mut letters = name.chars();
    let first = letters.next().is_some_and(|it| it.is_ascii_lowercase());
    let rest = letters.all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_');
    if first && rest && name.len() <= 64 && !KEYWORDS.contains(&name) {
        return Ok(());
    }
    let hint = "a name such as search_issues: small letters, digits and _, beginning with a letter";
    let message = format!("`{name}` cannot be the name of a function");
    Err(Failure::unusable(message).hint(Some(hint.to_owned())))
}

/// Writes a file that is not there yet.
fn write(folder: &Path, name: &str, text: &str) -> Result<String, Failure> {
    let path = folder.join(name);
    let shown = path.strip_prefix(".").unwrap_or(&path).display().to_string();
    let fail = |error: std::io::Error| {
        let exists = error.kind() == std::io::ErrorKind::AlreadyExists;
        let hint = exists.then(|| "nothing was written; choose another name".to_owned());
        Failure::unusable(format!("`{shown}`: {error}")).hint(hint)
    };
    fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(fail)?;
    let mut file = fs::File::create_new(&path).map_err(fail)?;
    file.write_all(text.as_bytes()).map_err(fail)?;
    Ok(shown)
}
