//! Why a member stops.

use super::entry::EntryError;
use crate::state::ValueError;
use crate::storage::StorageError;
use std::io;

/// Why a member cannot start, or has stopped. It has then acknowledged nothing that is not durable, and can be started
/// again once the cause is gone.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    /// The disk cannot be opened, or did not make durable what it had accepted.
    #[error("disk: {0}")]
    Disk(#[source] io::Error),
    /// The store cannot be opened.
    #[error("{disk}: {cause}")]
    Open {
        /// Where it lies.
        disk: String,
        /// What is wrong.
        #[source]
        cause: StorageError,
    },
    /// The store cannot be used.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Apply could not read what it needs.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// A committed entry cannot be understood. Skipping it would fork the replicas.
    #[error("log entry {index} cannot be applied: {cause}")]
    Entry {
        /// Where it stands.
        index: u64,
        /// What is wrong.
        #[source]
        cause: EntryError,
    },
    /// A committed entry changes the membership, which this version does not know.
    #[error("log entry {index} changes the membership, which this version cannot do")]
    MembershipChange {
        /// Where it stands.
        index: u64,
    },
    /// The leader knows that this member has stored more than it has.
    #[error(
        "the leader knows of {acknowledged} entries stored here, but the log ends at {last_index}: the disk has lost \
         what it had synced"
    )]
    LostEntries {
        /// Last index that was acknowledged.
        acknowledged: u64,
        /// Last index there is.
        last_index: u64,
    },
    /// The leader has another entry where this member has a committed one.
    #[error(
        "entry {index} is committed with term {committed} here and has term {leaders} at the leader"
    )]
    Forked {
        /// Where they differ.
        index: u64,
        /// The term here.
        committed: u64,
        /// The term at the leader.
        leaders: u64,
    },
    /// raft wants a snapshot installed of which nothing has been staged, which is a defect.
    #[error("the snapshot of index {index} is to be installed, but is not there")]
    NotStaged {
        /// The snapshot's index.
        index: u64,
    },
    /// raft refused its configuration.
    #[error("raft: {0}")]
    Raft(#[from] raft::Error),
}
