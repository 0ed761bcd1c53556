//! What is measured, and who takes part.

use std::time::Duration;

use toolcrib_wire::Era;

use crate::site::FEW;

/// Who a request goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Who {
    /// Nobody: straight to the server over HTTP.
    Direct,
    Nginx,
    /// nginx again, which reads the answer from a file.
    NginxFile,
    Toolcrib,
    /// With everything off that a key can switch off.
    ToolcribOff,
    /// With a server on a pipe.
    ToolcribToPipe,
    /// Nobody: straight to the server on a pipe.
    Pipe,
    /// On a pipe, bytes to a server on a pipe and back.
    Forwarder,
    /// On a pipe, with a server on a pipe.
    ToolcribPipe,
    McpProxy,
    McpProxyToPipe,
    FastMcp,
    FastMcpToPipe,
    ContextForge,
    NpmProxyToPipe,
}

/// One who takes part, before a server with so many tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Contender {
    pub(crate) who: Who,
    pub(crate) tools: usize,
}

/// One thing that is measured, by all who take part in turns.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) era: Era,
    pub(crate) what: What,
    pub(crate) connections: usize,
    pub(crate) contenders: Vec<Contender>,
    /// The one whose figures the others' are divided by.
    pub(crate) base: Contender,
    /// What each gets in each round.
    pub(crate) time: Duration,
    pub(crate) quick: Quick,
}

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// A call whose result has so many bytes.
    Call(usize),
    List,
}

/// Whether a quick run has it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quick {
    Yes,
    No,
}

impl Who {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Nginx => "nginx",
            Self::NginxFile => "nginx, a file",
            Self::Toolcrib => "toolcrib",
            Self::ToolcribOff => "toolcrib, all off",
            Self::ToolcribToPipe => "toolcrib to stdio",
            Self::Pipe => "direct, stdio",
            Self::Forwarder => "bare forwarder, stdio",
            Self::ToolcribPipe => "toolcrib, stdio",
            Self::McpProxy => "mcp-proxy (crate)",
            Self::McpProxyToPipe => "mcp-proxy (crate) to stdio",
            Self::FastMcp => "fastmcp",
            Self::FastMcpToPipe => "fastmcp to stdio",
            Self::ContextForge => "contextforge",
            Self::NpmProxyToPipe => "mcp-proxy (npm) to stdio",
        }
    }

    /// Whether it is a gateway that somebody else made: such a one may fail, and the rest goes on.
    pub(crate) fn is_other(self) -> bool {
        match self {
            Self::Direct
            | Self::Nginx
            | Self::NginxFile
            | Self::Toolcrib
            | Self::ToolcribOff
            | Self::ToolcribToPipe
            | Self::Pipe
            | Self::Forwarder
            | Self::ToolcribPipe => false,
            Self::McpProxy
            | Self::McpProxyToPipe
            | Self::FastMcp
            | Self::FastMcpToPipe
            | Self::ContextForge
            | Self::NpmProxyToPipe => true,
        }
    }
}

impl Contender {
    pub(crate) fn few(who: Who) -> Self {
        Self { who, tools: FEW }
    }

    pub(crate) fn name(self) -> String {
        format!("{}, {} tools", self.who.name(), self.tools)
    }
}

/// The gateways that a call over HTTP to a server over HTTP is compared with.
pub(crate) const OTHERS: [Who; 3] = [Who::McpProxy, Who::FastMcp, Who::ContextForge];

/// Everything that is measured in turns.
pub(crate) fn all() -> Vec<Case> {
    let plain = [Who::Direct, Who::Nginx, Who::Toolcrib];
    let calls = [Who::Direct, Who::Nginx, Who::Toolcrib, Who::ToolcribOff];
    let (calls, legacy) = ([&calls[..], &OTHERS].concat(), [&plain[..], &OTHERS].concat());
    let mut cases = vec![
        call("call-1", "tools/call, HTTP to HTTP, 1 connection", &calls, 1),
        call("call-16", "tools/call, HTTP to HTTP, 16 connections", &calls, 16).not_quick(),
        call("call-64", "tools/call, HTTP to HTTP, 64 connections", &calls, 64),
        call("call-256", "tools/call, HTTP to HTTP, 256 connections", &plain, 256).not_quick(),
        call("legacy-1", "tools/call in legacy sessions, 1 connection", &legacy, 1).legacy(),
        call("legacy-16", "tools/call in legacy sessions, 16 connections", &legacy, 16)
            .legacy()
            .not_quick(),
        call("legacy-64", "tools/call in legacy sessions, 64 connections", &legacy, 64)
            .legacy()
            .not_quick(),
    ];
    cases.extend(pipes());
    cases.extend(sizes(&plain));
    cases
}

