//! What is to be put in order: which calls must have a place, which may have one, and between which events.
//!
//! An answer's key-value revision says where its call stands among the others that have one. That moves the ends of the
//! calls' intervals towards each other, and often shows without any search that there is no order.

use super::calls::{Call, NEVER, Told};
use super::state::{Scope, is_data};
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

/// A part of a history to be ordered.
#[derive(Debug)]
pub(super) struct Problem<'c, 'h> {
    pub(super) calls: &'c [Call<'h>],
    pub(super) scope: Scope<'c, 'h>,
    /// Calls that must have a place, by `sent`.
    pub(super) required: Vec<usize>,
    /// Calls that may have one, by `sent`.
    pub(super) optional: Vec<usize>,
    /// Event after which each call may stand.
    pub(super) sent: Vec<usize>,
    /// Event before which it must stand.
    pub(super) ended: Vec<usize>,
    /// Place of each call among the revisions, where it is known.
    pub(super) at: Vec<Option<At>>,
    /// The optional call, sent before this one, that is exactly like it.
    pub(super) twin: Vec<Option<usize>>,
}

/// Two calls that no order can hold both.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clash {
    pub(super) first: usize,
    pub(super) second: usize,
}

impl<'c, 'h> Problem<'c, 'h> {
    /// Makes calls for which `is_kept` holds required; of the others, those that may have had an effect are optional.
    ///
    /// # Errors
    /// Two kept calls whose revisions contradict the times.
    pub(super) fn new(
        calls: &'c [Call<'h>],
        scope: Scope<'c, 'h>,
        is_kept: impl Fn(usize) -> bool,
    ) -> Result<Problem<'c, 'h>, Clash> {
        let mut problem = Problem {
            calls,
            scope,
            required: Vec::new(),
            optional: Vec::new(),
            sent: calls.iter().map(|call| call.sent).collect(),
            ended: calls.iter().map(|call| call.ended).collect(),
            at: vec![None; calls.len()],
            twin: vec![None; calls.len()],
        };
        for (id, call) in calls.iter().enumerate() {
            let is_within = match scope {
                Scope::Whole => true,
                Scope::Part(slice) => slice.concerns(call),
            };
            if let Told::Done(reply) = call.told
                && !call.is_local()
            {
                problem.at[id] = at(call.op, reply);
            }
            match call.told {
                Told::Nothing => {}
                _ if call.is_local() || !is_within => {}
                Told::Done(_) => {
                    if is_kept(id) {
                        problem.required.push(id);
                    } else if can_matter(call) {
                        problem.optional.push(id);
                    }
                }
                Told::Refused(_) if is_kept(id) => problem.required.push(id),
                Told::Unknown if can_matter(call) => {
                    problem.ended[id] = NEVER;
                    problem.optional.push(id);
                }
                Told::Refused(_) | Told::Unknown => {}
            }
        }
        problem.narrow(&is_kept)?;
        let sent = &problem.sent;
        problem.required.sort_by_key(|id| (sent[*id], *id));
        problem.find_twins();
        Ok(problem)
    }

    /// Moves the ends of kept calls towards each other, as the revisions tell.
    fn narrow(&mut self, is_kept: &impl Fn(usize) -> bool) -> Result<(), Clash> {
        let mut ranked: Vec<(i64, bool, usize)> = Vec::new();
        for (id, at) in self.at.iter().enumerate() {
            if let Some(at) = at
                && is_kept(id)
            {
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
                return Err(Clash { first, second });
            }
        }
        let mut latest: Option<usize> = None;
        for group in &groups {
            for (_, _, id) in *group {
                if let Some(latest) = latest {
                    if self.calls[*id].ended < self.calls[latest].sent {
                        let (first, second) = (latest, *id);
                        return Err(Clash { first, second });
                    }
                    self.sent[*id] = self.sent[*id].max(self.calls[latest].sent);
                }
            }
            let of_group = group.iter().map(|(_, _, id)| *id);
            latest = latest.into_iter().chain(of_group).max_by_key(|id| self.calls[*id].sent);
        }
        let mut earliest = NEVER;
        for group in groups.iter().rev() {
            for (_, _, id) in *group {
                self.ended[*id] = self.ended[*id].min(earliest);
            }
            let of_group = group.iter().map(|(_, _, id)| self.calls[*id].ended);
            earliest = of_group.fold(earliest, usize::min);
        }
        Ok(())
    }

    fn find_twins(&mut self) {
        let mut last: BTreeMap<(Option<u64>, String), usize> = BTreeMap::new();
        for id in &self.optional {
            let call = &self.calls[*id];
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
    if !is_data(op) && reply.revision == 0 {
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
