//! Local reads: any one index that the member may answer from will do, whatever it says; and how stale they are.

use super::script::*;
use super::{breaks, is_undecided, passes};
use crate::checker::Staleness;
use crate::history::What;
use crate::judgement::examine;

#[test]
fn a_wrong_hint_is_no_violation() {
    let (mut script, _) = Script::with_auth();
    let alice = script.log_in("alice", 2, "alice", "old");
    let old = script.index();
    script.done("alice", 2, Some(alice), put("/app/x", "1"));
    let new = script.index();
    let call = script.invoke("alice", 3, Some(alice), local_get("/app/x"));
    let answer = script.serve(call, new);
    script.serve(call, old).unwrap(); // The last word counts.
    script.end(call, answer);
    let words = format!("has the answer of index {new}, which its member may give");
    is_undecided(&script.history(), &words);
}

#[test]
fn an_answer_from_before_what_the_member_had_served_fits_nothing() {
    let (mut script, _) = Script::with_auth();
    let alice = script.log_in("alice", 2, "alice", "old");
    let old = script.index();
    script.done("alice", 2, Some(alice), put("/app/x", "1"));
    let new = script.index();
    script.read_at("alice", 3, Some(alice), local_get("/app/x"), new);
    let call = script.invoke("alice", 3, Some(alice), local_get("/app/x"));
    let answer = script.serve(call, old);
    script.end(call, answer);
    let words = ["had answered from index"];
    breaks(&script.history(), "P4", &[call], &words);
}

#[test]
fn an_answer_from_what_the_member_has_not_applied_fits_nothing() {
    let (mut script, _) = Script::with_auth();
    let alice = script.log_in("alice", 2, "alice", "old");
    let old = script.index();
    script.lagging.insert(3);
    script.done("alice", 2, Some(alice), put("/app/x", "1"));
    let new = script.index();
    let call = script.invoke("alice", 3, Some(alice), local_get("/app/x"));
    let answer = script.serve(call, new);
    script.serve(call, old).unwrap();
    script.end(call, answer);
    script.catch_up(3);
    // The first of its two words is enough to convict it.
    breaks(&script.history(), "P4", &[call], &["had applied no more"]);
}

#[test]
fn a_value_from_after_the_revocation_is_named() {
    let (mut script, root) = Script::with_auth();
    let alice = script.log_in("alice", 2, "alice", "old");
    let taken = script.done("root", 1, Some(root), revoke_role("alice", "app"));
    let lost = script.index();
    script.done("root", 1, Some(root), put("/app/x", "secret"));
    let revision = script.model().kv_revision();
    let call = script.invoke("alice", 3, Some(alice), local_get("/app/x"));
    let index = script.index();
    let _ = script.serve(call, index);
    let reply = script.model().clone().perform(0, &local_get("/app/x"));
    script.end(call, Ok(reply));
    let words = format!(
        "it returned a value written at revision {revision}, after alice had lost access at index {lost}"
    );
    breaks(&script.history(), "P4", &[call, taken], &[&words]);
}

/// A read on a member that lags behind what took the right to it; the faults are healed before or not at all.
fn stale(wait_ms: u64, healed: bool, taking: crate::history::Op) -> (crate::history::History, u64) {
    let (mut script, root) = Script::with_auth();
    let alice = script.log_in("alice", 2, "alice", "old");
    script.lagging.insert(3);
    let old = script.index();
    script.done("root", 1, Some(root), taking);
    script.wait_ms(99);
    if healed {
        script.push(What::Healed);
    }
    script.wait_ms(wait_ms);
    script.done("root", 1, Some(root), put("/b", "1"));
    let call = script.read_at("alice", 3, Some(alice), local_get("/app/x"), old);
    script.catch_up(3);
    (script.history(), call)
}

#[test]
fn staleness_is_measured_from_the_return_of_what_took_the_right() {
    for taking in [
        revoke_role("alice", "app"),
        change_password("alice", "new"),
        user_delete("alice"),
    ] {
        let (history, _) = stale(400, false, taking);
        passes(&history);
        let expected = Staleness {
            max_ms: 505, // 499, and a millisecond for each of the put's events and the read's own.
            max_entries: 1,
            calls: 1,
        };
        assert_eq!(examine(&history).staleness, expected);
    }
    let (history, _) = stale(400, false, put("/app/x", "1"));
    assert_eq!(examine(&history).staleness, Staleness::default());
}

#[test]
fn a_member_must_catch_up_once_the_faults_are_healed() {
    let taking = || revoke_role("alice", "app");
    passes(&stale(9000, true, taking()).0);
    passes(&stale(11_000, false, taking()).0);
    let (history, call) = stale(11_000, true, taking());
    let words = ["although the cluster had been whole for"];
    breaks(&history, "P17", &[call], &words);
}
