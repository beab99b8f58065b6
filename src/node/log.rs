//! The raft log as raft-rs wants to see it: the newest entries from memory, older ones from the store.
//!
//! raft-rs turns an error from its storage into a panic. So a failing store is noted here and raft is given an answer that
//! changes nothing; the event loop looks at [`Log::take_failure`] before it acts on anything raft says next, and stops.

use super::snapshot_offers::Offers;
use crate::storage::{Loaded, Storage, StorageError};
use protobuf::Message as _;
use raft::eraftpb::{ConfState, Entry, HardState, Snapshot, SnapshotMetadata};
use raft::{GetEntriesContext, RaftState};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;

/// Entries kept in memory. A follower that is further behind is served from the store.
const TAIL_ENTRIES_MAX: usize = 4096;

/// Bytes of entries kept in memory.
const TAIL_BYTES_MAX: usize = 16 << 20;

/// Applied entries that stay in the log for members that lag a little: etcd's `DefaultSnapshotCatchUpEntries`. Never more
/// than half of `--snapshot-count`.
const CATCH_UP_ENTRIES_MAX: u64 = 5_000;

/// Entries removed in one transaction, so that a much lower `--snapshot-count` than before does not hold up a member.
const TRUNCATED_ENTRIES_MAX: u64 = 10_000;

/// What of the log is in the store.
pub(super) struct Log {
    storage: Storage,
    hard_state: HardState,
    conf_state: ConfState,
    first_index: u64,
    last_index: u64,
    /// First index of each term, in order: an answer to any question about terms without the disk. The first one covers
    /// the entry before the log's first.
    terms: Vec<(u64, u64)>,
    tail: Tail,
    /// Applied entries after which the log is truncated.
    snapshot_count: u64,
    /// Snapshots for members that need what is gone.
    offers: RefCell<Offers>,
    failure: RefCell<Option<StorageError>>,
}

impl Log {
    pub(super) fn new(
        storage: Storage,
        loaded: &Loaded,
        snapshot_count: u64,
        offers: Offers,
    ) -> Log {
        Log {
            storage,
            hard_state: loaded.hard_state.clone(),
            conf_state: loaded.conf_state.clone(),
            first_index: loaded.first_index,
            last_index: loaded.last_index,
            terms: loaded.terms.clone(),
            tail: Tail::default(),
            snapshot_count,
            offers: RefCell::new(offers),
            failure: RefCell::new(None),
        }
    }

    /// What went wrong since the last call; whatever raft concluded meanwhile must not be acted on.
    pub(super) fn take_failure(&self) -> Option<StorageError> {
        self.failure.borrow_mut().take()
    }

    /// Term, vote and commit index as of the newest transaction, or newer in what need not be durable.
    pub(super) fn hard_state(&self) -> &HardState {
        &self.hard_state
    }

    /// Takes note of a hard state. Whether it has been stored, too, is the caller's concern.
    pub(super) fn set_hard_state(&mut self, hard_state: HardState) {
        self.hard_state = hard_state;
    }

    /// Every voter's id.
    pub(super) fn voters(&self) -> &[u64] {
        &self.conf_state.voters
    }

    /// Last index in the store.
    pub(super) fn stored_last_index(&self) -> u64 {
        self.last_index
    }

    /// Takes note of entries that have been stored: where they overlap with the log, they replace all of it from there on.
    pub(super) fn appended(&mut self, entries: Vec<Entry>) {
        let Some(first) = entries.first() else { return };
        assert!(first.index <= self.last_index + 1, "the log has no gap");
        let first = first.index;
        while self.terms.last().is_some_and(|(start, _)| *start >= first) {
            self.terms.pop();
        }
        self.tail.truncate(first);
        for entry in entries {
            if self
                .terms
                .last()
                .is_none_or(|(_, term)| *term != entry.term)
            {
                self.terms.push((entry.index, entry.term));
            }
            self.last_index = entry.index;
            self.tail.push(entry);
        }
    }

