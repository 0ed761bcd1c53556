//! A tool of our own calls another one: under the rules of whoever called it, and not for ever.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use serde_json::Value;
use toolcrib_bus::Draft;
use toolcrib_catalogue::{Answering, CallError, ClientError, Json, Keep, Listener, Others};
use toolcrib_wire::Era;

use crate::{
    access::Caller,
    dispatch::{self, Asked},
    gateway::Gateway,
    spans::{Came, Context, Trace},
    visit::Visit,
};

/// How deep tools may call each other.
const DEEPEST: u32 = 8;

/// What one call may call.
#[derive(Debug)]
pub(crate) struct FromWithin {
    pub(crate) gateway: Weak<Gateway>,
    pub(crate) caller: Caller,
    /// Who can be asked meanwhile.
    pub(crate) listener: Option<Arc<dyn Listener>>,
    pub(crate) visit: Option<Arc<Visit>>,
    pub(crate) depth: u32,
    /// The tool that may call.
    pub(crate) tool: String,
    /// The trace that its call belongs to.
    pub(crate) trace: Vec<(&'static str, String)>,
}

impl Others for FromWithin {
    fn call(&self, name: &str, arguments: Option<Json>) -> Answering {
        let refuse = |cause: String| -> Answering {
            Box::pin(async move { Err(CallError::Client(ClientError::Refused(cause))) })
        };
        if DEEPEST <= self.depth {
            return refuse(format!("tools call each other more than {DEEPEST} deep"));
        }
        let Some(gateway) = self.gateway.upgrade() else {
            return refuse("the gateway is closing".to_owned());
        };
        let name = Value::from(name).to_string();
        let arguments = arguments.filter(Json::is_object).unwrap_or_else(Json::empty_object);
        let params = format!(r#"{{"name":{name},"arguments":{}}}"#, arguments.as_str());
        let (caller, visit) = (self.caller.clone(), self.visit.clone());
        // An inner call belongs below the request that its tool was called by.
        let parent = self.trace.iter().find(|(key, _)| *key == "traceparent");
        let parent = parent.and_then(|(_, text)| Context::read(text));
        let trace = gateway.tracer.is_some().then(|| Trace::of(Came::from_within(parent)));
        let (listener, depth) = (self.listener.clone().map(Quiet::before), self.depth + 1);
        Box::pin(async move {
            let asked = Asked {
                caller,
                // A result is then complete: who asks by it is asked by us.
                era: Era::Legacy,
                method: "tools/call",
                params: Some(Bytes::from(params)),
                listener,
                visit,
                depth,
                attempt: None,
                trace: trace.unwrap_or_default(),
            };
            let answer = dispatch::answer(&gateway, asked).await;
            answer.map(Json::from_scanned).map_err(|error| CallError::Rpc {
                code: error.code,
                message: error.message,
                data: error.data.map(Json::from_scanned),
            })
        })
    }

    fn emit(&self, name: &str, data: Json) -> Answering {
        let mut draft = Draft::new(name, data.as_str());
        draft.source = Some(format!("/tools/{}", self.tool));
        draft.group = Some(self.caller.group.to_string());
        draft.more = self.trace.iter().map(|(k, v)| ((*k).to_owned(), v.as_str().into())).collect();
        draft = draft.with("tool", self.tool.as_str());
        let gateway = self.gateway.upgrade();
        Box::pin(async move {
            let refused = |cause: String| CallError::Client(ClientError::Refused(cause));
            let gateway = gateway.ok_or_else(|| refused("the gateway is closing".to_owned()))?;
            // The tool is a part of the workspace: what it emits is its author's choice, not its caller's.
            let emitted =
                gateway.append(draft).await.map_err(|error| refused(error.to_string()))?;
            Json::of(&emitted).map_err(|error| refused(error.to_string()))
        })
    }

    fn store(&self, keep: Keep) -> Answering {
        let (group, tool) = (Arc::clone(&self.caller.group), self.tool.clone());
        let gateway = self.gateway.upgrade();
        Box::pin(async move {
            let refused = |cause: String| CallError::Client(ClientError::Refused(cause));
            let gateway = gateway.ok_or_else(|| refused("the gateway is closing".to_owned()))?;
            let stored = gateway.store(&group, &tool, keep).await.map_err(refused)?;
            Json::of(&stored).map_err(|error| refused(error.to_string()))
        })
    }
}

/// Somebody who can be asked, and does not hear of what was not asked for: the progress of the inner call
/// is not that of the outer one.
#[derive(Debug)]
pub(crate) struct Quiet(Arc<dyn Listener>);

impl Quiet {
    pub(crate) fn before(listener: Arc<dyn Listener>) -> Arc<dyn Listener> {
        Arc::new(Self(listener))
    }
}

impl Listener for Quiet {
    fn notified(&self, method: &str, params: Option<Json>) {
        if method != "notifications/progress" {
            self.0.notified(method, params);
        }
    }

    fn asked(&self, method: &str, params: Option<Json>) -> Option<Answering> {
        self.0.asked(method, params)
    }
}
