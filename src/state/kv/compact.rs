//! Compaction: revisions below one are forgotten, for reads at once and in the store with the same transaction
//! (`server/storage/mvcc/kvstore_compaction.go` does the second part later, in steps).

use super::super::effects::Effects;
use super::super::outcome::{ApplyError, Write};
use super::index::KvIndex;

/// Makes `revision` the oldest that can be read. Revision 0 is below every other, so compacting there takes nothing
/// away, and works once, as in etcd.
///
/// # Errors
/// [`ApplyError::Compacted`] if it is not above the oldest already, [`ApplyError::FutureRevision`] if it does not exist
/// yet.
pub(in crate::state) fn compact(
    index: &mut KvIndex,
    revision: i64,
    effects: &mut Effects,
) -> Result<(), ApplyError> {
    if revision <= index.compact_revision {
        return Err(ApplyError::Compacted);
    }
    if revision > index.revision {
        return Err(ApplyError::FutureRevision);
    }
    let gone = index.forget_before(revision);
    effects.writes.extend(gone.into_iter().map(Write::KvGone));
    Ok(())
}
