//! A set of keys as sorted, disjoint intervals that do not even touch: the union of what a user was granted. Because
//! neighbours are merged when they are inserted, one lookup answers whether a request is covered, also across grants of
//! different roles. There is no removal: a revoked range may still be granted elsewhere, so the set is built again.

use super::key_range::{KeyRange, UpperBound};
use crate::planted::{Bug, planted};
use bytes::Bytes;
use imbl::OrdMap;

/// A union of key intervals. Clones share structure.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RangeSet {
    /// Start → end. No two intervals overlap or touch.
    intervals: OrdMap<Bytes, UpperBound>,
}

impl RangeSet {
    /// Adds the keys of `range`. Logarithmic, amortised: an interval that is swallowed was inserted once.
    pub(super) fn insert(&mut self, range: KeyRange) {
        if range.is_empty() {
            return;
        }
        let KeyRange { mut start, mut end } = range;
        if let Some((before, before_end)) = self.intervals.get_prev(&start)
            && before_end.reaches(&start)
        {
            if *before_end >= end {
                return;
            }
            start = before.clone();
        }
        while let Some((next, next_end)) = self.intervals.get_next(&start)
            && end.reaches(next)
        {
            let (next, next_end) = (next.clone(), next_end.clone());
            self.intervals.remove(&next);
            end = end.max(next_end);
        }
        self.intervals.insert(start, end);
    }

    /// Whether every key of `range` belongs to the set. A range without keys is covered by nothing: such a request is a
    /// mistake, and refusing it gives nothing away.
    pub(super) fn covers(&self, range: &KeyRange) -> bool {
        if range.is_empty() {
            return false;
        }
        if planted(Bug::RangeMergeEdgesB) {
            return self.covers_ends(range);
        }
        // An interval that holds the start must also hold the rest, since the next one is separated by a gap; and an
        // interval that ends before the start also ends before the range does.
        self.intervals
            .get_prev(&range.start)
            .is_some_and(|(_, end)| *end >= range.end)
    }
}

/// What planted bugs ask.
impl RangeSet {
    /// Whether an interval of the set overlaps `range`, or meets it without a key in between.
    pub(super) fn touches(&self, range: &KeyRange) -> bool {
        let before = self.intervals.get_prev(&range.start);
        let after = self.intervals.get_next(&range.start);
        before.is_some_and(|(_, end)| end.reaches(&range.start))
            || after.is_some_and(|(start, _)| range.end.reaches(start))
    }

