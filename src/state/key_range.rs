//! What a key and a range end mean: [`KeyRange`], the half-open interval that grants, checks and reads all share, so
//! that a request is never decided on one range and carried out on another. It knows nothing of users or of data.

use super::command::RawRange;
use bytes::Bytes;
use std::ops::Bound;

/// Where an interval of keys ends. Ordered; [`UpperBound::Open`] lies behind every key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum UpperBound {
    /// Right before this key.
    Before(Bytes),
    /// Nowhere: every key from the start on belongs to it.
    Open,
}

impl UpperBound {
    /// Whether `key` lies before this end.
    pub(super) fn is_above(&self, key: &Bytes) -> bool {
        match self {
            UpperBound::Before(end) => key < end,
            UpperBound::Open => true,
        }
    }

    /// Whether an interval that starts at `start` leaves no key between this end and itself.
    pub(super) fn reaches(&self, start: &Bytes) -> bool {
        match self {
            UpperBound::Before(end) => start <= end,
            UpperBound::Open => true,
        }
    }
}

/// The keys from `start` (inclusive) to `end` (exclusive); no keys at all if the end does not lie above the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyRange {
    /// The first key.
    pub(super) start: Bytes,
    /// Where it ends.
    pub(super) end: UpperBound,
}

impl KeyRange {
    /// The interval of one key. No key lies between `key` and `key` followed by a zero byte, so the interval holds
    /// exactly that key and needs no case of its own.
    pub(super) fn single(key: &Bytes) -> KeyRange {
        let mut successor = Vec::with_capacity(key.len() + 1);
        successor.extend_from_slice(key);
        successor.push(0);
        KeyRange {
            start: key.clone(),
            end: UpperBound::Before(Bytes::from(successor)),
        }
    }

    /// The same interval with the key that it ends before.
    pub(super) fn with_its_end(self) -> KeyRange {
        let end = match self.end {
            UpperBound::Before(end) => KeyRange::single(&end).end,
            UpperBound::Open => UpperBound::Open,
        };
        KeyRange {
            start: self.start,
            end,
        }
    }

    /// Whether no key belongs to it.
    pub(super) fn is_empty(&self) -> bool {
        !self.end.is_above(&self.start)
    }

    /// The same interval as bounds of a map's keys; `None` if it is empty, which maps would panic on.
    pub(super) fn bounds(&self) -> Option<(Bound<&Bytes>, Bound<&Bytes>)> {
        if self.is_empty() {
            return None;
        }
        let end = match &self.end {
            UpperBound::Before(end) => Bound::Excluded(end),
            UpperBound::Open => Bound::Unbounded,
        };
        Some((Bound::Included(&self.start), end))
    }
}

impl RawRange {
    /// The interval that it names. An empty end is the key alone, one zero byte is no end (etcd's
    /// `server/auth/range_perm_cache.go`).
    pub(super) fn interval(&self) -> KeyRange {
        match &self.range_end[..] {
            [] => KeyRange::single(&self.key),
            [0] => KeyRange {
                start: self.key.clone(),
                end: UpperBound::Open,
            },
            _ => KeyRange {
                start: self.key.clone(),
                end: UpperBound::Before(self.range_end.clone()),
            },
        }
    }

    /// Whether it names one key, which is then looked up instead of searched for.
    pub(super) fn is_single(&self) -> bool {
        self.range_end.is_empty()
    }

    /// The interval that a grant of it gives; `None` for an empty key and for a range that holds no key, which etcd
    /// refuses since 3.5.8.
    pub(super) fn granted(&self) -> Option<KeyRange> {
        let interval = self.interval();
        (!self.key.is_empty() && !interval.is_empty()).then_some(interval)
    }
}
