//! Few calls that have no order already, out of many that have none.
//!
//! The answer of a call that is left out counts as lost: the call may have happened, at any time after it was sent, or not.
//! That only makes it easier to find an order, so if there is none even then, the calls that are left contradict each
//! other. Nothing else of the proof is taken over: what was concluded from an answer is lost with it.
//!
//! Calls are left out for as long as that can be shown. At last each one that is left is left out alone, in search of an
//! order: if one is found every time, the set is minimal. There may be another, smaller set all the same.

use super::calls::{Call, Told, with_answers_of};
use super::order::{Budget, Found, Search};
use super::problem::{Contradiction, Ground, Problem};
use super::slice::Slice;
use super::state::Scope;
use super::{Proof, Solved, solve};
use crate::history::{Op, TokenRules};
use std::collections::BTreeSet;

/// How many looks that settle nothing use the budget up.
const LOOKS: u64 = 20;

/// Most steps of one look: what a few answers contradict shows soon, or is not worth the wait.
const LOOK_MAX: u64 = 300_000;

/// How a set is known to have no order.
#[derive(Clone, Debug)]
pub(super) enum Why {
    /// It shows without a search.
    Contradiction(Contradiction),
    /// A search found none.
    Search {
        /// The longest beginning of an order.
        deepest: Vec<usize>,
    },
    /// It was proved with more means than one search has; how far an order can go is not known.
    Proved,
}

/// A set of calls that has no order.
#[derive(Debug)]
pub(super) struct Shrunk {
    /// The calls whose answers count.
    pub(super) set: BTreeSet<usize>,
    /// Whether an order was found without each of them.
    pub(super) is_minimal: bool,
    /// Logins that gave the tokens of calls in the set. Their answers are not needed, but what would be wrong with a token
    /// is only plain with the login that gave it.
    pub(super) logins: BTreeSet<usize>,
    /// How it is known, with the answers of the logins as well.
    pub(super) why: Why,
}

/// A set of calls on its way to becoming as small as it can be.
pub(super) struct Shrinking<'c, 's, 'h> {
    calls: &'c [Call<'h>],
    rules: TokenRules,
    scope: Scope<'s, 'h>,
    budget: Budget,
    /// Steps left for all searches that make the set smaller, and most of them for one.
    left: u64,
    most: u64,
    /// Why the last set that had no order has none.
    why: Why,
}

/// What a look at a set came to.
enum Look {
    Order,
    Nothing(Why),
    OverBudget,
}

/// A user's part that has no order, where the whole has none: in a part that shows sooner, and of fewer calls.
pub(super) fn part_without_order<'h>(calls: &[Call<'h>], budget: Budget) -> Option<Proof<'h>> {
    let ground = Ground::new(calls, |_| true).ok()?;
    let look = Budget {
        steps: LOOK_MAX.min(budget.steps / LOOKS),
        ..budget
    };
    let has_none = |slice: &Slice<'h>| {
        let part = Problem::new(&ground, Scope::Part(slice));
        matches!(Search::new(&part, &[], look).run(), Found::Nothing(_))
    };
    Slice::all(calls)
        .into_iter()
        .find(has_none)
        .map(Proof::Part)
}

