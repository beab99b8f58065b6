//! Opening a store: whose it is, and what it says.

use super::sealed::{RowKey, SealedTable, unseal};
use super::tables::{
    CLUSTER_KEY, COMMIT_KEY, CONF_STATE_KEY, FIRST_INDEX_KEY, FORMAT_KEY, HARD_STATE_KEY, KV, LOG,
    MEMBER_KEY, META, PREVIOUS_TERM_KEY, ROLES, STATE_KEY, STORE_ID_KEY, TOKENS, USERS,
};
use super::{FORMAT, StorageError, record};
use crate::state::{Image, KvRecord, KvRevision, Meta, RoleName, UserName};
use bytes::Bytes;
use raft::eraftpb::{ConfState, HardState};
use redb::{
    Database, ReadOnlyTable, ReadTransaction, ReadableDatabase as _, ReadableTable,
    TableDefinition, TableError, WriteTransaction,
};

/// Whose store it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity<'a> {
    /// The cluster.
    pub(crate) cluster_id: u64,
    /// The member.
    pub(crate) member_id: u64,
    /// Every member of the static cluster; used when the store is created, and stored from then on.
    pub(crate) voters: &'a [u64],
    /// What the store is called if it is created now. No two stores may share it.
    pub(crate) new_store_id: u64,
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
    /// Which store it is.
    pub(crate) store_id: u64,
    /// Number of its newest transaction.
    pub(crate) commit: u64,
    /// Whether it has been created just now.
    pub(crate) created: bool,
}

/// Whether nothing has been stored yet.
pub(super) fn is_new(database: &Database) -> Result<bool, StorageError> {
    match database.begin_read()?.open_table(META) {
        Ok(meta) => Ok(meta.get(FORMAT_KEY)?.is_none()),
        Err(TableError::TableDoesNotExist(_)) => Ok(true),
        Err(other) => Err(other.into()),
    }
}

/// Reads everything, and checks that it fits together. Values and log entries are not kept.
pub(super) fn load(
    database: &Database,
    identity: &Identity<'_>,
    created: bool,
) -> Result<Loaded, StorageError> {
    let store = database.begin_read()?;
    let meta = MetaTable::open(&store)?;
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
        store_id: meta.number(STORE_ID_KEY)?,
        commit: meta.number(COMMIT_KEY)?,
        created,
    };
    check_indices(&loaded)?;
    check_history(&loaded.image)?;
    Ok(loaded)
}

/// What the state says it has applied must be in the log, or before it.
fn check_indices(loaded: &Loaded) -> Result<(), StorageError> {
    let (first, last) = (loaded.first_index, loaded.last_index);
    let commit = loaded.hard_state.commit;
    let Meta {
        applied_index: applied,
        applied_term,
        ..
    } = loaded.image.meta;
    if applied > commit {
        return Err(StorageError::corrupt(format!(
            "applied up to {applied}, committed up to {commit}"
        )));
    }
    if commit > last {
        return Err(StorageError::corrupt(format!(
            "committed up to {commit}, the log ends at {last}"
        )));
    }
    if applied + 1 < first {
        return Err(StorageError::corrupt(format!(
            "applied up to {applied}, the log begins at {first}"
        )));
    }
    let begun = loaded.terms.iter().rev();
    let in_log = begun.clone().find(|(start, _)| *start <= applied);
    match in_log {
        Some((_, term)) if *term != applied_term => Err(StorageError::corrupt(format!(
            "entry {applied} was applied with term {applied_term} and has term {term} in the log"
        ))),
        Some(_) | None => Ok(()),
    }
}

