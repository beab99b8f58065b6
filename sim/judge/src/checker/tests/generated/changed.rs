//! Right histories in which one thing is changed, or several at random: the judge must reject them, or at least survive.

use super::{RUNS, Random, Run};
use crate::checker::tests::decisions::swap_entries;
use crate::checker::tests::script::refused;
use crate::history::{Applied, History, Outcome, What};
use crate::judgement::judge;
use crate::model::Refusal;
use crate::verdict::VerdictKind;
use std::collections::BTreeSet;

/// Claims that the judge does not let the mutated history pass.
#[track_caller]
pub(in crate::checker::tests) fn is_rejected(history: &History, mutation: &str, seed: u64) {
    let verdict = judge(history);
    assert_ne!(verdict.kind, VerdictKind::Ok, "{mutation}, seed {seed}");
}

/// Indices of entries that a choice takes, as the first member reports them.
fn entries(history: &History, choose: fn(&Applied) -> bool) -> Vec<u64> {
    let mut indices = BTreeSet::new();
    for event in &history.events {
        if let What::Applied(applied) = &event.what
            && applied.request_id != 0
            && choose(applied)
        {
            indices.insert(applied.index);
        }
    }
    indices.into_iter().collect()
}

#[test]
fn a_flipped_decision_is_rejected() {
    for seed in 0..RUNS {
        let mut random = Random(seed);
        let mut history = Run::generate(seed);
        // A login that started over may as well have been given its token, if nobody used it.
        let indices = entries(&history, |applied| applied.decision != "again");
        let chosen = indices[usize::try_from(random.below(indices.len() as u64)).unwrap()];
        let on_one_member = random.chance(50);
        for event in &mut history.events {
            if let What::Applied(applied) = &mut event.what
                && applied.index == chosen
                && (!on_one_member || applied.member == 2)
            {
                let flipped = if applied.decision == "ok" {
                    "permission denied"
                } else {
                    "ok"
                };
                applied.decision = flipped.into();
            }
        }
        is_rejected(&history, "flipped decision", seed);
    }
}

#[test]
fn a_changed_digest_is_rejected() {
    for seed in 0..RUNS {
        let mut random = Random(seed);
        let mut history = Run::generate(seed);
        let places: Vec<usize> = (0..history.events.len())
            .filter(|at| matches!(history.events[*at].what, What::Applied(_)))
            .collect();
        let at = places[usize::try_from(random.below(places.len() as u64)).unwrap()];
        if let What::Applied(applied) = &mut history.events[at].what {
            applied.digest ^= 1;
        }
        is_rejected(&history, "changed digest", seed);
    }
}

#[test]
fn swapped_positions_are_rejected() {
    let mut swapped = 0;
    for seed in 0..RUNS {
        let mut history = Run::generate(seed);
        let indices = entries(&history, |applied| {
            applied.kind == "put" && applied.decision == "ok"
        });
        let Some([one, other]) = indices.first_chunk() else {
            continue;
        };
        // Of two lost writes nobody can say which came first.
        swap_entries(&mut history, *one, *other);
        let answered = entries_were_answered(&history, [*one, *other]);
        if answered {
            swapped += 1;
            is_rejected(&history, "swapped positions", seed);
        }
    }
    assert!(swapped > RUNS / 2);
}

fn entries_were_answered(history: &History, indices: [u64; 2]) -> bool {
    let log = history.events.iter().filter_map(|event| match &event.what {
        What::Applied(applied) if indices.contains(&applied.index) => Some(applied.request_id),
        _ => None,
    });
    let requests: BTreeSet<u64> = log.collect();
    let calls: BTreeSet<u64> = history
        .events
        .iter()
        .filter_map(|event| match event.what {
            What::Proposed {
                call, request_id, ..
            } if requests.contains(&request_id) => Some(call),
            _ => None,
        })
        .collect();
    history.events.iter().any(|event| {
        matches!(&event.what, What::Return { call, outcome: Outcome::Ok(_) } if calls.contains(call))
    })
}

#[test]
fn a_moved_return_is_rejected() {
    for seed in 0..RUNS {
        let mut random = Random(seed);
        let mut history = Run::generate(seed);
        let ends: Vec<usize> = (0..history.events.len())
            .filter(|at| {
                matches!(
                    history.events[*at].what,
                    What::Return {
                        outcome: Outcome::Ok(_),
                        ..
                    }
                )
            })
            .collect();
        let from = ends[usize::try_from(random.below(ends.len() as u64)).unwrap()];
        let What::Return { call, .. } = history.events[from].what else {
            continue;
        };
        let invoked = history.events.iter().position(
            |event| matches!(event.what, What::Invoke { call: sent, .. } if sent == call),
        );
        // To just behind the call's own start, before anything was done for it.
        let to = invoked.unwrap() + 1;
        let mut moved = history.events.remove(from);
        moved.at_us = history.events[to - 1].at_us;
        history.events.insert(to, moved);
        is_rejected(&history, "moved return", seed);
    }
}

#[test]
fn a_flipped_answer_is_rejected() {
    for seed in 0..RUNS {
        let mut random = Random(seed);
        let mut history = Run::generate(seed);
        let mut ends: Vec<&mut Outcome> = history
            .events
            .iter_mut()
            .filter_map(|event| match &mut event.what {
                What::Return { outcome, .. } => Some(outcome),
                _ => None,
            })
            .filter(|outcome| matches!(outcome, Outcome::Ok(_)))
            .collect();
        let chosen = usize::try_from(random.below(ends.len() as u64)).unwrap();
        *ends[chosen] = refused(Refusal::PermissionDenied);
        is_rejected(&history, "flipped answer", seed);
    }
}

#[test]
fn a_scrambled_history_is_judged_without_a_panic() {
    for seed in 0..RUNS {
        let mut random = Random(seed);
        let mut history = Run::generate(seed);
        for _ in 0..8 {
            let at = usize::try_from(random.below(history.events.len() as u64)).unwrap();
            scramble(&mut random, &mut history, at);
        }
        let verdict = judge(&history);
        assert_eq!(judge(&history), verdict, "seed {seed}");
    }
}

fn scramble(random: &mut Random, history: &mut History, at: usize) {
    let number = [0, 1, u64::MAX][usize::try_from(random.below(3)).unwrap()];
    match &mut history.events[at].what {
        What::Applied(applied) if random.chance(50) => applied.index = number,
        What::Applied(applied) => applied.request_id = number,
        What::Served { index, .. } | What::Started { index, .. } => *index = number,
        What::Proposed { request_id, .. } => *request_id = number,
        What::Invoke { member, .. } => *member = number,
        _ => {
            history.events.remove(at);
        }
    }
}