/// Servers on pipes.
fn pipes() -> [Case; 3] {
    let ways = [
        Who::Toolcrib,
        Who::ToolcribToPipe,
        Who::McpProxyToPipe,
        Who::NpmProxyToPipe,
        Who::FastMcpToPipe,
    ];
    let one = call("stdio-1", "tools/call, HTTP to stdio, 1 connection", &ways, 1).not_quick();
    let many = call("stdio-64", "tools/call, HTTP to stdio, 64 connections", &ways, 64);
    let pipe = [Who::Pipe, Who::Forwarder, Who::ToolcribPipe];
    let pipe = call("pipe", "tools/call, stdio to stdio, 1 client", &pipe, 1);
    [one.by(Who::Toolcrib), many.by(Who::Toolcrib), pipe.by(Who::Pipe)]
}

/// What is large.
fn sizes(plain: &[Who]) -> Vec<Case> {
    let call = |id, title, what, time| Case { what, time, ..call(id, title, plain, 1) };
    let list = |id, title, tools| {
        let ways = [Who::Direct, Who::Nginx, Who::NginxFile, Who::Toolcrib];
        let contender = |who| Contender { who, tools };
        let contenders = ways.map(contender).to_vec();
        let base = contender(Who::Nginx);
        Case { contenders, base, ..call(id, title, What::List, NORMAL) }
    };
    let kilo = 1_000;
    let growing = [FEW, 1_000, 10_000].map(|tools| Contender { who: Who::Toolcrib, tools });
    let tools = call("call-tools", "tools/call, as tools become many", What::Call(kilo), NORMAL);
    vec![
        call("result-100k", "tools/call, result of 100 kB", What::Call(100 * kilo), NORMAL),
        call("result-10m", "tools/call, result of 10 MB", What::Call(10_000 * kilo), LONG),
        list("list-10", "tools/list of 10 tools", FEW).not_quick(),
        list("list-1000", "tools/list of 1,000 tools", 1_000).not_quick(),
        list("list-10000", "tools/list of 10,000 tools", 10_000),
        Case { contenders: growing.to_vec(), base: growing[0], connections: 16, ..tools }
            .not_quick(),
    ]
}

const NORMAL: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_millis(500);

/// A call with a result of 1 kB, in the modern era, compared with nginx.
fn call(id: &'static str, title: &'static str, ways: &[Who], connections: usize) -> Case {
    Case {
        id,
        title,
        era: Era::Modern,
        what: What::Call(1_000),
        connections,
        contenders: ways.iter().map(|it| Contender::few(*it)).collect(),
        base: Contender::few(Who::Nginx),
        time: NORMAL,
        quick: Quick::Yes,
    }
}

impl Case {
    fn legacy(self) -> Self {
        Self { era: Era::Legacy, ..self }
    }

    fn not_quick(self) -> Self {
        Self { quick: Quick::No, ..self }
    }

    fn by(self, who: Who) -> Self {
        Self { base: Contender::few(who), ..self }
    }

    /// What one who takes part is called in it: how many tools there are is said where that makes a difference.
    pub(crate) fn name(&self, contender: Contender) -> String {
        let alike = self.contenders.iter().all(|it| it.tools == contender.tools);
        if alike { contender.who.name().to_owned() } else { contender.name() }
    }

    /// Whether the word of `--only` means it.
    pub(crate) fn is_meant(&self, word: &str) -> bool {
        self.id.contains(word) || self.title.contains(word)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_case_has_its_own_name_and_whoever_it_is_divided_by() {
        let cases = all();
        let ids: HashSet<&str> = cases.iter().map(|it| it.id).collect();
        assert_eq!(ids.len(), cases.len());
        for case in &cases {
            assert!(case.contenders.contains(&case.base), "{}", case.id);
        }
    }
}
