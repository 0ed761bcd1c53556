//! `toolcrib why`: the story of one name.

use std::process::ExitCode;

use toolcrib::{Network, Workspace, environment, read_lock};
use toolcrib_catalogue::{
    Catalogue, Entry, Hidden, HiddenBecause, Listing, Look, OnFault, Origin, Renamed, nearest,
};
use toolcrib_server::{About, Remark, Rules, remarks};
use toolcrib_sources::asyncapi::Care;

use super::{Failure, Seen, unused};
use crate::terminal::{self, BOLD, GREEN, YELLOW, styled};

pub(crate) async fn run(
    workspace: &Workspace,
    seen: Option<&Seen>,
    name: &str,
) -> Result<ExitCode, Failure> {
    let servers = workspace.start(&workspace.server_names());
    let own = workspace.start_own(false, unused(), Care::Tools, &terminal::installing).await;
    terminal::wait_for_python(own.python.as_ref()).await;
    terminal::wait_for(&servers).await;
    let built = workspace.catalogue(&servers, &own);
    workspace.close().await;
    own.close().await;
    let (catalogue, listings, problems) = built?;
    let rules = Network::read(&workspace.folder, &environment).map(|it| it.rules);
    let rules = Rules { lock: read_lock(&workspace.folder).0, ..rules.unwrap_or_default() };
    let remarks = look(workspace, &listings, &rules);
    let (catalogue, listings) = (&catalogue, listings.as_slice());
    let story = Story { workspace, catalogue, listings, seen, rules, remarks };
    let (text, found) = story.tell(name);
    terminal::print(&text)?;
    if !found {
        terminal::warn(&[workspace.problems.as_slice(), &problems].concat());
    }
    Ok(if found { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Story<'a> {
    workspace: &'a Workspace,
    catalogue: &'a Catalogue,
    listings: &'a [Listing],
    seen: Option<&'a Seen>,
    rules: Rules,
    remarks: Vec<Remark>,
}

/// What a gateway would make of these tools.
fn look(workspace: &Workspace, listings: &[Listing], rules: &Rules) -> Vec<Remark> {
    let all = workspace.ways();
    let way = |it: &Listing| match &it.origin {
        Origin::Upstream(server) => all.iter().find(|(name, _)| name == server)?.1.as_ref(),
        _ => None,
    };
    let ways: Vec<_> = listings.iter().map(way).collect();
    remarks(listings, &ways, rules)
}

impl Story<'_> {
    /// The story of `name`, and whether it is the name of a tool that can be called.
    fn tell(&self, name: &str) -> (String, bool) {
        if let Some(entry) = self.catalogue.get(name) {
            return self.of_entry(entry);
        }
        let hidden: Vec<&Hidden> = self
            .catalogue
            .hidden()
            .iter()
            .filter(|it| &*it.name == name || it.original == name)
            .collect();
        let own: Vec<&Entry> =
            self.catalogue.entries().iter().filter(|it| it.tool.name == name).collect();
        if !hidden.is_empty() || !own.is_empty() {
            let (mut text, callable): (Vec<String>, Vec<bool>) =
                own.iter().map(|it| self.of_entry(it)).unzip();
            text.extend(hidden.iter().map(|it| self.hidden(it)));
            return (text.join("\n"), callable.contains(&true));
        }
        (self.unknown(name), false)
    }

    /// The story of a tool of the catalogue, which may be held back nevertheless.
    fn of_entry(&self, entry: &Entry) -> (String, bool) {
        let of_it = |it: &&Remark| it.listing == entry.listing && it.tool == entry.tool.name;
        let mut remarks = self.remarks.iter().filter(of_it);
        match remarks.clone().find(|it| it.held) {
            Some(remark) => (self.held(entry, remark), false),
            None => {
                let note = remarks
                    .next()
                    .map(|it| format!("  note    {}\n", terminal::clean(&it.message)));
                (self.shown(entry) + &note.unwrap_or_default(), true)
            }
        }
    }

    /// A tool with which nobody is served, and what can be done about it.
    fn held(&self, entry: &Entry, remark: &Remark) -> String {
        let (how, cure) = match remark.about {
            About::Drift => (
                "held back",
                "`toolcrib lock --check` says what has changed, `toolcrib lock` accepts everything as it is now",
            ),
            About::Poison => (
                "hidden",
                "read its definition (`toolcrib tools --json`); `poison: warn` in network.yaml serves it nevertheless, `exclude` of its server takes it out for good",
            ),
            About::Schema if self.would_be_permitted(entry) => (
                "refused",
                "have its schema mended, or serve it unchecked: `validation: { schemas: permit }` in network.yaml",
            ),
            About::Schema => ("refused", "whoever writes its server has to mend it"),
        };
        let head = format!("{} is {}", styled(BOLD, &entry.name), styled(YELLOW, how));
        let origin = self.origin(entry.listing, &entry.tool.name);
        let cause = terminal::clean(&remark.message);
        let group = self.seen.and_then(|seen| Some((seen, seen.objection(&entry.name)?)));
        let group = group.map(|(seen, why)| {
            format!("  group   {} would not see it either: {why}\n", seen.group)
        });
        let group = group.unwrap_or_default();
        format!("{head}\n{origin}  why     {cause}\n  do      {cure}\n{group}")
    }

    /// Whether it is refused only because `validation: schemas` says so.
    fn would_be_permitted(&self, entry: &Entry) -> bool {
        let given = self.listings[entry.listing].tools.iter();
        let given = given.into_iter().find(|it| it.name == entry.tool.name);
        let permitted = |it| Look::at(it, OnFault::RefuseRemote).refused().is_none();
        self.rules.faulty == OnFault::Refuse && given.is_some_and(permitted)
    }

    fn shown(&self, entry: &Entry) -> String {
        let reason = match entry.renamed {
            Renamed::No if self.is_own(entry) => {
                "its own name: tools of the workspace are not prefixed"
            }
            Renamed::No if *entry.name == *entry.tool.name => "the server's own name",
            Renamed::No => "namespace, server and tool, joined by __",
            Renamed::LikeServer => {
                "a hash stands in the server's part: another server of mcp.json could be taken for it"
            }
            Renamed::LikeTool => "a hash is added: another tool of the server has a name like it",
            Renamed::Cut => {
                "the middle is replaced by a hash: the whole name is over 64 characters"
            }
        };
        let head = format!("{} is {}", styled(BOLD, &entry.name), styled(GREEN, "shown"));
        let origin = self.origin(entry.listing, &entry.tool.name);
        let group = self.seen.map(|seen| match seen.objection(&entry.name) {
            None => {
                let shape = seen.access.shape(&seen.group, &entry.name);
                let how = shape.iter().map(|it| format!("; {it}")).collect::<String>();
                format!("  group   {} sees it{how}\n", seen.group)
            }
            Some(why) => format!("  group   {} does not see it: {why}\n", seen.group),
        });
        format!("{head}\n{origin}  name    {reason}\n{}", group.unwrap_or_default())
    }

    fn hidden(&self, hidden: &Hidden) -> String {
        let reason = match &hidden.because {
            HiddenBecause::Excluded => "`exclude` of the server names it".to_owned(),
            HiddenBecause::NotIncluded => "`include` of the server does not name it".to_owned(),
            HiddenBecause::NameTaken(holder) => format!("the name belongs to {holder}"),
        };
        let head = format!("{} is {}", styled(BOLD, &hidden.name), styled(YELLOW, "hidden"));
        format!("{head}\n{}  why     {reason}\n", self.origin(hidden.listing, &hidden.original))
    }

    fn is_own(&self, entry: &Entry) -> bool {
        !matches!(self.listings[entry.listing].origin, Origin::Upstream(_))
    }

    fn origin(&self, listing: usize, tool: &str) -> String {
        let server = match &self.listings[listing].origin {
            Origin::Upstream(server) => server,
            Origin::Mod(name) => return format!("  mod     {}\n", terminal::clean(name)),
            Origin::Workspace => return "  source  a function in tools/\n".to_owned(),
            Origin::Events => return "  source  an operation in events/\n".to_owned(),
        };
        let line = self.workspace.line_of(server).map(|it| format!(" (mcp.json, line {it})"));
        let server = terminal::clean(server);
        format!(
            "  server  {server}{}\n  tool    {}\n",
            line.unwrap_or_default(),
            terminal::clean(tool)
        )
    }

    fn unknown(&self, name: &str) -> String {
        let hidden = self.catalogue.hidden().iter().map(|it| &*it.name);
        let names = self.catalogue.entries().iter().map(|it| &*it.name).chain(hidden);
        let mut text = format!("there is no tool {}\n", styled(BOLD, &terminal::clean(name)));
        if let Some(meant) = nearest(name, names) {
            text.push_str(&format!("  did you mean {meant}?\n"));
        }
        for server in self.workspace.disabled() {
            text.push_str(&format!(
                "  server {} is disabled in mcp.json\n",
                terminal::clean(server)
            ));
        }
        text
    }
}
