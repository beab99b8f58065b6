//! The search for an order: depth first, with what need not be tried left out, and what has been tried remembered.
//!
//! Left out, and why that loses no order:
//! - A call that must have a place, may stand here and changes nothing is put here at once: taking it out of any order and
//!   putting it here leaves every other call as it was.
//! - The same holds for the write that makes the next revision once every reader of this one has its place, because
//!   revisions keep other writes and reads away, and nothing else looks at keys; and for a login while nothing that could
//!   still come before its end would move its user's epoch.
//! - A call of unknown outcome is tried only where it changes something, after its earlier twin, and not at a revision
//!   that another call is known to have made.
//! - A state that was reached before with the same calls and no more of the optional ones gives nothing new.
//!
//! The path is a list of frames, so that no history is too long for the stack. The file is long because the path, what waits
//! for a place and the look ahead into the parts read each other at every step.

mod candidates;
mod placing;

use super::calls::Told;
use super::list::List;
use super::problem::Problem;
use super::state::{Scope, State, Step};
use crate::history::Op;
use crate::random::Random;
use std::collections::{BTreeMap, BTreeSet};

/// How much a search may do before it gives up. Counted, never timed, so that the same history gets the same answer.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Most calls tried in a place.
    pub steps: u64,
    /// Most states remembered.
    pub states: usize,
}

/// What a search came to.
#[derive(Debug)]
pub(super) enum Found {
    /// These calls in this order explain every answer.
    Order(Vec<usize>),
    /// There is no order; this is the longest beginning of one.
    Nothing(Vec<usize>),
    /// Not settled; the same.
    OverBudget(Vec<usize>),
}

/// Most steps of one look at a user's part; a part that needs more is taken to have an order.
const PART_STEPS: u64 = 20_000;

/// How many of the parts that failed last are looked at again when the search goes back.
const DOUBTFUL: usize = 6;

/// How many events ahead it is looked for what will be needed.
const AHEAD: usize = 400;

/// Sets of optional calls remembered for each state; more are not worth comparing.
const SETS_MAX: usize = 16;

/// A place on the path with alternatives.
struct Frame {
    state: State,
    /// Calls placed when it was reached.
    length: usize,
    /// Alternatives that are left, best last: the call, whether it changes anything, and the state after it.
    left: Vec<(usize, bool, State)>,
    /// Whether the optional calls have been looked at.
    widened: bool,
}

/// A search under way.
pub(super) struct Search<'p, 'g, 'c, 'h> {
    problem: &'p Problem<'g, 'c, 'h>,
    placed: Vec<bool>,
    order: Vec<usize>,
    /// Unplaced required and optional calls, as lists: the call after each, and before each.
    required: List,
    optional: List,
    /// Ends of the unplaced required calls.
    ends: BTreeSet<(usize, usize)>,
    /// Unplaced required calls that look at each revision without making the next.
    readers: BTreeMap<i64, u32>,
    /// The required call that makes the revision after each.
    writers: BTreeMap<i64, usize>,
    /// In a part: unplaced required calls at each place among the revisions.
    ranks: BTreeMap<(i64, bool), u32>,
    /// Unplaced required calls at each auth revision.
    probes: BTreeMap<u64, u32>,
    /// Unplaced required calls that were told that a revision is yet to come.
    early: u32,
    /// Auth changes that certainly come before each unplaced probe and still wait: by the probe, with its auth revision.
    due: BTreeMap<usize, (u64, u64)>,
    /// In a part: how many auth changes that nobody reckons with fit in before each probe, and how many have been made.
    room: BTreeMap<usize, u64>,
    uses: u64,
    /// Of each placed call, whether it is one of these.
    spent: Vec<bool>,
    /// What concerns each user, to be looked at after each step that touches it.
    parts: &'p [Problem<'g, 'c, 'h>],
    /// The numbers of the parts, in the order in which they are looked at.
    ranking: Vec<usize>,
    /// For each login: the calls that may move its user's epoch before its end.
    movers: BTreeMap<usize, Vec<usize>>,
    /// Which required calls are placed, as a hash, and which optional ones, as a set.
    placed_blend: u128,
    used: Vec<u64>,
    memory: BTreeMap<u128, Vec<Box<[u64]>>>,
    steps: u64,
    budget: Budget,
    best: Vec<usize>,
    best_required: usize,
    /// What varies the order in which alternatives are tried; nothing, for the order that is best on the whole.
    luck: Option<Random>,
}

