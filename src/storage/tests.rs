//! What is stored is what is found again, and somebody else's store is refused.

use super::tables::FORMAT_KEY;
use super::{Durability, FORMAT, Identity, Loaded, Storage, StorageError};
use crate::platform::Disk;
use crate::state::{
    Authenticate, Caller, Command, KvRecord, KvRevision, Op, PasswordHash, Permission,
    PermissionKind, Put, RawRange, State, TokenKind, TokenLimits, UserAdd, Values as _, Write,
};
use bytes::Bytes;
use raft::eraftpb::{Entry, HardState};
use redb::StorageBackend as _;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;
use tempfile::TempDir;

const IDENTITY: Identity<'_> = Identity {
    cluster_id: 7,
    member_id: 1,
    voters: &[1, 2, 3],
    new_store_id: 99,
};
const CACHE_BYTES: usize = 1 << 20;
const PAGE_BYTES: usize = 4096;

struct Place(TempDir);

impl Place {
    fn new() -> Place {
        Place(TempDir::new().unwrap())
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("store")
    }

    fn open_as(&self, identity: Identity<'_>) -> Result<(Storage, Loaded), StorageError> {
        let disk = Disk::file(self.file());
        let opened = Storage::open(disk.backend().unwrap(), &identity, CACHE_BYTES)?;
        disk.keep().unwrap();
        Ok(opened)
    }

    fn open(&self) -> (Storage, Loaded) {
        self.open_as(IDENTITY).unwrap()
    }
}

fn entries(indexes: std::ops::RangeInclusive<u64>, term: u64) -> Vec<Entry> {
    let entry = |index| Entry {
        index,
        term,
        data: vec![7; 100].into(),
        ..Entry::default()
    };
    indexes.map(entry).collect()
}

fn append(storage: &Storage, new: &[Entry], last_index: u64, commit: u64) {
    let transaction = storage.begin(Durability::Synced).unwrap();
    let mut tables = transaction.tables();
    tables.append(new, last_index).unwrap();
    tables
        .put_hard_state(&HardState {
            commit,
            ..HardState::default()
        })
        .unwrap();
    drop(tables);
    transaction.commit().unwrap();
}

#[test]
fn a_new_store_has_its_voters_and_nothing_else() {
    let place = Place::new();
    for _ in 0..2 {
        let (_, loaded) = place.open();
        assert_eq!(loaded.conf_state.voters, [1, 2, 3]);
        assert_eq!((loaded.first_index, loaded.last_index), (1, 0));
        assert_eq!(loaded.image, crate::state::Image::default());
    }
}

#[test]
fn a_store_of_another_cluster_is_refused() {
    let place = Place::new();
    place.open();
    let refused = place.open_as(Identity {
        cluster_id: 8,
        ..IDENTITY
    });
    assert!(matches!(
        refused,
        Err(StorageError::ForeignCluster {
            found: 7,
            expected: 8
        })
    ));
}

#[test]
fn a_store_of_another_member_is_refused() {
    let place = Place::new();
    place.open();
    let refused = place.open_as(Identity {
        member_id: 2,
        ..IDENTITY
    });
    assert!(matches!(
        refused,
        Err(StorageError::ForeignMember {
            found: 1,
            expected: 2
        })
    ));
}

#[test]
fn a_store_of_a_newer_format_is_refused_before_anything_else_is_read() {
    let place = Place::new();
    let (storage, _) = place.open();
    let transaction = storage.begin(Durability::Synced).unwrap();
    transaction
        .tables()
        .put_meta_row(FORMAT_KEY, &(FORMAT + 1).to_be_bytes())
        .unwrap();
    transaction.commit().unwrap();
    drop(storage);
    let refused = place.open_as(Identity {
        cluster_id: 8,
        ..IDENTITY
    });
    assert!(matches!(
        refused,
        Err(StorageError::NewerFormat { found: 3, known: 2 })
    ));
}

