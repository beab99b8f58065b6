//! The obviously correct check: every order of the calls that respects real time, with every set of the calls of unknown
//! outcome. It shares nothing with the search but the model, and asks that in its plainest form.

use crate::history::{History, Op, Outcome, Reply, What};
use crate::model::{Caller, Model, Refusal};
use std::collections::BTreeMap;

struct Call<'h> {
    number: u64,
    token: Option<u64>,
    op: &'h Op,
    sent: usize,
    ended: usize,
    outcome: Option<&'h Outcome>,
}

/// State after some calls: the model, and for each login that gave a token the auth changes and disables before it.
#[derive(Clone)]
struct State {
    model: Model,
    issued: BTreeMap<u64, (u64, u64)>,
    disables: u64,
}

/// Whether any order explains every answer.
pub(super) fn has_order(history: &History) -> bool {
    let mut calls: Vec<Call<'_>> = Vec::new();
    for (event, at) in history.events.iter().enumerate() {
        match &at.what {
            What::Invoke {
                call, token, op, ..
            } => calls.push(Call {
                number: *call,
                token: *token,
                op,
                sent: event,
                ended: usize::MAX,
                outcome: None,
            }),
            What::Return { call, outcome } => {
                let found = calls.iter_mut().find(|found| found.number == *call);
                let found = found.expect("each call is sent first");
                if !matches!(outcome, Outcome::Unknown { .. }) {
                    (found.ended, found.outcome) = (event, Some(outcome));
                }
            }
            _ => {}
        }
    }
    let state = State {
        model: Model::new(),
        issued: BTreeMap::new(),
        disables: 0,
    };
    extend(&calls, &mut vec![false; calls.len()], &state)
}

fn extend(calls: &[Call<'_>], placed: &mut [bool], state: &State) -> bool {
    let waiting = || (0..calls.len()).filter(|id| !placed[*id]);
    let deadline = waiting().map(|id| calls[id].ended).min();
    let deadline = deadline.unwrap_or(usize::MAX);
    if waiting().all(|id| calls[id].outcome.is_none()) {
        return true;
    }
    for id in waiting()
        .filter(|id| calls[*id].sent < deadline)
        .collect::<Vec<_>>()
    {
        if let Some(next) = put(&calls[id], state) {
            placed[id] = true;
            let found = extend(calls, placed, &next);
            placed[id] = false;
            if found {
                return true;
            }
        }
    }
    false
}

/// The state after the call, if it may have been answered like that here.
fn put(call: &Call<'_>, state: &State) -> Option<State> {
    let mut next = state.clone();
    let position = next.model.accounts().generation() + 1;
    let answer = match call.op {
        Op::Login { user, password } => log_in(call.number, user, password, &mut next),
        op => {
            let caller = call
                .token
                .map_or(Caller::Anonymous, |login| Caller::Bearer { login });
            next.model.apply(position, caller, op)
        }
    };
    let was_on = state.model.accounts().is_enabled();
    if was_on && !next.model.accounts().is_enabled() {
        next.disables += 1;
    }
    match (call.outcome, answer) {
        (None, Ok(_)) => Some(next),
        // What else stands in a login's answer says nothing of any state.
        (Some(Outcome::Ok(_)), Ok(_)) if matches!(call.op, Op::Login { .. }) => Some(next),
        (Some(Outcome::Ok(told)), Ok(right)) => {
            let names_revision = matches!(
                call.op,
                Op::Put { .. } | Op::Get { .. } | Op::Delete { .. } | Op::Txn { .. }
            );
            let (mut told, mut right) = (told.clone(), right);
            if !names_revision && told.revision == 0 {
                right.revision = 0;
            }
            told.permissions.sort();
            right.permissions.sort();
            (*told == right).then_some(next)
        }
        (Some(Outcome::Refused { message, .. }), answer) => {
            let told = Refusal::from_message(message).expect("the generator knows its refusals");
            (answer == Err(told) || is_excused(call, told, state)).then(|| state.clone())
        }
        _ => None,
    }
}

/// Refusals that need not come from the very state that they are placed in.
fn is_excused(call: &Call<'_>, told: Refusal, state: &State) -> bool {
    let issued = call.token.and_then(|login| state.issued.get(&login));
    let accounts = state.model.accounts();
    match told {
        // Whether auth is on is asked in another moment than whether the password is right.
        Refusal::AuthFailed => match call.op {
            Op::Login { user, password } => {
                let user = accounts.user(user);
                user.is_none_or(|user| user.password != *password)
            }
            _ => false,
        },
        Refusal::InvalidToken => call.token.is_some_and(|login| !state.model.is_alive(login)),
        Refusal::UserEmpty => {
            let was_off = issued.is_none_or(|(_, disables)| state.disables > *disables);
            call.token.is_some() && accounts.is_enabled() && was_off
        }
        _ => false,
    }
}

fn log_in(number: u64, user: &str, password: &str, state: &mut State) -> Result<Reply, Refusal> {
    let accounts = state.model.accounts();
    if !accounts.is_enabled() {
        return Err(Refusal::NotEnabled);
    }
    if accounts
        .user(user)
        .is_none_or(|user| user.password != password)
    {
        return Err(Refusal::AuthFailed);
    }
    let generation = accounts.generation();
    state.issued.insert(number, (generation, state.disables));
    // Its positions are those of auth changes: the newest state is at the newest one.
    let index = generation;
    state.model.issue(index, number, user, password, index);
    Ok(Reply::default())
}
