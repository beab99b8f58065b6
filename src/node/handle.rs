//! What the rest of the server holds of a member.

use super::entry;
use super::event::Event;
use super::proposals::{Proposal, RequestIds};
use super::stage::Stage;
use super::token_uses::TokenUses;
use super::{NodeStatus, View};
use crate::config::Config;
use crate::observer::Observer;
use crate::platform::Watched;
use crate::state::{ApplyError, Command, Response, TokenKey};
use std::sync::Arc;
use tokio::sync::{Semaphore, SemaphorePermit, mpsc, oneshot, watch};
use tokio::time::Instant;

/// Proposals that may wait at one member. Each holds its entry in memory.
const PROPOSALS_WAITING_MAX: usize = 10_000;

/// Callers that may wait for a ReadIndex at one member.
const READS_WAITING_MAX: usize = 50_000;

/// A handle on the running member; clones share it.
#[derive(Clone)]
pub struct Node {
    shared: Arc<Shared>,
}

struct Shared {
    config: Config,
    observer: Arc<dyn Observer>,
    events: mpsc::Sender<Event>,
    view: Watched<Arc<View>>,
    status: watch::Receiver<NodeStatus>,
    request_ids: Arc<RequestIds>,
    token_uses: Arc<TokenUses>,
    proposals: Semaphore,
    reads: Semaphore,
}

/// What became of a proposal.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Where it stands in the log.
    pub index: u64,
    /// The entry's term.
    pub term: u64,
    /// Key-value revision after it.
    pub revision: i64,
    /// The answer.
    pub result: Result<Response, ApplyError>,
}

/// Why the member could not say what became of a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeError {
    /// No leader was known; a proposal has definitely not been proposed.
    #[error("no leader")]
    NoLeader,
    /// The time is over, or this member got a snapshot in place of the entry; a proposal may have been applied, or may be
    /// yet.
    #[error("request timed out")]
    Timeout,
    /// The member did not reach an index in time.
    #[error("request timed out, waiting for the applied index took too long")]
    WaitTimeout,
    /// The member is stopping; a proposal may still be applied.
    #[error("server stopped")]
    Stopped,
    /// More proposals wait than the member takes; definitely not proposed.
    #[error("too many requests")]
    TooManyRequests,
    /// The entry is larger than `max_request_bytes`; definitely not proposed.
    #[error("request is too large")]
    TooLarge,
}

impl Node {
    pub(super) fn new(
        config: Config,
        observer: Arc<dyn Observer>,
        events: mpsc::Sender<Event>,
        view: Watched<Arc<View>>,
        status: watch::Receiver<NodeStatus>,
        request_ids: Arc<RequestIds>,
        token_uses: Arc<TokenUses>,
    ) -> Node {
        Node {
            shared: Arc::new(Shared {
                config,
                observer,
                events,
                view,
                status,
                request_ids,
                token_uses,
                proposals: Semaphore::new(PROPOSALS_WAITING_MAX),
                reads: Semaphore::new(READS_WAITING_MAX),
            }),
        }
    }

    /// How the member runs.
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    /// Who watches the member.
    pub fn observer(&self) -> &dyn Observer {
        self.shared.observer.as_ref()
    }

    /// The member's raft id.
    pub fn member_id(&self) -> u64 {
        self.shared.config.member_id
    }

    /// The newest published view.
    pub fn view(&self) -> Arc<View> {
        self.shared.view.get()
    }

    /// For Status; never waits.
    pub fn status(&self) -> NodeStatus {
        *self.shared.status.borrow()
    }

    /// A request id that no member and no restart repeats.
    pub fn next_request_id(&self) -> u64 {
        self.shared.request_ids.next()
    }

    /// Asks the member to compare what it derived from the stored state with what a start would derive, and to tell its
    /// observer. For simulations.
    #[cfg(madsim)]
    pub fn compare_derived(&self) {
        // A member that is too busy, or stopping, is not worth waiting for.
        let _ = self.submit(Event::CompareDerived);
    }

