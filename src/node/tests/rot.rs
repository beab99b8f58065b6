//! Whatever happens to the files of a data directory, a member that is started on it says what is wrong, or has
//! everything it ever promised.

use super::super::member::{Member, open};
use super::super::{MemberError, Node};
use crate::config::{Config, Member as ConfigMember, TOKEN_LIMITS};
use crate::observer::Unobserved;
use crate::platform::{Clock, Disk};
use crate::state::{
    Authenticate, Caller, Command, Op, PasswordHash, Permission, PermissionKind, Put, RawRange,
    State, TokenKind, UserAdd, Values as _,
};
use crate::storage::{Durability, StorageError};
use bytes::Bytes;
use raft::eraftpb::{Entry, HardState};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::time::Instant;

const SEED: u64 = 20_240;
const MUTATIONS: u64 = 2_500;
/// How long one start may take before it counts as hung.
const PATIENCE: Duration = Duration::from_secs(30);
const STORE: &str = "member.redb";
const COMMITS: &str = "member.commits";
const SECTOR: usize = 512;
const PAGE: usize = 4096;

/// Splitmix64, as in `platform/seeded.rs`, which exists in simulations only.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit.max(1) as u64).unwrap()
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next().to_le_bytes()[0]).collect()
    }
}

/// The files of a data directory.
type Files = BTreeMap<&'static str, Vec<u8>>;

/// Everything that a member finds in them.
#[derive(Debug, PartialEq)]
struct Content {
    state: State,
    values: Vec<Bytes>,
    hard_state: HardState,
    entries: Vec<Entry>,
}

fn config() -> Config {
    let member = ConfigMember {
        id: 1,
        name: "m1".to_owned(),
        peer_address: "127.0.0.1:1".to_owned(),
    };
    Config::of_test(1, vec![member])
}

/// A directory in memory where there is one: a fuzz test need not wear out a disk.
fn directory() -> TempDir {
    TempDir::new_in("/dev/shm")
        .or_else(|_| TempDir::new())
        .unwrap()
}

fn disk(directory: &Path) -> Disk {
    Disk::file(directory.join(STORE))
}

fn read(directory: &Path) -> Files {
    let file = |name| (name, std::fs::read(directory.join(name)).unwrap());
    [STORE, COMMITS].map(file).into()
}

fn write(directory: &Path, files: &Files) {
    for (name, bytes) in files {
        std::fs::write(directory.join(name), bytes).unwrap();
    }
}

/// Starts a member on `directory` and has it apply `ops`; gives the files as a kill would leave them.
async fn run(directory: &Path, ops: Vec<Op>) -> Files {
    let (stop, stopped) = watch::channel(false);
    let (config, disk) = (config(), disk(directory));
    let observer = Arc::new(Unobserved);
    let member = Member::start(config, disk, Clock::system(), observer, stopped);
    let member = member.await.unwrap();
    for op in ops {
        propose(&member.node, op).await;
    }
    // The newest note may still be on its way.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let killed = read(directory);
    stop.send_replace(true);
    member.task.await.unwrap().unwrap();
    killed
}

async fn propose(node: &Node, op: Op) {
    let command = Command {
        request_id: node.next_request_id(),
        caller: Caller::ANONYMOUS,
        op,
    };
    let outcome = node.propose(command, Instant::now() + PATIENCE).await;
    let result = outcome.unwrap().result;
    assert!(result.is_ok(), "{result:?}");
}

fn put(key: String, value: usize) -> Op {
    Op::Put(Put {
        key: key.into(),
        value: vec![b'v'; value].into(),
        ..Put::default()
    })
}

/// Keys, users, roles and tokens, auth switched on last: nobody here is logged in.
fn ops(auth: bool) -> Vec<Op> {
    let mut ops: Vec<Op> = (0..40)
        .map(|at| put(format!("foo/{}", at % 15), at * 50))
        .collect();
    if !auth {
        return ops;
    }
    let range = RawRange {
        key: Bytes::from_static(b"foo/"),
        range_end: Bytes::from_static(b"foo0"),
    };
    for name in ["root", "alice", "bob"] {
        ops.push(Op::UserAdd(UserAdd {
            name: name.into(),
            password: PasswordHash(Bytes::from_static(b"$2b$04$hash")),
            no_password: false,
        }));
        ops.push(Op::RoleAdd(name.into()));
        ops.push(Op::UserGrantRole(name.into(), name.into()));
    }
    ops.push(Op::RoleGrantPermission(
        "alice".into(),
        Some(Permission {
            kind: PermissionKind::ReadWrite,
            range,
        }),
    ));
    ops.push(Op::AuthEnable);
    ops.extend((0..5).map(|at| {
        Op::Authenticate(Authenticate {
            user: "alice".into(),
            // The auth revision that made her: root, its role and its grant came first.
            epoch: 5,
            kind: TokenKind::Simple,
            prefix_hash: [at; 32],
            limits: TOKEN_LIMITS,
        })
    }));
    ops
}