/// Every revision that has not been compacted has its changes, counted from 0, and there is none beyond the newest.
fn check_history(image: &Image) -> Result<(), StorageError> {
    let newest = image.meta.kv_revision;
    // Revision 1 is that of the empty store.
    let kept_from = image.meta.compact_revision.max(1) + 1;
    let mut expected = KvRevision {
        main: kept_from,
        sub: 0,
    };
    for at in image.history.keys().filter(|at| at.main >= kept_from) {
        let next = KvRevision {
            main: expected.main + 1,
            sub: 0,
        };
        if *at != expected && (*at != next || expected.sub == 0) {
            return Err(StorageError::corrupt(format!(
                "revision {}.{} follows where {}.{} belongs",
                at.main, at.sub, expected.main, expected.sub
            )));
        }
        expected = KvRevision {
            sub: at.sub + 1,
            ..*at
        };
    }
    let last = expected.main - i64::from(expected.sub == 0);
    if last != newest {
        return Err(StorageError::corrupt(format!(
            "the newest revision is {newest}, changes go up to {last}"
        )));
    }
    Ok(())
}

fn check_identity(meta: &MetaTable, identity: &Identity<'_>) -> Result<(), StorageError> {
    // The format first: of a newer one, nothing else can be relied upon.
    let (found, known) = (meta.format()?, FORMAT);
    if found > known {
        return Err(StorageError::NewerFormat { found, known });
    }
    if found < known {
        return Err(StorageError::OlderFormat { found, known });
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
        let index = index.value();
        let entry = record::decode_entry(index, unseal(LOG, &index, value.value())?)?;
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
    let state = MetaTable::open(store)?.row(STATE_KEY)?;
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
    each_row(store, USERS, |name, row| {
        let user = record::decode_user(row)?;
        image.users.insert(UserName::from(*name), user);
        Ok(())
    })?;
    each_row(store, ROLES, |name, row| {
        let role = record::decode_role(row)?;
        image.roles.insert(RoleName::from(*name), role);
        Ok(())
    })?;
    each_row(store, TOKENS, |key, row| {
        let (key, token) = (record::decode_token_key(key)?, record::decode_token(row)?);
        image.tokens.insert(key, token);
        Ok(())
    })?;
    each_row(store, KV, |(main, sub), row| {
        let (main, sub) = (*main, *sub);
        // Decoded from a borrowed row, key and value are copies of their own: the value's can be given back at once.
        let version = KvRecord {
            value: Bytes::new(),
            ..record::decode_kv(row)?
        };
        image.history.insert(KvRevision { main, sub }, version);
        Ok(())
    })?;
    Ok(image)
}

fn each_row<K: RowKey>(
    store: &impl Opens,
    table: SealedTable<K>,
    mut take: impl FnMut(&K::SelfType<'_>, &[u8]) -> Result<(), StorageError>,
) -> Result<(), StorageError> {
    for row in store.open(table)?.iter()? {
        let (key, stored) = row?;
        let key = key.value();
        take(&key, unseal(table, &key, stored.value())?)?;
    }
    Ok(())
}

pub(super) struct MetaTable(ReadOnlyTable<&'static str, &'static [u8]>);

impl MetaTable {
    pub(super) fn open(store: &ReadTransaction) -> Result<MetaTable, StorageError> {
        Ok(MetaTable(store.open_table(META)?))
    }

    pub(super) fn row(&self, key: &str) -> Result<Vec<u8>, StorageError> {
        Ok(unseal(META, &key, &self.stored(key)?)?.to_vec())
    }

    fn stored(&self, key: &str) -> Result<Vec<u8>, StorageError> {
        let row = self.0.get(key)?;
        let row = row.ok_or_else(|| StorageError::corrupt(format!("the store has no `{key}`")))?;
        Ok(row.value().to_vec())
    }

    fn format(&self) -> Result<u32, StorageError> {
        match self.stored(FORMAT_KEY)?.as_slice() {
            // Before there were checksums.
            [0, 0, 0, 1] => Ok(1),
            _ => Ok(u32::from_be_bytes(self.fixed(FORMAT_KEY)?)),
        }
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

    pub(super) fn raft<M: protobuf::Message>(&self, key: &str) -> Result<M, StorageError> {
        M::parse_from_bytes(&self.row(key)?)
            .map_err(|e| record::unreadable(&format!("`{key}`"), &e))
    }
}
