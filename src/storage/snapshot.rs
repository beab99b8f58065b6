//! The replicated state as rows, for another member: everything in the store but the log and what is this member's own.
//! The state machine lies in the store, so a snapshot is no file: it is one read transaction, and what is committed later
//! does not show in it.

use super::guarded::Health;
use super::load::MetaTable;
use super::sealed::{RowKey, SealedTable, unseal};
use super::tables::{CONF_STATE_KEY, KV, META, ROLES, STATE_KEY, TOKENS, USERS};
use super::{Storage, StorageError, record};
use bytes::Bytes;
use raft::eraftpb::ConfState;
use redb::{ReadTransaction, ReadableDatabase as _};
use std::ops::Bound;

/// Whose row it is. The order is that of a snapshot's rows, the numbers are those of `gatehousepb.SnapshotTable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RowTable {
    /// The state row of `meta`.
    State = 1,
    Users = 2,
    Roles = 3,
    Tokens = 4,
    Kv = 5,
}

impl RowTable {
    /// Every table, in the order of a snapshot's rows.
    pub(crate) const ALL: [RowTable; 5] = [
        RowTable::State,
        RowTable::Users,
        RowTable::Roles,
        RowTable::Tokens,
        RowTable::Kv,
    ];
}

/// One row as it is stored, checksum included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Whose.
    pub(crate) table: RowTable,
    /// Its key: text, bytes, or two numbers big-endian.
    pub(crate) key: Bytes,
    /// Its value.
    pub(crate) value: Bytes,
}

/// A place between two rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    table: RowTable,
    /// Behind this key; `None`: before the table's first row.
    behind: Option<Bytes>,
}

impl Place {
    /// Before the first row of all.
    pub(crate) const START: Place = Place {
        table: RowTable::State,
        behind: None,
    };
}

/// A key that travels.
pub(super) trait Portable: RowKey {
    fn pack(key: &Self::SelfType<'_>) -> Bytes;
    /// `None` for what was never packed.
    fn unpack(bytes: &[u8]) -> Option<Self::SelfType<'_>>;
}

impl Portable for &'static str {
    fn pack(key: &&str) -> Bytes {
        Bytes::copy_from_slice(key.as_bytes())
    }

    fn unpack(bytes: &[u8]) -> Option<&str> {
        std::str::from_utf8(bytes).ok()
    }
}

impl Portable for &'static [u8] {
    fn pack(key: &&[u8]) -> Bytes {
        Bytes::copy_from_slice(key)
    }

    fn unpack(bytes: &[u8]) -> Option<&[u8]> {
        Some(bytes)
    }
}

impl Portable for (i64, i64) {
    fn pack((main, sub): &(i64, i64)) -> Bytes {
        let bytes = [main.to_be_bytes(), sub.to_be_bytes()].concat();
        bytes.into()
    }

    fn unpack(bytes: &[u8]) -> Option<(i64, i64)> {
        let (main, sub) = bytes.split_first_chunk()?;
        Some((
            i64::from_be_bytes(*main),
            i64::from_be_bytes(sub.try_into().ok()?),
        ))
    }
}

/// The replicated state as of one commit.
pub(crate) struct Snapshot {
    store: ReadTransaction,
    health: Health,
    /// Last applied index.
    pub(crate) index: u64,
    /// Its term.
    pub(crate) term: u64,
    /// Who the members are.
    pub(crate) conf_state: ConfState,
}

impl Storage {
    /// The replicated state as of the last commit. While it is held, the store cannot reuse the space of what has changed
    /// since.
    ///
    /// # Errors
    /// [`StorageError`].
    pub(crate) fn snapshot(&self) -> Result<Snapshot, StorageError> {
        self.health.guard(|| {
            let store = self.database.begin_read()?;
            let meta = MetaTable::open(&store)?;
            let state = record::decode_meta(&meta.row(STATE_KEY)?)?;
            let conf_state = meta.raft(CONF_STATE_KEY)?;
            Ok(Snapshot {
                store,
                health: self.health.clone(),
                index: state.applied_index,
                term: state.applied_term,
                conf_state,
            })
        })
    }
}

impl Snapshot {
    /// The rows from `place` on, at least one if there is any: the first with which they reach `bytes_soft_max` is the
    /// last. Gives the place behind them, `None` at the end of all.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] for a row that does not match its checksum: it must not travel.
    pub(crate) fn rows(
        &self,
        place: &Place,
        bytes_soft_max: usize,
    ) -> Result<(Vec<Row>, Option<Place>), StorageError> {
        self.health.guard(|| self.read_rows(place, bytes_soft_max))
    }

    fn read_rows(
        &self,
        place: &Place,
        bytes_soft_max: usize,
    ) -> Result<(Vec<Row>, Option<Place>), StorageError> {
        let mut batch = Batch {
            rows: Vec::new(),
            bytes: 0,
            bytes_soft_max,
        };
        for table in RowTable::ALL {
            if table < place.table {
                continue;
            }
            let behind = place.behind.as_deref().filter(|_| table == place.table);
            match table {
                RowTable::State => self.state_row(behind, &mut batch)?,
                RowTable::Users => self.scan(USERS, table, behind, &mut batch)?,
                RowTable::Roles => self.scan(ROLES, table, behind, &mut batch)?,
                RowTable::Tokens => self.scan(TOKENS, table, behind, &mut batch)?,
                RowTable::Kv => self.scan(KV, table, behind, &mut batch)?,
            }
            if batch.is_full() {
                break;
            }
        }
        let next = batch
            .rows
            .last()
            .filter(|_| batch.is_full())
            .map(|last| Place {
                table: last.table,
                behind: Some(last.key.clone()),
            });
        Ok((batch.rows, next))
    }

    /// What of `meta` is the cluster's and not this member's.
    fn state_row(&self, behind: Option<&[u8]>, batch: &mut Batch) -> Result<(), StorageError> {
        if behind.is_none()
            && let Some(row) = self.store.open_table(META)?.get(STATE_KEY)?
        {
            unseal(META, &STATE_KEY, row.value())?;
            let key = Bytes::from_static(STATE_KEY.as_bytes());
            batch.push(RowTable::State, key, row.value());
        }
        Ok(())
    }

    fn scan<K: Portable>(
        &self,
        definition: SealedTable<K>,
        table: RowTable,
        behind: Option<&[u8]>,
        batch: &mut Batch,
    ) -> Result<(), StorageError> {
        let behind = behind.map(|key| K::unpack(key).expect("packed here"));
        let start = behind.map_or(Bound::Unbounded, Bound::Excluded);
        let rows = self.store.open_table(definition)?;
        for row in rows.range::<K::SelfType<'_>>((start, Bound::Unbounded))? {
            if batch.is_full() {
                break;
            }
            let (key, value) = row?;
            let (key, value) = (key.value(), value.value());
            unseal(definition, &key, value)?;
            batch.push(table, K::pack(&key), value);
        }
        Ok(())
    }
}

struct Batch {
    rows: Vec<Row>,
    bytes: usize,
    bytes_soft_max: usize,
}

impl Batch {
    fn is_full(&self) -> bool {
        !self.rows.is_empty() && self.bytes >= self.bytes_soft_max
    }

    fn push(&mut self, table: RowTable, key: Bytes, value: &[u8]) {
        self.bytes += key.len() + value.len();
        let value = Bytes::copy_from_slice(value);
        self.rows.push(Row { table, key, value });
    }
}
