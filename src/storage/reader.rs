//! Values for readers and for apply.

use super::guarded::{Guarded, Health};
use super::sealed::unseal;
use super::tables::KV;
use super::{StorageError, record};
use crate::state::{KvRevision, ValueError, Values};
use bytes::Bytes;
use redb::{ReadOnlyTable, ReadTransaction, ReadableTable};
use std::fmt;

/// Values as of one commit, whatever is committed later.
pub struct Reader {
    table: Guarded<ReadOnlyTable<(i64, i64), &'static [u8]>>,
    health: Health,
}

impl Reader {
    pub(super) fn new(
        transaction: &ReadTransaction,
        health: Health,
    ) -> Result<Reader, StorageError> {
        Ok(Reader {
            table: Guarded::new(transaction.open_table(KV)?),
            health,
        })
    }
}

impl Values for Reader {
    fn value(&self, at: KvRevision) -> Result<Bytes, ValueError> {
        self.health
            .guard(|| value_in(&*self.table, at))
            .map_err(|failure| {
                let error = unreadable(at, &failure);
                // The caller gets its error. That the member must stop is for others to know.
                self.health.report(failure);
                error
            })
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}

/// The value that `table` holds for `at`. Whoever asks knows that it is there.
pub(super) fn value_in(
    table: &impl ReadableTable<(i64, i64), &'static [u8]>,
    at: KvRevision,
) -> Result<Bytes, StorageError> {
    let key = (at.main, at.sub);
    let row = table
        .get(key)?
        .ok_or_else(|| StorageError::corrupt("the store has no such record"))?;
    // One copy out of the page; the value is then a slice of it.
    let row = Bytes::copy_from_slice(unseal(KV, &key, row.value())?);
    Ok(record::decode_kv(row)?.value)
}

pub(super) fn unreadable(at: KvRevision, failure: &StorageError) -> ValueError {
    ValueError {
        at,
        cause: failure.to_string(),
    }
}