impl<'p, 'g, 'c, 'h> Search<'p, 'g, 'c, 'h> {
    /// A search that has not begun.
    pub(super) fn new(
        problem: &'p Problem<'g, 'c, 'h>,
        parts: &'p [Problem<'g, 'c, 'h>],
        budget: Budget,
    ) -> Search<'p, 'g, 'c, 'h> {
        let count = problem.ground.calls.len();
        let mut search = Search {
            problem,
            placed: vec![false; count],
            order: Vec::new(),
            required: List::of(&problem.required, count),
            optional: List::of(&problem.optional, count),
            ends: BTreeSet::new(),
            readers: BTreeMap::new(),
            writers: BTreeMap::new(),
            ranks: BTreeMap::new(),
            probes: BTreeMap::new(),
            early: 0,
            due: BTreeMap::new(),
            room: BTreeMap::new(),
            uses: 0,
            spent: Vec::new(),
            parts,
            ranking: (0..parts.len()).collect(),
            movers: BTreeMap::new(),
            placed_blend: 0,
            used: vec![0; count.div_ceil(64)],
            memory: BTreeMap::new(),
            steps: 0,
            budget,
            best: Vec::new(),
            best_required: 0,
            luck: None,
        };
        // Probes last: they count what waits before them.
        let (probes, others): (Vec<usize>, Vec<usize>) = problem
            .required
            .iter()
            .partition(|id| matches!(problem.call(**id).op, Op::AuthStatus {}));
        for id in others.into_iter().chain(probes) {
            search.expect(id, true);
        }
        search.find_movers();
        search
    }

    /// Searches for the rest of an order of a user's part, from this state on, as far as the calls that end by an event.
    fn search_rest(&mut self, part: &Problem<'g, 'c, 'h>, state: &State, until: usize) -> Found {
        let rest = part.rest(&self.placed, until);
        let budget = Budget {
            steps: PART_STEPS,
            states: usize::MAX,
        };
        let mut search = Search::new(&rest, &[], budget);
        let revision = state.model.accounts().revision();
        let room = self.due.iter().map(|(probe, (shown, due))| {
            let taken = revision.saturating_add(*due);
            (*probe, shown.saturating_sub(taken))
        });
        search.room = room
            .filter(|(probe, _)| search.required.holds(*probe))
            .collect();
        let found = search.run_from(state.clone());
        self.steps += search.steps;
        found
    }

    /// Whether every user's part still has an order from here on: to the end, if the call touches it, and for some way if
    /// the call only takes room that others may need.
    fn leaves_hope(&mut self, id: usize, state: &State) -> bool {
        let op = self.problem.call(id).op;
        let takes_room = self.optional.holds(id) && uses_up(op);
        let ahead = self.deadline().saturating_add(AHEAD);
        for rank in 0..self.ranking.len() {
            let number = self.ranking[rank];
            let part = &self.parts[number];
            let Scope::Part(slice) = part.scope else {
                continue;
            };
            let until = if slice.changes_with(op) || slice.is_login(op) {
                usize::MAX
            } else if takes_room {
                ahead
            } else {
                continue;
            };
            if matches!(self.search_rest(part, state, until), Found::Nothing(_)) {
                // What fails is likely to fail again, so it is asked first.
                self.ranking[..=rank].rotate_right(1);
                return false;
            }
        }
        true
    }

    /// The same search with alternatives tried in an order of its own.
    pub(super) fn varied(mut self, attempt: u64) -> Self {
        self.luck = (attempt > 0).then_some(Random(attempt));
        self
    }

    /// Steps taken so far.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// Searches.
    pub(super) fn run(&mut self) -> Found {
        self.run_from(State::default())
    }

    fn run_from(&mut self, state: State) -> Found {
        let mut frames: Vec<Frame> = Vec::new();
        let mut state = self.settle(state);
        let mut hopeful = true;
        loop {
            self.note_best();
            if self.ends.is_empty() {
                return Found::Order(std::mem::take(&mut self.order));
            }
            if hopeful && self.is_new(&state) {
                let (left, widened) = self.candidates(&state);
                frames.push(Frame {
                    state,
                    length: self.order.len(),
                    left,
                    widened,
                });
            }
            loop {
                if self.steps > self.budget.steps || self.memory.len() > self.budget.states {
                    return Found::OverBudget(std::mem::take(&mut self.best));
                }
                let Some(frame) = frames.last_mut() else {
                    return Found::Nothing(std::mem::take(&mut self.best));
                };
                self.back_to(frame.length);
                if let Some((id, changes, next)) = frame.left.pop() {
                    self.place(id, changes);
                    state = self.settle(next);
                    hopeful = self.leaves_hope(id, &state);
                    break;
                }
                if frame.widened {
                    frames.pop();
                    self.jump_back(&mut frames);
                } else {
                    frame.widened = true;
                    frame.left = self.next_optional(&frame.state);
                }
            }
        }
    }

    /// Drops the frames from which, whatever alternatives they have left, one of the parts that failed lately has no order.
    fn jump_back(&mut self, frames: &mut Vec<Frame>) {
        while let Some(frame) = frames.last() {
            self.back_to(frame.length);
            let state = frame.state.clone();
            let doubtful = self.ranking.iter().take(DOUBTFUL);
            let doubtful: Vec<usize> = doubtful.copied().collect();
            let fails = |search: &mut Self, number: usize| {
                let part = &search.parts[number];
                matches!(
                    search.search_rest(part, &state, usize::MAX),
                    Found::Nothing(_)
                )
            };
            if !doubtful.into_iter().any(|number| fails(self, number)) {
                return;
            }
            frames.pop();
        }
    }

    /// Walks along an order that is known to be right, and says where the search would not have gone along it.
    #[cfg(test)]
    pub(super) fn follow(&mut self, order: &[usize]) -> Result<(), String> {
        let mut state = State::default();
        for id in order.iter().copied() {
            let id = self.first_like(id);
            let is_required = self.required.holds(id);
            if self.placed[id] || !(is_required || self.optional.holds(id)) {
                continue;
            }
            let (changes, after) = match self.step(&state, id) {
                Step::Wrong if is_required => {
                    return Err(format!("wrong: {:?}", self.problem.call(id)));
                }
                Step::Same if self.must_change(id) => {
                    return Err(format!("changes nothing: {:?}", self.problem.call(id)));
                }
                Step::Same if is_required => (false, state.clone()),
                Step::Wrong | Step::Same => continue,
                // Behind the last revision that anybody saw, lost writes are left out.
                Step::New(after) if !is_required && self.is_unseen(&state, &after) => continue,
                Step::New(after) if self.permits(id, &state, &after) => (true, after),
                Step::New(_) => return Err(format!("not permitted: {:?}", self.problem.call(id))),
            };
            if self.problem.sent(id) > self.deadline() {
                return Err(format!("too late: {:?}", self.problem.call(id)));
            }
            self.place(id, changes);
            state = after;
            if !self.leaves_hope(id, &state) {
                return Err(format!("no hope after {:?}", self.problem.call(id)));
            }
        }
        Ok(())
    }

    /// The first call that waits and is exactly like this one, if its answer is lost.
    #[cfg(test)]
    fn first_like(&self, id: usize) -> usize {
        let call = self.problem.call(id);
        if !matches!(call.told, Told::Unknown) || matches!(call.op, Op::Login { .. }) {
            return id;
        }
        let is_like = |other: &usize| {
            let known = self.required.holds(*other) || self.optional.holds(*other);
            let other_call = self.problem.call(*other);
            known
                && !self.placed[*other]
                && matches!(other_call.told, Told::Unknown)
                && other_call.token == call.token
                && other_call.op == call.op
        };
        (0..=id).find(is_like).unwrap_or(id)
    }

    #[cfg(test)]
    fn is_unseen(&self, before: &State, after: &State) -> bool {
        let revision = before.model.kv_revision();
        let last = self.readers.keys().chain(self.writers.keys()).max();
        after.model.kv_revision() != revision && last <= Some(&revision)
    }

    fn note_best(&mut self) {
        let required = self.problem.required.len() - self.ends.len();
        if required > self.best_required || self.best.is_empty() {
            self.best_required = required;
            self.best.clone_from(&self.order);
        }
    }

    /// Before which event the next call must stand.
    fn deadline(&self) -> usize {
        self.ends.first().map_or(usize::MAX, |(end, _)| *end)
    }

    fn step(&mut self, state: &State, id: usize) -> Step {
        self.steps += 1;
        let (call, scope) = (self.problem.call(id), self.problem.scope);
        if self.required.holds(id) {
            state.step(call, scope)
        } else {
            state.step_unknown(call, scope)
        }
    }

    /// Places every call that can stand here and need not stand anywhere else.
    fn settle(&mut self, mut state: State) -> State {
        let mut moved = true;
        while moved {
            moved = false;
            let mut next = self.required.first();
            while let Some(id) = next {
                if self.problem.sent(id) > self.deadline() {
                    break;
                }
                next = self.required.after(id);
                if !self.fits_revision(id, &state) {
                    continue;
                }
                match self.step(&state, id) {
                    Step::Wrong => {}
                    Step::Same if !self.may_matter_later(id) => {
                        self.place(id, false);
                        moved = true;
                    }
                    Step::Same => {}
                    Step::New(after) => {
                        if self.permits(id, &state, &after) && self.is_free(id, &state, &after) {
                            self.place(id, true);
                            state = after;
                            moved = true;
                        }
                    }
                }
            }
        }
        state
    }

    /// Whether the call, although it changes nothing here, may change something elsewhere. What a call to keys changes is
    /// told by its answer, and others fail where they have nothing to do.
    fn may_matter_later(&self, id: usize) -> bool {
        let op = self.problem.call(id).op;
        let depends = matches!(
            op,
            Op::GrantRole { .. } | Op::AuthEnable {} | Op::AuthDisable {}
        );
        let is_refused = matches!(self.problem.call(id).told, Told::Refused(_));
        (depends && !is_refused) || self.must_change(id)
    }

    /// Whether the call is known to have changed something that the scope knows.
    fn must_change(&self, id: usize) -> bool {
        let knows = match self.problem.scope {
            Scope::Whole => true,
            Scope::Part(slice) => slice.changes_with(self.problem.call(id).op),
        };
        knows && self.required.holds(id) && self.problem.is_certain(id)
    }

    /// A cheap look before a step.
    fn fits_revision(&self, id: usize, state: &State) -> bool {
        match (self.problem.scope, self.problem.at(id)) {
            (Scope::Whole, Some(at)) => at.revision == state.model.kv_revision(),
            // A part counts no revisions, but keeps to their order.
            (Scope::Part(_), Some(at)) => {
                let first = self.ranks.first_key_value();
                first.is_none_or(|(first, _)| *first >= (at.revision, at.writes))
            }
            (_, None) => true,
        }
    }

    /// Whether the step leaves nobody behind who needs the state before it.
    fn permits(&self, id: usize, before: &State, after: &State) -> bool {
        if matches!(self.problem.scope, Scope::Part(_)) {
            return self.has_room(id); // Its revisions are not the cluster's.
        }
        let revision = before.model.kv_revision();
        if after.model.kv_revision() != revision {
            let keys = after.model.keys();
            if !self.problem.facts().allow(self.problem.call(id).op, keys) {
                return false;
            }
            let is_known = self.writers.get(&revision) == Some(&id);
            if !is_known && !self.problem.facts().can_match(keys) {
                return false;
            }
            if !is_known && self.writers.contains_key(&revision) {
                return false;
            }
            if self.readers.contains_key(&revision) {
                return false;
            }
            let last = self.readers.last_key_value().map(|(last, _)| *last);
            let last_write = self.writers.last_key_value().map(|(last, _)| *last);
            if !is_known && last.max(last_write) <= Some(revision) {
                return false; // Nobody would see it.
            }
        }
        let revision = before.model.accounts().revision();
        let next = after.model.accounts().revision();
        if next == revision {
            return true;
        }
        let sent_before = |probe: &usize| self.problem.ended(id) < self.problem.sent(*probe);
        let waits = self.required.holds(id) && self.counts(id);
        !self.probes.contains_key(&revision)
            && self.due.iter().all(|(probe, (shown, due))| {
                let due = due - u64::from(waits && sent_before(probe));
                next + due <= *shown
            })
    }

    /// Whether one more such auth change can come before every probe that waits.
    fn has_room(&self, id: usize) -> bool {
        if !self.would_spend(id) {
            return true;
        }
        let mut waiting = self.room.iter().filter(|(probe, _)| !self.placed[**probe]);
        waiting.all(|(_, room)| self.uses < *room)
    }

    /// Whether a call that changes the state may just as well stand here as later.
    fn is_free(&self, id: usize, before: &State, after: &State) -> bool {
        if after.model.kv_revision() != before.model.kv_revision() {
            return self.early == 0;
        }
        let movers = self.movers.get(&id);
        movers.is_some_and(|movers| movers.iter().all(|mover| self.placed[*mover]))
    }

    /// Whether nothing as good as this state has been reached before; from now on it has.
    fn is_new(&mut self, state: &State) -> bool {
        let key = self.placed_blend ^ state.fingerprint(self.problem.scope);
        let sets = self.memory.entry(key).or_default();
        let is_part = |part: &[u64], whole: &[u64]| {
            part.iter()
                .zip(whole)
                .all(|(part, whole)| part & !whole == 0)
        };
        if sets.iter().any(|seen| is_part(seen, &self.used)) {
            return false;
        }
        if sets.len() < SETS_MAX {
            sets.push(self.used.clone().into_boxed_slice());
        }
        true
    }
}

/// Whether the call, once accepted, adds one to the auth revision whatever the state.
fn always_counts(op: &Op) -> bool {
    matches!(
        op,
        Op::UserAdd { .. }
            | Op::UserDelete { .. }
            | Op::ChangePassword { .. }
            | Op::RevokeRole { .. }
            | Op::RoleAdd { .. }
            | Op::RoleDelete { .. }
            | Op::GrantPermission { .. }
            | Op::RevokePermission { .. }
    )
}

/// Whether the call, if it changes anything, adds one to the auth revision.
fn uses_up(op: &Op) -> bool {
    always_counts(op) || matches!(op, Op::GrantRole { .. } | Op::AuthDisable {})
}
