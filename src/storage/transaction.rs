//! The one write transaction: what belongs together becomes durable together.

use super::reader::value_in;
use super::tables::{
    CLUSTER_KEY, CONF_STATE_KEY, FIRST_INDEX_KEY, FORMAT_KEY, HARD_STATE_KEY, KV, LOG, MEMBER_KEY,
    META, ROLES, STATE_KEY, TOKENS, USERS,
};
use super::{FORMAT, Identity, StorageError, record};
use crate::state::{KvRevision, Meta, ValueError, Values, Write};
use bytes::Bytes;
use raft::eraftpb::{ConfState, Entry, HardState};
use redb::{Database, Table, TableDefinition, WriteTransaction};

/// Whether a commit waits for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Synced; survives a crash once the disk's barrier has been awaited.
    Synced,
    /// Visible at once, durable with the next synced commit: for what can be had again from the log.
    Deferred,
}

/// An open write transaction. Dropping it undoes everything.
pub(crate) struct Transaction {
    inner: WriteTransaction,
}

impl Transaction {
    pub(super) fn begin(
        database: &Database,
        durability: Durability,
    ) -> Result<Transaction, StorageError> {
        let mut inner = database.begin_write()?;
        inner.set_durability(match durability {
            Durability::Synced => redb::Durability::Immediate,
            Durability::Deferred => redb::Durability::None,
        })?;
        Ok(Transaction { inner })
    }

    /// The tables, to be dropped before [`Transaction::commit`].
    pub(crate) fn tables(&self) -> Tables<'_> {
        Tables {
            transaction: &self.inner,
            meta: None,
            log: None,
            kv: None,
        }
    }

    /// Makes everything visible, and durable as asked for. Blocks on the disk.
    ///
    /// # Errors
    /// [`StorageError::Failed`]: whether the transaction took effect is then unknown until the store is opened again.
    pub(crate) fn commit(self) -> Result<(), StorageError> {
        Ok(self.inner.commit()?)
    }
}

pub(super) type Bytewise<'t, K> = Table<'t, K, &'static [u8]>;

/// The tables of an open transaction. The busy ones stay open, since opening one costs a look-up.
pub(crate) struct Tables<'t> {
    pub(super) transaction: &'t WriteTransaction,
    pub(super) meta: Option<Bytewise<'t, &'static str>>,
    pub(super) log: Option<Bytewise<'t, u64>>,
    pub(super) kv: Option<Bytewise<'t, (i64, i64)>>,
}

impl<'t> Tables<'t> {
    /// Marks a new store.
    pub(super) fn create(&mut self, identity: &Identity<'_>) -> Result<(), StorageError> {
        let conf_state = ConfState::from((identity.voters.to_vec(), Vec::new()));
        self.put_meta_row(FORMAT_KEY, &FORMAT.to_be_bytes())?;
        self.put_meta_row(CLUSTER_KEY, &identity.cluster_id.to_be_bytes())?;
        self.put_meta_row(MEMBER_KEY, &identity.member_id.to_be_bytes())?;
        self.put_meta_row(FIRST_INDEX_KEY, &1_u64.to_be_bytes())?;
        self.put_meta_row(CONF_STATE_KEY, &encode_raft(&conf_state))?;
        self.put_hard_state(&HardState::default())?;
        self.put_state(&Meta::default())?;
        // A table exists once it has been opened for writing; readers rely on that.
        log(&mut self.log, self.transaction)?;
        kv(&mut self.kv, self.transaction)?;
        self.transaction.open_table(USERS)?;
        self.transaction.open_table(ROLES)?;
        self.transaction.open_table(TOKENS)?;
        Ok(())
    }

    /// Stores term, vote and commit index.
    pub(crate) fn put_hard_state(&mut self, hard_state: &HardState) -> Result<(), StorageError> {
        self.put_meta_row(HARD_STATE_KEY, &encode_raft(hard_state))
    }

    /// Stores what is small of the state.
    pub(crate) fn put_state(&mut self, meta: &Meta) -> Result<(), StorageError> {
        self.put_meta_row(STATE_KEY, &record::encode_meta(meta))
    }