    /// Whether the first keys of `range` and the last ones belong to the set, whatever lies between.
    fn covers_ends(&self, range: &KeyRange) -> bool {
        let starts = self.intervals.get_prev(&range.start);
        let mut ends = self.intervals.iter();
        starts.is_some_and(|(_, end)| end.is_above(&range.start))
            && ends.any(|(start, end)| range.end.is_above(start) && *end >= range.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::RawRange;
    use proptest::prelude::*;

    /// Every key of up to two letters of `\x00 a b \xff`. Ends of intervals are drawn from the same keys, so a key
    /// that decides differently from its neighbours cannot hide between them.
    fn keys() -> Vec<Bytes> {
        let letters = [0u8, b'a', b'b', 0xff];
        let mut keys: Vec<Vec<u8>> = letters.iter().map(|letter| vec![*letter]).collect();
        for first in letters {
            keys.extend(letters.iter().map(|second| vec![first, *second]));
        }
        keys.sort();
        keys.into_iter().map(Bytes::from).collect()
    }

    /// Every key, with every end: none, open, and each key, inverted ones included.
    fn raw_ranges() -> Vec<RawRange> {
        let mut ends = keys();
        ends.push(Bytes::new());
        let range = |key: &Bytes, end: &Bytes| RawRange {
            key: key.clone(),
            range_end: end.clone(),
        };
        keys()
            .iter()
            .flat_map(|key| ends.iter().map(move |end| range(key, end)))
            .collect()
    }

    /// Probes: a probe holds no key of its own between its neighbours, so membership is constant between them. Three
    /// letters reach behind every end that two letters can name.
    fn probes() -> Vec<Bytes> {
        let mut probes = keys();
        for key in keys() {
            probes.push(Bytes::from([&key[..], &[0]].concat()));
            probes.push(Bytes::from([&key[..], &[0, 0]].concat()));
            probes.push(Bytes::from([&key[..], &[0xff]].concat()));
        }
        probes.sort();
        probes.dedup();
        probes
    }

    /// What a wire range means, said a second time without intervals.
    fn names(range: &RawRange, key: &Bytes) -> bool {
        match &range.range_end[..] {
            [] => *key == range.key,
            [0] => *key >= range.key,
            end => *key >= range.key && key[..] < *end,
        }
    }

    fn set_of(grants: &[RawRange]) -> RangeSet {
        let mut set = RangeSet::default();
        for grant in grants {
            set.insert(grant.interval());
        }
        set
    }

    fn assert_canonical(set: &RangeSet) {
        let intervals: Vec<_> = set.intervals.iter().collect();
        for (start, end) in &intervals {
            assert!(end.is_above(start), "an empty interval in {set:?}");
        }
        for pair in intervals.windows(2) {
            assert!(!pair[0].1.reaches(pair[1].0), "neighbours touch in {set:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn covers_is_the_conjunction_over_all_keys(
            grants in proptest::collection::vec(proptest::sample::select(raw_ranges()), 0..6),
        ) {
            let set = set_of(&grants);
            assert_canonical(&set);
            let probes = probes();
            let granted: Vec<bool> =
                probes.iter().map(|key| grants.iter().any(|grant| names(grant, key))).collect();
            for query in raw_ranges() {
                let mut inside = probes.iter().zip(&granted).filter(|(key, _)| names(&query, key)).peekable();
                let expected = inside.peek().is_some() && inside.all(|(_, granted)| *granted);
                prop_assert_eq!(set.covers(&query.interval()), expected, "{:?} in {:?}", query, set);
            }
        }

        #[test]
        fn the_order_of_grants_does_not_matter(
            grants in proptest::collection::vec(proptest::sample::select(raw_ranges()), 0..8),
        ) {
            let mut reversed = grants.clone();
            reversed.reverse();
            prop_assert_eq!(set_of(&grants), set_of(&reversed));
        }
    }

    #[track_caller]
    fn check(
        grants: &[(&'static str, &'static str)],
        query: (&'static str, &'static str),
        covered: bool,
    ) {
        let raw = |(key, end): (&'static str, &'static str)| RawRange {
            key: key.into(),
            range_end: end.into(),
        };
        let grants: Vec<RawRange> = grants.iter().copied().map(raw).collect();
        assert_eq!(set_of(&grants).covers(&raw(query).interval()), covered);
    }

    #[test]
    fn boundaries() {
        check(&[("a", "c")], ("a", ""), true);
        check(&[("a", "c")], ("c", ""), false);
        check(&[("a", "c")], ("b", "c"), true);
        check(&[("a", "c")], ("b", "c\0"), false);
        check(&[("a", "c"), ("c", "e")], ("a", "e"), true);
        check(&[("a", "c"), ("c\0", "e")], ("a", "e"), false);
        check(&[("a", "c"), ("c", ""), ("c\0", "e")], ("a", "e"), true);
        check(&[("a", "b"), ("c", "d")], ("a", "d"), false);
        check(&[("a", "")], ("a", "a\0"), true);
        check(&[("a", "")], ("a", "\0"), false);
        check(&[("a", "\0")], ("b", "\0"), true);
        check(&[("b", "\0")], ("a", "\0"), false);
        check(&[("\0", "\0")], ("\0", "\0"), true);
        check(&[("a", "\0")], ("b", "a"), false);
        check(&[], ("a", ""), false);
    }
}