    /// What can go from the log's beginning now that `applied` has been applied, and the term of the last entry of it.
    pub(super) fn truncatable(&self, applied: u64) -> Option<(Range<u64>, u64)> {
        if applied < self.first_index.saturating_add(self.snapshot_count) {
            return None;
        }
        let kept = CATCH_UP_ENTRIES_MAX.min(self.snapshot_count / 2);
        let offered = self.offers.borrow().lowest_index().unwrap_or(u64::MAX);
        let first = (applied + 1 - kept)
            .min(self.first_index + TRUNCATED_ENTRIES_MAX)
            .min(offered.saturating_add(1));
        if first <= self.first_index {
            return None;
        }
        let term = self
            .term_at(first - 1)
            .expect("what has been applied is in the log");
        Some((self.first_index..first, term))
    }

    /// Takes note that the log begins at `first_index` now, which is not beyond its end.
    pub(super) fn truncated(&mut self, first_index: u64) {
        assert!(first_index > self.first_index, "only more can go");
        assert!(
            first_index <= self.last_index + 1,
            "only what there is can go"
        );
        self.first_index = first_index;
        // The last term that begins at the entry before the first, or earlier, covers that entry.
        let covering = self
            .terms
            .partition_point(|(start, _)| *start < first_index);
        self.terms.drain(..covering.saturating_sub(1));
        self.tail.forget_before(first_index);
    }

    /// The snapshots that are offered to other members.
    pub(super) fn offers(&mut self) -> &mut Offers {
        self.offers.get_mut()
    }

    /// Takes note that the state of `snapshot` has been installed in place of all entries.
    pub(super) fn installed(&mut self, snapshot: &SnapshotMetadata) {
        self.first_index = snapshot.index + 1;
        self.last_index = snapshot.index;
        self.terms = vec![(snapshot.index, snapshot.term)];
        self.tail = Tail::default();
        self.conf_state = snapshot.get_conf_state().clone();
    }

    /// The term of an entry of the log, or of the one before its first; `None` outside of that.
    pub(super) fn term_at(&self, index: u64) -> Option<u64> {
        if index + 1 < self.first_index || index > self.last_index {
            return None;
        }
        let after = self.terms.partition_point(|(start, _)| *start <= index);
        let (_, term) = self.terms[after.checked_sub(1)?];
        Some(term)
    }

    fn read(&self, low: u64, high: u64, max_bytes: u64) -> Result<Vec<Entry>, StorageError> {
        let from_tail = self
            .tail
            .first_index()
            .map_or(high, |first| first.clamp(low, high));
        let mut entries = Vec::new();
        if low < from_tail {
            entries = self.storage.entries(low, from_tail, max_bytes)?;
            if (entries.len() as u64) < from_tail - low {
                return Ok(entries);
            }
        }
        entries.extend(self.tail.range(from_tail, high).cloned());
        raft::util::limit_size(&mut entries, Some(max_bytes));
        Ok(entries)
    }
}

impl raft::Storage for Log {
    fn initial_state(&self) -> raft::Result<RaftState> {
        Ok(RaftState::new(
            self.hard_state.clone(),
            self.conf_state.clone(),
        ))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        context: GetEntriesContext,
    ) -> raft::Result<Vec<Entry>> {
        if low < self.first_index {
            return Err(raft::StorageError::Compacted.into());
        }
        assert!(
            high <= self.last_index + 1,
            "raft asks for stored entries only"
        );
        match self.read(low, high, max_size.into().unwrap_or(u64::MAX)) {
            Ok(entries) => Ok(entries),
            Err(failure) => {
                *self.failure.borrow_mut() = Some(failure);
                if context.can_async() {
                    Err(raft::StorageError::LogTemporarilyUnavailable.into())
                } else {
                    Ok(Vec::new())
                }
            }
        }
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        // The entry before the first is known, too; before the very first one there is nothing, of term 0.
        if index + 1 < self.first_index {
            return Err(raft::StorageError::Compacted.into());
        }
        if index == 0 {
            return Ok(0);
        }
        self.term_at(index)
            .ok_or_else(|| raft::StorageError::Unavailable.into())
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.first_index)
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.last_index)
    }

    fn snapshot(&self, _request_index: u64, to: u64) -> raft::Result<Snapshot> {
        let mut offers = self.offers.borrow_mut();
        match offers.announce(to, &self.storage, self.first_index) {
            Ok(snapshot) => Ok(snapshot),
            Err(failure) => {
                *self.failure.borrow_mut() = Some(failure);
                Err(raft::StorageError::SnapshotTemporarilyUnavailable.into())
            }
        }
    }
}

/// The newest entries, without a gap up to the log's end; both its limits hold after every push.
#[derive(Default)]
struct Tail {
    entries: VecDeque<Entry>,
    bytes: usize,
}

