//! Every cause of work for the event loop.

use super::proposals::Proposal;
use crate::pb::gatehousepb as pb;
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
    /// Another member hands over a part of a snapshot.
    SnapshotPart {
        /// The part; who sent it and for which cluster has been checked.
        part: pb::SnapshotPart,
        /// What the sender is told.
        answer: oneshot::Sender<pb::SnapshotProgress>,
    },
    /// A transfer of a snapshot to another member has ended.
    SnapshotSent {
        /// To which.
        to: u64,
        /// Which snapshot.
        id: u64,
        /// Whether the receiver has all of it, or needs it no more.
        complete: bool,
    },
    /// The derived state is to be compared with the stored one.
    #[cfg(madsim)]
    CompareDerived,
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
