//! Which calls may come next, the most promising last.

use super::super::state::{State, Step};
use super::{AHEAD, Found, Search};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// How often, in a hundred places, a search with luck tries calls that may have happened before those that must have.
const EAGER: u64 = 3;

/// How often, in a hundred pairs, it takes two such calls in the opposite order.
const SWAPPED: u64 = 20;

impl Search<'_, '_, '_, '_> {
    /// Calls to try here first, and whether the optional ones are among them.
    pub(super) fn candidates(&mut self, state: &State) -> (Vec<(usize, bool, State)>, bool) {
        let mut found = self.next_required(state);
        let widened = self.is_lucky(EAGER);
        if widened {
            found.extend(self.next_optional(state));
        }
        (found, widened)
    }

    /// Required calls that may come next and change the state, the most urgent last.
    fn next_required(&mut self, state: &State) -> Vec<(usize, bool, State)> {
        let mut found = Vec::new();
        let deadline = self.deadline();
        let mut next = self.required.first();
        while let Some(id) = next.filter(|id| self.problem.sent(*id) < deadline) {
            next = self.required.after(id);
            if !self.fits_revision(id, state) {
                continue;
            }
            match self.step(state, id) {
                Step::New(after) if self.permits(id, state, &after) => {
                    found.push((id, true, after));
                }
                // It can stand here and do nothing.
                Step::Same if !self.must_change(id) => found.push((id, false, state.clone())),
                _ => {}
            }
        }
        found.sort_by_key(|(id, ..)| Reverse((self.problem.ended(*id), *id)));
        found
    }

    /// Optional calls that may come next, the most useful last: those that make way for the most urgent call, and of
    /// these what will be needed soonest.
    pub(super) fn next_optional(&mut self, state: &State) -> Vec<(usize, bool, State)> {
        let mut found = Vec::new();
        let deadline = self.deadline();
        let urgent = self.ends.first().map(|(_, id)| *id);
        let wanted = self.wanted(state);
        let mut next = self.optional.first();
        while let Some(id) = next.filter(|id| self.problem.sent(*id) < deadline) {
            next = self.optional.after(id);
            let twin = self.problem.twin[id].filter(|twin| self.optional.holds(*twin));
            if twin.is_some_and(|twin| !self.placed[twin]) || !self.fits_revision(id, state) {
                continue;
            }
            if let Step::New(after) = self.step(state, id)
                && self.permits(id, state, &after)
            {
                let helps =
                    urgent.is_some_and(|urgent| !matches!(self.step(&after, urgent), Step::Wrong));
                let op = self.problem.call(id).op;
                let of_key = self.problem.facts().need(op, state.model.keys());
                let of_part = wanted.get(&id).copied().unwrap_or(usize::MAX);
                found.push((helps, Reverse((of_key, of_part, id)), after));
            }
        }
        found.sort_by_key(|(helps, need, _)| (*helps, *need));
        for place in 1..found.len() {
            if self.is_lucky(SWAPPED) {
                found.swap(place - 1, place);
            }
        }
        let bare = found.into_iter();
        bare.map(|(_, Reverse((.., id)), after)| (id, true, after))
            .collect()
    }

    /// The optional calls that some order of each user's part makes use of from here on, and by which event.
    fn wanted(&mut self, state: &State) -> BTreeMap<usize, usize> {
        let mut wanted = BTreeMap::new();
        let until = self.deadline().saturating_add(AHEAD);
        for part in self.parts {
            let found = self.search_rest(part, state, until);
            let Found::Order(order) = found else { continue };
            let mut deadline = usize::MAX;
            for id in order.into_iter().rev() {
                if self.required.holds(id) {
                    deadline = self.problem.ended(id);
                } else {
                    let by = wanted.entry(id).or_insert(deadline);
                    *by = deadline.min(*by);
                }
            }
        }
        wanted
    }

    /// Whether a search with luck deviates from what is best on the whole.
    fn is_lucky(&mut self, percent: u64) -> bool {
        self.luck.as_mut().is_some_and(|luck| luck.chance(percent))
    }
}
