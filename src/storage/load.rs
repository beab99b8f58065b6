//! Opening a store: whose it is, and what it says.

use super::tables::{
    CLUSTER_KEY, CONF_STATE_KEY, FIRST_INDEX_KEY, FORMAT_KEY, HARD_STATE_KEY, KV, LOG, MEMBER_KEY,
    META, PREVIOUS_TERM_KEY, ROLES, STATE_KEY, TOKENS, USERS,
};
use super::{Durability, FORMAT, StorageError, Transaction, record};
use crate::state::{Image, KvRevision, Meta, RoleName, UserName};
use bytes::Bytes;
use raft::eraftpb::{ConfState, HardState};
use redb::{
    Database, ReadOnlyTable, ReadTransaction, ReadableDatabase as _, ReadableTable,
    TableDefinition, TableError, WriteTransaction,
};
use std::collections::BTreeMap;

/// Whose store it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity<'a> {
    /// The cluster.
    pub(crate) cluster_id: u64,
    /// The member.
    pub(crate) member_id: u64,
    /// Every member of the static cluster; used when the store is created, and stored from then on.
    pub(crate) voters: &'a [u64],
}

/// What a store says when it is opened.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// The replicated state, without values.
    pub(crate) image: Image,
    /// Term, vote and commit index.
    pub(crate) hard_state: HardState,
    /// The voters.
    pub(crate) conf_state: ConfState,
    /// First index of the log.
    pub(crate) first_index: u64,
    /// Last index of the log; `first_index - 1` if it is empty.
    pub(crate) last_index: u64,
    /// Where each term begins in the log, in order. If the log has been truncated, the entry before its first comes
    /// first, as if its term began there.
    pub(crate) terms: Vec<(u64, u64)>,
}

/// Whether nothing has been stored yet.
pub(super) fn is_new(database: &Database) -> Result<bool, StorageError> {
    match database.begin_read()?.open_table(META) {
        Ok(meta) => Ok(meta.get(FORMAT_KEY)?.is_none()),
        Err(TableError::TableDoesNotExist(_)) => Ok(true),
        Err(other) => Err(other.into()),
    }
}

/// Marks a new store, in one transaction: a crash leaves it new or complete.
pub(super) fn create(database: &Database, identity: &Identity<'_>) -> Result<(), StorageError> {
    let transaction = Transaction::begin(database, Durability::Synced)?;
    transaction.tables().create(identity)?;
    transaction.commit()
}

/// Reads everything but values and log entries, and checks that it fits together.
pub(super) fn load(database: &Database, identity: &Identity<'_>) -> Result<Loaded, StorageError> {
    let store = database.begin_read()?;
    let meta = MetaTable(store.open_table(META)?);
    check_identity(&meta, identity)?;
    let first_index = meta.number(FIRST_INDEX_KEY)?;
    if first_index == 0 {
        return Err(StorageError::corrupt("the log begins at 0"));
    }
    let before = (first_index > 1)
        .then(|| Ok::<_, StorageError>((first_index - 1, meta.number(PREVIOUS_TERM_KEY)?)))
        .transpose()?;
    let (last_index, terms) = scan_log(&store, first_index, before)?;
    let loaded = Loaded {
        image: stored_image(&store)?,
        hard_state: meta.raft(HARD_STATE_KEY)?,
        conf_state: meta.raft(CONF_STATE_KEY)?,
        first_index,
        last_index,
        terms,
    };
    let applied = loaded.image.meta.applied_index;
    let commit = loaded.hard_state.commit;
    if applied > commit {
        return Err(StorageError::corrupt(format!(
            "applied up to {applied}, committed up to {commit}"
        )));
    }
    if applied + 1 < first_index {
        return Err(StorageError::corrupt(format!(
            "applied up to {applied}, the log begins at {first_index}"
        )));
    }
    if commit > last_index {
        return Err(StorageError::corrupt(format!(
            "committed up to {commit}, the log ends at {last_index}"
        )));
    }
    Ok(loaded)
}

fn check_identity(meta: &MetaTable, identity: &Identity<'_>) -> Result<(), StorageError> {
    // The format first: of a newer one, nothing else can be relied upon.
    let found = u32::from_be_bytes(meta.fixed(FORMAT_KEY)?);
    if found > FORMAT {
        return Err(StorageError::NewerFormat {
            found,
            known: FORMAT,
        });
    }
    let (found, expected) = (meta.number(CLUSTER_KEY)?, identity.cluster_id);
    if found != expected {
        return Err(StorageError::ForeignCluster { found, expected });
    }
    let (found, expected) = (meta.number(MEMBER_KEY)?, identity.member_id);
    if found != expected {
        return Err(StorageError::ForeignMember { found, expected });
    }
    Ok(())
}

