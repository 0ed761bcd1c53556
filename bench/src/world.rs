//! Everything that runs: the server, nginx, toolcrib, and the three ways to get an answer.

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use toolcrib_wire::Era;

use crate::{
    answer::{Expected, Sample},
    children::{Folder, Process},
    connection::Connection,
    failure::Failure,
    request::{Manner, Numbers, TOKEN, Template},
    upstream::{self, FORBIDDEN, TOOLS},
};

/// How a request gets to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Direct,
    Nginx,
    Toolcrib,
}

/// What runs.
#[derive(Debug)]
pub(crate) struct World {
    upstream: SocketAddr,
    nginx: Process,
    toolcrib: Process,
    /// The sessions of the legacy era, by way.
    sessions: [String; 3],
    /// The lists as they have to be, by way.
    lists: Vec<Arc<Sample>>,
    pub(crate) numbers: Arc<Numbers>,
    /// Goes last.
    _folders: [Folder; 2],
}

impl Way {
    pub(crate) const ALL: [Self; 3] = [Self::Direct, Self::Nginx, Self::Toolcrib];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Nginx => "nginx",
            Self::Toolcrib => "toolcrib",
        }
    }

    pub(crate) fn place(self) -> usize {
        self as usize
    }
}

impl World {
    pub(crate) fn start(nginx: &Path, toolcrib: &Path) -> Result<Self, Failure> {
        let upstream = upstream::start()?;
        let (nginx, of_nginx) = Process::nginx(nginx, upstream)?;
        let (toolcrib, of_toolcrib) = Process::toolcrib(toolcrib, upstream)?;
        Ok(Self {
            upstream,
            nginx,
            toolcrib,
            sessions: Default::default(),
            lists: Vec::new(),
            numbers: Arc::default(),
            _folders: [of_nginx, of_toolcrib],
        })
    }

    /// Makes sure that everything is as the report will say, and learns what right answers look like.
    pub(crate) async fn check(&mut self) -> Result<(), Failure> {
        for way in Way::ALL {
            self.learn(way).await.map_err(|failure| failure.at(way.name()))?;
        }
        let hidden = self.forbidden(Way::Toolcrib, Some(TOKEN)).await?;
        let shown = self.forbidden(Way::Nginx, Some(TOKEN)).await?;
        if hidden.1 || !shown.1 {
            return Err(Failure::new("toolcrib does not hide what it was told to hide"));
        }
        match self.forbidden(Way::Toolcrib, None).await? {
            (401, _) => Ok(()),
            (status, _) => Err(Failure::new(format!("toolcrib answers {status} without a token"))),
        }
    }

    /// Opens a session, and reads the list.
    async fn learn(&mut self, way: Way) -> Result<(), Failure> {
        let mut connection = Connection::open(self.address(way)).await?;
        let initialize = Template::initialize(self.manner(way, Era::Legacy));
        let reply = connection.ask(&initialize, self.numbers.next()).await?;
        let session = reply.header("mcp-session-id").unwrap_or_default().to_owned();
        self.sessions[way.place()] = session;
        let number = self.numbers.next();
        let list = Template::list(self.manner(way, Era::Modern));
        let reply = connection.ask(&list, number).await?;
        let sample = match way {
            Way::Toolcrib => Sample::read(reply.body, number, TOOLS, Some(FORBIDDEN)),
            Way::Direct | Way::Nginx => Sample::read(reply.body, number, TOOLS + 1, None),
        };
        self.lists.push(Arc::new(sample?));
        Ok(())
    }

    /// Calls the tool that toolcrib hides: the status, and whether the tool answered.
    async fn forbidden(&self, way: Way, token: Option<&str>) -> Result<(u16, bool), Failure> {
        let manner = Manner { token, ..self.manner(way, Era::Modern) };
        let mut connection = Connection::open(self.address(way)).await?;
        let number = self.numbers.next();
        let reply = connection.ask(&Template::call(manner, FORBIDDEN), number).await?;
        Ok((reply.status, Expected::Echo.check(&reply, number).is_ok()))
    }

    pub(crate) fn address(&self, way: Way) -> SocketAddr {
        match way {
            Way::Direct => self.upstream,
            Way::Nginx => self.nginx.address,
            Way::Toolcrib => self.toolcrib.address,
        }
    }

    /// How a request is put.
    pub(crate) fn manner(&self, way: Way, era: Era) -> Manner<'_> {
        let session = Some(self.sessions[way.place()].as_str()).filter(|it| !it.is_empty());
        Manner { to: self.address(way), era, session, token: Some(TOKEN) }
    }

    /// The list as it has to be.
    pub(crate) fn list(&self, way: Way) -> Arc<Sample> {
        Arc::clone(&self.lists[way.place()])
    }

    /// The CPU time that whoever stands between has used so far.
    pub(crate) fn cpu(&self, way: Way) -> Result<Duration, Failure> {
        match way {
            Way::Direct => Ok(Duration::ZERO),
            Way::Nginx => self.nginx.cpu(),
            Way::Toolcrib => self.toolcrib.cpu(),
        }
    }
}
