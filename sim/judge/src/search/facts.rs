//! What answers tell of keys at revisions other than the one at hand. A pair names the revision that wrote it, so one read
//! tells where a write stands whose own answer was lost, and where nothing can have been written to a key. All of it
//! follows from the answers of calls that must have a place; a search that heeds it meets contradictions early.

mod matching;

use super::calls::{Call, Told};
use super::problem::At;
use crate::history::{Op, Pair, Reply};
use crate::model::{Keyspace, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// What is known of one key.
#[derive(Debug, Default)]
struct Known<'h> {
    /// By revision: the pair that a read found in the state of that revision, or none.
    seen: BTreeMap<i64, Option<&'h Pair>>,
    /// Revisions that puts of required calls made.
    puts: BTreeSet<i64>,
    /// The same of deletions that reach the key.
    deletes: BTreeSet<i64>,
}

/// What is known of all keys.
#[derive(Debug, Default)]
pub(super) struct Facts<'h> {
    keys: BTreeMap<&'h str, Known<'h>>,
    /// Revisions that required calls made, in order.
    writes: Vec<i64>,
    /// Those calls, by revision.
    writers: BTreeMap<i64, usize>,
    /// Whether a call of unknown outcome may write several keys at once, so that revisions and writes are not one to one.
    is_blurred: bool,
    /// By revision: the pairs that it wrote, as far as they were seen.
    wrote: BTreeMap<i64, BTreeMap<&'h str, &'h Pair>>,
}

/// How much an unknown write is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Need {
    /// What was seen at this revision shows that something like it came before.
    By(i64),
    /// Whatever it does, nobody saw.
    Nobody,
    /// Another one would have to take it back.
    Harm,
}

/// A pair that somebody saw and nobody can have written.
#[derive(Clone, Debug)]
pub(super) struct Orphan {
    pub(super) revision: i64,
    pub(super) key: String,
}

impl<'h> Facts<'h> {
    /// Collects what the answers of the required calls tell; `at` says where each stands.
    pub(super) fn of(
        calls: &[Call<'h>],
        required: &[usize],
        optional: &[usize],
        at: &[Option<At>],
    ) -> Facts<'h> {
        let mut facts = Facts::default();
        for call in calls {
            facts.name_keys(call.op);
        }
        for id in required {
            if let (Told::Done(reply), Some(at)) = (calls[*id].told, at[*id]) {
                facts.take(calls[*id].op, reply, at);
                if at.writes {
                    facts.writes.push(at.revision.saturating_add(1));
                    facts.writers.insert(at.revision.saturating_add(1), *id);
                }
            }
        }
        facts.writes.sort_unstable();
        facts.is_blurred = optional.iter().any(|id| writes_several(calls[*id].op));
        let seen = facts.keys.iter().flat_map(|(key, known)| {
            let pairs = known.seen.values().flatten();
            pairs.map(move |pair| (pair.mod_revision, *key, *pair))
        });
        for (revision, key, pair) in seen {
            facts.wrote.entry(revision).or_default().insert(key, pair);
        }
        facts
    }

    fn name_keys(&mut self, op: &'h Op) {
        match op {
            Op::Put { key, .. } => {
                self.keys.entry(key).or_default();
            }
            Op::Txn {
                success, failure, ..
            } => {
                for op in success.iter().chain(failure) {
                    self.name_keys(op);
                }
            }
            _ => {}
        }
    }

    fn take(&mut self, op: &'h Op, reply: &'h Reply, at: At) {
        for pair in &reply.kvs {
            self.keys.entry(&pair.key).or_default();
        }
        match op {
            Op::Get {
                key,
                range_end,
                limit,
                revision,
                count_only,
                ..
            } => {
                let whole = !count_only && (*limit == 0 || reply.kvs.len() as i64 == reply.count);
                if whole {
                    let then = if *revision > 0 {
                        *revision
                    } else {
                        at.revision
                    };
                    self.see(key, range_end, &reply.kvs, then);
                }
            }
            Op::Put { key, prev_kv, .. } => {
                if *prev_kv {
                    self.see(key, "", &reply.kvs, at.revision);
                }
                self.note_puts(op, reply, at.revision.saturating_add(1));
            }
            Op::Delete {
                key,
                range_end,
                prev_kv,
            } => {
                if *prev_kv || reply.count == 0 {
                    self.see(key, range_end, &reply.kvs, at.revision);
                }
                self.note_deletes(op, at);
            }
            Op::Txn {
                success, failure, ..
            } => {
                let branch = if reply.succeeded == Some(true) {
                    success
                } else {
                    failure
                };
                let each = branch.iter().zip(&reply.responses);
                // What reads after a write sees that.
                for (op, reply) in each.take_while(|(op, _)| matches!(op, Op::Get { .. })) {
                    self.take(op, reply, at);
                }
                if at.writes {
                    self.note_puts(op, reply, at.revision.saturating_add(1));
                    self.note_deletes(op, at);
                }
            }
            _ => {}
        }
    }