#[test]
fn a_conflicting_tail_is_replaced() {
    let place = Place::new();
    let (storage, _) = place.open();
    append(&storage, &entries(1..=6, 1), 0, 2);
    append(&storage, &entries(3..=4, 2), 6, 2);
    drop(storage);
    let (storage, loaded) = place.open();
    assert_eq!(loaded.last_index, 4);
    assert_eq!(loaded.terms, [(1, 1), (3, 2)]);
    let terms: Vec<_> = storage
        .entries(1, 5, u64::MAX)
        .unwrap()
        .iter()
        .map(|entry| entry.term)
        .collect();
    assert_eq!(terms, [1, 1, 2, 2]);
}

#[test]
fn entries_are_read_up_to_a_size_but_never_none() {
    let place = Place::new();
    let (storage, _) = place.open();
    append(&storage, &entries(1..=6, 1), 0, 0);
    let count = |max_bytes| storage.entries(2, 7, max_bytes).unwrap().len();
    assert_eq!(count(0), 1);
    assert_eq!(count(250), 2);
    assert_eq!(count(u64::MAX), 5);
    assert!(matches!(
        storage.entries(5, 9, u64::MAX),
        Err(StorageError::Corrupt { .. })
    ));
}

#[test]
fn what_was_not_committed_is_gone() {
    let place = Place::new();
    let (storage, _) = place.open();
    let transaction = storage.begin(Durability::Synced).unwrap();
    transaction.tables().append(&entries(1..=3, 1), 0).unwrap();
    drop(transaction);
    assert!(storage.entries(1, 2, u64::MAX).is_err());
    drop(storage);
    assert_eq!(place.open().1.last_index, 0);
}

fn truncate(storage: &Storage, gone: std::ops::Range<u64>, term: u64) {
    let transaction = storage.begin(Durability::Synced).unwrap();
    transaction.tables().truncate(gone, term).unwrap();
    transaction.commit().unwrap();
}

fn apply_up_to(storage: &Storage, index: u64, term: u64) {
    let meta = crate::state::Meta {
        applied_index: index,
        applied_term: term,
        ..crate::state::Meta::default()
    };
    let transaction = storage.begin(Durability::Synced).unwrap();
    transaction.tables().put_state(&meta).unwrap();
    transaction.commit().unwrap();
}

#[test]
fn a_truncated_log_is_found_again_with_the_term_before_it() {
    let place = Place::new();
    let (storage, _) = place.open();
    append(&storage, &entries(1..=3, 1), 0, 3);
    append(&storage, &entries(4..=6, 2), 3, 6);
    apply_up_to(&storage, 5, 2);
    truncate(&storage, 1..3, 1);
    drop(storage);
    let (storage, loaded) = place.open();
    assert_eq!((loaded.first_index, loaded.last_index), (3, 6));
    assert_eq!(loaded.terms, [(2, 1), (4, 2)]);
    truncate(&storage, 3..5, 2);
    drop(storage);
    let (_, loaded) = place.open();
    assert_eq!((loaded.first_index, loaded.terms), (5, vec![(4, 2)]));
}

#[test]
fn a_log_that_begins_beyond_what_was_applied_is_corrupt() {
    let place = Place::new();
    let (storage, _) = place.open();
    append(&storage, &entries(1..=6, 1), 0, 6);
    apply_up_to(&storage, 2, 1);
    truncate(&storage, 1..4, 1);
    drop(storage);
    let refused = place.open_as(IDENTITY).map(drop).unwrap_err();
    assert!(
        refused.to_string().contains("the log begins at 4"),
        "{refused}"
    );
}

#[test]
fn a_store_that_was_committed_beyond_its_log_is_corrupt() {
    let place = Place::new();
    let (storage, _) = place.open();
    append(&storage, &entries(1..=3, 1), 0, 4);
    drop(storage);
    assert!(matches!(
        place.open_as(IDENTITY),
        Err(StorageError::Corrupt { .. })
    ));
}

