//! How much a run has seen, for those who must tell a quiet run from an empty one.

use crate::history::{History, Op, Outcome, What};
use crate::model::Refusal;
use std::collections::BTreeMap;

/// Calls by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All of them.
    pub calls: u64,
    /// Logins that gave a token.
    pub logins_ok: u64,
    /// Logins that were refused.
    pub logins_refused: u64,
    /// Other calls that were done.
    pub allowed: u64,
    /// Other calls that were refused for who asked: no right, no identity, a dead token, an old auth revision.
    pub denied: u64,
    /// Other calls that were refused for what was asked, or because the cluster could not.
    pub refused_otherwise: u64,
    /// Calls of any kind whose answer was lost or says nothing.
    pub unknown: u64,
}

/// Counts the calls of a run.
pub fn count(history: &History) -> Counts {
    let mut counts = Counts::default();
    let mut is_login = BTreeMap::new();
    for event in &history.events {
        match &event.what {
            What::Invoke { call, op, .. } => {
                counts.calls += 1;
                counts.unknown += 1; // Until it is answered.
                is_login.insert(*call, matches!(**op, Op::Login { .. }));
            }
            What::Return { call, outcome } => {
                if let Some(is_login) = is_login.remove(call) {
                    counts.end(is_login, outcome);
                }
            }
            _ => {}
        }
    }
    counts
}

impl Counts {
    fn end(&mut self, is_login: bool, outcome: &Outcome) {
        let counter = match outcome {
            Outcome::Unknown { .. } => return,
            Outcome::Ok(_) if is_login => &mut self.logins_ok,
            Outcome::Ok(_) => &mut self.allowed,
            Outcome::Refused { .. } if is_login => &mut self.logins_refused,
            Outcome::Refused { message, .. } => match Refusal::from_message(message) {
                Some(
                    Refusal::PermissionDenied
                    | Refusal::UserEmpty
                    | Refusal::InvalidToken
                    | Refusal::OldRevision,
                ) => &mut self.denied,
                _ => &mut self.refused_otherwise,
            },
        };
        *counter += 1;
        self.unknown -= 1;
    }
}
