//! Whether any order of a history's calls explains what clients were told, from what clients saw alone: neither the log
//! nor any member's word is read. So it judges histories that have nothing else, and it is a second opinion on those that
//! have.
//!
//! Stages: [`calls`] reads what clients saw; [`problem`] says which calls must have a place and between which events;
//! [`slice`] cuts out what concerns one user, where a contradiction shows soonest; [`order`] searches; [`state`] says
//! what is right where.

compile_error!("To J1 from the maintainer: read /tmp/j1-note.md now, then delete this line.");
mod calls;
mod facts;
mod forced;
mod list;
mod order;
mod problem;
mod slice;
mod state;

pub mod workload;

pub use order::Budget;

use crate::history::History;
use calls::Call;
use forced::Forced;
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
    let slices = Slice::all(&calls);
    let parts: Vec<Problem<'_, '_, '_>> = slices.iter().map(|slice| Problem::new(&ground, Scope::Part(slice))).collect();
    for (slice, problem) in slices.iter().zip(&parts) {
        let user = format!("{} {:?}", slice.user, slice.key);
        let mut search = Search::new(problem, &[], budget);
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
    let forced = Forced::find(&ground, &slices);
    eprintln!("seed forced {} of {} steps {}", forced.by.len(), Problem::new(&ground, Scope::Whole).optional.iter().filter(|id| !state::is_data(calls[**id].op)).count(), forced.steps);
    drop(parts);
    let mut ground = ground;
    ground.adopt(&forced);
    let parts: Vec<Problem<'_, '_, '_>> = slices.iter().map(|slice| Problem::new(&ground, Scope::Part(slice))).collect();
    let problem = Problem::new(&ground, Scope::Whole);
    let mut search = Search::new(&problem, &parts, budget);
    let found = search.run();
    let steps = search.steps();
    match found {
        Found::Order(order) => (Settled::Ordered, format!("whole {steps} steps, {}", order.len())),
        Found::Nothing(best) => (Settled::Impossible, format!("whole {steps} steps, best {}", best.len())),
        Found::OverBudget(best) => (Settled::OverBudget, debug_best(&problem, &best) + &format!("whole {steps} steps, best {} of {}+{}", best.len(), problem.required.len(), problem.optional.len())),
    }
}

fn debug_best(problem: &Problem<'_, '_, '_>, best: &[usize]) -> String {
    let mut state = state::State::default();
    for id in best {
        if let state::Step::New(after) = state.step(problem.call(*id), Scope::Whole) { state = after; }
    }
    let placed: BTreeSet<usize> = best.iter().copied().collect();
    let mut left: Vec<usize> = problem.required.iter().copied().filter(|id| !placed.contains(id)).collect();
    left.sort_by_key(|id| problem.ended(*id));
    let dl = problem.ended(left[0]);
    eprintln!("state rev {} ar {} enabled {}", state.model.kv_revision(), state.model.accounts().revision(), state.model.accounts().is_enabled());
    for id in left.iter().filter(|id| problem.sent(**id) < dl) {
        let call = problem.call(*id);
        eprintln!("  {} user {} tok {:?} {:?} at {:?} told {:?}", call.number, call.user, call.token, call.op, problem.at(*id), call.told);
        eprintln!("      user {:?} alive", state.model.accounts().user(call.user));
    }
    let n = problem.optional.iter().filter(|id| !placed.contains(id) && problem.sent(**id) < dl).count();
    eprintln!("  {n} optional");
    for id in problem.optional.iter().filter(|id| !placed.contains(id) && problem.sent(**id) < dl) {
        let call = problem.call(*id);
        let what = match state.step(call, Scope::Whole) { state::Step::New(_) => "new", state::Step::Same=>"same", _=>"wrong" };
        eprintln!("    opt {} user {} {:?} {what}", call.number, call.user, call.op);
    }
    String::new()
}

/// Every user that some token names, and nobody.
fn users<'h>(calls: &[Call<'h>]) -> BTreeSet<&'h str> {
    calls.iter().map(|call| call.user).collect()
}
