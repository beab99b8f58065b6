//! What is to be put in order: which calls must have a place, which may have one, and between which events.
//!
//! An answer's key-value revision says where its call stands among the others that have one. That moves the ends of the
//! calls' intervals towards each other, and often shows without any search that there is no order.

use super::calls::{Call, NEVER, Told};
use super::facts::{Facts, Orphan};
use super::forced::Forced;
use super::state::Scope;
use crate::history::{Op, Reply};
use std::collections::BTreeMap;

/// The key-value revision that a call's answer tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    /// Revision of the state in which it was decided.
    pub(super) revision: i64,
    /// Whether it made the next one.
    pub(super) writes: bool,
}

/// What is known before any search.
#[derive(Debug)]
pub(super) struct Ground<'c, 'h> {
    pub(super) calls: &'c [Call<'h>],
    /// Calls that must have a place, in the order in which they were sent.
    required: Vec<usize>,
    /// Calls that may have one, in the same order.
    optional: Vec<usize>,
    /// Event after which each call may stand.
    sent: Vec<usize>,
    /// Event before which it must stand.
    ended: Vec<usize>,
    /// Place of each required call among the revisions, where it is known.
    at: Vec<Option<At>>,
    facts: Facts<'h>,
    /// Calls of unknown outcome that must have taken effect.
    certain: Vec<bool>,
}

/// A part of a history to be ordered.
#[derive(Debug)]
pub(super) struct Problem<'g, 'c, 'h> {
    pub(super) ground: &'g Ground<'c, 'h>,
    pub(super) scope: Scope<'g, 'h>,
    /// Calls that must have a place, the one that may come first first.
    pub(super) required: Vec<usize>,
    /// Calls that may have one, in the order in which they were sent.
    pub(super) optional: Vec<usize>,
    /// The optional call, sent before this one, that is exactly like it.
    pub(super) twin: Vec<Option<usize>>,
}

/// Why no order can exist, found without a search.
#[derive(Clone, Debug)]
pub(super) enum Contradiction {
    /// Two calls made the same revision.
    SameRevision { first: usize, second: usize },
    /// The first call stands before the second by the revisions, but the second had ended before the first was sent.
    Backwards { first: usize, second: usize },
    /// A call saw a pair that nobody can have written.
    Orphan {
        reader: usize,
        key: String,
        revision: i64,
    },
}

impl<'c, 'h> Ground<'c, 'h> {
    /// Makes calls for which `is_kept` holds required; of the others, those that may have had an effect are optional.
    ///
    /// # Errors
    /// What contradicts itself.
    pub(super) fn new(
        calls: &'c [Call<'h>],
        is_kept: impl Fn(usize) -> bool,
    ) -> Result<Ground<'c, 'h>, Contradiction> {
        let mut ground = Ground {
            calls,
            required: Vec::new(),
            optional: Vec::new(),
            sent: calls.iter().map(|call| call.sent).collect(),
            ended: calls.iter().map(|call| call.ended).collect(),
            at: vec![None; calls.len()],
            facts: Facts::default(),
            certain: vec![false; calls.len()],
        };
        for (id, call) in calls.iter().enumerate() {
            match call.told {
                _ if call.is_local() => {}
                Told::Done(reply) if is_kept(id) => {
                    ground.at[id] = at(call.op, reply);
                    ground.required.push(id);
                }
                Told::Refused(_) if is_kept(id) => ground.required.push(id),
                Told::Done(_) | Told::Unknown if can_matter(call) => {
                    ground.ended[id] = NEVER;
                    ground.optional.push(id);
                }
                _ => {}
            }
        }
        ground.facts = Facts::of(calls, &ground.required, &ground.optional, &ground.at);
        ground.promote()?;
        ground.narrow()?;
        Ok(ground)
    }

    /// Makes required what must have happened, because somebody saw what only that call can have written.
    fn promote(&mut self) -> Result<(), Contradiction> {
        let pinned = self.facts.pin(self.calls, &self.optional);
        let pinned = pinned.map_err(|orphan| Contradiction::Orphan {
            reader: self.reader_of(&orphan),
            key: orphan.key,
            revision: orphan.revision,
        })?;
        for (id, revision) in &pinned {
            self.at[*id] = Some(At {
                revision: revision.saturating_sub(1),
                writes: true,
            });
        }
        self.facts.adopt(self.calls, &pinned);
        for id in pinned.into_keys() {
            self.require(id);
        }
        Ok(())
    }

    /// A required call whose answer shows the pair.
    fn reader_of(&self, orphan: &Orphan) -> usize {
        let shows = |id: &&usize| match self.calls[**id].told {
            Told::Done(reply) => reply
                .kvs
                .iter()
                .any(|pair| pair.key == orphan.key && pair.mod_revision == orphan.revision),
            _ => false,
        };
        let reader = self.required.iter().find(shows);
        reader.copied().unwrap_or_default()
    }

    fn require(&mut self, id: usize) {
        self.certain[id] = true;
        self.optional.retain(|other| *other != id);
        self.required.push(id);
        self.required.sort_unstable();
    }

    /// Makes required what must have happened, and by when; leaves out what cannot have.
    pub(super) fn adopt(&mut self, forced: &Forced) {
        self.optional.retain(|id| !forced.never.contains(id));
        for (id, by) in &forced.by {
            self.ended[*id] = *by;
            self.require(*id);
        }
    }

    /// Event before which a call must stand.
    pub(super) fn ended(&self, id: usize) -> usize {
        self.ended[id]
    }

    /// Moves the ends of kept calls towards each other, as the revisions tell.
    fn narrow(&mut self) -> Result<(), Contradiction> {
        let mut ranked: Vec<(i64, bool, usize)> = Vec::new();
        for (id, at) in self.at.iter().enumerate() {
            if let Some(at) = at {
                ranked.push((at.revision, at.writes, id));
            }
        }
        ranked.sort_unstable();
        // At equal rank calls may stand in any order, unless they write.
        let groups: Vec<&[(i64, bool, usize)]> = ranked
            .chunk_by(|one, other| (one.0, one.1) == (other.0, other.1))
            .collect();
        for group in &groups {
            if let [(_, true, first), (_, true, second), ..] = group {
                let (first, second) = (*first, *second);
                return Err(Contradiction::SameRevision { first, second });
            }
        }
        let mut latest: Option<usize> = None;
        for group in &groups {
            for (_, _, id) in *group {
                if let Some(latest) = latest {
                    let sent = self.calls[latest].sent;
                    if self.ended[*id] < sent {
                        let (first, second) = (latest, *id);
                        return Err(Contradiction::Backwards { first, second });
                    }
                    self.sent[*id] = self.sent[*id].max(sent);
                }
            }
            let of_group = group.iter().map(|(_, _, id)| *id);
            latest = latest
                .into_iter()
                .chain(of_group)
                .max_by_key(|id| self.calls[*id].sent);
        }
        let mut earliest = NEVER;
        for group in groups.iter().rev() {
            for (_, _, id) in *group {
                self.ended[*id] = self.ended[*id].min(earliest);
            }
            let of_group = group.iter().map(|(_, _, id)| self.ended[*id]);
            earliest = of_group.fold(earliest, usize::min);
        }
        Ok(())
    }
}

