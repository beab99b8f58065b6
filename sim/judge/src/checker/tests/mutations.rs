//! Right histories with one thing changed that makes them wrong: the judge must let none of them pass. A change that may
//! leave the history right, because nobody saw the difference, is not made.

use super::generated::{RULES, Random, Run, is_rejected};
use super::script::refused;
use crate::history::{Applied, Event, History, Op, Outcome, Reply, What};
use crate::model::{Ending, Model, Refusal};
use std::collections::{BTreeMap, BTreeSet};

/// Right histories to change.
const RUNS: u64 = 40;

/// No history has as many calls.
const CALLS_MAX: u64 = 2000;

/// Changes one thing; false if there is nothing of the kind to change.
type Mutation = fn(&mut Random, &mut History) -> bool;

const MUTATIONS: [(&str, Mutation); 8] = [
    ("another value", another_value),
    ("another revision", another_revision),
    ("a dropped expiry", drop_expiry),
    ("a dead token that works", wake_token),
    ("exchanged tokens", exchange_tokens),
    ("another local answer", another_local_answer),
    ("a refused local read", refuse_local_read),
    ("an expiry too early", expire_early),
];

#[test]
fn a_history_with_one_thing_wrong_is_rejected() {
    let mut made: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 0..RUNS {
        let right = Run::generate(seed);
        for (name, mutate) in MUTATIONS {
            let mut history = right.clone();
            if mutate(&mut Random(seed), &mut history) {
                is_rejected(&history, name, seed);
                *made.entry(name).or_default() += 1;
            }
        }
    }
    assert!(made.values().sum::<u64>() >= 200, "{made:?}");
    assert_eq!(made.len(), MUTATIONS.len(), "{made:?}");
    assert!(made.values().all(|count| *count >= 5), "{made:?}");
}

/// A random one of them.
fn pick<T>(random: &mut Random, mut choices: Vec<T>) -> Option<T> {
    if choices.is_empty() {
        return None;
    }
    let chosen = random.below(choices.len() as u64);
    Some(choices.swap_remove(usize::try_from(chosen).unwrap()))
}

/// What each call asks, and with whose token.
fn calls(history: &History) -> BTreeMap<u64, (Option<u64>, Op)> {
    let sent = history.events.iter().filter_map(|event| match &event.what {
        What::Invoke {
            call, token, op, ..
        } => Some((*call, (*token, (**op).clone()))),
        _ => None,
    });
    sent.collect()
}

/// Each entry once, with the call that it is for.
fn entries(history: &History) -> Vec<(Applied, u64)> {
    let mut requests = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut entries = Vec::new();
    for Event { what, .. } in &history.events {
        match what {
            What::Proposed {
                call, request_id, ..
            } => {
                requests.insert(*request_id, *call);
            }
            What::Applied(applied) if seen.insert(applied.index) => {
                let call = requests.get(&applied.request_id).copied();
                entries.push(((**applied).clone(), call.unwrap_or(0)));
            }
            _ => {}
        }
    }
    entries
}

/// Answers with a content, of calls that `choose` takes.
fn replies(history: &mut History, choose: fn(&Op, &Reply) -> bool) -> Vec<&mut Outcome> {
    let calls = calls(history);
    let ends = history.events.iter_mut();
    ends.filter_map(|event| match &mut event.what {
        What::Return { call, outcome } => match outcome {
            Outcome::Ok(reply) if choose(&calls[call].1, reply) => Some(outcome),
            _ => None,
        },
        _ => None,
    })
    .collect()
}

fn is_local(op: &Op) -> bool {
    matches!(
        op,
        Op::Get {
            serializable: true,
            ..
        }
    )
}

fn change_reply(outcome: Option<&mut Outcome>, change: impl FnOnce(&mut Reply)) -> bool {
    let Some(Outcome::Ok(reply)) = outcome else {
        return false;
    };
    change(reply);
    true
}

fn another_value(random: &mut Random, history: &mut History) -> bool {
    let shown = replies(history, |op, reply| !is_local(op) && !reply.kvs.is_empty());
    change_reply(pick(random, shown), |reply| {
        reply.kvs[0].value = "another".into();
    })
}

fn another_revision(random: &mut Random, history: &mut History) -> bool {
    let told = replies(history, |op, reply| {
        matches!(op, Op::Put { .. } | Op::Get { .. }) && !is_local(op) && reply.revision > 0
    });
    let up = random.chance(50);
    change_reply(pick(random, told), |reply| {
        reply.revision += if up { 1 } else { -1 };
    })
}

fn another_local_answer(random: &mut Random, history: &mut History) -> bool {
    let shown = replies(history, |op, reply| is_local(op) && !reply.kvs.is_empty());
    change_reply(pick(random, shown), |reply| reply.kvs[0].mod_revision -= 1)
}

fn refuse_local_read(random: &mut Random, history: &mut History) -> bool {
    let allowed = replies(history, |op, _| is_local(op));
    match pick(random, allowed) {
        Some(outcome) => {
            *outcome = refused(Refusal::PermissionDenied);
            true
        }
        None => false,
    }
}

/// Lets an expiry name nobody, where a refusal shows afterwards that the token had ended, and nothing else ended it.
fn drop_expiry(random: &mut Random, history: &mut History) -> bool {
    let (calls, entries) = (calls(history), entries(history));
    let right = replay(&entries, &calls);
    let mut visible = Vec::new();
    for (at, (expiry, _)) in entries.iter().enumerate() {
        let Some(login) = expired_by(&right, expiry) else {
            continue;
        };
        let mut changed = entries.clone();
        changed[at].0.tokens.clear();
        let without = replay(&changed, &calls);
        if is_refused_while_alive(history, &calls, &without, login, expiry.index) {
            visible.push(expiry.index);
        }
    }
    let Some(chosen) = pick(random, visible) else {
        return false;
    };
    change_entry(history, chosen, |applied| applied.tokens.clear());
    true
}