#[test]
fn a_reopened_store_restores_the_same_state() {
    let place = Place::new();
    let (storage, loaded) = place.open();
    let mut state = State::restore(loaded.image);
    let ops = ops();
    let count = ops.len() as u64;
    append(&storage, &entries(1..=count, 1), 0, count);
    for (index, op) in (1..).zip(ops) {
        let transaction = storage.begin(Durability::Deferred).unwrap();
        let mut tables = transaction.tables();
        let command = Command {
            request_id: index,
            caller: Caller::ANONYMOUS,
            op,
        };
        let applied = state
            .apply(index, 1, Some(command), &tables.values().unwrap())
            .unwrap();
        assert!(
            applied.result.is_ok(),
            "entry {index}: {:?}",
            applied.result
        );
        tables.put_writes(&applied.writes).unwrap();
        tables.put_state(&state.meta()).unwrap();
        drop(tables);
        transaction.commit().unwrap();
    }
    // Deferred commits become durable with the next synced one.
    append(&storage, &[], count, count);
    let first = *state.image().history.keys().next().unwrap();
    let value = storage.reader().unwrap().value(first).unwrap();
    drop(storage);
    let (storage, loaded) = place.open();
    assert_eq!(State::restore(loaded.image), state);
    assert_eq!(storage.reader().unwrap().value(first).unwrap(), value);
}

/// At least one write of every kind, and one removal.
fn ops() -> Vec<Op> {
    let put = |key: &str, value: &str| {
        Op::Put(Put {
            key: Bytes::copy_from_slice(key.as_bytes()),
            value: Bytes::copy_from_slice(value.as_bytes()),
            ..Put::default()
        })
    };
    let hash = || PasswordHash(Bytes::from_static(b"$2b$04$hash"));
    let user = |name: &str| {
        Op::UserAdd(UserAdd {
            name: name.into(),
            password: hash(),
            no_password: false,
        })
    };
    let permission = Permission {
        kind: PermissionKind::ReadWrite,
        range: RawRange {
            key: Bytes::from_static(b"a"),
            range_end: Bytes::from_static(b"b"),
        },
    };
    vec![
        put("a", "1"),
        put("a", "2"),
        put("b", "3"),
        user("root"),
        user("alice"),
        user("bob"),
        Op::RoleAdd("root".into()),
        Op::RoleAdd("writer".into()),
        Op::RoleAdd("unused".into()),
        Op::RoleDelete("unused".into()),
        Op::RoleGrantPermission("writer".into(), Some(permission)),
        Op::UserGrantRole("root".into(), "root".into()),
        Op::UserGrantRole("alice".into(), "writer".into()),
        Op::UserDelete("bob".into()),
        Op::AuthEnable,
        Op::Authenticate(Authenticate {
            user: "alice".into(),
            epoch: 6,
            kind: TokenKind::Simple,
            prefix_hash: [9; 32],
            limits: TokenLimits::default(),
        }),
    ]
}

#[test]
fn opening_a_damaged_store_is_an_error_or_harmless_but_never_a_panic() {
    let place = Place::new();
    let (storage, _) = place.open();
    append(&storage, &entries(1..=200, 1), 0, 200);
    drop(storage);
    let sound = std::fs::read(place.file()).unwrap();
    let mut refused = 0;
    for page in 0..sound.len() / PAGE_BYTES {
        let bytes = page * PAGE_BYTES..(page + 1) * PAGE_BYTES;
        if sound[bytes.clone()].iter().all(|byte| *byte == 0) {
            continue;
        }
        for damage in [0x01, 0x5a, 0xff] {
            let mut damaged = sound.clone();
            damaged[bytes.clone()].fill(damage);
            let disk = redb::backends::InMemoryBackend::new();
            disk.set_len(damaged.len() as u64).unwrap();
            disk.write(0, &damaged).unwrap();
            match Storage::open(disk, &IDENTITY, CACHE_BYTES) {
                Err(_) => refused += 1,
                Ok(opened) => drop(opened),
            }
        }
    }
    assert!(refused > 0, "some damage must have been noticed");
}

