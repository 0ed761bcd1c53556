//! Everything that runs: the server, and whoever stands before it, started when first wanted.

use std::{collections::HashMap, net::SocketAddr, rc::Rc, sync::Arc};

use toolcrib_wire::Era;

use crate::{
    answer::Expected,
    cases::{Contender, Who},
    connection::Connection,
    failure::Failure,
    forward,
    gateways::{
        Door, Programs, Way, contextforge, fastmcp, mcp_proxy, nginx, npm_proxy,
        toolcrib::{self, Care},
    },
    pipe::Program,
    process::{Folder, Process},
    request::{Manner, Numbers, Template},
    site::{ECHO, FEW, FORBIDDEN},
    stdio, upstream,
};

/// What runs.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) programs: Programs,
    pub(crate) upstream: SocketAddr,
    pub(crate) numbers: Arc<Numbers>,
    nginx: Option<(Rc<Process>, SocketAddr)>,
    /// Those that were wanted so far, or why there is none.
    ways: HashMap<Contender, Result<Way, String>>,
    /// Of programs that are started anew each time.
    folders: Vec<Folder>,
    /// Who is left out, and why.
    left_out: Option<(Who, &'static str)>,
}

impl World {
    pub(crate) fn start(
        programs: Programs,
        left_out: Option<(Who, &'static str)>,
    ) -> Result<Self, Failure> {
        let upstream = upstream::start()?;
        let (numbers, ways) = (Arc::default(), HashMap::new());
        let folders = Vec::new();
        Ok(Self { programs, upstream, numbers, nginx: None, ways, folders, left_out })
    }

    /// The way of one who takes part. What could not be started once is not tried again.
    pub(crate) async fn way(&mut self, contender: Contender) -> Result<Way, Failure> {
        if let Some(found) = self.ways.get(&contender) {
            return found.clone().map_err(Failure::new);
        }
        let left_out = self.left_out.filter(|(who, _)| *who == contender.who);
        let started = match contender.who {
            _ if left_out.is_some() => Err(Failure::new(left_out.map_or("", |(_, why)| why))),
            Who::NginxFile => self.file(contender.tools).await,
            Who::Toolcrib => self.toolcrib(contender.tools).await,
            _ => self.begin(contender),
        };
        let started = started.map_err(|it| it.to_string());
        self.ways.insert(contender, started.clone());
        started.map_err(Failure::new)
    }

    fn begin(&mut self, Contender { who, tools }: Contender) -> Result<Way, Failure> {
        let (upstream, path) = (self.upstream, upstream::path(tools));
        let programs = &self.programs;
        match who {
            Who::Direct => Ok(Way::http(upstream, path, tools)),
            Who::Nginx | Who::NginxFile => {
                let (process, address) = self.nginx()?;
                Ok(Way { process: Some(process), ..nginx::way(address, path, tools) })
            }
            Who::Toolcrib => self.serve("http", tools, Care::All),
            Who::ToolcribOff => self.serve("off", tools, Care::None),
            Who::ToolcribToPipe => {
                let servers = toolcrib::by_pipe(&programs.itself);
                let (process, address) =
                    toolcrib::serve(&programs.toolcrib, "to-pipe", &servers, Care::All)?;
                Ok(toolcrib::way(address, tools, Care::All).of(process))
            }
            Who::Pipe | Who::Forwarder => {
                let word = if who == Who::Pipe { stdio::WORD } else { forward::WORD };
                let args = vec![word.to_owned()];
                let program = Program { path: programs.itself.clone(), args };
                Ok(Way { door: Door::Pipe(program), ..Way::http(upstream, path, tools) })
            }
            Who::ToolcribPipe => {
                let (way, folder) = toolcrib::pipe(programs)?;
                self.folders.push(folder);
                Ok(way)
            }
            Who::McpProxy => mcp_proxy::http(programs, upstream, &path),
            Who::McpProxyToPipe => mcp_proxy::pipe(programs),
            Who::FastMcp => fastmcp::http(programs, upstream, &path),
            Who::FastMcpToPipe => fastmcp::pipe(programs),
            Who::ContextForge => contextforge::http(programs, upstream, &path),
            Who::NpmProxyToPipe => npm_proxy::pipe(programs),
        }
    }

    fn serve(&self, name: &str, tools: usize, care: Care) -> Result<Way, Failure> {
        let servers = toolcrib::by_http(self.upstream, &upstream::path(tools));
        let name = format!("{name}-{tools}");
        let (process, address) = toolcrib::serve(&self.programs.toolcrib, &name, &servers, care)?;
        Ok(toolcrib::way(address, tools, care).of(process))
    }

    fn nginx(&mut self) -> Result<(Rc<Process>, SocketAddr), Failure> {
        if self.nginx.is_none() {
            let (process, address) = nginx::start(&self.programs.nginx, self.upstream)?;
            self.nginx = Some((Rc::new(process), address));
        }
        self.nginx.clone().ok_or_else(|| Failure::new("nginx is not there"))
    }

    /// toolcrib with everything on, and the proof that it is on.
    async fn toolcrib(&mut self, tools: usize) -> Result<Way, Failure> {
        let way = self.begin(Contender { who: Who::Toolcrib, tools })?;
        let (status, right) = self.call(&way, FORBIDDEN, way.token.as_deref()).await?;
        if right {
            return Err(Failure::new(format!("what is hidden answers: {status}")));
        }
        if !self.call(&way, ECHO, way.token.as_deref()).await?.1 {
            return Err(Failure::new("what is not hidden does not answer"));
        }
        match self.call(&way, ECHO, None).await? {
            (401, _) => Ok(way),
            (status, _) => Err(Failure::new(format!("it answers {status} without a token"))),
        }
    }

    /// Calls a tool once: the status, and whether it gave the right answer.
    pub(crate) async fn call(
        &self,
        way: &Way,
        tool: &str,
        token: Option<&str>,
    ) -> Result<(u16, bool), Failure> {
        let address = way.target().address()?;
        let manner = Manner { to: way.target(), era: Era::Modern, session: None, token };
        let mut connection = Connection::open(address).await?;
        let number = self.numbers.next();
        let reply = connection.ask(&Template::call(manner, tool, 0), number).await?;
        Ok((reply.status, Expected::call(0).check(&reply, number).is_ok()))
    }

    /// nginx with the list of tools as toolcrib gives it, in a file.
    async fn file(&mut self, tools: usize) -> Result<Way, Failure> {
        let toolcrib = Contender { who: Who::Toolcrib, tools };
        let way = Box::pin(self.way(toolcrib)).await?;
        let address = way.target().address()?;
        let token = way.token.as_deref();
        let manner = Manner { to: way.target(), era: Era::Modern, session: None, token };
        let mut connection = Connection::open(address).await?;
        let reply = connection.ask(&Template::list(manner), self.numbers.next()).await?;
        let bytes = reply.body.to_vec();
        let (process, address) = self.nginx()?;
        let name = format!("files/list-{tools}.json");
        process.folder.write(&name, &bytes)?;
        let door = Door::File(address, format!("/{name}"), Rc::new(bytes));
        Ok(Way { door, process: Some(process), ..Way::http(address, "", FEW) })
    }
}
