//! Values for readers and for apply.

use super::StorageError;
use super::record;
use super::tables::KV;
use crate::state::{KvRevision, ValueError, Values};
use bytes::Bytes;
use redb::{ReadOnlyTable, ReadTransaction, ReadableTable};
use std::fmt;

/// Values as of one commit, whatever is committed later.
pub struct Reader {
    table: ReadOnlyTable<(i64, i64), &'static [u8]>,
}

impl Reader {
    pub(super) fn new(transaction: &ReadTransaction) -> Result<Reader, StorageError> {
        Ok(Reader {
            table: transaction.open_table(KV)?,
        })
    }
}

impl Values for Reader {
    fn value(&self, at: KvRevision) -> Result<Bytes, ValueError> {
        value_in(&self.table, at)
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}

/// The value that `table` holds for `at`.
pub(super) fn value_in(
    table: &impl ReadableTable<(i64, i64), &'static [u8]>,
    at: KvRevision,
) -> Result<Bytes, ValueError> {
    let failed = |cause: String| ValueError { at, cause };
    let row = table
        .get((at.main, at.sub))
        .map_err(|e| failed(e.to_string()))?;
    let row = row.ok_or_else(|| failed("the store has no such record".to_owned()))?;
    // One copy out of the page; the value is then a slice of it.
    let record = record::decode_kv(Bytes::copy_from_slice(row.value()))
        .map_err(|e| failed(e.to_string()))?;
    Ok(record.value)
}
