//! Calls that are said to have no order have none, whatever the answers of the others were; and none of them is to spare.

use super::super::{Settled, Solved, calls, settle, solve};
use super::agreement::AMPLE;
use super::small;
use crate::history::{History, Outcome, What};
use crate::random::Random;
use crate::search::workload::{Size, make};
use std::collections::BTreeSet;

/// The history with the answers of only these calls.
fn with_answers_of(history: &History, kept: &BTreeSet<u64>) -> History {
    let mut history = history.clone();
    history.events.retain(|event| match &event.what {
        What::Return { call, .. } => kept.contains(call),
        _ => true,
    });
    history
}

fn has_order(history: &History) -> bool {
    let calls = calls::read(history).expect("the generator knows its refusals");
    match solve(&calls, |_| true, AMPLE) {
        Solved::Order(_) => true,
        Solved::Nothing(_) => false,
        Solved::OverBudget { .. } => panic!("a dozen calls are too many"),
    }
}

fn mutated(seed: u64) -> Option<History> {
    small::mutate(small::make(seed), &mut Random(!seed))
}

#[test]
fn what_is_named_is_enough_and_none_of_it_is_to_spare() {
    let (mut named_several, mut minimal) = (0, 0);
    for history in (0..3_000).filter_map(mutated) {
        let Settled::Impossible(found) = settle(&history, AMPLE) else {
            continue;
        };
        let named: BTreeSet<u64> = found.calls.iter().copied().collect();
        assert!(!has_order(&with_answers_of(&history, &named)), "{found:#?}");
        named_several += u32::from(named.len() > 1);
        if found.is_minimal {
            minimal += 1;
            for call in &named {
                let mut fewer = named.clone();
                fewer.remove(call);
                let rest = with_answers_of(&history, &fewer);
                assert!(has_order(&rest), "without {call}: {found:#?}");
            }
        }
    }
    assert!(
        named_several > 150 && minimal > 1000,
        "{named_several} sets of several calls, {minimal} that are minimal"
    );
}

/// A role's part knows nothing of who asks about the role, so the state is told as all calls make it.
#[test]
fn a_wrong_answer_about_a_role_is_explained_by_the_role() {
    let mut explained = 0;
    for seed in 1..=12 {
        let size = Size {
            clients: 8,
            calls: 300,
            unknown_percent: 20,
            wrong: false,
        };
        let mut history = make(seed, size);
        if !forget_permissions(&mut history) {
            continue;
        }
        let Settled::Impossible(found) = settle(&history, AMPLE) else {
            continue;
        };
        let text = found.lines.join("\n");
        assert!(!text.contains("there is no user"), "{text}");
        assert!(text.contains("root has password"), "{text}");
        let roles = ["app", "ops", "log", "web"];
        let is_shown = |role| text.contains(&format!("  role {role} gives"));
        explained += u32::from(roles.into_iter().any(is_shown));
    }
    assert!(explained >= 2, "{explained}");
}

/// Takes the permissions out of the last answer that tells of a role's.
fn forget_permissions(history: &mut History) -> bool {
    for event in history.events.iter_mut().rev() {
        if let What::Return {
            outcome: Outcome::Ok(reply),
            ..
        } = &mut event.what
            && !reply.permissions.is_empty()
        {
            reply.permissions.clear();
            return true;
        }
    }
    false
}

/// That a pair was seen that no call can have written rests on what everybody was told who tried to write it,
/// also if that says nothing of any state.
#[test]
fn a_pair_that_nobody_wrote_is_told_of_with_those_who_were_refused() {
    let calls_of = |text: &str| -> History {
        let events = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("an event"));
        History {
            header: crate::history::Header::default(),
            events: events.collect(),
        }
    };
    let history = calls_of(
        r#"{"at_us":1,"event":"invoke","call":1,"client":"a","member":1,"token":null,"op":{"do":"put","key":"x","value":"1"}}
{"at_us":2,"event":"return","call":1,"outcome":{"outcome":"refused","code":"Unavailable","message":"etcdserver: no leader"}}
{"at_us":3,"event":"invoke","call":2,"client":"a","member":1,"token":null,"op":{"do":"put","key":"y","value":"1"}}
{"at_us":4,"event":"return","call":2,"outcome":{"outcome":"unknown","code":"","message":""}}
{"at_us":5,"event":"invoke","call":3,"client":"b","member":1,"token":null,"op":{"do":"get","key":"x"}}
{"at_us":6,"event":"return","call":3,"outcome":{"outcome":"ok","revision":2,"count":1,"kvs":[{"key":"x","value":"1","create_revision":2,"mod_revision":2,"version":1}]}}"#,
    );
    let Settled::Impossible(found) = settle(&history, AMPLE) else {
        panic!("a refused write was seen");
    };
    assert_eq!(found.calls, [1, 3], "{found:#?}");
    assert!(found.is_minimal, "{found:#?}");
    assert!(
        found.sentence.contains("which no call can have written"),
        "{found:#?}"
    );
}

#[test]
fn calls_whose_answers_are_lost_are_read_as_if_they_had_never_come() {
    for history in (0..300).filter_map(mutated) {
        let mut random = Random(history.events.len() as u64);
        let calls = calls::read(&history).expect("the generator knows its refusals");
        let kept: BTreeSet<usize> = (0..calls.len()).filter(|_| random.chance(50)).collect();
        let numbers = kept.iter().map(|id| calls[*id].number).collect();
        let lost = with_answers_of(&history, &numbers);
        let mut expected = calls::read(&lost).expect("fewer answers");
        let found = calls::with_answers_of(&calls, &kept, history.header.tokens);
        for (found, expected) in found.iter().zip(&mut expected) {
            // Events that are gone are not counted any more.
            (expected.sent, expected.ended) = (found.sent, found.ended);
            assert_eq!(format!("{found:?}"), format!("{expected:?}"));
        }
    }
}
