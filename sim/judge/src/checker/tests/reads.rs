//! Reads: linearizable ones see all that was answered before they were sent, local ones see one index of their member.

use super::script::*;
use super::{breaks, is_undecided, passes};
use crate::history::{Op, Reply};
use crate::model::Refusal;

#[test]
fn a_linearizable_read_must_not_be_old() {
    let mut script = Script::new();
    script.done("a", 1, None, put("x", "1"));
    let old = script.index();
    let write = script.done("a", 1, None, put("x", "2"));
    let read = script.read_at("b", 2, None, get("x"), old);
    let words = [
        "from the view of index 2",
        "put x on n1",
        "stands at index 3",
    ];
    breaks(&script.history(), "LIN", &[read, write], &words);
}

#[test]
fn a_read_that_overlaps_a_write_may_stand_on_either_side() {
    for index in [2, 3] {
        let mut script = Script::new();
        script.done("a", 1, None, put("x", "1"));
        let read = script.invoke("b", 2, None, get("x"));
        script.done("a", 1, None, put("x", "2"));
        let answer = script.serve(read, index);
        script.end(read, answer);
        passes(&script.history());
    }
}

#[test]
fn reads_do_not_go_back() {
    let mut script = Script::new();
    script.done("a", 1, None, put("x", "1"));
    let slow = script.invoke("a", 1, None, put("x", "2"));
    let request = script.propose(slow);
    let answer = script.commit(request);
    let new = script.read_at("b", 1, None, get("x"), 3);
    let old = script.read_at("b", 2, None, get("x"), 2);
    script.end(slow, answer);
    breaks(&script.history(), "LIN", &[old, new], &["get x"]);
}

#[test]
fn an_old_view_must_not_hide_a_revocation() {
    let (mut script, root) = Script::with_auth();
    let alice = script.log_in("alice", 2, "alice", "old");
    let old = script.index();
    let revocation = script.done("root", 1, Some(root), revoke_role("alice", "app"));
    let read = script.read_at("alice", 2, Some(alice), get("/app/x"), old);
    let words = ["root revoke-role alice app", "acknowledged at"];
    breaks(&script.history(), "P2", &[read, revocation], &words);
}

#[test]
fn an_old_view_must_not_hide_a_grant() {
    let (mut script, root) = Script::with_auth();
    script.done("root", 1, Some(root), user_add("bob", "b"));
    let bob = script.log_in("bob", 2, "bob", "b");
    let old = script.index();
    let grant = script.done("root", 1, Some(root), grant_role("bob", "app"));
    let read = script.read_at("bob", 2, Some(bob), get("/app/x"), old);
    breaks(
        &script.history(),
        "P3",
        &[read, grant],
        &["bob had the right since"],
    );
}

#[test]
fn an_old_view_must_not_hide_a_password_change() {
    let (mut script, root) = Script::with_auth();
    let alice = script.log_in("alice", 2, "alice", "old");
    let old = script.index();
    let change = script.done("root", 1, Some(root), change_password("alice", "new"));
    let read = script.read_at("alice", 2, Some(alice), get("/app/x"), old);
    breaks(
        &script.history(),
        "P6",
        &[read, alice, change],
        &["password `old`"],
    );
}

#[test]
fn a_local_read_may_be_old_but_must_be_of_one_index() {
    let (mut script, root) = Script::with_auth();
    let alice = script.log_in("alice", 2, "alice", "old");
    script.done("alice", 2, Some(alice), put("/app/x", "1"));
    script.lagging.insert(3);
    let old = script.index();
    script.done("alice", 2, Some(alice), put("/app/x", "2"));
    let revocation = script.done("root", 1, Some(root), revoke_role("alice", "app"));
    script.read_at("alice", 3, Some(alice), local_get("/app/x"), old);
    script.catch_up(3);
    let index = script.index();
    script.read_at("alice", 3, Some(alice), local_get("/app/x"), index);
    assert!(revocation > alice);
    passes(&script.history());
}

#[test]
fn a_local_read_must_not_mix_old_rights_with_new_data() {
    let (mut script, root) = Script::with_auth();
    let alice = script.log_in("alice", 2, "alice", "old");
    let revocation = script.done("root", 1, Some(root), revoke_role("alice", "app"));
    script.done("root", 1, Some(root), put("/app/x", "secret"));
    let call = script.invoke("alice", 3, Some(alice), local_get("/app/x"));
    let index = script.index();
    let _ = script.serve(call, index);
    let reply = script.model().clone().perform(0, &local_get("/app/x"));
    script.end(call, Ok(reply));
    breaks(
        &script.history(),
        "P4",
        &[call, revocation],
        &["had no right"],
    );
}

