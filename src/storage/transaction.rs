//! The one write transaction: what belongs together becomes durable together.

use super::guarded::{Guarded, Health};
use super::reader::{unreadable, value_in};
use super::sealed::{RowKey, SealedTable, seal};
use super::tables::{
    CLUSTER_KEY, COMMIT_KEY, CONF_STATE_KEY, FIRST_INDEX_KEY, FORMAT_KEY, HARD_STATE_KEY, KV, LOG,
    MEMBER_KEY, META, ROLES, STATE_KEY, STORE_ID_KEY, TOKENS, USERS,
};
use super::{FORMAT, Identity, StorageError, record};
use crate::planted::{Bug, planted};
use crate::state::{KvRevision, Meta, ValueError, Values, Write};
use bytes::Bytes;
use raft::eraftpb::{ConfState, Entry, HardState};
use redb::{Database, Table, WriteTransaction};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
    inner: Guarded<WriteTransaction>,
    newest: Arc<AtomicU64>,
    health: Health,
}

impl Transaction {
    pub(super) fn begin(
        database: &Database,
        durability: Durability,
        newest: Arc<AtomicU64>,
        health: Health,
    ) -> Result<Transaction, StorageError> {
        let mut inner = Guarded::new(database.begin_write()?);
        inner.set_durability(match durability {
            Durability::Synced => redb::Durability::Immediate,
            Durability::Deferred => redb::Durability::None,
        })?;
        Ok(Transaction {
            inner,
            newest,
            health,
        })
    }

    /// The tables, to be dropped before [`Transaction::commit`].
    pub(crate) fn tables(&self) -> Tables<'_> {
        Tables {
            transaction: &self.inner,
            health: &self.health,
            meta: None,
            log: None,
            kv: None,
        }
    }

    /// Makes everything visible, and durable as asked for. Blocks on the disk. Gives the transaction's number.
    ///
    /// # Errors
    /// [`StorageError::Failed`]: whether the transaction took effect is then unknown until the store is opened again.
    pub(crate) fn commit(self) -> Result<u64, StorageError> {
        let number = self.newest.load(Ordering::Relaxed) + 1;
        self.tables().put_number(COMMIT_KEY, number)?;
        let Transaction {
            inner,
            newest,
            health,
        } = self;
        health.guard(|| Ok(inner.into_inner().commit()?))?;
        newest.store(number, Ordering::Relaxed);
        Ok(number)
    }
}

pub(super) type Bytewise<'t, K> = Guarded<Table<'t, K, &'static [u8]>>;

/// The tables of an open transaction. The busy ones stay open, since opening one costs a look-up.
pub(crate) struct Tables<'t> {
    pub(super) transaction: &'t WriteTransaction,
    pub(super) health: &'t Health,
    pub(super) meta: Option<Bytewise<'t, &'static str>>,
    pub(super) log: Option<Bytewise<'t, u64>>,
    pub(super) kv: Option<Bytewise<'t, (i64, i64)>>,
}

