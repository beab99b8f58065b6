//! What the judge makes of the search: the verdict on a history that has nothing but what clients saw, and a second
//! opinion on one whose members' records have been judged.

use super::{Budget, Explanation, Settled, settle};
use crate::history::{History, Outcome, What};
use crate::model::Refusal;
use crate::verdict::{Verdict, VerdictKind};

/// Budget where the search alone judges: some tens of seconds, and a few hundred megabytes.
const ALONE: Budget = Budget {
    steps: 30_000_000,
    states: 2_000_000,
};

/// Budget of a second opinion: less than a second.
const SECOND: Budget = Budget {
    steps: 300_000,
    states: 200_000,
};

/// Most calls of a history on which a second opinion is asked after a violation.
const VIOLATION_CALLS_MAX: usize = 3_000;

/// Most calls of a history on which one is asked although the judge has nothing to object.
const PASSED_CALLS_MAX: usize = 400;

/// One seed in so many gets a second opinion although the judge has nothing to object: often enough that a night of
/// fuzzing holds thousands of them, rarely enough that nobody waits for it.
const PASSED_SEEDS: u64 = 64;

/// Whether the history holds nothing of what members recorded of calls, so that the search alone can judge it.
pub(crate) fn is_bare(history: &History) -> bool {
    !history.events.iter().any(|event| {
        matches!(
            event.what,
            What::Applied(_) | What::Served { .. } | What::Proposed { .. }
        )
    })
}

/// Judges a history by what clients saw alone.
pub(crate) fn judge_alone(history: &History) -> Verdict {
    if let Some(verdict) = refused_as_old(history) {
        return verdict;
    }
    match settle(history, ALONE) {
        Settled::Ordered => Verdict::ok(),
        Settled::Impossible(explanation) => violation(explanation),
        Settled::Misfit { call, sentence } => undecided("P4", sentence, vec![call]),
        Settled::Open { ordered, required } => {
            let sentence = format!(
                "the search was given up: at most {ordered} of {required} calls were put in order, and not every \
                 order was tried"
            );
            undecided("search", sentence, Vec::new())
        }
        Settled::Unreadable { call, sentence } => undecided("history", sentence, vec![call]),
    }
}

/// A refusal as old needs no order to be wrong: no change of auth is a reason for it.
fn refused_as_old(history: &History) -> Option<Verdict> {
    let calls = history.events.iter().filter_map(|event| match &event.what {
        What::Return {
            call,
            outcome: Outcome::Refused { message, .. },
        } => (Refusal::from_message(message) == Some(Refusal::OldRevision)).then_some(*call),
        _ => None,
    });
    let first = calls.min()?;
    let sentence = format!(
        "call {first} was refused with `{}`, which no change of anybody's makes right with a simple token [P18]",
        Refusal::OldRevision.text()
    );
    Some(Verdict::violation("P18", sentence, vec![first]))
}

/// Adds what clients alone can tell to a verdict that rests on the members' records.
pub(crate) fn second(history: &History, verdict: Verdict) -> Verdict {
    let calls = || {
        let sent = |what: &What| matches!(what, What::Invoke { .. });
        let events = history.events.iter();
        events.filter(|event| sent(&event.what)).count()
    };
    match verdict.kind {
        VerdictKind::Violation if calls() <= VIOLATION_CALLS_MAX => comment(history, verdict),
        VerdictKind::Ok
            if history.header.seed.is_multiple_of(PASSED_SEEDS) && calls() <= PASSED_CALLS_MAX =>
        {
            doubt(history, verdict)
        }
        _ => verdict,
    }
}

fn comment(history: &History, mut verdict: Verdict) -> Verdict {
    match settle(history, SECOND) {
        Settled::Impossible(found) => {
            let none_to_spare = if found.is_minimal {
                ", and without the answer of any one of them there is one"
            } else {
                ""
            };
            verdict.explanation.push(format!(
                "no order of the calls explains this, even without the members' records: none explains what was \
                 answered to {}{none_to_spare}",
                numbers(&found.calls)
            ));
            verdict.explanation.extend(found.lines);
        }
        Settled::Ordered | Settled::Misfit { .. } => {
            if verdict.property.as_deref() == Some("LIN") {
                verdict.sentence.push_str(
                    "; the order that members recorded is wrong, although another explains what clients were told",
                );
            }
            verdict.explanation.push(
                "clients alone could not tell: an order exists that explains all answers"
                    .to_owned(),
            );
        }
        Settled::Open { .. } | Settled::Unreadable { .. } => verdict
            .explanation
            .push("whether clients alone could tell is not settled within the budget".to_owned()),
    }
    verdict
}

/// A verdict that two ways of judging do not share is none.
fn doubt(history: &History, verdict: Verdict) -> Verdict {
    match settle(history, SECOND) {
        Settled::Impossible(found) => {
            let sentence = format!(
                "the members' records have nothing against them, but by what clients saw alone {}",
                found.sentence
            );
            Verdict {
                explanation: found.lines,
                ..undecided("judge", sentence, found.calls)
            }
        }
        _ => verdict,
    }
}

fn violation(found: Explanation) -> Verdict {
    let sentence = format!("{} [{}]", found.sentence, found.property);
    Verdict {
        explanation: found.lines,
        ..Verdict::violation(found.property, sentence, found.calls)
    }
}

fn undecided(layer: &str, sentence: String, calls: Vec<u64>) -> Verdict {
    Verdict {
        kind: VerdictKind::Undecided,
        property: Some(layer.to_owned()),
        sentence,
        calls,
        explanation: Vec::new(),
    }
}

fn numbers(calls: &[u64]) -> String {
    let numbers: Vec<String> = calls.iter().map(u64::to_string).collect();
    match calls {
        [one] => format!("call {one}"),
        _ => format!("calls {}", numbers.join(", ")),
    }
}
