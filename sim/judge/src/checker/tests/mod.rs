//! Tests of the judge: hand-written histories for each property, random ones that are right, and mutations of those
//! that are not.

mod alone;
mod decisions;
mod defects;
mod generated;
mod lifetimes;
mod local;
mod logins;
mod mutations;
mod properties;
mod reads;
mod script;
mod snapshots;

use crate::history::History;
use crate::judgement::judge;
use crate::verdict::{Verdict, VerdictKind};

/// Claims that the judge has nothing to object.
#[track_caller]
fn passes(history: &History) {
    assert_eq!(judge(history), Verdict::ok());
}

/// Claims that the judge finds `property` broken, names just these calls, and says all of `words`.
#[track_caller]
fn breaks(history: &History, property: &str, calls: &[u64], words: &[&str]) {
    let verdict = judge(history);
    assert_eq!(verdict.kind, VerdictKind::Violation, "{verdict:?}");
    assert_eq!(verdict.property.as_deref(), Some(property), "{verdict:?}");
    assert_eq!(verdict.calls, calls, "{verdict:?}");
    for word in words {
        assert!(
            verdict.sentence.contains(word),
            "`{word}` is not in: {}",
            verdict.sentence
        );
    }
    assert_eq!(
        judge(history),
        verdict,
        "the same history, the same verdict"
    );
}

/// Claims that the judge does not decide, and says `words`.
#[track_caller]
fn is_undecided(history: &History, words: &str) {
    let verdict = judge(history);
    assert_eq!(verdict.kind, VerdictKind::Undecided, "{verdict:?}");
    assert!(verdict.sentence.contains(words), "{verdict:?}");
}