impl Tail {
    fn first_index(&self) -> Option<u64> {
        self.entries.front().map(|entry| entry.index)
    }

    fn push(&mut self, entry: Entry) {
        self.bytes += weight(&entry);
        self.entries.push_back(entry);
        while self.entries.len() > TAIL_ENTRIES_MAX || self.bytes > TAIL_BYTES_MAX {
            let Some(oldest) = self.entries.pop_front() else {
                return;
            };
            self.bytes -= weight(&oldest);
        }
    }

    fn truncate(&mut self, from: u64) {
        while self.entries.back().is_some_and(|entry| entry.index >= from) {
            let newest = self.entries.pop_back().expect("it has just been looked at");
            self.bytes -= weight(&newest);
        }
    }

    fn forget_before(&mut self, first_index: u64) {
        while self
            .entries
            .front()
            .is_some_and(|entry| entry.index < first_index)
        {
            let oldest = self
                .entries
                .pop_front()
                .expect("it has just been looked at");
            self.bytes -= weight(&oldest);
        }
    }

    /// Entries of `[low, high)`, which must lie within the tail.
    fn range(&self, low: u64, high: u64) -> impl Iterator<Item = &Entry> {
        let skip = self
            .first_index()
            .map_or(0, |first| low.saturating_sub(first));
        self.entries
            .iter()
            .skip(usize::try_from(skip).unwrap_or(usize::MAX))
            .take_while(move |entry| entry.index < high)
    }
}

