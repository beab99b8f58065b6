//! What a run says when it is not simply "ok": no progress, too little seen, a scenario's own expectation not met; and
//! that every kind of fault strikes and heals.

#![expect(
    clippy::unwrap_used,
    reason = "a test stops at what it does not expect"
)]

use gatehouse_judge::history::What;
use gatehouse_judge::verdict::VerdictKind;
use gatehouse_sim::plan::Plan;
use gatehouse_sim::run::{Options, Run, run};
use std::sync::Arc;

/// A cluster of three without auth, and one client.
const BASE: &str = r#"
version = 1
name = "small"
[[client]]
name = "writer"
member = [1, 2, 3]
steps = [{ do = "put", key = "k", value = "v", after_ms = [50, 150], repeat = 20, timeout_ms = 500 }]
"#;

fn simulated(text: &str, general: bool) -> Run {
    let plan: Plan = toml::from_str(text).unwrap();
    plan.check().unwrap();
    run(
        &Arc::new(plan),
        1,
        &Options {
            general,
            ..Options::default()
        },
    )
}

fn verdict(run: &Run) -> (VerdictKind, Option<&str>) {
    (run.verdict.kind, run.verdict.property.as_deref())
}

#[test]
fn a_run_that_saw_enough_is_ok() {
    let run = simulated(&format!("{BASE}[expect]\nallowed = 20\n"), false);
    assert_eq!(
        verdict(&run),
        (VerdictKind::Ok, None),
        "{}",
        run.verdict.sentence
    );
    assert!(run.marks["commit-to-publish"] > 0);
}

#[test]
fn a_run_that_saw_too_little_is_undecided_even_without_the_scenarios_expectations() {
    for general in [false, true] {
        let run = simulated(&format!("{BASE}[expect]\ndenied = 1\n"), general);
        assert_eq!(verdict(&run), (VerdictKind::Undecided, Some("coverage")));
        assert!(
            run.verdict
                .sentence
                .contains("denied calls: 0 of at least 1"),
            "{}",
            run.verdict.sentence
        );
    }
}

#[test]
fn a_run_over_its_limit_is_stuck() {
    let run = simulated(
        &BASE.replacen("name = \"small\"", "name = \"small\"\nlimit_ms = 2000", 1),
        false,
    );
    assert_eq!(verdict(&run), (VerdictKind::Stuck, Some("P17")));
    assert_eq!(
        run.verdict.sentence,
        "the run was not over after 2000 ms of virtual time"
    );
    assert!(
        !run.history.events.is_empty(),
        "what happened until then is kept"
    );
}

#[test]
fn an_expectation_of_the_scenario_counts_unless_the_properties_alone_judge() {
    let text = BASE.replacen("repeat = 20", "repeat = 20, expect = \"refused\"", 1);
    let run = simulated(&text, false);
    assert_eq!(verdict(&run), (VerdictKind::Violation, Some("scenario")));
    let call = run.verdict.calls[0];
    assert_eq!(
        run.verdict.sentence,
        format!(
            "client \"writer\", call {call}: the scenario expects \"refused\" of put k, and it was done with revision 2"
        )
    );
    assert_eq!(verdict(&simulated(&text, true)), (VerdictKind::Ok, None));
}

#[test]
fn a_gap_longer_than_the_scenario_allows_is_stuck() {
    let faulty = format!(
        "{}[expect]\nmax_gap_ms = 300\n[[fault]]\nkind = \"kill\"\nmember = \"leader\"\nat_ms = 300\nfor_ms = 3000\n",
        BASE.replacen("member = [1, 2, 3]", "member = [1, 2, 3]\nretry = true", 1)
    );
    let run = simulated(&faulty, false);
    assert_eq!(verdict(&run), (VerdictKind::Stuck, Some("P17")));
    assert!(
        run.verdict.sentence.contains("the scenario allows 300 ms"),
        "{}",
        run.verdict.sentence
    );
    assert_eq!(verdict(&simulated(&faulty, true)), (VerdictKind::Ok, None));
}

#[test]
fn a_setup_that_is_refused_is_no_run() {
    let text = BASE.replacen(
        "name = \"small\"",
        "name = \"small\"\nsetup = [{ do = \"user-delete\", user = \"nobody\" }]",
        1,
    );
    let run = simulated(&text, false);
    assert_eq!(verdict(&run), (VerdictKind::Undecided, Some("setup")));
    assert_eq!(
        run.verdict.sentence,
        "call 1: set-up step \"user-delete nobody\" was refused: etcdserver: user name not found"
    );
}

#[test]
fn every_kind_of_fault_strikes_and_heals() {
    let faults = [
        ("kind = \"kill\"\nmember = \"leader\"", "kill n"),
        ("kind = \"kill\"\nmember = 1\nfor_ms = 300", "restart n1"),
        ("kind = \"restart\"\nmember = 2", "restart n2"),
        (
            "kind = \"pause\"\nmember = [2, 3]\nfor_ms = 700",
            "resume n",
        ),
        ("kind = \"resume\"\nmember = 2", ""),
        (
            "kind = \"isolate\"\nmember = \"follower\"\nfor_ms = 700",
            "rejoin n",
        ),
        (
            "kind = \"cut-off\"\nmember = \"last-follower\"\nfor_ms = 700",
            "join n",
        ),
        (
            "kind = \"partition\"\na = [1]\nb = [2, 3]\ndirection = \"one-way\"",
            "cut n1 -> n2+n3",
        ),
        (
            "kind = \"slow-link\"\na = [1]\nb = [2]\nms = [5, 40]",
            "slow n1 <-> n2, bursts of 5 to 40 ms",
        ),
        (
            "kind = \"latency\"\nms = [20, 60]\nfor_ms = 500",
            "latency as before",
        ),
        (
            "kind = \"loss\"\nrate = 0.2\nfor_ms = 500",
            "loss as before",
        ),
        ("kind = \"heal\"", "heal"),
    ];
    for (fault, said) in faults {
        let run = simulated(
            &format!("{BASE}[[fault]]\nat_ms = [200, 400]\n{fault}\n"),
            false,
        );
        assert_eq!(
            verdict(&run),
            (VerdictKind::Ok, None),
            "{fault}: {}",
            run.verdict.sentence
        );
        let mut told = run
            .history
            .events
            .iter()
            .filter_map(|event| match &event.what {
                What::Fault { what } => Some(what.as_str()),
                _ => None,
            });
        assert!(
            said.is_empty() || told.any(|what| what.starts_with(said)),
            "{fault}"
        );
    }
}