impl<'g, 'c, 'h> Problem<'g, 'c, 'h> {
    /// The part of the ground that the scope covers.
    pub(super) fn new(ground: &'g Ground<'c, 'h>, scope: Scope<'g, 'h>) -> Problem<'g, 'c, 'h> {
        let is_within = |id: &&usize| match scope {
            Scope::Whole => true,
            Scope::Part(slice) => slice.concerns(&ground.calls[**id], ground.certain[**id]),
        };
        let mut problem = Problem {
            ground,
            scope,
            required: ground.required.iter().filter(is_within).copied().collect(),
            optional: ground.optional.iter().filter(is_within).copied().collect(),
            twin: vec![None; ground.calls.len()],
        };
        problem.required.sort_by_key(|id| (ground.sent[*id], *id));
        problem.find_twins();
        problem
    }

    /// Whether the call must have taken effect although its answer is lost.
    pub(super) fn is_certain(&self, id: usize) -> bool {
        self.ground.certain[id]
    }

    /// What is left of it after the calls that are placed, as far as the calls that end by an event. What ends later may
    /// still come before, or not.
    pub(super) fn rest(&self, placed: &[bool], until: usize) -> Problem<'g, 'c, 'h> {
        let waiting = |ids: &[usize]| -> Vec<usize> {
            let ids = ids.iter().copied().filter(|id| !placed[*id]);
            ids.filter(|id| self.sent(*id) < until).collect()
        };
        let (required, late): (Vec<usize>, Vec<usize>) = waiting(&self.required)
            .into_iter()
            .partition(|id| self.ended(*id) <= until);
        let mut optional = waiting(&self.optional);
        optional.extend(late);
        optional.sort_by_key(|id| (self.sent(*id), *id));
        Problem {
            ground: self.ground,
            scope: self.scope,
            required,
            optional,
            twin: self.twin.clone(),
        }
    }

    /// Whether the call must have a place.
    pub(super) fn is_required(&self, id: usize) -> bool {
        self.required.contains(&id)
    }

    /// The call of this id.
    pub(super) fn call(&self, id: usize) -> &'g Call<'h> {
        &self.ground.calls[id]
    }

    /// Event after which a call may stand.
    pub(super) fn sent(&self, id: usize) -> usize {
        self.ground.sent[id]
    }

    /// Event before which it must stand.
    pub(super) fn ended(&self, id: usize) -> usize {
        self.ground.ended[id]
    }

    /// Place of a call among the revisions, where it is known.
    pub(super) fn at(&self, id: usize) -> Option<At> {
        self.ground.at[id]
    }

    /// What is known of keys.
    pub(super) fn facts(&self) -> &'g Facts<'h> {
        &self.ground.facts
    }

    fn find_twins(&mut self) {
        let mut last: BTreeMap<(Option<u64>, String), usize> = BTreeMap::new();
        for id in &self.optional {
            let call = self.call(*id);
            if matches!(call.op, Op::Login { .. }) {
                continue; // Each has a token of its own.
            }
            let likeness = (call.token, format!("{:?}", call.op));
            self.twin[*id] = last.insert(likeness, *id);
        }
    }
}

/// Whether an optional call could change anything for anybody.
fn can_matter(call: &Call<'_>) -> bool {
    match call.op {
        Op::Login { .. } => call.token_is_used,
        _ => !call.only_reads(),
    }
}

/// Where an answer says that its call stands.
fn at(op: &Op, reply: &Reply) -> Option<At> {
    // A login is in two places, and the model does not say from which its answer's header is.
    if matches!(op, Op::Login { .. }) || (!op.is_data() && reply.revision == 0) {
        return None;
    }
    let writes = changed(op, reply);
    let revision = reply.revision.saturating_sub(i64::from(writes));
    Some(At { revision, writes })
}

/// Whether a data call with this answer changed anything.
fn changed(op: &Op, reply: &Reply) -> bool {
    match op {
        Op::Put { .. } => true,
        Op::Delete { .. } => reply.count > 0,
        Op::Txn {
            success, failure, ..
        } => {
            let branch = if reply.succeeded == Some(true) {
                success
            } else {
                failure
            };
            let mut each = branch.iter().zip(&reply.responses);
            each.any(|(op, reply)| changed(op, reply))
        }
        _ => false,
    }
}