    /// Appends `entries` to a log that ends at `last_index`. Where they overlap, the old entries belong to a term that
    /// lost: everything from the first new index on goes.
    pub(crate) fn append(
        &mut self,
        entries: &[Entry],
        last_index: u64,
    ) -> Result<(), StorageError> {
        let Some(first) = entries.first() else {
            return Ok(());
        };
        assert!(first.index <= last_index + 1, "the log has no gap");
        let log = log(&mut self.log, self.transaction)?;
        for entry in entries {
            log.insert(entry.index, record::encode_entry(entry).as_slice())?;
        }
        for stale in first.index + entries.len() as u64..=last_index {
            log.remove(stale)?;
        }
        Ok(())
    }

    /// Stores what applying an entry wrote, in order.
    pub(crate) fn put_writes(&mut self, writes: &[Write]) -> Result<(), StorageError> {
        for write in writes {
            match write {
                Write::Kv(at, version) => {
                    let kv = kv(&mut self.kv, self.transaction)?;
                    kv.insert((at.main, at.sub), record::encode_kv(version).as_slice())?;
                }
                Write::User(name, user) => {
                    let row = user.as_ref().map(record::encode_user);
                    self.put_row(USERS, name.as_str(), row.as_deref())?;
                }
                Write::Role(name, permissions) => {
                    let row = permissions.as_deref().map(record::encode_role);
                    self.put_row(ROLES, name.as_str(), row.as_deref())?;
                }
                Write::Token(key, token) => {
                    let row = token.as_ref().map(record::encode_token);
                    self.put_row(TOKENS, &record::encode_token_key(key)[..], row.as_deref())?;
                }
            }
        }
        Ok(())
    }

    /// Values as this transaction would leave them.
    pub(crate) fn values(&mut self) -> Result<impl Values + use<'_, 't>, StorageError> {
        Ok(PendingValues {
            table: kv(&mut self.kv, self.transaction)?,
        })
    }

    /// The log.
    pub(super) fn log(&mut self) -> Result<&mut Bytewise<'t, u64>, StorageError> {
        log(&mut self.log, self.transaction)
    }

    fn put_row<'k, K: redb::Key + 'static>(
        &self,
        table: TableDefinition<'_, K, &'static [u8]>,
        key: K::SelfType<'k>,
        row: Option<&[u8]>,
    ) -> Result<(), StorageError> {
        let mut table = self.transaction.open_table(table)?;
        match row {
            Some(row) => table.insert(key, row)?,
            None => table.remove(key)?,
        };
        Ok(())
    }

    pub(super) fn put_meta_row(&mut self, key: &str, row: &[u8]) -> Result<(), StorageError> {
        let meta = match &mut self.meta {
            Some(meta) => meta,
            none => none.insert(self.transaction.open_table(META)?),
        };
        meta.insert(key, row)?;
        Ok(())
    }
}

fn log<'a, 't>(
    table: &'a mut Option<Bytewise<'t, u64>>,
    transaction: &'t WriteTransaction,
) -> Result<&'a mut Bytewise<'t, u64>, StorageError> {
    match table {
        Some(table) => Ok(table),
        none => Ok(none.insert(transaction.open_table(LOG)?)),
    }
}

fn kv<'a, 't>(
    table: &'a mut Option<Bytewise<'t, (i64, i64)>>,
    transaction: &'t WriteTransaction,
) -> Result<&'a mut Bytewise<'t, (i64, i64)>, StorageError> {
    match table {
        Some(table) => Ok(table),
        none => Ok(none.insert(transaction.open_table(KV)?)),
    }
}

fn encode_raft(message: &impl protobuf::Message) -> Vec<u8> {
    message
        .write_to_bytes()
        .expect("a small message without required fields always encodes")
}

struct PendingValues<'a, 't> {
    table: &'a Bytewise<'t, (i64, i64)>,
}

impl Values for PendingValues<'_, '_> {
    fn value(&self, at: KvRevision) -> Result<Bytes, ValueError> {
        value_in(self.table, at)
    }
}
