//! What a gateway keeps from run to run: events, large results, calls on record.

use std::sync::Arc;

use toolcrib::{Data, Network, Workspace};
use toolcrib_bus::Bus;
use toolcrib_catalogue::Problem;
use toolcrib_context::{
    RecordLimits, Recorder,
    artifacts::{Limits, Store},
};
use toolcrib_wire::text::Masker;

use crate::terminal;

/// Opens where large results are kept.
pub(crate) fn open_store(network: &Network, data: Option<&Data>) -> Option<Store> {
    let limits = Limits {
        quota_bytes: network.results.quota,
        owner_quota_bytes: network.results.group_quota,
        keep: network.results.keep,
        ..Limits::default()
    };
    match Store::open(&data?.file("artifacts"), limits) {
        Ok((store, said)) => {
            said.iter().for_each(|it| tracing::info!("artifacts: {it}"));
            Some(store)
        }
        Err(error) => {
            let message = format!("large results cannot be kept: {error}");
            terminal::warn(&[Problem::new("artifacts", message)]);
            None
        }
    }
}

/// Opens where calls are recorded, if they are.
pub(crate) fn open_recorder(
    network: &Network,
    workspace: &Workspace,
    data: Option<&Data>,
) -> Option<(Recorder, Masker)> {
    let sessions = network.sessions.as_ref()?;
    let limits =
        RecordLimits { keep: sessions.keep, quota: sessions.quota, ..RecordLimits::default() };
    let folder = data.map(|it| it.file("sessions"));
    let opened = match &folder {
        Some(folder) => Recorder::open(folder, limits),
        None => Err(std::io::Error::other("the workspace cannot be written")),
    };
    match opened {
        Ok(recorder) => Some((recorder, workspace.masker(network))),
        Err(error) => {
            let message = format!("calls cannot be recorded: {error}");
            terminal::warn(&[Problem::new("network.yaml: sessions", message)]);
            None
        }
    }
}

/// Opens the event bus, or says why there is none.
pub(crate) fn open_bus(network: &Network, data: Option<&Data>) -> Result<Arc<dyn Bus>, String> {
    let data = data.ok_or("the folder `.toolcrib` of the workspace cannot be written")?;
    let opened = network.bus.open(&data.file("events.db"));
    opened.map_err(|error| {
        terminal::warn(&[Problem::new("bus", error.to_string())]);
        error.to_string()
    })
}