/// What a start on `directory` finds, read as the member reads it, and one more transaction.
async fn start(directory: &Path) -> Result<Content, MemberError> {
    let (storage, loaded, commits) = open(&config(), &disk(directory)).await?;
    let reader = storage.reader()?;
    let history = loaded.image.history.keys();
    let values = history
        .map(|at| reader.value(*at))
        .collect::<Result<_, _>>();
    let (first, end) = (loaded.first_index, loaded.last_index + 1);
    let content = Content {
        values: values?,
        hard_state: loaded.hard_state,
        entries: storage.entries(first, end, u64::MAX)?,
        state: State::restore(loaded.image),
    };
    let transaction = storage.begin(Durability::Synced)?;
    transaction.tables().put_hard_state(&content.hard_state)?;
    let number = transaction.commit()?;
    commits.note(number).map_err(MemberError::Disk)?;
    Ok(content)
}

fn block_on<T>(story: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(story)
}

/// A data directory of a short life, at three of its moments.
struct Life {
    /// After its first half, stopped in good order.
    older: Files,
    /// At its end, killed.
    killed: Files,
    /// At its end, stopped in good order.
    stopped: Files,
}

fn live() -> Life {
    let place = directory();
    let path = place.path();
    let killed = block_on(async {
        run(path, ops(false)).await;
        let older = read(path);
        let killed = run(path, ops(true)).await;
        (older, killed)
    });
    let (older, killed) = killed;
    Life {
        older,
        killed,
        stopped: read(path),
    }
}

const KINDS: [&str; 12] = [
    "a changed byte",
    "changed bytes",
    "a changed byte in the head",
    "a zeroed sector",
    "a zeroed page",
    "swapped sectors",
    "swapped pages",
    "an older page",
    "a truncation",
    "an extension",
    "an older file",
    "a deleted file",
];

/// Damages one of `files`; says how.
fn damage(files: &mut Files, older: &Files, chance: &mut Chance) -> (usize, String) {
    let name = if chance.below(8) == 0 { COMMITS } else { STORE };
    let kind = chance.below(KINDS.len());
    let bytes = files.get_mut(name).unwrap();
    let at = place(bytes, chance);
    let sector = at / SECTOR * SECTOR;
    let page = at / PAGE * PAGE;
    match kind {
        0 => bytes[at] ^= 1 << chance.below(8),
        1 => {
            let end = (at + 1 + chance.below(300)).min(bytes.len());
            let noise = chance.bytes(end - at);
            bytes[at..end].copy_from_slice(&noise);
        }
        2 => bytes[at % SECTOR] = chance.bytes(1)[0],
        3 => bytes[sector..sector + SECTOR].fill(0),
        4 => bytes[page..page + PAGE].fill(0),
        5 => swap(bytes, sector, chance, SECTOR),
        6 => swap(bytes, page, chance, PAGE),
        7 => {
            let old = older[name].get(page..page + PAGE);
            bytes[page..page + PAGE].copy_from_slice(old.unwrap_or(&[0; PAGE]));
        }
        8 => bytes.truncate(if chance.below(2) == 0 { at } else { page }),
        9 => {
            let more = 1 + chance.below(2 * PAGE);
            let zero = chance.below(2) == 0;
            let noise = chance.bytes(more);
            bytes.extend(noise.into_iter().map(|byte| if zero { 0 } else { byte }));
        }
        10 => bytes.clone_from(&older[name]),
        _ => {
            files.remove(name);
        }
    }
    (kind, format!("{} at {at} of {name}", KINDS[kind]))
}

/// Somewhere in the file, mostly where it holds something.
fn place(bytes: &[u8], chance: &mut Chance) -> usize {
    for _ in 0..20 {
        let at = chance.below(bytes.len());
        let page = at / PAGE * PAGE;
        if bytes[page..page + PAGE].iter().any(|byte| *byte != 0) {
            return at;
        }
    }
    chance.below(bytes.len())
}

