//! What comes of Python, seen through the port of the catalogue.

use std::sync::Arc;

use toolcrib_catalogue::{
    BoxFuture, CallContext, CallError, Json, Problem, Source, SourceState, Tally, Tool,
};

use super::{
    engine::{PythonSource, WORKSPACE},
    interpreter::NoPython,
};

impl Source for PythonSource {
    fn label(&self) -> &str {
        if self.label == WORKSPACE { "tools" } else { &self.label }
    }

    fn state(&self) -> SourceState {
        let listed = self.engine.listed.load();
        match &listed.failure {
            Some(NoPython { cause, hint }) => {
                SourceState::Failed { cause: cause.clone(), hint: Some(hint.clone()) }
            }
            None if listed.settled => SourceState::Ready,
            None => SourceState::Connecting,
        }
    }

    fn tools(&self) -> Arc<[Arc<Tool>]> {
        self.engine.listed.load().tools.get(&self.label).cloned().unwrap_or_default()
    }

    fn has_listed(&self) -> bool {
        self.engine.listed.load().settled
    }

    fn problems(&self) -> Vec<Problem> {
        let about = |subject: &str| subject.split(':').next().unwrap_or_default().to_owned();
        let is_mod =
            |subject: &str| self.engine.settings.mods.iter().any(|it| it.name == about(subject));
        let listed = self.engine.listed.load();
        let ours = |it: &&Problem| match self.label.as_str() {
            WORKSPACE => !is_mod(&it.subject),
            name => about(&it.subject) == name,
        };
        listed.problems.iter().filter(ours).cloned().collect()
    }

    fn version(&self) -> u64 {
        *self.engine.version.borrow()
    }

    fn changed_since(&self, version: u64) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut versions = self.engine.version.subscribe();
            drop(versions.wait_for(|it| *it != version).await);
        })
    }

    /// All that is written in Python is run by the same processes: they are told of once.
    fn tally(&self) -> Tally {
        let engine = &self.engine;
        let many = engine.current.load().as_ref().map_or(0, |it| it.count_many());
        let workers = (self.label == WORKSPACE).then(|| engine.places.tally(many));
        Tally { workers, ..Tally::default() }
    }

    fn calls_others(&self) -> bool {
        true
    }

    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Json,
        context: CallContext,
    ) -> BoxFuture<'a, Result<Json, CallError>> {
        Box::pin(async move {
            match method {
                "tools/call" => self.engine.call(&params, context).await,
                _ => Err(CallError::Rpc {
                    code: -32601,
                    message: "Method not found".to_owned(),
                    data: None,
                }),
            }
        })
    }
}