#[test]
fn a_member_does_not_go_back_for_local_reads_unless_it_restarts() {
    let mut script = Script::new();
    script.done("a", 1, None, put("x", "1"));
    script.done("a", 1, None, put("x", "2"));
    script.read_at("b", 3, None, local_get("x"), 3);
    let back = script.read_at("b", 3, None, local_get("x"), 2);
    breaks(
        &script.history(),
        "P4",
        &[back],
        &["had answered from index 3"],
    );

    let mut script = Script::new();
    script.done("a", 1, None, put("x", "1"));
    script.done("a", 1, None, put("x", "2"));
    script.read_at("b", 3, None, local_get("x"), 3);
    script.restart(3, 2);
    script.read_at("b", 3, None, local_get("x"), 2);
    passes(&script.history());
}

#[test]
fn what_a_member_answered_before_its_start_does_not_bind_it_after() {
    let twice_written = || {
        let mut script = Script::new();
        script.done("a", 1, None, put("x", "1"));
        script.done("a", 1, None, put("x", "2"));
        script
    };
    // Sent while the member was down, and answered once it was back.
    let mut script = twice_written();
    script.read_at("b", 3, None, local_get("x"), 3);
    let call = script.invoke("b", 3, None, local_get("x"));
    script.restart(3, 2);
    let answer = script.serve(call, 2);
    script.end(call, answer);
    passes(&script.history());
    // An answer that was on its way when its member fell.
    let mut script = twice_written();
    let call = script.invoke("b", 3, None, local_get("x"));
    let answer = script.serve(call, 3);
    script.restart(3, 2);
    script.end(call, answer);
    script.read_at("c", 3, None, local_get("x"), 2);
    passes(&script.history());
}

#[test]
fn a_member_cannot_answer_from_what_it_has_not_applied() {
    let mut script = Script::new();
    script.lagging.insert(3);
    script.done("a", 1, None, put("x", "1"));
    let call = script.read_at("b", 3, None, get("x"), 2);
    breaks(
        &script.history(),
        "P4",
        &[call],
        &["had applied no more than 1"],
    );
}

#[test]
fn wrong_content_is_found() {
    let mut script = Script::new();
    script.done("a", 1, None, put("x", "1"));
    let call = script.invoke("b", 2, None, get("x"));
    let _ = script.serve(call, 2);
    let reply = Reply {
        revision: 2,
        ..Reply::default()
    };
    script.end(call, Ok(reply));
    let words = ["was answered with revision 2", "x=1 of revision 2, count 1"];
    breaks(&script.history(), "LIN", &[call], &words);
}

#[test]
fn a_read_beyond_the_callers_rights_is_found() {
    let (mut script, _) = Script::with_auth();
    let alice = script.log_in("alice", 2, "alice", "old");
    let call = script.invoke("alice", 2, Some(alice), get("/other"));
    let index = script.index();
    let _ = script.serve(call, index);
    let revision = script.model().kv_revision();
    let reply = Reply {
        revision,
        ..Reply::default()
    };
    script.end(call, Ok(reply));
    breaks(
        &script.history(),
        "P12",
        &[call, 7],
        &["alice had no right to that"],
    );
}

#[test]
fn a_refusal_without_a_view_needs_a_reason_within_the_call() {
    let check = |refusal, revokes: bool| {
        let (mut script, root) = Script::with_auth();
        let alice = script.log_in("alice", 2, "alice", "old");
        let call = script.invoke("alice", 2, Some(alice), get("/app/x"));
        if revokes {
            script.done("root", 1, Some(root), revoke_role("alice", "app"));
        }
        script.end(call, Err(refusal));
        (script.history(), call)
    };
    passes(&check(Refusal::PermissionDenied, true).0);
    let (history, call) = check(Refusal::PermissionDenied, false);
    breaks(&history, "P3", &[call], &["was refused"]);
    // Nothing that anybody changes is a reason to call a request old.
    for revokes in [true, false] {
        let (history, call) = check(Refusal::OldRevision, revokes);
        breaks(&history, "P18", &[call], &["was refused"]);
    }
}

#[test]
fn a_listing_is_compared_name_by_name() {
    let (mut script, root) = Script::with_auth();
    let call = script.invoke("root", 1, Some(root), Op::UserList {});
    let index = script.index();
    let answer = script.serve(call, index);
    let mut reply = answer.unwrap();
    assert_eq!(reply.names, ["alice", "root"]);
    reply.names.push("zoe".into());
    script.end(call, Ok(reply));
    breaks(&script.history(), "LIN", &[call], &["alice root zoe"]);
}

#[test]
fn an_answer_from_nowhere_is_not_decided() {
    let mut script = Script::new();
    let call = script.invoke("b", 2, None, get("x"));
    let reply = Reply {
        revision: 1,
        ..Reply::default()
    };
    script.end(call, Ok(reply));
    is_undecided(&script.history(), "nothing in the history says where");
}
