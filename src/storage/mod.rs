//! The on-disk format: redb tables for the raft log, the replicated state and the values, in one file, so that one
//! transaction can hold everything that belongs together: new entries, hard state, what the committed entries wrote and
//! the applied index.
//!
//! Nothing here knows raft's rules, time or the network, and nothing waits: whoever commits durably awaits the disk's
//! barrier before anyone is told.

mod commits;
mod error;
mod guarded;
mod load;
mod measured;
mod permission;
mod reader;
mod record;
mod sealed;
mod snapshot;
mod staging;
mod tables;
mod transaction;
mod truncate;

#[cfg(test)]
mod tests;

pub use error::StorageError;
pub use reader::Reader;

pub(crate) use commits::Commits;
pub(crate) use load::{Identity, Loaded};
pub(crate) use permission::{permission_from_pb, permission_to_pb};
pub(crate) use snapshot::{Place, Row, RowTable, Snapshot};
pub(crate) use transaction::{Durability, Tables, Transaction};

use crate::state::Image;
use guarded::{Guarded, Health};
use measured::Measured;
use protobuf::Message as _;
use raft::eraftpb::Entry;
use redb::{Database, ReadableDatabase as _};
use sealed::unseal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Format of everything in the store; any other is refused. Format 1 had no checksums and was never released.
pub(crate) const FORMAT: u32 = 2;

/// The open store; clones share it.
#[derive(Clone)]
pub(crate) struct Storage {
    database: Arc<Guarded<Database>>,
    size: Arc<AtomicU64>,
    /// Number of the newest transaction.
    newest: Arc<AtomicU64>,
    health: Health,
}

impl Storage {
    /// Opens the store and reads everything in it, keeping what is small. A new store is marked with `identity`; the mark
    /// is durable once the disk's next barrier has been awaited.
    ///
    /// Every page and every row is checked, so this takes as long as it takes to read the file.
    ///
    /// # Errors
    /// [`StorageError::OlderFormat`], [`StorageError::NewerFormat`], [`StorageError::ForeignCluster`] and
    /// [`StorageError::ForeignMember`] for a store that is somebody else's, [`StorageError::Corrupt`] for one that
    /// contradicts itself, [`StorageError::Failed`] when the disk fails.
    pub(crate) fn open(
        backend: impl redb::StorageBackend,
        identity: &Identity<'_>,
        cache_bytes: usize,
    ) -> Result<(Storage, Loaded), StorageError> {
        let health = Health::default();
        health.guard(|| Storage::open_checked(backend, identity, cache_bytes, &health))
    }

    fn open_checked(
        backend: impl redb::StorageBackend,
        identity: &Identity<'_>,
        cache_bytes: usize,
        health: &Health,
    ) -> Result<(Storage, Loaded), StorageError> {
        let (backend, size) = Measured::new(backend, health.clone()).map_err(redb::Error::Io)?;
        let database = Database::builder()
            .set_cache_size(cache_bytes)
            // Left to itself, redb trusts the pages of a file that was closed in good order.
            .set_check_integrity_on_open(true)
            .create_with_backend(backend)?;
        let storage = Storage {
            database: Arc::new(Guarded::new(database)),
            size,
            newest: Arc::new(AtomicU64::new(0)),
            health: health.clone(),
        };
        let created = load::is_new(&storage.database)?;
        if created {
            let transaction = storage.begin(Durability::Synced)?;
            transaction.tables().create(identity)?;
            transaction.commit()?;
        }
        let loaded = load::load(&storage.database, identity, created)?;
        storage.newest.store(loaded.commit, Ordering::Relaxed);
        storage.clear_staging()?;
        Ok((storage, loaded))
    }

    /// Begins the one write transaction that may be open at a time.
    ///
    /// # Errors
    /// [`StorageError::Failed`] when the disk fails.
    pub(crate) fn begin(&self, durability: Durability) -> Result<Transaction, StorageError> {
        self.health.guard(|| {
            let (newest, health) = (Arc::clone(&self.newest), self.health.clone());
            Transaction::begin(&self.database, durability, newest, health)
        })
    }

    /// Values as of the last commit.
    ///
    /// # Errors
    /// [`StorageError::Failed`] when the disk fails.
    pub(crate) fn reader(&self) -> Result<Reader, StorageError> {
        let read = || Reader::new(&self.database.begin_read()?, self.health.clone());
        self.health.guard(read)
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
        self.health
            .guard(|| self.read_entries(low, high, max_bytes))
    }

    fn read_entries(
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
            let index = index.value();
            let entry = record::decode_entry(index, unseal(tables::LOG, &index, value.value())?)?;
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

    /// Resolves once a [`Reader`] has met a failure, which [`Storage::take_failure`] then gives.
    pub(crate) async fn failed(&self) {
        self.health.failed().await;
    }

    /// What a [`Reader`] has met since the last call: the member must stop, since it would meet it again.
    pub(crate) fn take_failure(&self) -> Option<StorageError> {
        self.health.take_failure()
    }

    /// The replicated state as it is stored now.
    ///
    /// # Errors
    /// [`StorageError`].
    pub(crate) fn image(&self) -> Result<Image, StorageError> {
        let read = || load::stored_image(&self.database.begin_read()?);
        self.health.guard(read)
    }

    /// Size of the store, bytes.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }
}