fn swap(bytes: &mut [u8], one: usize, chance: &mut Chance, size: usize) {
    let other = place(bytes, chance) / size * size;
    for at in 0..size {
        bytes.swap(one + at, other + at);
    }
}

#[derive(Default)]
struct Tally {
    refused: u64,
    served: u64,
}

/// Runs every mutation; sends what it does before each.
fn fuzz(told: &mpsc::Sender<String>) -> [Tally; KINDS.len()] {
    let life = live();
    let moments = [&life.killed, &life.stopped].map(|files| {
        let place = directory();
        write(place.path(), files);
        let content = block_on(start(place.path())).unwrap();
        // What a killed member had applied last, it applies again.
        assert!(content.state.image().tokens.len() >= 4);
        (files, content)
    });
    let mut chance = Chance(SEED);
    let mut tallies: [Tally; KINDS.len()] = Default::default();
    for number in 0..MUTATIONS {
        let (sound, expected) = &moments[chance.below(2)];
        let mut files = (*sound).clone();
        let (kind, what) = damage(&mut files, &life.older, &mut chance);
        let what = format!("mutation {number} of seed {SEED}: {what}");
        told.send(what.clone()).unwrap();
        let place = directory();
        write(place.path(), &files);
        let started = catch_unwind(AssertUnwindSafe(|| block_on(start(place.path()))));
        match started.unwrap_or_else(|_| panic!("{what}: a panic")) {
            Ok(content) => {
                assert!(content == *expected, "{what}: wrong content");
                tallies[kind].served += 1;
            }
            Err(error) => {
                let text = error.to_string();
                let named = text.contains(&place.path().display().to_string());
                assert!(named, "{what}: {text}");
                assert!(
                    files != **sound,
                    "{what}: nothing changed, and refused: {text}"
                );
                tallies[kind].refused += 1;
            }
        }
    }
    tallies
}

#[test]
fn a_start_on_damaged_files_is_refused_or_finds_everything() {
    eprintln!("seed {SEED}, {MUTATIONS} mutations");
    let (told, news) = mpsc::channel();
    let fuzzer = std::thread::spawn(move || fuzz(&told));
    let mut last = "the sound life".to_owned();
    loop {
        match news.recv_timeout(PATIENCE) {
            Ok(what) => last = what,
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("{last}: hangs"),
        }
    }
    let tallies = fuzzer.join().unwrap_or_else(|_| panic!("{last}: failed"));
    for (kind, Tally { refused, served }) in KINDS.iter().zip(&tallies) {
        eprintln!("{kind}: {refused} refused, {served} without harm");
        assert!(refused + served > 0, "{kind} was never tried");
    }
    let refused: u64 = tallies.iter().map(|tally| tally.refused).sum();
    assert!(refused > MUTATIONS / 4, "damage must be noticed: {refused}");
}

fn refusal(files: &Files) -> StorageError {
    let place: PathBuf = directory().keep();
    write(&place, files);
    let refused = block_on(start(&place));
    std::fs::remove_dir_all(&place).unwrap();
    match refused {
        Err(MemberError::Open { cause, .. }) => cause,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_store_that_has_gone_back_in_time_is_refused() {
    let life = live();
    let older = life.older[STORE].clone();
    for now in [&life.killed, &life.stopped] {
        let mut files = now.clone();
        files.insert(STORE, older.clone());
        let refused = refusal(&files);
        assert!(
            matches!(refused, StorageError::LostCommits { found, noted, missing }
                if missing == noted - found && missing >= 40),
            "{refused}"
        );
    }
}

#[test]
fn a_store_or_a_counter_without_the_other_is_refused() {
    let life = live();
    let mut without = life.stopped.clone();
    without.remove(STORE);
    assert!(matches!(refusal(&without), StorageError::LostStore { .. }));
    let mut without = life.stopped.clone();
    without.remove(COMMITS);
    let missing = StorageError::Uncounted { what: "missing" };
    assert_eq!(refusal(&without).to_string(), missing.to_string());
    let mut blank = life.stopped.clone();
    blank.insert(COMMITS, vec![0; 8192]);
    let damaged = StorageError::Uncounted { what: "damaged" };
    assert_eq!(refusal(&blank).to_string(), damaged.to_string());
    let mut foreign = life.stopped;
    foreign.insert(COMMITS, live().stopped[COMMITS].clone());
    assert!(matches!(
        refusal(&foreign),
        StorageError::ForeignCounter { .. }
    ));
}
