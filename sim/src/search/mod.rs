//! Whether any order of a history's calls explains what clients were told, from what clients saw alone: neither the log
//! nor any member's word is read. So it judges histories that have nothing else, and it is a second opinion on those that
//! have.
//!
//! Stages: [`calls`] reads what clients saw; [`problem`] says which calls must have a place and between which events;
//! [`slice`] cuts out what concerns one user, where a contradiction shows soonest; [`order`] searches; [`state`] says
//! what is right where.

mod calls;
mod facts;
mod list;
mod order;
mod problem;
mod slice;
mod state;

pub mod workload;

pub use order::Budget;

use crate::history::History;
use calls::Call;
use order::{Found, Search};
use problem::{Ground, Problem};
use slice::Slice;
use state::Scope;
use std::collections::BTreeSet;

/// What a search says of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// An order explains every answer.
    Ordered,
    /// No order does.
    Impossible,
    /// The budget ran out first.
    OverBudget,
}

/// Settles a history.
pub fn settle(history: &History, budget: Budget) -> (Settled, String) {
    let Ok(calls) = calls::read(history) else {
        return (Settled::OverBudget, "unreadable".into());
    };
    let ground = match Ground::new(&calls, |_| true) {
        Ok(ground) => ground,
        Err(why) => return (Settled::Impossible, format!("{why:?}")),
    };
    for user in users(&calls) {
        let slice = Slice::of(user, &calls);
        let problem = Problem::new(&ground, Scope::Part(&slice));
        let mut search = Search::new(&problem, budget);
        let found = search.run();
        match found {
            Found::Nothing(_) => {
                return (Settled::Impossible, format!("slice {user} {} steps", search.steps()));
            }
            Found::OverBudget(best) => {
                eprintln!("slice {user}: over budget {} of {}+{}", best.len(), problem.required.len(), problem.optional.len());
            }
            Found::Order(_) => eprintln!("slice {user}: {} steps, {}+{}", search.steps(), problem.required.len(), problem.optional.len()),
        }
    }
    let problem = Problem::new(&ground, Scope::Whole);
    let mut search = Search::new(&problem, budget);
    let found = search.run();
    let steps = search.steps();
    match found {
        Found::Order(order) => (Settled::Ordered, format!("whole {steps} steps, {}", order.len())),
        Found::Nothing(best) => (Settled::Impossible, format!("whole {steps} steps, best {}", best.len())),
        Found::OverBudget(best) => (Settled::OverBudget, format!("whole {steps} steps, best {} of {}+{}", best.len(), problem.required.len(), problem.optional.len())),
    }
}

/// Every user that some token names, and nobody.
fn users<'h>(calls: &[Call<'h>]) -> BTreeSet<&'h str> {
    calls.iter().map(|call| call.user).collect()
}
