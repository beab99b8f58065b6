//! The beginning of the log goes once every member can do without it, or can get the state in its place.

use super::tables::{FIRST_INDEX_KEY, LOG, PREVIOUS_TERM_KEY};
use super::transaction::opened;
use super::{StorageError, Tables};
use std::ops::Range;

impl Tables<'_> {
    /// Removes the log's first entries, those of `gone`; the last of them was of `term`, which is kept: raft compares it
    /// with what a leader says of the entry before the first.
    ///
    /// # Errors
    /// [`StorageError::Failed`] when the disk fails.
    pub(crate) fn truncate(&mut self, gone: Range<u64>, term: u64) -> Result<(), StorageError> {
        let first_index = gone.end;
        self.health.guard(|| {
            let log = opened(&mut self.log, LOG, self.transaction)?;
            for index in gone {
                let removed = log.remove(index)?.is_some();
                assert!(removed, "the log has no gap");
            }
            Ok(())
        })?;
        self.put_log_start(first_index, term)
    }

    /// Stores where the log begins, and the term of the entry before that.
    pub(super) fn put_log_start(
        &mut self,
        first_index: u64,
        term: u64,
    ) -> Result<(), StorageError> {
        self.put_meta_row(FIRST_INDEX_KEY, &first_index.to_be_bytes())?;
        self.put_meta_row(PREVIOUS_TERM_KEY, &term.to_be_bytes())
    }
}
