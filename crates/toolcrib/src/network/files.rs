//! Files that are read for `network.yaml`: itself, and the instructions that it names.

use std::{
    fs,
    path::{Path, PathBuf},
};

use toolcrib_catalogue::Problem;

/// The largest file that is read.
const MAX_FILE: u64 = 1024 * 1024;

/// The most that agents are told.
const MAX_INSTRUCTIONS: usize = 64 * 1024;

/// A value that ends in `.md` or `.txt` is a file of the workspace; anything else is the text itself.
pub(super) fn instructions(
    written: &str,
    folder: &Path,
    problems: &mut Vec<Problem>,
) -> Option<String> {
    if !written.ends_with(".md") && !written.ends_with(".txt") {
        return Some(written.to_owned());
    }
    let inside = |path: PathBuf| path.canonicalize().ok().filter(|it| it.starts_with(folder));
    let text = inside(folder.join(written)).map(|path| read_file(&path));
    let problem =
        |message: String| Problem::new("network.yaml: external_access: instruction", message);
    match text {
        Some(Ok(Some(text))) if text.len() <= MAX_INSTRUCTIONS => Some(text),
        Some(Ok(Some(_))) => {
            problems.push(problem(format!("`{written}` is larger than {MAX_INSTRUCTIONS} bytes")));
            None
        }
        Some(Err(cause)) => {
            problems.push(problem(format!("`{written}`: {cause}")));
            None
        }
        Some(Ok(None)) | None => {
            let message = format!("there is no file `{written}` in the workspace");
            problems
                .push(problem(message).hint("a text that is no file must not end in .md or .txt"));
            None
        }
    }
}

/// The text of a file; none where there is no file.
pub(super) fn read_file(path: &Path) -> Result<Option<String>, String> {
    let about = match fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    if !about.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    if MAX_FILE < about.len() {
        return Err(format!("it is larger than {} MB", MAX_FILE >> 20));
    }
    fs::read_to_string(path).map(Some).map_err(|error| error.to_string())
}