#[test]
fn a_creation_that_was_cut_short_is_done_again() {
    let place = Place::new();
    // As redb leaves it between its two syncs: a header without its magic number, and no page. The file has its own name
    // only when the creation is complete.
    let mut file = std::fs::File::create(place.file().with_extension("new")).unwrap();
    file.set_len(1 << 20).unwrap();
    file.seek(SeekFrom::Start(9)).unwrap();
    file.write_all(&[3; 200]).unwrap();
    drop(file);
    assert_eq!(place.open().1.last_index, 0);
}

#[test]
fn a_store_without_its_magic_number_is_not_made_anew() {
    let place = Place::new();
    drop(place.open());
    let mut file = std::fs::File::options()
        .write(true)
        .open(place.file())
        .unwrap();
    file.write_all(&[0; 9]).unwrap();
    drop(file);
    assert!(matches!(
        place.open_as(IDENTITY),
        Err(StorageError::Failed(_))
    ));
}

/// Memory that somebody else can change.
#[derive(Clone, Debug, Default)]
struct Memory(std::sync::Arc<redb::backends::InMemoryBackend>);

impl Memory {
    /// Changes one byte of every copy of `needle`.
    fn rot(&self, needle: &[u8]) {
        let mut bytes = vec![0; usize::try_from(self.0.len().unwrap()).unwrap()];
        self.0.read(0, &mut bytes).unwrap();
        let copies = bytes.windows(needle.len()).enumerate();
        for (at, _) in copies.filter(|(_, window)| *window == needle) {
            self.0.write(at as u64, &[needle[0] ^ 1]).unwrap();
        }
    }
}

impl redb::StorageBackend for Memory {
    fn len(&self) -> std::io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> std::io::Result<()> {
        self.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        self.0.write(offset, data)
    }
}

#[test]
fn a_row_that_rots_while_it_is_served_is_an_error_and_is_reported() {
    let memory = Memory::default();
    let (storage, _) = Storage::open(memory.clone(), &IDENTITY, 0).unwrap();
    append(&storage, &entries(1..=3, 1), 0, 3);
    let at = KvRevision { main: 2, sub: 0 };
    let version = KvRecord {
        value: Bytes::from_static(b"a value of some length"),
        ..KvRecord::default()
    };
    // redb keeps the pages it read last, whatever the size of its cache, so there must be many others.
    let others = (3..800).map(|main| KvRevision { main, sub: 0 });
    let large = KvRecord {
        value: Bytes::from(vec![1; 3000]),
        ..KvRecord::default()
    };
    let mut writes = vec![Write::Kv(at, version.clone())];
    writes.extend(others.clone().map(|other| Write::Kv(other, large.clone())));
    let transaction = storage.begin(Durability::Synced).unwrap();
    transaction.tables().put_writes(&writes).unwrap();
    transaction.commit().unwrap();
    let reader = storage.reader().unwrap();
    assert_eq!(reader.value(at).unwrap(), version.value);
    assert!(storage.take_failure().is_none());
    for other in others {
        assert_eq!(reader.value(other).unwrap(), large.value);
    }

    memory.rot(&version.value);
    let error = reader.value(at).unwrap_err().to_string();
    assert!(error.contains("row 2.0 of table `kv`"), "{error}");
    let reported = storage.take_failure();
    assert!(matches!(reported, Some(StorageError::Corrupt { .. })));
    // A write transaction sees it as well.
    let transaction = storage.begin(Durability::Synced).unwrap();
    let mut tables = transaction.tables();
    assert!(tables.values().unwrap().value(at).is_err());
    drop(tables);
    drop(transaction);

    memory.rot(&[7; 100]);
    let error = storage.entries(1, 4, u64::MAX).unwrap_err().to_string();
    assert!(error.contains("of table `log`"), "{error}");
}
