//! What a gateway keeps from run to run: events, large results, calls on record and the audit record.

use std::sync::Arc;

use toolcrib::{AUDIT_FOLDER, Auditing, Data, Network, Workspace};
use toolcrib_bus::Bus;
use toolcrib_catalogue::Problem;
use toolcrib_context::{
    RecordLimits, Recorder,
    artifacts::{Limits, Store},
};
use toolcrib_server::Audit;
use toolcrib_wire::text::Masker;

use super::Failure;
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

/// Opens the audit record. Where it cannot be had nothing is served, unless nobody has asked for one and there is
/// no folder to keep it in.
pub(crate) fn open_audit(
    network: &Network,
    workspace: &Workspace,
    data: Option<&Data>,
) -> Result<Option<Arc<Audit>>, Failure> {
    let settings = match &network.audit {
        Auditing::Off => return Ok(None),
        Auditing::Default(settings) | Auditing::Asked(settings) => settings.clone(),
    };
    let refuse = |cause: String| {
        let hint = "`audit: off` in network.yaml serves without".to_owned();
        Failure::unusable(format!("calls cannot be put on record: {cause}")).hint(Some(hint))
    };
    let Some(data) = data else {
        if matches!(network.audit, Auditing::Default(_)) {
            return Ok(None);
        }
        return Err(refuse("the folder `.toolcrib` cannot be written".to_owned()));
    };
    let (folder, key) = (data.file(AUDIT_FOLDER), data.file("audit.key"));
    let opened = Audit::open(&folder, &key, settings, workspace.masker(network));
    opened.map(|it| Some(Arc::new(it))).map_err(|error| refuse(error.to_string()))
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