/// Finds the log's end and where each term begins, so that raft's questions about terms never need the disk.
fn scan_log(
    store: &ReadTransaction,
    first_index: u64,
    before: Option<(u64, u64)>,
) -> Result<(u64, Vec<(u64, u64)>), StorageError> {
    let mut last_index = first_index - 1;
    let mut terms: Vec<(u64, u64)> = before.into_iter().collect();
    for row in store.open_table(LOG)?.iter()? {
        let (index, value) = row?;
        let entry = record::decode_entry(index.value(), value.value())?;
        if entry.index != last_index + 1 {
            return Err(StorageError::corrupt(format!(
                "log entry {} follows {last_index}",
                entry.index
            )));
        }
        match terms.last() {
            Some((_, term)) if *term == entry.term => {}
            Some((_, term)) if *term > entry.term => {
                return Err(StorageError::corrupt(format!(
                    "the term falls at log entry {}",
                    entry.index
                )));
            }
            _ => terms.push((entry.index, entry.term)),
        }
        last_index = entry.index;
    }
    Ok((last_index, terms))
}

/// The replicated state of a store.
pub(super) fn stored_image(store: &ReadTransaction) -> Result<Image, StorageError> {
    let state = MetaTable(store.open_table(META)?).row(STATE_KEY)?;
    load_image(store, record::decode_meta(&state)?)
}

/// A transaction in which tables can be read.
pub(super) trait Opens {
    fn open<K: redb::Key + 'static>(
        &self,
        table: TableDefinition<'_, K, &'static [u8]>,
    ) -> Result<impl ReadableTable<K, &'static [u8]>, TableError>;
}

impl Opens for ReadTransaction {
    fn open<K: redb::Key + 'static>(
        &self,
        table: TableDefinition<'_, K, &'static [u8]>,
    ) -> Result<impl ReadableTable<K, &'static [u8]>, TableError> {
        self.open_table(table)
    }
}

impl Opens for WriteTransaction {
    fn open<K: redb::Key + 'static>(
        &self,
        table: TableDefinition<'_, K, &'static [u8]>,
    ) -> Result<impl ReadableTable<K, &'static [u8]>, TableError> {
        self.open_table(table)
    }
}

/// The replicated state whose small things are `meta`.
pub(super) fn load_image(store: &impl Opens, meta: Meta) -> Result<Image, StorageError> {
    let mut image = Image {
        meta,
        ..Image::default()
    };
    for row in store.open(USERS)?.iter()? {
        let (name, user) = row?;
        image.users.insert(
            UserName::from(name.value()),
            record::decode_user(user.value())?,
        );
    }
    for row in store.open(ROLES)?.iter()? {
        let (name, role) = row?;
        image.roles.insert(
            RoleName::from(name.value()),
            record::decode_role(role.value())?,
        );
    }
    for row in store.open(TOKENS)?.iter()? {
        let (key, token) = row?;
        let key = record::decode_token_key(key.value())?;
        image
            .tokens
            .insert(key, record::decode_token(token.value())?);
    }
    image.history = load_history(&store.open(KV)?)?;
    Ok(image)
}

fn load_history(
    kv: &impl ReadableTable<(i64, i64), &'static [u8]>,
) -> Result<BTreeMap<KvRevision, crate::state::KvRecord>, StorageError> {
    let mut history = BTreeMap::new();
    for row in kv.iter()? {
        let (at, version) = row?;
        let (main, sub) = at.value();
        // Decoded from a borrowed row, key and value are copies of their own: the value's can be given back at once.
        let mut version = record::decode_kv(version.value())?;
        version.value = Bytes::new();
        history.insert(KvRevision { main, sub }, version);
    }
    Ok(history)
}

struct MetaTable(ReadOnlyTable<&'static str, &'static [u8]>);

impl MetaTable {
    fn row(&self, key: &str) -> Result<Vec<u8>, StorageError> {
        let row = self.0.get(key)?;
        let row = row.ok_or_else(|| StorageError::corrupt(format!("the store has no `{key}`")))?;
        Ok(row.value().to_vec())
    }

    fn fixed<const N: usize>(&self, key: &str) -> Result<[u8; N], StorageError> {
        let row = self.row(key)?;
        let length = row.len();
        row.try_into().map_err(|_| {
            StorageError::corrupt(format!("`{key}` has {length} bytes instead of {N}"))
        })
    }

    fn number(&self, key: &str) -> Result<u64, StorageError> {
        Ok(u64::from_be_bytes(self.fixed(key)?))
    }

    fn raft<M: protobuf::Message>(&self, key: &str) -> Result<M, StorageError> {
        M::parse_from_bytes(&self.row(key)?)
            .map_err(|e| record::unreadable(&format!("`{key}`"), &e))
    }
}
