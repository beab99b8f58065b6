//! Right histories with one thing changed that makes them wrong: the judge must let none of them pass. A change that may
//! leave the history right, because nobody saw the difference, is not made.

use super::generated::{Random, Run, is_rejected};
use super::script::refused;
use crate::history::{Applied, Event, History, Op, Outcome, Reply, What};
use crate::model::Refusal;
use std::collections::{BTreeMap, BTreeSet};

/// Right histories to change.
const RUNS: u64 = 40;

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
fn replies<'h>(history: &'h mut History, choose: fn(&Op, &Reply) -> bool) -> Vec<&'h mut Outcome> {
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
    let expiries = entries.iter().filter(|(e, _)| e.kind == "token-expire");
    let visible = expiries.filter(|(expiry, _)| {
        let token = Held::of(expiry, &entries, &calls);
        token.is_some_and(|token| {
            token.is_ended_by(expiry) && token.is_refused_after(expiry, history)
        })
    });
    let visible = visible.map(|(expiry, _)| expiry.index).collect();
    let Some(chosen) = pick(random, visible) else {
        return false;
    };
    change_entry(history, chosen, |applied| applied.tokens.clear());
    true
}

/// The token that an expiry names.
struct Held<'h> {
    entries: &'h [(Applied, u64)],
    calls: &'h BTreeMap<u64, (Option<u64>, Op)>,
    /// Index of its login's entry, the login, and its user.
    index: u64,
    login: u64,
    user: &'h str,
}

impl<'h> Held<'h> {
    fn of(
        expiry: &Applied,
        entries: &'h [(Applied, u64)],
        calls: &'h BTreeMap<u64, (Option<u64>, Op)>,
    ) -> Option<Held<'h>> {
        let index = expiry.tokens[0].login_index;
        let (_, login) = entries.iter().find(|(e, _)| e.index == index)?;
        let (_, Op::Login { user, .. }) = calls.get(login)? else {
            return None;
        };
        Some(Held {
            entries,
            calls,
            index,
            login: *login,
            user,
        })
    }

    fn is_named(&self, entry: &Applied) -> bool {
        entry
            .tokens
            .iter()
            .any(|note| note.login_index == self.index)
    }

    /// Whether an entry may end the token.
    fn may_end(&self, entry: &Applied, call: u64) -> bool {
        let of_user = match self.calls.get(&call).map(|(_, op)| op) {
            Some(Op::AuthDisable {}) => true,
            Some(
                Op::ChangePassword { user, .. } | Op::UserDelete { user } | Op::Login { user, .. },
            ) => user == self.user,
            _ => false,
        };
        of_user && entry.decision == "ok" || entry.kind == "token-expire" && self.is_named(entry)
    }

    /// Whether it was this expiry that ended it: its count is right, and nothing came before.
    fn is_ended_by(&self, expiry: &Applied) -> bool {
        let is_between = |e: &Applied| e.index > self.index && e.index < expiry.index;
        let between = self.entries.iter().filter(|(e, _)| is_between(e));
        let is_report = |e: &Applied| e.kind == "token-refresh" && self.is_named(e);
        let reports = between.clone().filter(|(e, _)| is_report(e)).count();
        let mut between = between;
        reports as u64 == expiry.tokens[0].refresh_count
            && !between.any(|(e, call)| self.may_end(e, *call))
    }

    /// Whether a call is refused for it between this expiry and whatever may end it next.
    fn is_refused_after(&self, expiry: &Applied, history: &History) -> bool {
        let later = self.entries.iter().filter(|(e, _)| e.index > expiry.index);
        let mut later = later.filter(|(e, call)| self.may_end(e, *call));
        let next = later.next().map_or(u64::MAX, |(e, _)| e.index);
        let reaches = |event: &Event, index| matches!(&event.what, What::Applied(applied) if applied.index >= index);
        let events = history.events.iter();
        let after = events.skip_while(|event| !reaches(event, expiry.index));
        let mut until = after.take_while(|event| !reaches(event, next));
        until.any(|event| match &event.what {
            What::Return { call, outcome } => {
                self.calls[call].0 == Some(self.login) && *outcome == refused(Refusal::InvalidToken)
            }
            _ => false,
        })
    }
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

/// Lets an expiry count that had not seen the last use, or had come too early: right after the report.
fn expire_early(random: &mut Random, history: &mut History) -> bool {
    let (calls, entries) = (calls(history), entries(history));
    let late: Vec<(u64, u64)> = entries
        .iter()
        .filter(|(e, _)| e.kind == "token-expire")
        .filter_map(|(e, _)| {
            let mut counted = e.clone();
            counted.tokens[0].refresh_count += 1;
            let login = counted.tokens[0].login_index;
            let report = entries.iter().rev().find(|(r, _)| {
                let names = r.tokens.iter().any(|t| t.login_index == login);
                r.index < e.index && r.kind == "token-refresh" && names
            });
            let token = Held::of(&counted, &entries, &calls)?;
            let is_counted = token.is_ended_by(&counted);
            let soon =
                report.is_some_and(|(r, _)| at(history, e.index) < at(history, r.index) + 100_000);
            (is_counted && soon).then_some((e.index, counted.tokens[0].refresh_count))
        })
        .collect();
    let Some((chosen, count)) = pick(random, late) else {
        return false;
    };
    change_entry(history, chosen, |applied| {
        applied.tokens[0].refresh_count = count;
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
