//! The multi-version key index: which versions a key has and where their values lie. It holds no values, decides
//! nothing about permissions, and is a pure function of the records that were written.

use super::super::command::RawRange;
use super::super::key_range::KeyRange;
use super::super::record::{KvRecord, KvRevision};
use bytes::Bytes;
use imbl::OrdMap;
use std::collections::BTreeMap;
use std::ops::Bound;

/// One live version of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::state) struct KeyMeta {
    /// Where the version, and so its value, lies.
    pub(in crate::state) at: KvRevision,
    /// Revision of the put that created the key.
    pub(in crate::state) create_revision: i64,
    /// Puts since creation.
    pub(in crate::state) version: i64,
    /// Attached lease, 0 for none.
    pub(in crate::state) lease: i64,
}

/// One version of one key, as it is kept after newer ones have been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    create_revision: i64,
    version: i64,
    lease: i64,
    tombstone: bool,
}

impl Version {
    fn live(self, at: KvRevision) -> Option<KeyMeta> {
        let Version {
            create_revision,
            version,
            lease,
            tombstone,
        } = self;
        (!tombstone).then_some(KeyMeta {
            at,
            create_revision,
            version,
            lease,
        })
    }
}

/// At which revision to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::state) enum ReadAt {
    /// At everything written so far, this entry's own changes included.
    Newest,
    /// At the end of this revision.
    Revision(i64),
}

/// Every version of every key. Clones share structure.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::state) struct KvIndex {
    /// Newest complete revision; 1 for an empty store.
    pub(in crate::state) revision: i64,
    /// Revisions below this one are gone; -1 as long as nothing was compacted.
    pub(in crate::state) compact_revision: i64,
    /// Live keys at the newest revision: derived from `history`, so that reads of the present cost one lookup.
    current: OrdMap<Bytes, KeyMeta>,
    /// By key first, so that a read of the past seeks each key's last version in logarithmic time.
    history: OrdMap<(Bytes, KvRevision), Version>,
}

impl KvIndex {
    /// Builds the index from stored records, whose values are not looked at.
    pub(in crate::state) fn restore(
        revision: i64,
        compact_revision: i64,
        records: BTreeMap<KvRevision, KvRecord>,
    ) -> KvIndex {
        let mut index = KvIndex {
            revision,
            compact_revision,
            current: OrdMap::new(),
            history: OrdMap::new(),
        };
        for (at, record) in &records {
            index.record(*at, record);
        }
        index
    }

    /// The records in order of revision, without values.
    pub(in crate::state) fn records(&self) -> BTreeMap<KvRevision, KvRecord> {
        let record = |((key, at), version): (&(Bytes, KvRevision), &Version)| {
            let Version {
                create_revision,
                version,
                lease,
                tombstone,
            } = *version;
            let (key, value) = (key.clone(), Bytes::new());
            (
                *at,
                KvRecord {
                    key,
                    value,
                    create_revision,
                    version,
                    lease,
                    tombstone,
                },
            )
        };
        self.history.iter().map(record).collect()
    }

    /// Takes note of one version. The only place where the index changes; versions arrive in order of revision.
    pub(in crate::state) fn record(&mut self, at: KvRevision, record: &KvRecord) {
        let KvRecord {
            key,
            value: _,
            create_revision,
            version,
            lease,
            tombstone,
        } = record;
        let version = Version {
            create_revision: *create_revision,
            version: *version,
            lease: *lease,
            tombstone: *tombstone,
        };
        // A key that comes with a request is a slice of the whole message; keeping it would keep the value in memory.
        let key = match self.current.get_key_value(key) {
            Some((known, _)) => known.clone(),
            None => Bytes::copy_from_slice(key),
        };
        match version.live(at) {
            Some(meta) => self.current.insert(key.clone(), meta),
            None => self.current.remove(&key),
        };
        self.history.insert((key, at), version);
    }

    /// Takes away what nobody can read once revisions below this one are gone: of each key, everything before its last
    /// version at the revision, and that as well if it is a tombstone. Says what it took, in order of revision.
    pub(in crate::state) fn forget_before(&mut self, revision: i64) -> Vec<KvRevision> {
        let mut gone = Vec::new();
        let mut versions = self.history.iter().peekable();
        while let Some(((key, at), version)) = versions.next() {
            if at.main > revision {
                continue;
            }
            let is_last = versions
                .peek()
                .is_none_or(|((next, later), _)| next != key || later.main > revision);
            if !is_last || version.tombstone {
                gone.push((key.clone(), *at));
            }
        }
        for place in &gone {
            self.history.remove(place);
        }
        self.compact_revision = revision;
        let mut revisions: Vec<KvRevision> = gone.into_iter().map(|(_, at)| at).collect();
        revisions.sort_unstable();
        revisions
    }

    /// The key's live version.
    pub(in crate::state) fn newest(&self, key: &Bytes) -> Option<KeyMeta> {
        self.current.get(key).copied()
    }

    /// Calls `visit` with the keys of `range` that are alive at `read`, in key order.
    pub(in crate::state) fn visit(
        &self,
        range: &RawRange,
        read: ReadAt,
        mut visit: impl FnMut(&Bytes, KeyMeta),
    ) {
        match read {
            ReadAt::Newest if range.is_single() => {
                if let Some(meta) = self.newest(&range.key) {
                    visit(&range.key, meta);
                }
            }
            ReadAt::Newest => {
                let interval = range.interval();
                let Some(bounds) = interval.bounds() else {
                    return;
                };
                for (key, meta) in self.current.range::<_, Bytes>(bounds) {
                    visit(key, *meta);
                }
            }
            ReadAt::Revision(revision) => self.visit_past(&range.interval(), revision, visit),
        }
    }

    fn visit_past(&self, range: &KeyRange, revision: i64, mut visit: impl FnMut(&Bytes, KeyMeta)) {
        if range.is_empty() {
            return;
        }
        let mut seek = Bound::Included((range.start.clone(), KvRevision { main: 0, sub: 0 }));
        while let Some((key, _)) = self
            .history_key_from(seek)
            .filter(|(key, _)| range.end.is_above(key))
        {
            let last = (
                key.clone(),
                KvRevision {
                    main: revision,
                    sub: i64::MAX,
                },
            );
            if let Some(((found, at), version)) = self.history.get_prev(&last)
                && found == key
                && let Some(meta) = version.live(*at)
            {
                visit(key, meta);
            }
            seek = Bound::Excluded((
                key.clone(),
                KvRevision {
                    main: i64::MAX,
                    sub: i64::MAX,
                },
            ));
        }
    }

    fn history_key_from(&self, seek: Bound<(Bytes, KvRevision)>) -> Option<(&Bytes, KvRevision)> {
        let mut versions = self
            .history
            .range::<_, (Bytes, KvRevision)>((seek, Bound::Unbounded));
        versions.next().map(|((key, at), _)| (key, *at))
    }
}
