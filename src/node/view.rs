//! What the event loop publishes: for readers, and for whoever asks how the member is.

use crate::state::State;
use crate::storage::Reader;

/// Everything a reader sees, at one applied index: state and data never disagree.
#[derive(Debug)]
pub struct View {
    /// Replicated state at that index.
    pub state: State,
    /// Raft term when it was published, for response headers.
    pub term: u64,
    /// Values at that index. While a view is held, the store cannot reuse the space of what has changed since.
    pub values: Reader,
}

impl View {
    /// The log index that the view describes.
    pub fn applied_index(&self) -> u64 {
        self.state.meta().applied_index
    }
}

/// For Status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeStatus {
    /// The leader's id, 0 if none is known.
    pub leader: u64,
    /// Raft term.
    pub term: u64,
    /// Last index in the log.
    pub last_index: u64,
    /// Applied index.
    pub applied_index: u64,
    /// Size of the store, bytes.
    pub db_size: u64,
}
