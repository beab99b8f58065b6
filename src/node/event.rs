//! Every cause of work for the event loop.

use super::proposals::Proposal;
use bytes::Bytes;
use raft::eraftpb::Message;
use tokio::sync::oneshot;

pub(super) enum Event {
    /// One beat of raft's clock.
    Tick,
    /// The member is to stop.
    Stop,
    /// Raft messages from another member.
    Messages(Vec<Message>),
    /// Messages to this member get lost.
    Unreachable(u64),
    /// A call of this member proposes.
    Propose(Proposal),
    /// What was handed to the leader of `term` was certainly not appended.
    Refused {
        /// Which proposal.
        request_id: u64,
        /// In which term it had been sent.
        term: u64,
    },
    /// Another member hands over a proposal.
    Forwarded(Forwarded),
    /// A call of this member wants the commit index.
    ReadIndex(oneshot::Sender<u64>),
}

/// A proposal of another member.
pub(super) struct Forwarded {
    /// To be accepted only by the leader of this very term.
    pub(super) term: u64,
    /// The log entry, known to be decodable.
    pub(super) entry: Bytes,
    /// Whether it has been appended.
    pub(super) answer: oneshot::Sender<bool>,
}
