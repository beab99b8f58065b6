//! Auth changes of unknown outcome that must have taken effect, and by when; and those that cannot have. A user's part is
//! searched without the change, or with nothing but its effect: if that has no order, the question is settled. It makes
//! few of the many unknown calls a matter of choice, and choices are what a search is lost in.

use super::order::{Budget, Found, Search};
use super::problem::{Ground, Problem};
use super::slice::Slice;
use super::state::Scope;
use std::collections::{BTreeMap, BTreeSet};

/// Most steps for one question; one that takes more is left open.
const QUESTION: Budget = Budget {
    steps: 5_000,
    states: usize::MAX,
};

/// What is known of unknown auth changes.
#[derive(Debug, Default)]
pub(super) struct Forced {
    /// Calls that must have taken effect, and the event before which.
    pub(super) by: BTreeMap<usize, usize>,
    /// Calls that cannot have.
    pub(super) never: BTreeSet<usize>,
    /// Steps that it took.
    pub(super) steps: u64,
}

impl Forced {
    /// Asks about every optional auth change.
    pub(super) fn find<'h>(ground: &Ground<'_, 'h>, slices: &[Slice<'h>]) -> Forced {
        let mut forced = Forced::default();
        let whole = Problem::new(ground, Scope::Whole);
        for id in &whole.optional {
            let op = whole.call(*id).op;
            if whole.twin[*id].is_some() {
                continue; // It is tried only after its twin.
            }
            for slice in slices.iter().filter(|slice| slice.changes_with(op)) {
                let part = Problem::new(ground, Scope::Part(slice));
                if let Some(by) = forced.needed_by(part, *id) {
                    let known = forced.by.entry(*id).or_insert(by);
                    *known = by.min(*known);
                }
            }
        }
        forced
    }

    /// The event before which the part needs the call, if it does.
    fn needed_by(&mut self, mut part: Problem<'_, '_, '_>, id: usize) -> Option<usize> {
        let mut without = vec![id];
        for other in &part.optional {
            if part.twin[*other].is_some_and(|twin| without.contains(&twin)) {
                without.push(*other);
            }
        }
        part.optional.retain(|other| !without.contains(other));
        if self.has_order(&part) {
            return None;
        }
        // The shortest beginning of the part that cannot do without it. What ends later may still come before, or not.
        let mut ends: Vec<usize> = part.required.iter().map(|id| part.ended(*id)).collect();
        ends.sort_unstable();
        let (required, optional) = (part.required.clone(), part.optional.clone());
        let (mut fine, mut bad) = (0, ends.len() - 1);
        while fine < bad {
            let middle = fine.midpoint(bad);
            let is_early = |id: &usize| part.ground.ended(*id) <= ends[middle];
            let (early, late): (Vec<usize>, Vec<usize>) =
                required.iter().partition(|id| is_early(id));
            part.required = early;
            part.optional.clone_from(&optional);
            part.optional.extend(late);
            let ground = part.ground;
            part.optional.sort_by_key(|id| ground.calls[*id].sent);
            if self.has_order(&part) {
                fine = middle + 1;
            } else {
                bad = middle;
            }
        }
        Some(ends[bad])
    }

    fn has_order(&mut self, part: &Problem<'_, '_, '_>) -> bool {
        let mut search = Search::new(part, &[], QUESTION);
        let found = search.run();
        self.steps += search.steps();
        !matches!(found, Found::Nothing(_))
    }
}