    fn note_puts(&mut self, op: &'h Op, reply: &Reply, revision: i64) {
        match op {
            Op::Put { key, .. } => {
                self.keys.entry(key).or_default().puts.insert(revision);
            }
            Op::Txn {
                success, failure, ..
            } => {
                let succeeded = reply.succeeded == Some(true);
                let branch = if succeeded { success } else { failure };
                for (op, reply) in branch.iter().zip(&reply.responses) {
                    self.note_puts(op, reply, revision);
                }
            }
            _ => {}
        }
    }

    /// Takes note that the call may have deleted what its ranges hold.
    fn note_deletes(&mut self, op: &Op, at: At) {
        match op {
            Op::Delete { key, range_end, .. } if at.writes => {
                let span = Span::new(key, range_end);
                let from = (Bound::Included(key.as_str()), Bound::Unbounded);
                for (name, known) in self.keys.range_mut::<str, _>(from) {
                    if span.ends_before(name) {
                        break;
                    }
                    known.deletes.insert(at.revision.saturating_add(1));
                }
            }
            Op::Txn {
                success, failure, ..
            } => {
                for op in success.iter().chain(failure) {
                    self.note_deletes(op, at);
                }
            }
            _ => {}
        }
    }

    /// Takes over what is now known of calls of unknown outcome: which revision each made.
    pub(super) fn adopt(&mut self, calls: &[Call<'h>], pinned: &BTreeMap<usize, i64>) {
        for (id, revision) in pinned {
            self.writes.push(*revision);
            self.writers.insert(*revision, *id);
            if let Op::Put { key, .. } = calls[*id].op {
                self.keys.entry(key).or_default().puts.insert(*revision);
            }
        }
        self.writes.sort_unstable();
    }

    /// Takes note of the content of a range in the state of a revision.
    fn see(&mut self, key: &str, range_end: &str, pairs: &'h [Pair], revision: i64) {
        let span = Span::new(key, range_end);
        for (name, known) in self
            .keys
            .range_mut::<str, _>((Bound::Included(key), Bound::Unbounded))
        {
            if span.ends_before(name) {
                break;
            }
            let found = pairs.iter().find(|pair| pair.key == *name);
            known.seen.insert(revision, found);
        }
    }

    /// Whether the keys that `op` wrote fit to everything that was seen later: `after` is the state of the revision that
    /// it made.
    pub(super) fn allow(&self, op: &Op, after: &Keyspace) -> bool {
        let revision = after.revision();
        let made = self.wrote.get(&revision).into_iter().flatten();
        for (key, pair) in made {
            if after.pair(key) != Some(*pair) {
                return false;
            }
        }
        let mut fits = true;
        for_each_written(op, &mut |key, range_end| {
            let span = Span::new(key, range_end);
            for (name, known) in self
                .keys
                .range::<str, _>((Bound::Included(key), Bound::Unbounded))
            {
                if span.ends_before(name) {
                    break;
                }
                let written = after.pair(name);
                let is_new = written.is_none_or(|pair| pair.mod_revision == revision);
                fits &= !is_new || self.fits(known, written, revision);
            }
        });
        fits
    }

    /// Whether a key that the revision wrote can come to what was seen of it next.
    fn fits(&self, known: &Known<'_>, written: Option<&Pair>, revision: i64) -> bool {
        let Some((_, Some(seen))) = known.seen.range(revision..).next() else {
            return true;
        };
        if seen.mod_revision <= revision || seen.create_revision > revision {
            return seen.mod_revision >= revision
                && (seen.mod_revision > revision || written == Some(*seen));
        }
        let Some(written) = written else {
            return false; // Deleted here, and yet of an older creation.
        };
        let missing = self.missing(known, written, seen);
        written.create_revision == seen.create_revision
            && missing >= 0
            && missing <= self.unmade(revision, seen.mod_revision)
    }

    /// Puts of unknown calls between a pair and what was seen of its key next.
    fn missing(&self, known: &Known<'_>, pair: &Pair, seen: &Pair) -> i64 {
        if seen.mod_revision <= pair.mod_revision {
            return 0;
        }
        let (from, to) = (
            Bound::Excluded(pair.mod_revision),
            Bound::Included(seen.mod_revision),
        );
        let by_known = i64::try_from(known.puts.range((from, to)).count()).unwrap_or(i64::MAX);
        seen.version
            .saturating_sub(pair.version)
            .saturating_sub(by_known)
    }

    /// Revisions after the first and up to the last that no required call made.
    fn unmade(&self, first: i64, last: i64) -> i64 {
        let upto = |revision: i64| self.writes.partition_point(|made| *made <= revision);
        let made = upto(last) - upto(first);
        last.saturating_sub(first)
            .saturating_sub(i64::try_from(made).unwrap_or(0))
    }

    /// How much an unknown write is needed in this state; less is sooner.
    pub(super) fn need(&self, op: &Op, state: &Keyspace) -> Need {
        let (Op::Put { key, .. } | Op::Delete { key, .. }) = op else {
            return Need::Nobody;
        };
        let Some(known) = self.keys.get(key.as_str()) else {
            return Need::Nobody;
        };
        let Some((at, seen)) = known.seen.range(state.revision()..).next() else {
            return Need::Nobody;
        };
        let pair = state.pair(key);
        let is_put = matches!(op, Op::Put { .. });
        match (pair, seen) {
            (Some(pair), Some(seen)) if pair.create_revision == seen.create_revision => {
                if is_put && self.missing(known, pair, seen) > 0 {
                    return Need::By(seen.mod_revision);
                }
                Need::Nobody
            }
            // What is there now must go before that.
            (Some(_), _) if !is_put => Need::By(*at),
            // What comes now must go again.
            (None, _) if is_put => Need::Harm,
            _ => Need::Nobody,
        }
    }

    /// What is known of calls of unknown outcome, because somebody saw the pair that one of them must have written: the
    /// revision that it made, if only one can have.
    ///
    /// # Errors
    /// A pair that nobody can have written.
    pub(super) fn pin(
        &self,
        calls: &[Call<'_>],
        optional: &[usize],
    ) -> Result<BTreeMap<usize, i64>, Orphan> {
        let mut pinned = BTreeMap::new();
        for (revision, pairs) in &self.wrote {
            let can_have = |id: &usize| {
                let op = calls[*id].op;
                pairs
                    .iter()
                    .all(|(key, pair)| may_write(op, key, &pair.value))
            };
            let orphan = Orphan {
                revision: *revision,
                key: pairs.keys().next().copied().unwrap_or_default().to_owned(),
            };
            if let Some(writer) = self.writers.get(revision) {
                if !can_have(writer) {
                    return Err(orphan);
                }
                continue;
            }
            let mut able = optional.iter().copied().filter(can_have);
            match (able.next(), able.next()) {
                (None, _) => return Err(orphan),
                // Which branch a transaction took, and so what else it wrote, nobody knows.
                (Some(id), None) if matches!(calls[id].op, Op::Put { .. }) => {
                    if pinned.insert(id, *revision).is_some() {
                        return Err(orphan); // It cannot have written both.
                    }
                }
                (Some(_), _) => {}
            }
        }
        Ok(pinned)
    }
}

/// Calls back with every range that the call may write.
fn for_each_written(op: &Op, each: &mut dyn FnMut(&str, &str)) {
    match op {
        Op::Put { key, .. } => each(key, ""),
        Op::Delete { key, range_end, .. } => each(key, range_end),
        Op::Txn {
            success, failure, ..
        } => {
            for op in success.iter().chain(failure) {
                for_each_written(op, each);
            }
        }
        _ => {}
    }
}

/// Whether the call can write more than one key.
fn writes_several(op: &Op) -> bool {
    let mut written = BTreeSet::new();
    let mut is_range = false;
    for_each_written(op, &mut |key, range_end| {
        is_range |= !range_end.is_empty();
        written.insert(key.to_owned());
    });
    is_range || written.len() > 1
}

/// Whether the call can write this value to this key.
fn may_write(op: &Op, key: &str, value: &str) -> bool {
    match op {
        Op::Put {
            key: to,
            value: what,
            ..
        } => to == key && what == value,
        Op::Txn {
            success, failure, ..
        } => success
            .iter()
            .chain(failure)
            .any(|op| may_write(op, key, value)),
        _ => false,
    }
}
