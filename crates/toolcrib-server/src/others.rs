//! A tool of our own calls another one: under the rules of whoever called it, and not for ever.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use serde_json::Value;
use toolcrib_catalogue::{Answering, CallError, ClientError, Json, Listener, Others};
use toolcrib_wire::Era;

use crate::{
    access::Caller,
    dispatch::{self, Asked},
    gateway::Gateway,
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
            };
            let answer = dispatch::answer(&gateway, asked).await;
            answer.map(Json::from_scanned).map_err(|error| CallError::Rpc {
                code: error.code,
                message: error.message,
                data: error.data.map(Json::from_scanned),
            })
        })
    }
}

/// Somebody who can be asked, and does not hear of what was not asked for: the progress of the inner call
/// is not that of the outer one.
#[derive(Debug)]
struct Quiet(Arc<dyn Listener>);

impl Quiet {
    fn before(listener: Arc<dyn Listener>) -> Arc<dyn Listener> {
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
