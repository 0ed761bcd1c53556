//! What is wrong with the definitions of tools, suspicious about them, not as it was accepted, or could be better.

use std::collections::HashMap;

use toolcrib::{Network, Workspace, environment, read_lock};
use toolcrib_catalogue::{
    Listing, Look, Origin, Problem, Severity, Tool, lint,
    lock::{ChangeKind, Now, Pins, Place, compare},
    poison::{self, Finding},
    suspicions,
};
use toolcrib_server::PoisonRule;

/// Looks at everything that is listed.
pub(super) fn look(workspace: &Workspace, listings: &[Listing], all_hints: bool) -> Vec<Problem> {
    // What is wrong with the file itself is told already.
    let rules = Network::read(&workspace.folder, &environment).map(|it| it.rules);
    let rules = rules.unwrap_or_default();
    let mut problems = Vec::new();
    let mut together = beside(listings);
    for (at, listing) in listings.iter().enumerate() {
        let mut hints = 0;
        for tool in listing.tools.iter() {
            let look = Look::at(tool, rules.faulty);
            let subject = subject(listing, tool);
            problems.extend(look.problems(&subject));
            let more = together.remove(&(at, tool.name.as_str())).unwrap_or_default();
            if rules.poison != PoisonRule::Off && is_upstream(listing) {
                problems.extend(suspicions(&[look.findings, more].concat(), &subject));
            }
            let found = hints_on(listing, tool);
            hints += found.len();
            if all_hints {
                problems.extend(found);
            }
        }
        if 0 < hints && !all_hints {
            let s = if hints == 1 { "" } else { "s" };
            let message =
                format!("{hints} hint{s} on names and descriptions; see them with --hints");
            problems.push(Problem::of(Severity::Hint, listing.origin.subject(), message));
        }
    }
    if rules.pins != Pins::Off {
        problems.extend(changes(workspace, listings));
    }
    problems
}

fn is_upstream(listing: &Listing) -> bool {
    matches!(listing.origin, Origin::Upstream(_))
}

fn subject(listing: &Listing, tool: &Tool) -> String {
    format!("{}: tool `{}`", listing.origin.subject(), poison::visible(&tool.name))
}

/// What shows only where tools of several sources stand side by side.
fn beside(listings: &[Listing]) -> HashMap<(usize, &str), Vec<Finding>> {
    let labels: Vec<String> = listings.iter().map(|it| it.origin.subject()).collect();
    let places: Vec<(usize, &Tool)> = listings
        .iter()
        .enumerate()
        .flat_map(|(at, it)| it.tools.iter().map(move |tool| (at, &**tool)))
        .collect();
    let tools: Vec<(&str, &Tool)> =
        places.iter().map(|(at, tool)| (labels[*at].as_str(), *tool)).collect();
    let mut found: HashMap<(usize, &str), Vec<Finding>> = HashMap::new();
    for (index, finding) in poison::inspect_all(&tools) {
        let (at, tool) = places[index];
        found.entry((at, tool.name.as_str())).or_default().push(finding);
    }
    found
}

/// What could be better about a tool's name and words.
fn hints_on(listing: &Listing, tool: &Tool) -> Vec<Problem> {
    let schema = match listing.origin {
        Origin::Events | Origin::Upstream(_) => lint::Schema::ByHand,
        Origin::Workspace | Origin::Mod(_) => lint::Schema::FromCode,
    };
    let problem = |hint: lint::Hint| {
        let subject = format!("{}: {}", subject(listing, tool), hint.place);
        Problem { hint: hint.better, ..Problem::of(Severity::Hint, subject, hint.message) }
    };
    lint::hints(tool, schema).into_iter().map(problem).collect()
}

/// What is not as it was accepted. What is merely gone can do no harm.
fn changes(workspace: &Workspace, listings: &[Listing]) -> Vec<Problem> {
    let (lock, mut problems) = read_lock(&workspace.folder);
    let Some(lock) = lock else { return problems };
    let now = |(name, way): (String, _)| {
        let origin = Origin::Upstream(name);
        let listing = listings.iter().find(|it| it.origin == origin && !it.tools.is_empty());
        Now { place: Place::of(&origin), way, tools: listing.map(|it| &*it.tools) }
    };
    let now: Vec<Now<'_>> = workspace.ways().into_iter().map(now).collect();
    for change in compare(&lock, &now) {
        let harmless = matches!(
            change.kind,
            ChangeKind::GoneTool | ChangeKind::GoneSource | ChangeKind::Unpinned
        );
        let severity = if harmless { Severity::Warning } else { Severity::Problem };
        problems.push(Problem { severity, ..change.problem() });
    }
    problems
}