fn weight(entry: &Entry) -> usize {
    entry.compute_size() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{Durability, Identity};
    use raft::Storage as _;
    use redb::backends::InMemoryBackend;

    fn entries(indexes: std::ops::RangeInclusive<u64>, term: u64, size: usize) -> Vec<Entry> {
        let entry = |index| Entry {
            index,
            term,
            data: vec![7; size].into(),
            ..Entry::default()
        };
        indexes.map(entry).collect()
    }

    fn log() -> Log {
        let identity = Identity {
            cluster_id: 1,
            member_id: 1,
            voters: &[1],
            new_store_id: 1,
        };
        let (storage, loaded) = Storage::open(InMemoryBackend::new(), &identity, 1 << 20).unwrap();
        Log::new(storage, &loaded, 10, Offers::new(7, 1 << 20))
    }

    fn append(log: &mut Log, new: Vec<Entry>) {
        let transaction = log.storage.begin(Durability::Deferred).unwrap();
        transaction.tables().append(&new, log.last_index).unwrap();
        transaction.commit().unwrap();
        log.appended(new);
    }

    fn read(log: &Log, low: u64, high: u64, max_bytes: Option<u64>) -> Vec<(u64, u64)> {
        let entries = log
            .entries(low, high, max_bytes, GetEntriesContext::empty(false))
            .unwrap();
        entries
            .iter()
            .map(|entry| (entry.index, entry.term))
            .collect()
    }

    #[test]
    fn entries_come_from_memory_and_store_alike() {
        let mut log = log();
        let size = TAIL_BYTES_MAX / 4;
        append(&mut log, entries(1..=10, 1, size));
        let in_memory = log.tail.first_index().unwrap();
        assert!(
            in_memory > 1 && in_memory < 10,
            "the tail must be cut for this to mean something"
        );
        let all: Vec<_> = (1..=10).map(|index| (index, 1)).collect();
        assert_eq!(read(&log, 1, 11, None), all);
        assert_eq!(read(&log, in_memory - 1, in_memory + 1, None).len(), 2);
        assert_eq!(read(&log, 1, 11, Some(size as u64)).len(), 1);
        assert_eq!(read(&log, 10, 11, Some(0)), [(10, 1)]);
    }

    #[test]
    fn the_tail_keeps_its_limits() {
        let mut log = log();
        for first in (1..20_000).step_by(1000) {
            append(&mut log, entries(first..=first + 999, 1, 10));
        }
        assert_eq!(log.tail.entries.len(), TAIL_ENTRIES_MAX);
        let weight: usize = log.tail.entries.iter().map(weight).sum();
        assert_eq!(log.tail.bytes, weight);
    }

    #[test]
    fn a_conflicting_tail_is_forgotten() {
        let mut log = log();
        append(&mut log, entries(1..=6, 1, 10));
        append(&mut log, entries(4..=5, 3, 10));
        assert_eq!(log.last_index().unwrap(), 5);
        assert_eq!(
            read(&log, 1, 6, None),
            [(1, 1), (2, 1), (3, 1), (4, 3), (5, 3)]
        );
        let terms: Vec<_> = (0..=6).map(|index| log.term(index).ok()).collect();
        assert_eq!(
            terms,
            [Some(0), Some(1), Some(1), Some(1), Some(3), Some(3), None]
        );
    }

    /// Truncates as a commit does, and gives what went.
    fn truncate(log: &mut Log, applied: u64) -> Option<Range<u64>> {
        let (gone, term) = log.truncatable(applied)?;
        let transaction = log.storage.begin(Durability::Deferred).unwrap();
        transaction.tables().truncate(gone.clone(), term).unwrap();
        transaction.commit().unwrap();
        log.truncated(gone.end);
        Some(gone)
    }

    #[test]
    fn the_log_is_truncated_when_enough_has_been_applied_and_keeps_half_of_that() {
        let mut log = log();
        append(&mut log, entries(1..=30, 1, 10));
        assert_eq!(truncate(&mut log, 10), None);
        assert_eq!(truncate(&mut log, 11), Some(1..7));
        assert_eq!(truncate(&mut log, 16), None);
        assert_eq!(truncate(&mut log, 17), Some(7..13));
        assert_eq!(log.first_index().unwrap(), 13);
        assert_eq!(log.tail.first_index(), Some(13));
        assert_eq!(read(&log, 13, 15, None), [(13, 1), (14, 1)]);
    }

    #[test]
    fn what_is_gone_is_compacted_and_only_the_term_before_the_first_entry_is_known() {
        let mut log = log();
        append(&mut log, entries(1..=4, 1, 10));
        append(&mut log, entries(5..=5, 2, 10));
        append(&mut log, entries(6..=6, 3, 10));
        append(&mut log, entries(7..=20, 5, 10));
        assert_eq!(truncate(&mut log, 11), Some(1..7));
        assert_eq!(log.terms, [(6, 3), (7, 5)]);
        let compacted = raft::Error::Store(raft::StorageError::Compacted);
        assert_eq!(
            log.term(0),
            Err(raft::Error::Store(raft::StorageError::Compacted))
        );
        assert_eq!(
            log.term(5),
            Err(raft::Error::Store(raft::StorageError::Compacted))
        );
        assert_eq!((log.term(6), log.term(7)), (Ok(3), Ok(5)));
        let gone = log.entries(6, 8, None, GetEntriesContext::empty(false));
        assert_eq!(gone, Err(compacted));
        assert!(log.take_failure().is_none());
    }

    #[test]
    fn a_log_may_lose_every_entry_and_grow_again() {
        let mut log = log();
        log.snapshot_count = 1;
        append(&mut log, entries(1..=3, 4, 10));
        assert_eq!(truncate(&mut log, 3), Some(1..4));
        assert_eq!((log.first_index(), log.last_index()), (Ok(4), Ok(3)));
        assert_eq!((log.term(3), log.term(2).ok()), (Ok(4), None));
        append(&mut log, entries(4..=5, 6, 10));
        assert_eq!(read(&log, 4, 6, None), [(4, 6), (5, 6)]);
        assert_eq!(log.term(3), Ok(4));
    }

    #[test]
    fn little_goes_at_a_time() {
        let mut log = log();
        let last = 3 * TRUNCATED_ENTRIES_MAX;
        append(&mut log, entries(1..=last, 1, 0));
        let steps: Vec<_> = std::iter::from_fn(|| truncate(&mut log, last)).collect();
        let first = TRUNCATED_ENTRIES_MAX + 1;
        assert_eq!(steps[0], 1..first);
        assert_eq!(steps.last().unwrap().end, last + 1 - 5);
    }

    #[test]
    fn a_failing_store_is_noted_instead_of_told() {
        let mut log = log();
        append(&mut log, entries(1..=3, 1, 10));
        // An entry that the store does not have.
        log.tail.truncate(1);
        log.last_index = 4;
        assert_eq!(read(&log, 1, 5, None), []);
        assert!(matches!(
            log.take_failure(),
            Some(StorageError::Corrupt { .. })
        ));
        assert!(log.take_failure().is_none());
    }
}
