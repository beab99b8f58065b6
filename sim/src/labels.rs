//! Labels: how steps of different clients, and faults, wait for each other.

use crate::calls::Token;
use crate::plan::Plan;
use gatehouse::platform::{Setter, watched};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How far a labelled step has come.
#[derive(Clone, Debug)]
enum Reached {
    Nothing,
    Sent,
    /// With the token, if it was a login that gave one.
    Returned(Option<Token>),
}

/// Every label of a plan; clones share it.
#[derive(Clone)]
pub(crate) struct Labels(Arc<BTreeMap<String, Setter<Reached>>>);

impl Labels {
    /// All labels of `plan`, none of them reached.
    pub(crate) fn new(plan: &Plan) -> Labels {
        let steps = plan
            .setup
            .iter()
            .chain(plan.clients.iter().flat_map(|client| &client.steps));
        let labels = steps.filter_map(|step| step.when.label.clone());
        Labels(Arc::new(
            labels
                .map(|label| (label, watched(Reached::Nothing).0))
                .collect(),
        ))
    }

    /// The step of this label goes out now.
    pub(crate) fn sent(&self, label: Option<&String>) {
        self.set(label, Reached::Sent);
    }

    /// The step of this label is over.
    pub(crate) fn returned(&self, label: Option<&String>, token: Option<Token>) {
        self.set(label, Reached::Returned(token));
    }

    fn set(&self, label: Option<&String>, reached: Reached) {
        if let Some(setter) = label.and_then(|label| self.0.get(label)) {
            setter.set(reached);
        }
    }

    /// Waits until the step of this label has been sent.
    pub(crate) async fn wait_sent(&self, label: &str) {
        self.wait(label, |reached| !matches!(reached, Reached::Nothing))
            .await;
    }

    /// Waits until the step of this label is over, and gives the token of a login that succeeded.
    pub(crate) async fn wait_returned(&self, label: &str) -> Option<Token> {
        match self
            .wait(label, |reached| matches!(reached, Reached::Returned(_)))
            .await
        {
            Some(Reached::Returned(token)) => token,
            Some(Reached::Nothing | Reached::Sent) | None => None,
        }
    }

    async fn wait(&self, label: &str, enough: impl FnMut(&Reached) -> bool) -> Option<Reached> {
        self.0.get(label)?.watched().wait_for(enough).await
    }
}