impl<'c, 's, 'h> Shrinking<'c, 's, 'h> {
    /// Of calls for which it was proved that no order explains all answers.
    pub(super) fn new(
        calls: &'c [Call<'h>],
        rules: TokenRules,
        proof: &'s Proof<'h>,
        budget: Budget,
    ) -> Shrinking<'c, 's, 'h> {
        let (scope, why) = match proof {
            Proof::Contradiction(found) => (Scope::Whole, Why::Contradiction(found.clone())),
            Proof::Part(slice) => (Scope::Part(slice), Why::Proved),
            Proof::Whole => (Scope::Whole, Why::Proved),
        };
        Shrinking {
            calls,
            rules,
            scope,
            budget,
            left: budget.steps,
            most: budget.steps,
            why,
        }
    }

    /// Makes the set as small as the budget allows.
    pub(super) fn run(mut self) -> Shrunk {
        let mut set = self.answered();
        let begins = [self.suspects(), set.clone()];
        let begin = begins.into_iter().find(|begin| self.contradicts(begin));
        (self.left, self.most) = (self.budget.steps, LOOK_MAX.min(self.budget.steps / LOOKS));
        let mut is_minimal = false;
        // If the proof needs more than one search, every answer is held to be needed.
        if let Some(begin) = begin {
            set = self.shortest_beginning(begin);
            set = self.without_pieces(set);
            self.left = self.budget.steps;
            (set, is_minimal) = self.without_each(set);
        }
        let logins = set.iter().filter_map(|id| self.login_of(*id));
        let logins: BTreeSet<usize> = logins.filter(|login| !set.contains(login)).collect();
        // Once more, for the beginning of an order.
        self.left = self.budget.steps;
        self.contradicts(&set.union(&logins).copied().collect());
        Shrunk {
            set,
            is_minimal,
            logins,
            why: self.why,
        }
    }

    /// All calls whose answers say anything to a search.
    fn answered(&self) -> BTreeSet<usize> {
        let says = |id: &usize| {
            let call = &self.calls[*id];
            !call.is_local() && !matches!(call.told, Told::Unknown)
        };
        (0..self.calls.len()).filter(says).collect()
    }

    /// Those of them that the proof is likely to rest on.
    fn suspects(&self) -> BTreeSet<usize> {
        let answered = self.answered();
        let is_suspect = |id: &usize| match (&self.why, self.scope) {
            (Why::Contradiction(Contradiction::Orphan { reader, key, .. }), _) => {
                id == reader || may_put(self.calls[*id].op, key)
            }
            (Why::Contradiction(Contradiction::SameRevision { first, second }), _)
            | (Why::Contradiction(Contradiction::Backwards { first, second }), _) => {
                id == first || id == second
            }
            (_, Scope::Part(slice)) => slice.concerns(&self.calls[*id], false),
            (_, Scope::Whole) => true,
        };
        answered.into_iter().filter(is_suspect).collect()
    }

    /// Leaves out ever smaller pieces, at last single calls, until none can be.
    fn without_pieces(&mut self, mut set: BTreeSet<usize>) -> BTreeSet<usize> {
        let mut size = set.len().div_ceil(2);
        loop {
            let before = set.len();
            let ids: Vec<usize> = set.iter().rev().copied().collect();
            for piece in ids.chunks(size.max(1)) {
                let mut smaller = set.clone();
                for id in piece {
                    smaller.remove(id);
                }
                if !smaller.is_empty() && self.contradicts(&smaller) {
                    set = smaller;
                }
            }
            if self.left == 0 || size <= 1 && set.len() == before {
                return set;
            }
            size = size.div_ceil(2);
        }
    }

    /// Leaves out each call alone, and says whether there was an order whenever it had to stay. What has an order, has one
    /// with fewer answers as well, so one round is enough. A part may have none where the whole has none, and not the
    /// other way round, so it is the whole that is looked at.
    fn without_each(&mut self, mut set: BTreeSet<usize>) -> (BTreeSet<usize>, bool) {
        let mut is_minimal = true;
        for id in set.clone() {
            let mut smaller = set.clone();
            smaller.remove(&id);
            match self.look(&smaller, Scope::Whole) {
                Look::Order => {}
                Look::Nothing(why) => {
                    (set, self.scope, self.why) = (smaller, Scope::Whole, why);
                }
                Look::OverBudget => is_minimal &= self.has_order(&smaller),
            }
            if self.left == 0 {
                return (set, false);
            }
        }
        (set, is_minimal)
    }

    /// The login that gave the token of a call, if the scope knows its user.
    fn login_of(&self, id: usize) -> Option<usize> {
        let call = &self.calls[id];
        let knows = match self.scope {
            Scope::Whole => true,
            Scope::Part(slice) => slice.knows_caller(call),
        };
        let login = call.token.filter(|_| knows)?;
        let gave = |call: &Call<'_>| call.number == login && matches!(call.told, Told::Done(_));
        self.calls.iter().position(gave)
    }

    /// The calls that ended up to the first event by which there is no order any more.
    fn shortest_beginning(&mut self, set: BTreeSet<usize>) -> BTreeSet<usize> {
        let mut ends: Vec<usize> = set.iter().map(|id| self.calls[*id].ended).collect();
        ends.sort_unstable();
        let (mut fine, mut bad) = (0, ends.len().saturating_sub(1));
        let begin = |this: &Self, at: usize| -> BTreeSet<usize> {
            let early = set.iter().copied();
            early
                .filter(|id| this.calls[*id].ended <= ends[at])
                .collect()
        };
        while fine < bad {
            let middle = fine.midpoint(bad);
            let beginning = begin(self, middle);
            if self.contradicts(&beginning) {
                bad = middle;
            } else {
                fine = middle + 1;
            }
        }
        ends.get(bad)
            .map_or_else(|| set.clone(), |_| begin(self, bad))
    }

    /// Whether it can be shown that the set alone has no order.
    fn contradicts(&mut self, set: &BTreeSet<usize>) -> bool {
        match self.look(set, self.scope) {
            Look::Nothing(why) => {
                self.why = why;
                true
            }
            Look::Order | Look::OverBudget => false,
        }
    }

    /// Whether an order of the set alone is found with the help of every user's part.
    fn has_order(&mut self, set: &BTreeSet<usize>) -> bool {
        let budget = self.one_look();
        self.left = self.left.saturating_sub(budget.steps);
        let calls = with_answers_of(self.calls, set, self.rules);
        matches!(solve(&calls, |_| true, budget), Solved::Order(_))
    }

    fn one_look(&self) -> Budget {
        Budget {
            steps: self.left.min(self.most),
            ..self.budget
        }
    }

    /// Looks for an order of the set alone.
    fn look(&mut self, set: &BTreeSet<usize>, scope: Scope<'s, 'h>) -> Look {
        // Making ready for a search costs something, too.
        self.left = self.left.saturating_sub(self.calls.len() as u64);
        let calls = with_answers_of(self.calls, set, self.rules);
        let ground = match Ground::new(&calls, |_| true) {
            Ok(ground) => ground,
            Err(contradiction) => return Look::Nothing(Why::Contradiction(contradiction)),
        };
        let problem = Problem::new(&ground, scope);
        let mut search = Search::new(&problem, &[], self.one_look());
        let found = search.run();
        self.left = self.left.saturating_sub(search.steps());
        match found {
            Found::Nothing(deepest) => Look::Nothing(Why::Search { deepest }),
            Found::Order(_) => Look::Order,
            Found::OverBudget(_) => Look::OverBudget,
        }
    }
}

/// Whether the call may have written a value to the key.
fn may_put(op: &Op, to: &str) -> bool {
    match op {
        Op::Put { key, .. } => key == to,
        Op::Txn {
            success, failure, ..
        } => success.iter().chain(failure).any(|op| may_put(op, to)),
        _ => false,
    }
}
