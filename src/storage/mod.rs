//! The on-disk format: redb tables for the raft log, the replicated state and the values, in one file, so that one
//! transaction can hold everything that belongs together: new entries, hard state, what the committed entries wrote and
//! the applied index.
//!
//! Nothing here knows raft's rules, time or the network, and nothing waits: whoever commits durably awaits the disk's
//! barrier before anyone is told.

mod error;
mod load;
mod measured;
mod permission;
mod reader;
mod record;
mod snapshot;
mod staging;
mod tables;
mod transaction;
mod truncate;

#[cfg(test)]
mod tests;

pub use error::StorageError;
pub use reader::Reader;

pub(crate) use load::{Identity, Loaded};
pub(crate) use permission::{permission_from_pb, permission_to_pb};
pub(crate) use snapshot::{Place, Row, RowTable, Snapshot};
pub(crate) use transaction::{Durability, Tables, Transaction};

use crate::state::Image;
use measured::Measured;
use protobuf::Message as _;
use raft::eraftpb::Entry;
use redb::{Database, ReadableDatabase as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Format of everything in the store. A store of a newer format is refused, an older one is read.
pub(crate) const FORMAT: u32 = 1;

/// The open store; clones share it.
#[derive(Clone)]
pub(crate) struct Storage {
    database: Arc<Database>,
    size: Arc<AtomicU64>,
}

impl Storage {
    /// Opens the store and reads everything but values and most of the log. A new store is marked with `identity`; the
    /// mark is durable once the disk's next barrier has been awaited.
    ///
    /// # Errors
    /// [`StorageError::NewerFormat`], [`StorageError::ForeignCluster`] and [`StorageError::ForeignMember`] for a store
    /// that is somebody else's, [`StorageError::Corrupt`] for one that contradicts itself, [`StorageError::Failed`] when
    /// the disk fails.
    pub(crate) fn open(
        backend: impl redb::StorageBackend,
        identity: &Identity<'_>,
        cache_bytes: usize,
    ) -> Result<(Storage, Loaded), StorageError> {
        // redb asserts what a damaged page breaks; for us that is one more way of being corrupt.
        let open = || Storage::open_checked(backend, identity, cache_bytes);
        catch_unwind(AssertUnwindSafe(open)).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            let what = format!("redb gave up on it: {}", text.unwrap_or("no reason given"));
            Err(StorageError::corrupt(what))
        })
    }

    fn open_checked(
        backend: impl redb::StorageBackend,
        identity: &Identity<'_>,
        cache_bytes: usize,
    ) -> Result<(Storage, Loaded), StorageError> {
        let (backend, size) = Measured::new(backend).map_err(redb::Error::Io)?;
        let database = Database::builder()
            .set_cache_size(cache_bytes)
            .create_with_backend(backend)?;
        if load::is_new(&database)? {
            load::create(&database, identity)?;
        }
        let loaded = load::load(&database, identity)?;
        staging::clear(&database)?;
        Ok((
            Storage {
                database: Arc::new(database),
                size,
            },
            loaded,
        ))
    }

    /// Begins the one write transaction that may be open at a time.
    ///
    /// # Errors
    /// [`StorageError::Failed`] when the disk fails.
    pub(crate) fn begin(&self, durability: Durability) -> Result<Transaction, StorageError> {
        Transaction::begin(&self.database, durability)
    }

    /// Values as of the last commit.
    ///
    /// # Errors
    /// [`StorageError::Failed`] when the disk fails.
    pub(crate) fn reader(&self) -> Result<Reader, StorageError> {
        Reader::new(&self.database.begin_read()?)
    }

    /// Entries of `[low, high)` in order: as many as fit into `max_bytes`, and at least one.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] when an entry is missing or unreadable, [`StorageError::Failed`] when the disk fails.
    pub(crate) fn entries(
        &self,
        low: u64,
        high: u64,
        max_bytes: u64,
    ) -> Result<Vec<Entry>, StorageError> {
        let table = self.database.begin_read()?.open_table(tables::LOG)?;
        let mut entries = Vec::new();
        let mut bytes = 0;
        for row in table.range(low..high)? {
            let (index, value) = row?;
            let entry = record::decode_entry(index.value(), value.value())?;
            if entry.index != low + entries.len() as u64 {
                return Err(StorageError::corrupt(format!(
                    "the log has no entry before {}",
                    entry.index
                )));
            }
            bytes += u64::from(entry.compute_size());
            if !entries.is_empty() && bytes > max_bytes {
                return Ok(entries);
            }
            entries.push(entry);
        }
        if entries.len() as u64 != high - low {
            return Err(StorageError::corrupt(format!(
                "the log ends before entry {}",
                high - 1
            )));
        }
        Ok(entries)
    }

    /// The replicated state as it is stored now.
    ///
    /// # Errors
    /// [`StorageError`].
    pub(crate) fn image(&self) -> Result<Image, StorageError> {
        load::stored_image(&self.database.begin_read()?)
    }

    /// Size of the store, bytes.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }
}
