//! Whether the writes that nobody saw and the revisions that nobody is known to have made can belong together: a matching
//! of the two, by what was seen of each key.

use super::{Facts, Known};
use crate::history::Pair;
use crate::model::Keyspace;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Bound;

/// Revisions after `low` and up to `high`, and the unknown writes to one key among them.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    low: i64,
    high: i64,
    unknown: Unknown,
}

/// Unknown writes to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unknown {
    /// Puts, as the versions tell.
    Exactly(i64),
    /// A deletion, and whatever it deleted.
    AtLeastOne,
    /// Whatever was written was deleted, or not seen.
    Any,
}

impl Unknown {
    fn at_least(self) -> i64 {
        match self {
            Unknown::Exactly(count) => count,
            Unknown::AtLeastOne => 1,
            Unknown::Any => 0,
        }
    }
}

impl Known<'_> {
    /// Whether a known call may have deleted the key after the first revision and up to the last.
    fn is_deleted(&self, first: i64, last: i64) -> bool {
        first < last
            && self
                .deletes
                .range((Bound::Excluded(first), Bound::Included(last)))
                .next()
                .is_some()
    }

    /// How many of the revisions after the first and up to the last are puts of known calls.
    fn puts_between(&self, first: i64, last: i64) -> i64 {
        if first >= last {
            return 0;
        }
        let range = (Bound::Excluded(first), Bound::Included(last));
        i64::try_from(self.puts.range(range).count()).unwrap_or(i64::MAX)
    }
}

/// How many revisions ahead writes are matched.
const AHEAD: i64 = 300;

impl Facts<'_> {
    /// Whether the revisions that nobody is known to have made and the writes that nobody saw can be matched: each such
    /// write must have one of these revisions, and each of these revisions must be some write's.
    pub(in crate::search) fn can_match(&self, keys: &Keyspace) -> bool {
        if self.is_blurred {
            return true;
        }
        let from = keys.revision();
        let mut stretches = Vec::new();
        for (name, known) in &self.keys {
            if !self.cut(known, keys.pair(name), from, &mut stretches) {
                return false;
            }
        }
        stretches.sort_unstable_by_key(|stretch| stretch.low);
        // Two one-sided matchings make a two-sided one (Mendelsohn and Dulmage), so each side is looked at alone.
        self.have_revisions(from, &stretches) && self.have_writes(from, &stretches)
    }

    /// Cuts what is known of a key after a revision into stretches of revisions, each with the unknown writes in it; says
    /// whether the key can come to all that was seen of it.
    fn cut(
        &self,
        known: &Known<'_>,
        pair: Option<&Pair>,
        from: i64,
        to: &mut Vec<Stretch>,
    ) -> bool {
        let mut push = |low: i64, high: i64, unknown: Unknown| {
            if high > low {
                to.push(Stretch { low, high, unknown });
            }
        };
        let (mut last, mut low) = (pair, from);
        for (at, seen) in known.seen.range(from..from.saturating_add(AHEAD)) {
            // What was there must have gone before this one came.
            let goes = |low: i64, high: i64| match last {
                Some(_) if !known.is_deleted(low, high) => Unknown::AtLeastOne,
                _ => Unknown::Any,
            };
            match (last, seen) {
                (_, None) => push(low, *at, goes(low, *at)),
                (Some(last), Some(seen)) if last.create_revision == seen.create_revision => {
                    // Nothing was written between the pair that was seen and when that was.
                    let missing = self.missing(known, last, seen);
                    if missing < 0 || seen.mod_revision < last.mod_revision {
                        return false;
                    }
                    push(low, seen.mod_revision, Unknown::Exactly(missing));
                }
                (_, Some(seen)) => {
                    let born = seen.create_revision;
                    if born <= low {
                        return false; // Too late for it.
                    }
                    push(
                        low,
                        born.saturating_sub(1),
                        goes(low, born.saturating_sub(1)),
                    );
                    let is_made = self.writers.contains_key(&born);
                    push(
                        born.saturating_sub(1),
                        born,
                        Unknown::Exactly(i64::from(!is_made)),
                    );
                    let puts = known.puts_between(born, seen.mod_revision);
                    let missing = seen.version.saturating_sub(1).saturating_sub(puts);
                    if missing < 0 {
                        return false;
                    }
                    push(born, seen.mod_revision, Unknown::Exactly(missing));
                }
            }
            (last, low) = (*seen, (*at).max(low));
        }
        push(low, i64::MAX, Unknown::Any);
        true
    }

    /// Whether every write that must have come can have a revision of its own. What must be done first is done first, which
    /// is as good as any other way (Jackson's rule).
    fn have_revisions(&self, from: i64, stretches: &[Stretch]) -> bool {
        let needed = |stretch: &&Stretch| stretch.unknown.at_least() > 0;
        let mut waiting = stretches.iter().filter(needed).peekable();
        let mut open: BinaryHeap<Reverse<(i64, i64)>> = BinaryHeap::new();
        let mut slot = from;
        loop {
            if open.is_empty() {
                let Some(next) = waiting.peek() else {
                    return true;
                };
                slot = slot.max(next.low);
            }
            slot = self.unmade_after(slot);
            while let Some(stretch) = waiting.next_if(|stretch| stretch.low < slot) {
                open.push(Reverse((stretch.high, stretch.unknown.at_least())));
            }
            let Some(Reverse((high, count))) = open.pop() else {
                continue;
            };
            if high < slot {
                return false;
            }
            if count > 1 {
                open.push(Reverse((high, count - 1)));
            }
        }
    }

    /// The first revision after this one that nobody is known to have made.
    fn unmade_after(&self, revision: i64) -> i64 {
        let mut next = revision.saturating_add(1);
        let from = self.writes.partition_point(|made| *made < next);
        for made in &self.writes[from..] {
            if *made != next {
                break;
            }
            next = next.saturating_add(1);
        }
        next
    }

    /// Whether every revision up to the last that is known, and that no known call made, can be some unknown write's.
    fn have_writes(&self, from: i64, stretches: &[Stretch]) -> bool {
        let last = self.writes.last().copied().unwrap_or(from);
        let last = last.min(from.saturating_add(AHEAD));
        let mut waiting = stretches.iter().peekable();
        let mut open: BinaryHeap<Reverse<(i64, i64)>> = BinaryHeap::new();
        let mut any_until = from;
        let mut slot = from;
        loop {
            slot = self.unmade_after(slot);
            if slot > last {
                return true;
            }
            while let Some(stretch) = waiting.next_if(|stretch| stretch.low < slot) {
                match stretch.unknown {
                    Unknown::Exactly(count) if count > 0 => {
                        open.push(Reverse((stretch.high, count)));
                    }
                    Unknown::Exactly(_) => {}
                    Unknown::Any | Unknown::AtLeastOne => {
                        any_until = any_until.max(stretch.high);
                    }
                }
            }
            // Where any write may be, one is; else the one that can wait least.
            if slot <= any_until {
                continue;
            }
            loop {
                let Some(Reverse((high, count))) = open.pop() else {
                    return false;
                };
                if high < slot {
                    continue;
                }
                if count > 1 {
                    open.push(Reverse((high, count - 1)));
                }
                break;
            }
        }
    }
}
