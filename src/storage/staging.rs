//! A snapshot on its way in. Its rows go into tables of their own, in as many transactions as it takes, and mean nothing:
//! only the one transaction of the install puts them in the place of what the member had. Whatever a start finds there is
//! removed, since nobody knows any more what it was to become.

use super::guarded::Guarded;
use super::load::load_image;
use super::sealed::{RowKey, SealedTable, unseal};
use super::snapshot::{Portable, Row, RowTable};
use super::tables::{CONF_STATE_KEY, KV, LOG, META, ROLES, STATE_KEY, TOKENS, USERS};
use super::transaction::encode_raft;
use super::{Durability, Storage, StorageError, Tables, record};
use crate::state::Image;
use raft::eraftpb::SnapshotMetadata;
use redb::{ReadableDatabase as _, TableDefinition, TableHandle as _};

// Their rows are sealed as those of the tables that they are to become.
const STATE_STAGED: SealedTable<&str> = TableDefinition::new("staged_state");
const USERS_STAGED: SealedTable<&str> = TableDefinition::new("staged_users");
const ROLES_STAGED: SealedTable<&str> = TableDefinition::new("staged_roles");
const TOKENS_STAGED: SealedTable<&[u8]> = TableDefinition::new("staged_tokens");
const KV_STAGED: SealedTable<(i64, i64)> = TableDefinition::new("staged_kv");

impl Storage {
    /// Removes what a former life had staged.
    pub(super) fn clear_staging(&self) -> Result<(), StorageError> {
        let left_over = self.health.guard(|| {
            let store = self.database.begin_read()?;
            let mut tables = store.list_tables()?;
            Ok(tables.any(|table| table.name() == STATE_STAGED.name()))
        })?;
        if left_over {
            let transaction = self.begin(Durability::Synced)?;
            transaction.tables().clear_staging()?;
            transaction.commit()?;
        }
        Ok(())
    }
}

impl Tables<'_> {
    /// Begins to stage a snapshot, in place of any other.
    ///
    /// # Errors
    /// [`StorageError::Failed`] when the disk fails.
    pub(crate) fn begin_staging(&mut self) -> Result<(), StorageError> {
        self.clear_staging()?;
        // A table exists once it has been opened for writing, and the install needs them all.
        self.health.guard(|| {
            drop(Guarded::new(self.transaction.open_table(STATE_STAGED)?));
            drop(Guarded::new(self.transaction.open_table(USERS_STAGED)?));
            drop(Guarded::new(self.transaction.open_table(ROLES_STAGED)?));
            drop(Guarded::new(self.transaction.open_table(TOKENS_STAGED)?));
            drop(Guarded::new(self.transaction.open_table(KV_STAGED)?));
            Ok(())
        })
    }

    /// Removes what has been staged.
    ///
    /// # Errors
    /// [`StorageError::Failed`] when the disk fails.
    pub(crate) fn clear_staging(&mut self) -> Result<(), StorageError> {
        self.health.guard(|| {
            self.transaction.delete_table(STATE_STAGED)?;
            self.transaction.delete_table(USERS_STAGED)?;
            self.transaction.delete_table(ROLES_STAGED)?;
            self.transaction.delete_table(TOKENS_STAGED)?;
            self.transaction.delete_table(KV_STAGED)?;
            Ok(())
        })
    }

    /// Stages rows.
    ///
    /// # Errors
    /// [`StorageError::NotARow`] for a key that no table has and for a row that was not sealed under its key,
    /// [`StorageError::Failed`] when the disk fails.
    pub(crate) fn stage(&mut self, rows: &[Row]) -> Result<(), StorageError> {
        for group in rows.chunk_by(|one, other| one.table == other.table) {
            match group[0].table {
                RowTable::State => self.stage_in(STATE_STAGED, META, group)?,
                RowTable::Users => self.stage_in(USERS_STAGED, USERS, group)?,
                RowTable::Roles => self.stage_in(ROLES_STAGED, ROLES, group)?,
                RowTable::Tokens => self.stage_in(TOKENS_STAGED, TOKENS, group)?,
                RowTable::Kv => self.stage_in(KV_STAGED, KV, group)?,
            }
        }
        Ok(())
    }

    fn stage_in<K: Portable>(
        &self,
        staged: SealedTable<K>,
        table: SealedTable<K>,
        rows: &[Row],
    ) -> Result<(), StorageError> {
        self.health.guard(|| {
            let mut staged = Guarded::new(self.transaction.open_table(staged)?);
            for row in rows {
                let key = K::unpack(&row.key).ok_or(StorageError::NotARow)?;
                unseal(table, &key, &row.value).map_err(|_| StorageError::NotARow)?;
                staged.insert(key, &*row.value)?;
            }
            Ok(())
        })
    }

    /// Puts what has been staged in the place of the replicated state, and an empty log behind it. Gives the new state,
    /// read back from the tables.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] when it is not the state of `snapshot`'s index or cannot be read; the transaction must
    /// then be dropped.
    pub(crate) fn install(&mut self, snapshot: &SnapshotMetadata) -> Result<Image, StorageError> {
        // A table that is open can be neither renamed nor removed.
        (self.meta, self.log, self.kv) = (None, None, None);
        let state = self.staged_state()?;
        let meta = record::decode_meta(&state)?;
        if (meta.applied_index, meta.applied_term) != (snapshot.index, snapshot.term) {
            return Err(StorageError::corrupt(format!(
                "a snapshot of index {} holds the state of index {}",
                snapshot.index, meta.applied_index
            )));
        }
        let image = self.health.guard(|| {
            let transaction = self.transaction;
            transaction.delete_table(STATE_STAGED)?;
            self.replace(USERS, USERS_STAGED)?;
            self.replace(ROLES, ROLES_STAGED)?;
            self.replace(TOKENS, TOKENS_STAGED)?;
            self.replace(KV, KV_STAGED)?;
            transaction.delete_table(LOG)?;
            drop(Guarded::new(transaction.open_table(LOG)?));
            load_image(transaction, meta)
        })?;
        self.put_meta_row(STATE_KEY, &state)?;
        self.put_meta_row(CONF_STATE_KEY, &encode_raft(snapshot.get_conf_state()))?;
        self.put_log_start(snapshot.index + 1, snapshot.term)?;
        Ok(image)
    }

    fn staged_state(&self) -> Result<Vec<u8>, StorageError> {
        self.health.guard(|| {
            let staged = Guarded::new(self.transaction.open_table(STATE_STAGED)?);
            let row = redb::ReadableTable::get(&*staged, STATE_KEY)?;
            let row = row.ok_or_else(|| StorageError::corrupt("a snapshot without its state"))?;
            Ok(unseal(META, &STATE_KEY, row.value())?.to_vec())
        })
    }

    fn replace<K: RowKey>(
        &self,
        table: SealedTable<K>,
        staged: SealedTable<K>,
    ) -> Result<(), StorageError> {
        self.transaction.delete_table(table)?;
        self.transaction.rename_table(staged, table)?;
        Ok(())
    }
}
