//! What a member tells whoever watches over it. The simulator records these events in its history; a real server watches
//! nothing. Observing must not change what is observed: an observer never blocks and never fails.

use crate::state::{Applied, Command, Meta};

/// One event, on the member where it happened.
#[derive(Clone, Copy, Debug)]
pub enum Observed<'a> {
    /// The member has loaded its store.
    Started {
        /// Last applied index on disk.
        applied: u64,
    },
    /// The member became leader, or stopped being it.
    Role {
        /// The raft term.
        term: u64,
        /// Whether the member leads.
        leader: bool,
    },
    /// The log ended in entries that no leader of a later term had: what came in their place is shorter, and these, which
    /// were left over behind it, have been removed.
    TailRemoved {
        /// Index of the first one.
        first: u64,
        /// Index of the last one.
        last: u64,
    },
    /// A client's call became a proposal. A call that is proposed again is told again, with a new request id.
    Proposed {
        /// The client's `x-request-id`, empty if it sent none.
        call: &'a str,
        /// The request id in the log entry.
        request_id: u64,
    },
    /// An entry was applied; not yet durable, not yet visible.
    Applied {
        /// The entry's term.
        term: u64,
        /// The entry; `None` for raft's own.
        command: Option<&'a Command>,
        /// What it did.
        applied: &'a Applied,
        /// The state after it.
        meta: Meta,
    },
    /// The log lost its beginning.
    Truncated {
        /// Index of its first entry now; all before it have been applied.
        first_index: u64,
    },
    /// A snapshot has been handed to another member, or that needs it no more.
    SnapshotSent {
        /// To which.
        to: u64,
        /// The snapshot's applied index.
        index: u64,
    },
    /// The state of a snapshot is in the place of the member's own: durable, not yet visible.
    Installed {
        /// The state.
        meta: Meta,
    },
    /// What the member derives from the stored state was compared with what a start would derive from it.
    Compared {
        /// The applied index.
        index: u64,
        /// Whether they are the same.
        equal: bool,
    },
    /// The view of this index became visible to readers.
    Published {
        /// The applied index.
        index: u64,
    },
    /// A call was answered from the view of this index, without an entry of its own.
    Served {
        /// The client's `x-request-id`, empty if it sent none.
        call: &'a str,
        /// The view's applied index.
        index: u64,
    },
}

/// Watches one member.
pub trait Observer: Send + Sync + 'static {
    /// Takes note of `event`.
    fn observe(&self, event: Observed<'_>);
}

/// Watches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn observe(&self, _event: Observed<'_>) {}
}
