//! Real runs, of which the judge gets nothing but what clients saw: it must pass what is right, and find a planted bug
//! that clients can see.

use gatehouse::planted::Bug;
use gatehouse_sim::checker::judge;
use gatehouse_sim::history::{History, What};
use gatehouse_sim::run::{Options, run};
use gatehouse_sim::scenarios;
use gatehouse_sim::verdict::VerdictKind;

/// Leaves out whatever members recorded.
fn strip(mut history: History) -> History {
    history.events.retain(|event| {
        !matches!(
            event.what,
            What::Applied(_)
                | What::Served { .. }
                | What::Proposed { .. }
                | What::Probe { .. }
                | What::Started { .. }
                | What::Role { .. }
        )
    });
    history
}

#[test]
fn right_runs_pass() {
    for name in ["single-member", "login-vs-change-password"] {
        let scenario = scenarios::named(name).unwrap();
        for seed in 1..=10 {
            let run = run(&scenario.plan, seed, &Options::default());
            let verdict = judge(&strip(run.history));
            assert_eq!(verdict.kind, VerdictKind::Ok, "{name} {seed}: {verdict:?}");
        }
    }
}

#[test]
fn a_token_for_an_old_password_is_found() {
    let scenario = scenarios::named("login-vs-change-password").unwrap();
    let mut found = 0;
    for slug in ["authn-changepw-toctou/a", "authn-changepw-toctou/c"] {
        let [bug] = Bug::named(slug)[..] else {
            panic!("{slug} is one bug");
        };
        for seed in 1..=20 {
            let options = Options {
                bug: Some(bug),
                ..Options::default()
            };
            let run = run(&scenario.plan, seed, &options);
            let alone = judge(&strip(run.history));
            // Clients need not see what members recorded, but what they see is there.
            if alone.kind == VerdictKind::Violation {
                assert_eq!(run.verdict.kind, VerdictKind::Violation, "{alone:?}");
                assert!(!alone.explanation.is_empty(), "{alone:?}");
                assert!(alone.calls.len() <= 8, "{alone:?}");
                found += 1;
            }
        }
    }
    assert!(found >= 10, "{found}");
}
