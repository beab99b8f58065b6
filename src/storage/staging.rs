//! A snapshot on its way in. Its rows go into tables of their own, in as many transactions as it takes, and mean nothing:
//! only the one transaction of the install puts them in the place of what the member had. Whatever a start finds there is
//! removed, since nobody knows any more what it was to become.

use super::load::load_image;
use super::snapshot::{Portable, Row, RowTable};
use super::tables::{CONF_STATE_KEY, KV, LOG, ROLES, STATE_KEY, TOKENS, USERS};
use super::{Durability, StorageError, Tables, Transaction, record};
use crate::state::Image;
use protobuf::Message as _;
use raft::eraftpb::SnapshotMetadata;
use redb::{Database, ReadableDatabase as _, TableDefinition, TableHandle as _};

type Staged<K> = TableDefinition<'static, K, &'static [u8]>;

const STATE_STAGED: Staged<&str> = TableDefinition::new("staged_state");
const USERS_STAGED: Staged<&str> = TableDefinition::new("staged_users");
const ROLES_STAGED: Staged<&str> = TableDefinition::new("staged_roles");
const TOKENS_STAGED: Staged<&[u8]> = TableDefinition::new("staged_tokens");
const KV_STAGED: Staged<(i64, i64)> = TableDefinition::new("staged_kv");

/// Removes what a former life had staged.
pub(super) fn clear(database: &Database) -> Result<(), StorageError> {
    let store = database.begin_read()?;
    let mut tables = store.list_tables()?;
    if !tables.any(|table| table.name() == STATE_STAGED.name()) {
        return Ok(());
    }
    drop(tables);
    drop(store);
    let transaction = Transaction::begin(database, Durability::Synced)?;
    transaction.tables().clear_staging()?;
    transaction.commit()
}

impl Tables<'_> {
    /// Begins to stage a snapshot, in place of any other.
    ///
    /// # Errors
    /// [`StorageError::Failed`] when the disk fails.
    pub(crate) fn begin_staging(&mut self) -> Result<(), StorageError> {
        self.clear_staging()?;
        // A table exists once it has been opened for writing, and the install needs them all.
        self.transaction.open_table(STATE_STAGED)?;
        self.transaction.open_table(USERS_STAGED)?;
        self.transaction.open_table(ROLES_STAGED)?;
        self.transaction.open_table(TOKENS_STAGED)?;
        self.transaction.open_table(KV_STAGED)?;
        Ok(())
    }

    /// Removes what has been staged.
    ///
    /// # Errors
    /// [`StorageError::Failed`] when the disk fails.
    pub(crate) fn clear_staging(&mut self) -> Result<(), StorageError> {
        self.transaction.delete_table(STATE_STAGED)?;
        self.transaction.delete_table(USERS_STAGED)?;
        self.transaction.delete_table(ROLES_STAGED)?;
        self.transaction.delete_table(TOKENS_STAGED)?;
        self.transaction.delete_table(KV_STAGED)?;
        Ok(())
    }

    /// Stages rows.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] for a key that no table has, [`StorageError::Failed`] when the disk fails.
    pub(crate) fn stage(&mut self, rows: &[Row]) -> Result<(), StorageError> {
        for group in rows.chunk_by(|one, other| one.table == other.table) {
            match group[0].table {
                RowTable::State => self.stage_in(STATE_STAGED, group)?,
                RowTable::Users => self.stage_in(USERS_STAGED, group)?,
                RowTable::Roles => self.stage_in(ROLES_STAGED, group)?,
                RowTable::Tokens => self.stage_in(TOKENS_STAGED, group)?,
                RowTable::Kv => self.stage_in(KV_STAGED, group)?,
            }
        }
        Ok(())
    }

    fn stage_in<K: Portable>(
        &self,
        definition: Staged<K>,
        rows: &[Row],
    ) -> Result<(), StorageError> {
        let mut table = self.transaction.open_table(definition)?;
        for row in rows {
            let key = K::unpack(&row.key)
                .ok_or_else(|| StorageError::corrupt("a snapshot holds a key of no table"))?;
            table.insert(key, &*row.value)?;
        }
        Ok(())
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
        let transaction = self.transaction;
        let state = {
            let staged = transaction.open_table(STATE_STAGED)?;
            let row = redb::ReadableTable::get(&staged, STATE_KEY)?;
            let row = row.ok_or_else(|| StorageError::corrupt("a snapshot without its state"))?;
            row.value().to_vec()
        };
        let meta = record::decode_meta(&state)?;
        if (meta.applied_index, meta.applied_term) != (snapshot.index, snapshot.term) {
            return Err(StorageError::corrupt(format!(
                "a snapshot of index {} holds the state of index {}",
                snapshot.index, meta.applied_index
            )));
        }
        transaction.delete_table(STATE_STAGED)?;
        self.replace(USERS, USERS_STAGED)?;
        self.replace(ROLES, ROLES_STAGED)?;
        self.replace(TOKENS, TOKENS_STAGED)?;
        self.replace(KV, KV_STAGED)?;
        transaction.delete_table(LOG)?;
        transaction.open_table(LOG)?;
        let image = load_image(transaction, meta)?;
        let conf_state = snapshot.get_conf_state().write_to_bytes();
        let conf_state = conf_state.expect("a small message without required fields encodes");
        self.put_meta_row(STATE_KEY, &state)?;
        self.put_meta_row(CONF_STATE_KEY, &conf_state)?;
        self.put_log_start(snapshot.index + 1, snapshot.term)?;
        Ok(image)
    }

    fn replace<K: redb::Key + 'static>(
        &self,
        table: TableDefinition<'_, K, &'static [u8]>,
        staged: Staged<K>,
    ) -> Result<(), StorageError> {
        self.transaction.delete_table(table)?;
        self.transaction.rename_table(staged, table)?;
        Ok(())
    }
}