    /// A call has presented a token that is alive here: its use is reported through the log, so that it lives on.
    pub fn token_used(&self, key: TokenKey) {
        self.shared.token_uses.note(key);
    }

    /// A view that holds everything acknowledged before the call: one shared ReadIndex, then a wait until it is applied.
    ///
    /// # Errors
    /// Those of [`Node::read_index`], and [`NodeError::WaitTimeout`].
    pub async fn barrier(&self, deadline: Instant) -> Result<Arc<View>, NodeError> {
        let index = self.read_index(deadline).await?;
        self.wait_applied(index, deadline).await
    }

    /// One shared ReadIndex, without the wait: the cluster's commit index at some moment during the call.
    ///
    /// # Errors
    /// [`NodeError::NoLeader`], [`NodeError::Timeout`], [`NodeError::TooManyRequests`], [`NodeError::Stopped`].
    pub async fn read_index(&self, deadline: Instant) -> Result<u64, NodeError> {
        let _permit = permit(&self.shared.reads)?;
        let (caller, index) = oneshot::channel();
        self.submit(Event::ReadIndex(caller))?;
        match within(deadline, index).await {
            Some(index) => index.map_err(|_| NodeError::Stopped),
            None if self.status().leader == 0 => Err(NodeError::NoLeader),
            None => Err(NodeError::Timeout),
        }
    }

    /// A view at `index` or later.
    ///
    /// # Errors
    /// [`NodeError::WaitTimeout`], [`NodeError::Stopped`].
    pub async fn wait_applied(
        &self,
        index: u64,
        deadline: Instant,
    ) -> Result<Arc<View>, NodeError> {
        let reached = self
            .shared
            .view
            .wait_for(|view| view.applied_index() >= index);
        match within(deadline, reached).await {
            Some(Some(view)) => Ok(view),
            Some(None) => Err(NodeError::Stopped),
            None => Err(NodeError::WaitTimeout),
        }
    }

    /// Proposes, at this member or through the leader, and waits until this member has applied the entry. Proposed again
    /// only while it is certain that the entry has not been, and will not be, applied.
    ///
    /// # Errors
    /// Any but [`NodeError::WaitTimeout`].
    pub async fn propose(&self, command: Command, deadline: Instant) -> Result<Outcome, NodeError> {
        let _permit = permit(&self.shared.proposals)?;
        let entry = entry::encode(&command);
        if entry.len() > self.shared.config.max_request_bytes {
            return Err(NodeError::TooLarge);
        }
        let stage = Arc::new(Stage::default());
        let (answer, outcome) = oneshot::channel();
        self.submit(Event::Propose(Proposal {
            request_id: command.request_id,
            entry,
            deadline,
            stage: Arc::clone(&stage),
            answer,
        }))?;
        match within(deadline, outcome).await {
            Some(Ok(outcome)) => Ok(outcome),
            Some(Err(_)) if stage.is_overtaken() => Err(NodeError::Timeout),
            Some(Err(_)) => Err(NodeError::Stopped),
            None if stage.abandon() && self.status().leader == 0 => Err(NodeError::NoLeader),
            None => Err(NodeError::Timeout),
        }
    }

    fn submit(&self, event: Event) -> Result<(), NodeError> {
        self.shared
            .events
            .try_send(event)
            .map_err(|refused| match refused {
                mpsc::error::TrySendError::Full(_) => NodeError::TooManyRequests,
                mpsc::error::TrySendError::Closed(_) => NodeError::Stopped,
            })
    }
}

fn permit(semaphore: &Semaphore) -> Result<SemaphorePermit<'_>, NodeError> {
    semaphore
        .try_acquire()
        .map_err(|_| NodeError::TooManyRequests)
}

/// Awaits `future`, but not beyond `deadline`. (The simulated tokio has no `timeout_at`.)
async fn within<T>(deadline: Instant, future: impl Future<Output = T>) -> Option<T> {
    let left = deadline.saturating_duration_since(Instant::now());
    tokio::time::timeout(left, future).await.ok()
}
