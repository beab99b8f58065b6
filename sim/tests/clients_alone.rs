//! Runs judged by what clients saw alone: everything that members recorded is taken out of the history first.

#![expect(
    clippy::unwrap_used,
    reason = "a test stops at what it does not expect"
)]

use gatehouse::planted::Bug;
use gatehouse_judge::history::{History, Outcome, What};
use gatehouse_judge::judge;
use gatehouse_judge::verdict::VerdictKind;
use gatehouse_sim::run::{Options, Run, run};
use gatehouse_sim::scenarios;

/// Lines of an explanation, with what stands before it of the state: more would not be read.
const LINES_MAX: usize = 32;

fn simulated(name: &str, seed: u64, bug: Option<&str>) -> Run {
    let scenario = scenarios::named(name).unwrap();
    let options = Options {
        bug: bug.map(|slug| Bug::named(slug)[0]),
        general: true,
        ..Options::default()
    };
    run(&scenario.plan, seed, &options)
}

/// The history without a word from any member.
fn stripped(run: &Run) -> History {
    let mut history = run.history.clone();
    history.events.retain(|event| {
        matches!(
            event.what,
            What::Invoke { .. } | What::Return { .. } | What::Fault { .. } | What::Healed
        )
    });
    history
}

#[test]
fn right_runs_are_ok_by_what_clients_saw() {
    for name in ["single-member", "login-vs-change-password", "stolen-token"] {
        for seed in 1..=3 {
            let run = simulated(name, seed, None);
            let verdict = judge(&stripped(&run));
            assert_eq!(verdict.kind, VerdictKind::Ok, "{name} {seed}: {verdict:?}");
        }
    }
}

#[test]
fn planted_bugs_show_in_what_clients_saw() {
    for (name, bug) in [
        ("login-vs-change-password", "authn-changepw-toctou/a"),
        ("login-vs-change-password", "authn-changepw-toctou/c"),
        ("stolen-token", "credential-change-keeps-tokens/a"),
        ("role-deleted", "role-delete-keeps-cache"),
    ] {
        for seed in 1..=2 {
            let run = simulated(name, seed, Some(bug));
            let verdict = judge(&stripped(&run));
            assert_eq!(
                verdict.kind,
                VerdictKind::Violation,
                "{bug} {seed}: {verdict:?}"
            );
            assert!(verdict.calls.len() <= 9, "{bug} {seed}: {verdict:?}");
            let explanation = &run.verdict.explanation;
            let says = |words: &str| explanation.iter().any(|line| line.contains(words));
            assert!(
                says("even without the members' records"),
                "{bug} {seed}: {explanation:?}"
            );
            assert!(says(" index "), "{bug} {seed}: {explanation:?}");
            assert!(explanation.len() <= LINES_MAX, "{explanation:?}");
        }
    }
}

/// The answers of the calls that are named are enough for the contradiction, and each of them is needed.
#[test]
fn the_calls_that_are_named_contradict_each_other_and_no_fewer_do() {
    let mut minimal = 0;
    for (name, bug) in [
        ("login-vs-change-password", "authn-changepw-toctou/a"),
        ("stolen-token", "credential-change-keeps-tokens/a"),
        ("role-deleted", "role-delete-keeps-cache"),
        ("login-vs-change-password", "authn-changepw-toctou/c"),
    ] {
        for seed in 1..=3 {
            let history = stripped(&simulated(name, seed, Some(bug)));
            let verdict = judge(&history);
            assert_eq!(verdict.kind, VerdictKind::Violation, "{name} {seed}");
            let named = &verdict.calls;
            let alone = judge(&lost_but(&history, named));
            assert_eq!(
                alone.kind,
                VerdictKind::Violation,
                "{name} {seed}: {verdict:#?} {alone:#?}"
            );
            // Whether a call can be spared may take more than the budget to find out.
            if named.len() > 1 && !verdict.explanation[0].contains("without any one") {
                continue;
            }
            minimal += 1;
            for call in named {
                let fewer: Vec<u64> = named.iter().copied().filter(|it| it != call).collect();
                let rest = judge(&lost_but(&history, &fewer));
                assert_eq!(
                    rest.kind,
                    VerdictKind::Ok,
                    "{name} {seed} without {call}: {verdict:#?} {rest:#?}"
                );
            }
        }
    }
    assert!(minimal >= 8, "only {minimal} of 12 are known to be minimal");
}

/// Whatever is left out of a right history, nothing contradicts the rest.
#[test]
fn a_right_run_with_lost_answers_is_no_violation() {
    let history = stripped(&simulated("role-deleted", 1, None));
    for call in [20, 25, 26, 48, 60] {
        for kept in [vec![call], vec![20, call], vec![25, 48, call]] {
            let verdict = judge(&lost_but(&history, &kept));
            assert_ne!(
                verdict.kind,
                VerdictKind::Violation,
                "{kept:?}: {verdict:?}"
            );
        }
    }
}

/// The history with the answers of only these calls; what clients heard of the others says nothing.
fn lost_but(history: &History, kept: &[u64]) -> History {
    let mut history = history.clone();
    for event in &mut history.events {
        if let What::Return { call, outcome } = &mut event.what
            && !kept.contains(call)
        {
            *outcome = Outcome::Unknown {
                code: "".into(),
                message: "".into(),
            };
        }
    }
    history
}
