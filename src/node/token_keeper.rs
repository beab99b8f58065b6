//! Keeps simple tokens alive while they are used and ends them when they are not: at every tick it may give the event
//! loop proposals of the cluster's own. Every member reports the uses that it saw; only the leader proposes that tokens
//! expire. What happens to a token is decided when the entry is applied.

use super::Outcome;
use super::entry;
use super::proposals::{Proposal, RequestIds};
use super::stage::Stage;
use super::token_deadlines::Deadlines;
use super::token_reports::Reports;
use super::token_uses::TokenUses;
use crate::config::Config;
use crate::planted::{Bug, planted};
use crate::platform::Clock;
use crate::state::{Caller, Command, Identity, Op, State};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::time::Instant;

/// Tokens in one proposal to expire; more wait for the next tick.
const TOKENS_PER_EXPIRY_MAX: usize = 1024;

pub(super) struct TokenKeeper {
    clock: Clock,
    uses: Arc<TokenUses>,
    request_ids: Arc<RequestIds>,
    /// How long the leader may take to answer a forwarded report.
    patience: Duration,
    reports: Reports,
    deadlines: Deadlines,
    report: Option<Errand>,
    expiry: Option<Errand>,
}

impl TokenKeeper {
    pub(super) fn new(
        config: &Config,
        clock: Clock,
        uses: Arc<TokenUses>,
        request_ids: Arc<RequestIds>,
    ) -> TokenKeeper {
        TokenKeeper {
            clock,
            uses,
            request_ids,
            patience: config.request_timeout(),
            reports: Reports::new(config.token_ttl),
            deadlines: Deadlines::new(config.token_ttl),
            report: None,
            expiry: None,
        }
    }

    /// Takes note of the term in which this member leads, if it does. What an earlier leadership found due is not sent
    /// any more.
    pub(super) fn lead(&mut self, term: Option<u64>) {
        if self.deadlines.lead(term) {
            self.expiry = None;
        }
    }

    /// Takes note that `state` is what has been applied by now.
    pub(super) fn applied(&mut self, state: &State) {
        let index = state.meta().applied_index;
        self.deadlines.applied(self.clock.mono(), index);
    }

    /// What is to be proposed now. Reports come first, so that a use outruns the expiry that it speaks against.
    pub(super) fn tick(&mut self, state: &State) -> impl Iterator<Item = Proposal> + use<> {
        let now = self.clock.mono();
        self.applied(state);
        let report = self.report(now, state);
        report.into_iter().chain(self.expire(now, state))
    }

    fn report(&mut self, now: Duration, state: &State) -> Option<Proposal> {
        self.reports.used(now, self.uses.take());
        match self.report.as_mut().map(Errand::fate) {
            None => {}
            Some(Fate::Applied) => self.reports.arrived(),
            Some(Fate::Unknown) if !self.reports.is_overdue(now) => return None,
            Some(Fate::Unknown | Fate::Lost) => self.reports.lost(),
        }
        self.report = None;
        let tokens = self.reports.next(now, |key| state.token(key).is_some())?;
        let (errand, proposal) = self.errand(Op::TokenRefresh(tokens));
        self.report = Some(errand);
        Some(proposal)
    }

    fn expire(&mut self, now: Duration, state: &State) -> Option<Proposal> {
        let due = self.deadlines.look(now);
        if let Some(Fate::Unknown) = self.expiry.as_mut().map(Errand::fate) {
            return None;
        }
        self.expiry = None;
        let due = state.tokens_refreshed_until(due?);
        let due: Vec<_> = due.take(TOKENS_PER_EXPIRY_MAX).collect();
        if due.is_empty() || planted(Bug::TokenLifetimeB) {
            return None;
        }
        let (errand, proposal) = self.errand(Op::TokenExpire(due));
        self.expiry = Some(errand);
        Some(proposal)
    }

    fn errand(&self, op: Op) -> (Errand, Proposal) {
        let request_id = self.request_ids.next();
        let caller = Caller {
            identity: Identity::Internal,
            auth_revision: 0,
        };
        let entry = entry::encode(&Command {
            request_id,
            caller,
            op,
        });
        let stage = Arc::new(Stage::default());
        let (answer, outcome) = oneshot::channel();
        let errand = Errand {
            stage: Arc::clone(&stage),
            outcome,
        };
        let proposal = Proposal {
            request_id,
            entry,
            deadline: Instant::now() + self.patience,
            stage,
            answer,
        };
        (errand, proposal)
    }
}

/// A proposal of the cluster's own that has been handed to the event loop. Dropped, it is not sent any more.
struct Errand {
    stage: Arc<Stage>,
    outcome: oneshot::Receiver<Outcome>,
}

/// What is known of an errand.
enum Fate {
    Applied,
    /// It may be applied yet.
    Unknown,
    /// Nobody will say.
    Lost,
}

impl Errand {
    fn fate(&mut self) -> Fate {
        match self.outcome.try_recv() {
            Ok(_) => Fate::Applied,
            Err(TryRecvError::Empty) => Fate::Unknown,
            Err(TryRecvError::Closed) => Fate::Lost,
        }
    }
}

impl Drop for Errand {
    fn drop(&mut self) {
        self.stage.abandon();
    }
}
