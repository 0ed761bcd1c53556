//! What a fake server offers, and where it fails.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A server made to order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Plan {
    /// Which eras it speaks.
    pub speaks: Speaks,
    /// The revision it answers `initialize` with.
    pub revision: String,
    /// Its tools.
    pub tools: Vec<PlanTool>,
    /// How many tools stand on a page of its list; all of them where nothing is said.
    pub page_size: Option<usize>,
    /// What is wrong with it.
    pub faults: Vec<Fault>,
    /// A file in which it notes every message it gets, a line each.
    pub notes: Option<PathBuf>,
    /// A file with the array of definitions that it lists, to the letter, instead of those of its tools; it is
    /// read each time. What stands there and is no tool echoes.
    #[serde(default)]
    pub listed: Option<PathBuf>,
}

/// Which eras a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Speaks {
    /// `initialize` only; anything else before it is an error.
    Legacy,
    /// `server/discover` only.
    Modern,
}

/// One tool.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlanTool {
    /// Its name.
    pub name: String,
    /// What it does when it is called.
    pub act: Act,
    /// Whether it claims to be read-only.
    pub read_only: bool,
    /// Its schema; one that takes anything where nothing is said.
    #[serde(default)]
    pub schema: Option<String>,
}

/// What a tool does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// Gives its arguments back as text.
    Echo,
    /// Gives this back as its result, to the letter.
    Result(String),
    /// Answers this, to the letter, instead of a message; `$ID` stands for the request's id.
    Line(String),
    /// Says that it failed.
    Fail,
    /// Answers with a protocol error of this code.
    Error(i64),
    /// Answers after so many milliseconds.
    Sleep(u64),
    /// Never answers.
    Hang,
    /// Ends the process, or cuts the connection.
    Crash,
    /// Ends the process the first time; echoes from then on. The file remembers.
    CrashOnce(PathBuf),
    /// Sends half of its answer, then ends.
    HalfFrame,
    /// Sends so many lines that are no messages, then echoes.
    Garbage(usize),
    /// Gives back a text of so many bytes.
    Big(usize),
    /// Gives back [`crate::rows`] of so many bytes as structured content.
    Rows(usize),
    /// Begins to give back a text, stops after so many bytes, and never goes on.
    Stall(usize),
    /// Gives back the environment it runs in.
    Env,
    /// Gives back the headers of the request.
    Headers,
    /// Adds a tool of this name and says that the list has changed.
    Add(String),
    /// Says that the list has changed, then echoes.
    Changed,
    /// Says this on standard error, then echoes.
    Stderr(String),
    /// Asks the client this, with these params, and gives back what it answers.
    Ask(String, String),
    /// Logs so many messages and, where it is wanted, says as often how far it is; then echoes.
    Say(usize),
    /// Gives back its arguments, to the letter, as structured content, and `v` of them once more beside it.
    Mirror,
    /// Gives back how often it was called.
    Count,
    /// Gives back the id of its process, and of one that it starts and that does not want to end.
    Family,
}

/// What is wrong with a server as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// It takes so many milliseconds to start.
    SlowStart(u64),
    /// It never says anything.
    Mute,
    /// It ends at once, saying this on standard error.
    ExitAtOnce(String),
    /// It ends when it gets a message it does not know.
    DiesOfUnknown,
    /// It says that it does not know a message, and then ends.
    DiesAfterUnknown,
    /// It says nothing to a message it does not know.
    SwallowsUnknown,
    /// It answers `tools/list` with an error.
    NoList,
    /// It gives out page after page, for ever.
    EndlessList,
    /// It does not end when its input does, nor on SIGTERM.
    Stubborn,
    /// It forgets every session after so many requests.
    Forgetful(usize),
    /// It sends everybody elsewhere.
    Redirect(String),
    /// It wants this token.
    Token(String),
    /// It tells HTTP+SSE clients to send their messages to this address.
    Endpoint(String),
    /// It answers 404 to those who only want to listen.
    NobodyListens,
    /// It answers `tools/list` with 401.
    LockedList,
    /// It answers an HTTP+SSE client's `initialize` with nothing but signs of life.
    Stalls,
    /// It answers HTTP requests with event streams rather than JSON.
    Streams,
}

impl Plan {
    /// A legacy server without tools.
    pub fn legacy() -> Self {
        Self {
            speaks: Speaks::Legacy,
            revision: "2025-11-25".to_owned(),
            tools: Vec::new(),
            page_size: None,
            faults: Vec::new(),
            notes: None,
            listed: None,
        }
    }

    /// A modern server without tools.
    pub fn modern() -> Self {
        Self { speaks: Speaks::Modern, ..Self::legacy() }
    }

    /// With one more tool.
    #[must_use]
    pub fn tool(mut self, name: &str, act: Act) -> Self {
        self.tools.push(PlanTool { name: name.to_owned(), act, read_only: false, schema: None });
        self
    }

    /// With one more tool, which claims to be read-only.
    #[must_use]
    pub fn read_only_tool(mut self, name: &str, act: Act) -> Self {
        self.tools.push(PlanTool { name: name.to_owned(), act, read_only: true, schema: None });
        self
    }

    /// With one more tool, which has this schema.
    #[must_use]
    pub fn tool_with(mut self, name: &str, schema: &str, act: Act) -> Self {
        let (name, schema) = (name.to_owned(), Some(schema.to_owned()));
        self.tools.push(PlanTool { name, act, read_only: false, schema });
        self
    }

    /// With one more fault.
    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }

    /// With a file of notes.
    #[must_use]
    pub fn notes(mut self, file: impl Into<PathBuf>) -> Self {
        self.notes = Some(file.into());
        self
    }

    /// Which lists what stands in a file.
    #[must_use]
    pub fn listed(mut self, file: impl Into<PathBuf>) -> Self {
        self.listed = Some(file.into());
        self
    }

    /// Which answers `initialize` with this revision.
    #[must_use]
    pub fn revision(mut self, revision: &str) -> Self {
        revision.clone_into(&mut self.revision);
        self
    }

    /// With a list in pages of so many tools.
    #[must_use]
    pub fn pages_of(mut self, size: usize) -> Self {
        self.page_size = Some(size);
        self
    }

    /// The program and the argument that run it as a child process.
    pub fn command(&self) -> (PathBuf, String) {
        (crate::stdio::program(), serde_json::to_string(self).unwrap())
    }

    pub(crate) fn has(&self, fault: &Fault) -> bool {
        self.faults.contains(fault)
    }
}
