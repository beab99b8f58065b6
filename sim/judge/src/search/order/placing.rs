//! Which calls have their place and which still wait, with what that says about the rest: kept up as calls are placed and
//! taken back.

use super::super::calls::Told;
use super::super::state::Scope;
use super::{Search, always_counts, uses_up};
use crate::history::{Op, Reply};
use crate::model::{Blend, Refusal};
use std::collections::BTreeMap;

impl Search<'_, '_, '_, '_> {
    /// Gives the call its place, where it changes the state or not.
    pub(super) fn place(&mut self, id: usize, changes: bool) {
        let spends = changes && self.would_spend(id);
        self.placed[id] = true;
        self.order.push(id);
        self.spent.push(spends);
        self.uses += u64::from(spends);
        if self.optional.holds(id) {
            self.optional.remove(id);
            self.used[id / 64] |= 1 << (id % 64);
        } else {
            self.required.remove(id);
            self.expect(id, false);
        }
    }

    /// Takes back everything that was placed after the first `length` calls.
    pub(super) fn back_to(&mut self, length: usize) {
        while self.order.len() > length {
            let Some(id) = self.order.pop() else { return };
            self.placed[id] = false;
            self.uses -= u64::from(self.spent.pop().unwrap_or_default());
            if self.optional.holds(id) {
                self.optional.restore(id);
                self.used[id / 64] &= !(1 << (id % 64));
            } else {
                self.required.restore(id);
                self.expect(id, true);
            }
        }
    }

    /// Takes note that a required call waits for its place, or has it.
    pub(super) fn expect(&mut self, id: usize, waits: bool) {
        let mut blend = Blend::of("placed");
        blend.number(id as u64);
        self.placed_blend ^= blend.finish();
        let end = (self.problem.ended(id), id);
        if waits {
            self.ends.insert(end);
        } else {
            self.ends.remove(&end);
        }
        if let (Scope::Part(_), Some(at)) = (self.problem.scope, self.problem.at(id)) {
            count(&mut self.ranks, (at.revision, at.writes), waits);
        }
        match self.problem.at(id) {
            Some(at) if at.writes && waits => {
                self.writers.insert(at.revision, id);
            }
            Some(at) if at.writes => {
                self.writers.remove(&at.revision);
            }
            Some(at) => count(&mut self.readers, at.revision, waits),
            None => {}
        }
        let call = self.problem.call(id);
        match call.told {
            Told::Done(Reply {
                auth: Some(auth), ..
            }) => {
                count(&mut self.probes, auth.revision, waits);
                self.watch(id, auth.revision, waits);
            }
            Told::Refused(Refusal::FutureRevision) => {
                self.early = if waits {
                    self.early + 1
                } else {
                    self.early - 1
                };
            }
            Told::Done(_) | Told::Unknown if self.counts(id) => {
                let ended = self.problem.ended(id);
                for (probe, (_, due)) in &mut self.due {
                    if ended < self.problem.sent(*probe) {
                        *due = if waits { *due + 1 } else { *due - 1 };
                    }
                }
            }
            _ => {}
        }
    }

    /// Whether the call, if it changes anything, adds one to the auth revision that nobody has reckoned with.
    pub(super) fn would_spend(&self, id: usize) -> bool {
        uses_up(self.problem.call(id).op) && (self.optional.holds(id) || !self.counts(id))
    }

    /// Whether the call, once accepted, adds one to the auth revision wherever it stands.
    pub(super) fn counts(&self, id: usize) -> bool {
        let op = self.problem.call(id).op;
        always_counts(op) || (self.problem.is_certain(id) && uses_up(op))
    }

    /// Takes note that a probe of the auth revision waits, or has its place.
    pub(super) fn watch(&mut self, probe: usize, revision: u64, waits: bool) {
        if !waits {
            self.due.remove(&probe);
            return;
        }
        let sent = self.problem.sent(probe);
        let due = self.problem.required.iter().filter(|id| {
            let call = self.problem.call(**id);
            let counts = !matches!(call.told, Told::Refused(_)) && self.counts(**id);
            counts && !self.placed[**id] && self.problem.ended(**id) < sent
        });
        self.due.insert(probe, (revision, due.count() as u64));
    }

    pub(super) fn find_movers(&mut self) {
        let problem = self.problem;
        let mut by_user: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut of_all = Vec::new();
        for id in problem.required.iter().chain(&problem.optional) {
            match problem.call(*id).op {
                Op::UserAdd { user, .. }
                | Op::UserDelete { user }
                | Op::ChangePassword { user, .. } => by_user.entry(user).or_default().push(*id),
                Op::AuthDisable {} => of_all.push(*id),
                _ => {}
            }
        }
        for id in problem.required.iter().chain(&problem.optional) {
            let Op::Login { user, .. } = problem.call(*id).op else {
                continue;
            };
            let of_user = by_user.get(user.as_str()).into_iter().flatten();
            let in_time = of_user
                .chain(&of_all)
                .filter(|mover| problem.sent(**mover) < problem.ended(*id))
                .filter(|mover| problem.ended(**mover) > problem.sent(*id));
            self.movers.insert(*id, in_time.copied().collect());
        }
    }
}

fn count<K: Ord + Copy>(counts: &mut BTreeMap<K, u32>, key: K, more: bool) {
    let before = counts.remove(&key).unwrap_or(0);
    let after = if more { before + 1 } else { before - 1 };
    if after > 0 {
        counts.insert(key, after);
    }
}