/// The state after each entry of a log, from the first on.
fn replay(
    entries: &[(Applied, u64)],
    calls: &BTreeMap<u64, (Option<u64>, Op)>,
) -> BTreeMap<u64, Model> {
    let mut model = Model::with_rules(RULES);
    let mut states = BTreeMap::new();
    for (entry, call) in entries {
        let index = entry.index;
        match calls.get(call).map(|(_, op)| op) {
            _ if entry.decision != "ok" => {}
            Some(Op::Login { user, password }) => {
                model.issue(index, *call, user, password, 0);
            }
            Some(op) => {
                model.perform(index, op);
            }
            None if entry.kind == "token-refresh" => model.refresh(index, &entry.tokens),
            None => {
                model.expire(index, &entry.tokens);
            }
        }
        states.insert(index, model.clone());
    }
    states
}

/// The login whose token an entry has expired.
fn expired_by(states: &BTreeMap<u64, Model>, entry: &Applied) -> Option<u64> {
    let model = &states[&entry.index];
    let ended = |login: &u64| {
        let token = model.token(*login)?;
        let end = token.end?;
        let named = entry.tokens.first()?.login_index == token.index;
        (named && end.index == entry.index && end.why == Ending::Expired).then_some(())
    };
    (0..CALLS_MAX).find(|login| ended(login).is_some())
}

/// Whether a call is refused for the token of `login` after `from`, when it is alive in these states.
fn is_refused_while_alive(
    history: &History,
    calls: &BTreeMap<u64, (Option<u64>, Op)>,
    states: &BTreeMap<u64, Model>,
    login: u64,
    from: u64,
) -> bool {
    let mut applied = 0;
    history.events.iter().any(|event| match &event.what {
        What::Applied(entry) => {
            applied = entry.index.max(applied);
            false
        }
        What::Return { call, outcome } if applied >= from => {
            calls[call].0 == Some(login)
                && *outcome == refused(Refusal::InvalidToken)
                && states[&applied].is_alive(login)
        }
        _ => false,
    })
}

/// Lets an entry be accepted that a dead token asked for.
fn wake_token(random: &mut Random, history: &mut History) -> bool {
    let entries = entries(history).into_iter();
    let dead = entries.filter(|(e, _)| e.decision == Refusal::InvalidToken.text());
    let Some((entry, call)) = pick(random, dead.collect()) else {
        return false;
    };
    change_entry(history, entry.index, |applied| {
        applied.decision = "ok".into();
    });
    for event in &mut history.events {
        if let What::Return {
            call: ended,
            outcome,
        } = &mut event.what
            && *ended == call
        {
            *outcome = Outcome::Ok(Box::default());
        }
    }
    true
}

/// Exchanges the tokens of two accepted calls of different users, whose entries name them.
fn exchange_tokens(random: &mut Random, history: &mut History) -> bool {
    let calls = calls(history);
    let entries = entries(history).into_iter();
    let named: Vec<(Applied, u64)> = entries
        .filter(|(e, _)| e.decision == "ok" && !e.user.is_empty())
        .collect();
    let Some((one, first)) = pick(random, named.clone()) else {
        return false;
    };
    let others = named.into_iter().filter(|(e, _)| e.user != one.user);
    let Some((_, second)) = pick(random, others.collect()) else {
        return false;
    };
    let tokens = [(first, calls[&second].0), (second, calls[&first].0)];
    for event in &mut history.events {
        if let What::Invoke { call, token, .. } = &mut event.what
            && let Some((_, other)) = tokens.iter().find(|(number, _)| number == call)
        {
            *token = *other;
        }
    }
    true
}

/// Lets an expiry count that had not seen the last use, right after that was reported.
fn expire_early(random: &mut Random, history: &mut History) -> bool {
    let (calls, entries) = (calls(history), entries(history));
    let mut early = Vec::new();
    for (number, (expiry, _)) in entries.iter().enumerate() {
        if expiry.kind != "token-expire" {
            continue;
        }
        let mut changed = entries.clone();
        changed[number].0.tokens[0].refresh_count += 1;
        let states = replay(&changed, &calls);
        let Some(login) = expired_by(&states, &changed[number].0) else {
            continue;
        };
        let reported = states[&expiry.index].token(login).unwrap().refreshed_at;
        if at(history, expiry.index) < at(history, reported) + RULES.ttl_ms * 1000 {
            early.push(expiry.index);
        }
    }
    let Some(chosen) = pick(random, early) else {
        return false;
    };
    change_entry(history, chosen, |applied| {
        applied.tokens[0].refresh_count += 1;
    });
    true
}

/// When an entry was first applied, microseconds.
fn at(history: &History, index: u64) -> u64 {
    let mut events = history.events.iter();
    let first =
        events.find(|e| matches!(&e.what, What::Applied(applied) if applied.index == index));
    first.unwrap().at_us
}

/// Changes an entry on every member.
fn change_entry(history: &mut History, index: u64, change: impl Fn(&mut Applied)) {
    for event in &mut history.events {
        if let What::Applied(applied) = &mut event.what
            && applied.index == index
        {
            change(applied);
        }
    }
}
