//! Whether any order of a history's calls explains what clients were told, from what clients saw alone: neither the log
//! nor any member's word is read. So it judges histories that have nothing else, and it is a second opinion on those that
//! have.
//!
//! Stages: [`calls`] reads what clients saw; [`problem`] says which calls must have a place and between which events, with
//! the help of [`facts`] about keys; [`mod@slice`] cuts out what concerns one user or one role, where a contradiction shows
//! soonest, and [`forced`] finds there what must have happened; [`order`] searches, again and again with the alternatives
//! in another order; [`state`] says what is right where; [`local`] looks at reads that need not be up to date; [`shrink`]
//! finds few calls that have no order already, and [`explain`] says in words why; [`opinion`] is what the judge asks.

mod calls;
mod explain;
mod facts;
mod forced;
mod list;
mod local;
mod opinion;
mod order;
mod problem;
mod shrink;
mod slice;
mod state;

#[cfg(test)]
mod tests;

pub mod workload;

pub use explain::Explanation;
pub(crate) use opinion::{is_bare, judge_alone, second};
pub use order::Budget;

use crate::history::History;
use calls::Call;
use forced::Forced;
use order::{Found, Search};
use problem::{Contradiction, Ground, Problem};
use slice::Slice;
use state::Scope;

/// What a search says of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// An order explains every answer.
    Ordered,
    /// An order explains every answer but that of a read of a member's own state, for which another might do.
    Misfit {
        /// The read.
        call: u64,
        /// What is wrong, in a sentence.
        sentence: String,
    },
    /// No order does.
    Impossible(Explanation),
    /// The budget ran out first.
    Open {
        /// Most calls that could be put in order.
        ordered: usize,
        /// How many had to be.
        required: usize,
    },
    /// An answer that no rule knows.
    Unreadable {
        /// The call.
        call: u64,
        /// What is wrong, in a sentence.
        sentence: String,
    },
}

/// Settles a history that the judge has read without finding it defective.
pub fn settle(history: &History, budget: Budget) -> Settled {
    let calls = match calls::read(history) {
        Ok(calls) => calls,
        Err(unreadable) => {
            let (call, sentence) = (unreadable.call, unreadable.sentence);
            return Settled::Unreadable { call, sentence };
        }
    };
    match solve(&calls, |_| true, budget) {
        Solved::Order(order) => match local::misfit(&calls, &order) {
            None => Settled::Ordered,
            Some(read) => Settled::Misfit {
                call: calls[read].number,
                sentence: format!(
                    "an order of the calls explains every other answer, but {} shows no state that it passes through \
                     in time",
                    explain::call(&calls[read])
                ),
            },
        },
        Solved::Nothing(proof) => {
            let rules = history.header.tokens;
            Settled::Impossible(explain::explain(&calls, rules, &proof, budget))
        }
        Solved::OverBudget { ordered, required } => Settled::Open { ordered, required },
    }
}

/// What a search for an order of some calls came to.
#[derive(Debug)]
enum Solved<'h> {
    Order(Vec<usize>),
    Nothing(Proof<'h>),
    OverBudget { ordered: usize, required: usize },
}

/// How it is known that there is no order.
#[derive(Clone, Debug)]
enum Proof<'h> {
    /// Two answers, or one, contradict themselves.
    Contradiction(Contradiction),
    /// What concerns one user has no order.
    Part(Slice<'h>),
    /// The whole search found none.
    Whole,
}

/// Searches for an order of the calls for which `is_kept` holds; the others may have happened or not.
fn solve<'h>(calls: &[Call<'h>], is_kept: impl Fn(usize) -> bool, budget: Budget) -> Solved<'h> {
    let ground = match Ground::new(calls, is_kept) {
        Ok(ground) => ground,
        Err(contradiction) => return Solved::Nothing(Proof::Contradiction(contradiction)),
    };
    // Most histories need no more than this.
    let whole = Problem::new(&ground, Scope::Whole);
    match Search::new(&whole, &[], GLANCE).run() {
        Found::Order(order) => Solved::Order(order),
        Found::Nothing(_) => Solved::Nothing(Proof::Whole),
        Found::OverBudget(_) => solve_by_parts(calls, ground, budget),
    }
}

/// The same with the help of every user's part.
fn solve_by_parts<'h>(
    calls: &[Call<'h>],
    mut ground: Ground<'_, 'h>,
    budget: Budget,
) -> Solved<'h> {
    let slices = Slice::all(calls);
    for slice in &slices {
        let part = Problem::new(&ground, Scope::Part(slice));
        if let Found::Nothing(_) = Search::new(&part, &[], PART).run() {
            return Solved::Nothing(Proof::Part(slice.clone()));
        }
    }
    let forced = Forced::find(&ground, &slices);
    ground.adopt(&forced);
    let parts: Vec<Problem<'_, '_, '_>> = slices
        .iter()
        .map(|slice| Problem::new(&ground, Scope::Part(slice)))
        .collect();
    let whole = Problem::new(&ground, Scope::Whole);
    search_varied(&whole, &parts, budget)
}

/// Searches again and again, each time with the alternatives in another order. One search can be lost behind an early
/// choice for longer than many take that choose otherwise; and what any of them proves is proved.
fn search_varied<'h>(
    whole: &Problem<'_, '_, 'h>,
    parts: &[Problem<'_, '_, 'h>],
    budget: Budget,
) -> Solved<'h> {
    let (mut left, mut ordered) = (budget.steps, 0);
    for attempt in 0_u64.. {
        let steps = match attempt {
            0 => FIRST,
            // Mostly short ones, and of twice the length half as many (Luby's sequence but for order).
            _ => AGAIN << attempt.trailing_zeros(),
        };
        let steps = steps.min(left);
        let mut search = Search::new(whole, parts, Budget { steps, ..budget }).varied(attempt);
        match search.run() {
            Found::Order(order) => return Solved::Order(order),
            Found::Nothing(_) => return Solved::Nothing(Proof::Whole),
            Found::OverBudget(best) => {
                let required = best.iter().filter(|id| whole.is_required(**id)).count();
                ordered = ordered.max(required);
            }
        }
        left = left.saturating_sub(search.steps().max(1));
        if left == 0 {
            break;
        }
    }
    let required = whole.required.len();
    Solved::OverBudget { ordered, required }
}

/// Steps of the first search, and of the shortest of those that follow.
const FIRST: u64 = 2_000_000;
const AGAIN: u64 = 500_000;

/// Budget for a first look at the whole.
const GLANCE: Budget = Budget {
    steps: 20_000,
    states: 10_000,
};

/// Budget for a first look at each user's part: what has no order there mostly shows at once.
const PART: Budget = Budget {
    steps: 200_000,
    states: 100_000,
};
