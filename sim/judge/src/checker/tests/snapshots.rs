//! Members that install a snapshot: the jump is right, what they have then is held against the log, and local reads go
//! on from there.

use super::script::*;
use super::{breaks, is_undecided, passes};
use crate::history::{History, Installed, What};

/// Member 3 is away for two writes, gets the state, and takes part again.
fn jumped() -> (Script, u64) {
    let mut script = Script::new();
    script.lagging.insert(3);
    script.done("a", 1, None, put("x", "1"));
    let call = script.done("a", 1, None, put("x", "2"));
    script.install(3);
    script.lagging.clear();
    (script, call)
}

fn change(script: Script, change: fn(&mut Installed)) -> History {
    let mut history = script.history();
    for event in &mut history.events {
        if let What::Installed(installed) = &mut event.what {
            change(installed);
        }
    }
    history
}

#[test]
fn a_member_may_jump_over_entries_by_a_snapshot_and_by_nothing_else() {
    let (mut script, _) = jumped();
    script.done("a", 3, None, put("x", "3"));
    let history = script.history();
    passes(&history);
    let mut without = history;
    without
        .events
        .retain(|event| !matches!(event.what, What::Installed(_)));
    breaks(
        &without,
        "P11",
        &[],
        &["n3 went on to index 4 from index 1"],
    );
}

#[test]
fn what_was_installed_must_be_the_state_of_its_index() {
    type Change = fn(&mut Installed);
    let changes: [(&str, Change); 5] = [
        ("digest", |installed| installed.digest += 1),
        ("term", |installed| installed.term += 1),
        ("auth revision", |installed| installed.auth_revision += 1),
        ("auth flag", |installed| installed.auth_enabled = true),
        ("key-value revision", |installed| installed.kv_revision += 1),
    ];
    for (what, how) in changes {
        let history = change(jumped().0, how);
        breaks(
            &history,
            "P9",
            &[],
            &["n3 installed a snapshot of index 3", what],
        );
    }
}

#[test]
fn a_snapshot_leads_forward_only() {
    let (mut script, _) = jumped();
    script.install(3);
    breaks(
        &script.history(),
        "P11",
        &[],
        &["over the state of index 3"],
    );
}

#[test]
fn a_state_that_nobody_is_known_to_have_reached_decides_nothing() {
    let history = change(jumped().0, |installed| installed.index += 7);
    is_undecided(&history, "no member's record of that index");
}

#[test]
fn local_reads_after_the_install_see_what_it_brought() {
    for (index, is_right) in [(3, true), (1, false)] {
        let (mut script, _) = jumped();
        let first = script.invoke("b", 3, None, local_get("x"));
        let answer = script.serve(first, 3);
        script.end(first, answer);
        let call = script.invoke("b", 3, None, local_get("x"));
        let answer = script.serve(call, index);
        script.end(call, answer);
        let history = script.history();
        if is_right {
            passes(&history);
        } else {
            breaks(&history, "P4", &[call], &[]);
        }
    }
}

#[test]
fn what_is_derived_must_be_what_a_start_would_derive() {
    let (mut script, _) = jumped();
    let compared = |equal| What::Compared {
        member: 3,
        index: 3,
        equal,
    };
    script.push(compared(true));
    passes(&script.history());
    let (mut script, _) = jumped();
    script.push(compared(false));
    breaks(&script.history(), "P10", &[], &["n3 derives", "index 3"]);
}
