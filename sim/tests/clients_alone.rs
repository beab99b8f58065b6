//! Runs judged by what clients saw alone: everything that members recorded is taken out of the history first.

#![expect(
    clippy::unwrap_used,
    reason = "a test stops at what it does not expect"
)]

use gatehouse::planted::Bug;
use gatehouse_sim::checker::judge;
use gatehouse_sim::history::{History, What};
use gatehouse_sim::run::{Options, Run, run};
use gatehouse_sim::scenarios;
use gatehouse_sim::verdict::VerdictKind;

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
