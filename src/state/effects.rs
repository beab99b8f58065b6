//! What an entry does besides its answer, collected while it is applied.

use super::outcome::{Event, Write};

/// Writes for the store and events for watchers, both in order. Empty for a refused entry.
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// What the store must write.
    pub(super) writes: Vec<Write>,
    /// What watchers see.
    pub(super) events: Vec<Event>,
}

impl Effects {
    /// Whether nothing was done.
    pub(super) fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.events.is_empty()
    }
}