impl<'t> Tables<'t> {
    /// Marks a new store.
    pub(super) fn create(&mut self, identity: &Identity<'_>) -> Result<(), StorageError> {
        let conf_state = ConfState::from((identity.voters.to_vec(), Vec::new()));
        self.put_meta_row(FORMAT_KEY, &FORMAT.to_be_bytes())?;
        self.put_number(CLUSTER_KEY, identity.cluster_id)?;
        self.put_number(MEMBER_KEY, identity.member_id)?;
        self.put_number(STORE_ID_KEY, identity.new_store_id)?;
        self.put_number(FIRST_INDEX_KEY, 1)?;
        self.put_meta_row(CONF_STATE_KEY, &encode_raft(&conf_state))?;
        self.put_hard_state(&HardState::default())?;
        self.put_state(&Meta::default())?;
        // A table exists once it has been opened for writing; readers rely on that.
        self.health.guard(|| {
            opened(&mut self.log, LOG, self.transaction)?;
            opened(&mut self.kv, KV, self.transaction)?;
            drop(Guarded::new(self.transaction.open_table(USERS)?));
            drop(Guarded::new(self.transaction.open_table(ROLES)?));
            drop(Guarded::new(self.transaction.open_table(TOKENS)?));
            Ok(())
        })
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
    /// lost: everything from the first new index on goes. Gives the first index that was left over behind the new entries
    /// and removed, if any was; the last one is `last_index`.
    pub(crate) fn append(
        &mut self,
        entries: &[Entry],
        last_index: u64,
    ) -> Result<Option<u64>, StorageError> {
        let Some(first) = entries.first() else {
            return Ok(None);
        };
        assert!(first.index <= last_index + 1, "the log has no gap");
        self.health.guard(|| {
            let log = opened(&mut self.log, LOG, self.transaction)?;
            for entry in entries {
                let row = seal(LOG, &entry.index, record::encode_entry(entry));
                log.insert(entry.index, row.as_slice())?;
            }
            let mut left_over = first.index + entries.len() as u64..=last_index;
            if planted(Bug::ConflictingTailKept) {
                return Ok(None);
            }
            let first_left_over = left_over.clone().next();
            left_over.try_for_each(|stale| log.remove(stale).map(drop))?;
            Ok(first_left_over)
        })
    }

    /// Stores what applying an entry wrote, in order.
    pub(crate) fn put_writes(&mut self, writes: &[Write]) -> Result<(), StorageError> {
        for write in writes {
            match write {
                Write::Kv(at, version) => {
                    let key = (at.main, at.sub);
                    let row = seal(KV, &key, record::encode_kv(version));
                    self.health.guard(|| {
                        opened(&mut self.kv, KV, self.transaction)?.insert(key, row.as_slice())?;
                        Ok(())
                    })?;
                }
                Write::KvGone(at) => {
                    self.health.guard(|| {
                        opened(&mut self.kv, KV, self.transaction)?.remove((at.main, at.sub))?;
                        Ok(())
                    })?;
                }
                Write::User(name, user) => {
                    let row = user.as_ref().map(record::encode_user);
                    self.put_row(USERS, &name.as_str(), row)?;
                }
                Write::Role(name, permissions) => {
                    let row = permissions.as_deref().map(record::encode_role);
                    self.put_row(ROLES, &name.as_str(), row)?;
                }
                Write::Token(key, token) => {
                    let row = token.as_ref().map(record::encode_token);
                    self.put_row(TOKENS, &&record::encode_token_key(key)[..], row)?;
                }
            }
        }
        Ok(())
    }

    /// Values as this transaction would leave them.
    pub(crate) fn values(&mut self) -> Result<impl Values + use<'_, 't>, StorageError> {
        let table = self
            .health
            .guard(|| opened(&mut self.kv, KV, self.transaction))?;
        Ok(PendingValues {
            table,
            health: self.health,
        })
    }

    fn put_row<K: RowKey>(
        &self,
        table: SealedTable<K>,
        key: &K::SelfType<'_>,
        row: Option<Vec<u8>>,
    ) -> Result<(), StorageError> {
        let row = row.map(|row| seal(table, key, row));
        self.health.guard(|| {
            let mut table = Guarded::new(self.transaction.open_table(table)?);
            match &row {
                Some(row) => table.insert(key, row.as_slice())?,
                None => table.remove(key)?,
            };
            Ok(())
        })
    }

    fn put_number(&mut self, key: &str, number: u64) -> Result<(), StorageError> {
        self.put_meta_row(key, &number.to_be_bytes())
    }

    pub(super) fn put_meta_row(&mut self, key: &str, row: &[u8]) -> Result<(), StorageError> {
        let row = seal(META, &key, row.to_vec());
        self.health.guard(|| {
            opened(&mut self.meta, META, self.transaction)?.insert(key, row.as_slice())?;
            Ok(())
        })
    }
}

/// `table`, opened unless it is already.
pub(super) fn opened<'a, 't, K: RowKey>(
    table: &'a mut Option<Bytewise<'t, K>>,
    definition: SealedTable<K>,
    transaction: &'t WriteTransaction,
) -> Result<&'a mut Bytewise<'t, K>, StorageError> {
    match table {
        Some(table) => Ok(table),
        none => Ok(none.insert(Guarded::new(transaction.open_table(definition)?))),
    }
}

pub(super) fn encode_raft(message: &impl protobuf::Message) -> Vec<u8> {
    message
        .write_to_bytes()
        .expect("a small message without required fields always encodes")
}

struct PendingValues<'a, 't> {
    table: &'a Bytewise<'t, (i64, i64)>,
    health: &'a Health,
}

impl Values for PendingValues<'_, '_> {
    fn value(&self, at: KvRevision) -> Result<Bytes, ValueError> {
        self.health
            .guard(|| value_in(&**self.table, at))
            .map_err(|failure| unreadable(at, &failure))
    }
}
