//! P1 to P3 and linearizability of entries: who may do what at which place of the log.

use super::script::*;
use super::{breaks, is_undecided, passes};
use crate::history::{Compare, GrantKind, Op, Operand, Outcome, Reply, What};
use crate::model::Refusal;

#[test]
fn a_run_through_every_kind_of_call_passes() {
    let (mut script, root) = Script::with_auth();
    let alice = script.log_in("alice", 2, "alice", "old");
    let root = Some(root);
    let writes = [
        (Some(alice), put("/app/x", "1")),
        (Some(alice), put("/other", "1")),
        (None, put("/app/x", "1")),
        (root, put("/other", "2")),
        (root, Op::RoleAdd { role: "app".into() }),
        (root, Op::RoleAdd { role: "".into() }),
        (root, user_add("root", "x")),
        (root, user_delete("root")),
        (root, user_delete("nobody")),
        (root, revoke_role("root", "root")),
        (root, revoke_role("alice", "root")),
        (root, grant_role("alice", "nothing")),
        (root, grant_role("alice", "app")),
        (root, grant("app", GrantKind::Read, "b", "a")),
        (root, grant("app", GrantKind::Read, "/other", "")),
        (Some(alice), user_add("eve", "e")),
        (
            root,
            Op::RoleDelete {
                role: "root".into(),
            },
        ),
        (root, Op::AuthEnable {}),
    ];
    for (token, op) in writes {
        script.done("client", 1, token, op);
    }
    let user = |user: &str| Op::UserGet { user: user.into() };
    let role = |role: &str| Op::RoleGet { role: role.into() };
    let reads = [
        (Some(alice), get("/app/x")),
        (Some(alice), get("/other")),
        (Some(alice), get("/secret")),
        (None, get("/app/x")),
        (None, Op::AuthStatus {}),
        (Some(alice), user("alice")),
        (Some(alice), user("root")),
        (root, user("nobody")),
        (Some(alice), role("app")),
        (Some(alice), role("root")),
        (root, role("app")),
        (root, Op::UserList {}),
        (root, Op::RoleList {}),
        (Some(alice), Op::RoleList {}),
    ];
    for (token, op) in reads {
        let index = script.index();
        script.read_at("client", 3, token, op, index);
    }
    passes(&script.history());
}

#[test]
fn a_comparison_in_an_inner_transaction_is_a_read() {
    let (mut script, root) = Script::with_auth();
    script.done("root", 1, Some(root), put("/secret", "42"));
    let alice = script.log_in("alice", 2, "alice", "old");
    let txn = |compare, success| Op::Txn {
        compare,
        success,
        failure: vec![],
    };
    let guess = Compare {
        key: "/secret".into(),
        equals: Operand::Value("42".into()),
    };
    let inner = txn(vec![guess], vec![put("/app/x", "right")]);
    let call = script.forced("alice", 2, Some(alice), txn(vec![], vec![inner]));
    let words = [
        "txn of txn of compare /secret, put /app/x",
        "alice had no right to that",
    ];
    let enable = root - 1;
    breaks(&script.history(), "P12", &[call, enable], &words);
}

#[test]
fn a_write_after_the_revocation_returned_must_be_refused() {
    let (mut script, root) = Script::with_auth();
    let alice = script.log_in("alice", 2, "alice", "old");
    let revocation = script.done("root", 1, Some(root), revoke_role("alice", "app"));
    let put = script.forced("alice", 2, Some(alice), put("/app/x", "1"));
    let words = [
        "was allowed at index",
        "alice had no right to that since",
        "root revoke-role alice app on n1",
    ];
    breaks(&script.history(), "P2", &[put, revocation], &words);
}

#[test]
fn a_write_in_flight_is_decided_at_its_own_place() {
    let (mut script, root) = Script::with_auth();
    let alice = script.log_in("alice", 2, "alice", "old");
    let call = script.invoke("alice", 2, Some(alice), put("/app/x", "1"));
    let request = script.propose(call);
    let revocation = script.done("root", 1, Some(root), revoke_role("alice", "app"));
    let now = script.model().accounts().revision();

    // Allowed by the rights of another place: wrong, but no barrier was passed.
    let mut wrong = script;
    let answer = wrong.commit_as(request, now, Ok(Reply::default()));
    wrong.end(call, answer);
    breaks(
        &wrong.history(),
        "P12",
        &[call, revocation],
        &["was allowed"],
    );

    // Refused for lack of the right: right.
    let (mut script, root) = Script::with_auth();
    let revision = script.model().accounts().revision();
    let alice = script.log_in("alice", 2, "alice", "old");
    let call = script.invoke("alice", 2, Some(alice), put("/app/x", "1"));
    let request = script.propose(call);
    script.done("root", 1, Some(root), revoke_role("alice", "app"));
    let answer = script.commit_stamped(request, revision);
    assert_eq!(answer, Err(Refusal::PermissionDenied));
    script.end(call, answer);
    passes(&script.history());
}

#[test]
fn a_write_after_the_grant_returned_must_not_be_refused() {
    let (mut script, root) = Script::with_auth();
    let alice = script.log_in("alice", 2, "alice", "old");
    let grant = script.done(
        "root",
        1,
        Some(root),
        grant("app", GrantKind::Readwrite, "/b", ""),
    );
    let call = script.denied(
        "alice",
        Some(alice),
        put("/b", "1"),
        Refusal::PermissionDenied,
    );
    breaks(
        &script.history(),
        "P3",
        &[call, grant],
        &["alice had the right since"],
    );
}

#[test]
fn nothing_is_refused_as_old_because_of_a_stranger() {
    // With a right to it or without, at an entry.
    for key in ["/app/x", "/elsewhere"] {
        let (mut script, root) = Script::with_auth();
        let alice = script.log_in("alice", 2, "alice", "old");
        let call = script.invoke("alice", 2, Some(alice), put(key, "1"));
        let request = script.propose(call);
        let stamp = script.model().accounts().revision();
        let stranger = script.done("root", 1, Some(root), user_add("bob", "b"));
        let answer = script.commit_as(request, stamp, Err(Refusal::OldRevision));
        script.end(call, answer);
        let words = [
            "revision of auth store is old",
            "was the last change of auth",
        ];
        breaks(&script.history(), "P18", &[call, stranger], &words);
    }
}

#[test]
fn a_write_with_an_overtaken_stamp_is_allowed() {
    let (mut script, root) = Script::with_auth();
    let alice = script.log_in("alice", 2, "alice", "old");
    let call = script.invoke("alice", 2, Some(alice), put("/app/x", "1"));
    let request = script.propose(call);
    let stamp = script.model().accounts().revision();
    script.done("root", 1, Some(root), user_add("bob", "b"));
    let answer = script.commit_stamped(request, stamp);
    assert!(answer.is_ok());
    script.end(call, answer);
    passes(&script.history());
}

#[test]
fn a_refused_write_must_not_take_effect() {
    let (mut script, _) = Script::with_auth();
    let alice = script.log_in("alice", 2, "alice", "old");
    let call = script.invoke("alice", 2, Some(alice), put("/app/x", "1"));
    let request = script.propose(call);
    let _ = script.commit(request);
    script.end(call, Err(Refusal::PermissionDenied));
    breaks(
        &script.history(),
        "P1",
        &[call],
        &["was refused", "but took effect"],
    );
}

#[test]
fn a_write_that_was_refused_must_not_be_called_done() {
    let (mut script, _) = Script::with_auth();
    let alice = script.log_in("alice", 2, "alice", "old");
    let call = script.invoke("alice", 2, Some(alice), put("/other", "1"));
    let request = script.propose(call);
    let _ = script.commit(request);
    script.end(call, Ok(Reply::default()));
    breaks(
        &script.history(),
        "P1",
        &[call],
        &["was told that it is done, but was refused"],
    );
}

#[test]
fn a_lost_write_is_settled_by_the_log() {
    for commits in [false, true] {
        let (mut script, _) = Script::with_auth();
        let alice = script.log_in("alice", 2, "alice", "old");
        let call = script.invoke("alice", 2, Some(alice), put("/app/x", "1"));
        let request = script.propose(call);
        script.lose(call);
        if commits {
            let _ = script.commit(request);
        }
        let index = script.index();
        script.read_at("alice", 1, Some(alice), get("/app/x"), index);
        passes(&script.history());
    }
}

#[test]
fn a_lost_write_must_obey_the_rules_too() {
    let (mut script, _) = Script::with_auth();
    let alice = script.log_in("alice", 2, "alice", "old");
    let call = script.invoke("alice", 2, Some(alice), put("/other", "1"));
    let request = script.propose(call);
    script.lose(call);
    let revision = script.model().accounts().revision();
    let _ = script.commit_as(request, revision, Ok(Reply::default()));
    // The call asks for the previous pair, so its answer would have told what alice may not read.
    breaks(
        &script.history(),
        "P12",
        &[call, 7],
        &["alice had no right to that"],
    );
}

#[test]
fn a_write_that_was_answered_stands_before_those_sent_later() {
    let mut script = Script::new();
    let first = script.invoke("a", 1, None, put("x", "1"));
    let early = script.propose(first);
    let second = script.invoke("b", 1, None, put("y", "1"));
    let late = script.propose(second);
    let _ = script.commit(late);
    let answer = script.commit(early);
    script.end(first, answer);
    // Not sent after the other was answered: any order is fine.
    let reply = Reply {
        revision: 2,
        ..Reply::default()
    };
    script.end(second, Ok(reply));
    passes(&script.history());

    // But their answers tell which order it was.
    let mut script = Script::new();
    let slow = script.invoke("a", 1, None, put("x", "1"));
    let early = script.propose(slow);
    let quick = script.invoke("b", 1, None, put("y", "1"));
    let late = script.propose(quick);
    let answers = [early, late].map(|request| script.commit(request));
    let [first, second] = answers;
    script.end(quick, second);
    script.end(slow, first);
    let mut history = script.history();
    swap_entries(&mut history, 2, 3);
    breaks(
        &history,
        "LIN",
        &[quick],
        &["revision 3", "at index 2 that is"],
    );
}

#[test]
fn an_entry_must_not_stand_before_one_that_was_answered_before_it_was_sent() {
    // Both are refused, so that only real time tells the order.
    let mut script = Script::new();
    script.done("a", 1, None, user_delete("x"));
    script.done("b", 1, None, user_delete("y"));
    let mut history = script.history();
    passes(&history);
    swap_entries(&mut history, 2, 3);
    // No cluster applies what nobody has proposed yet.
    is_undecided(&history, "is proposed after it was applied");

    // Answered before anybody applied it, and then applied after what was sent later.
    let mut script = Script::new();
    let first = script.invoke("a", 1, None, user_delete("x"));
    let early = script.propose(first);
    script.end(first, Err(Refusal::UserNotFound));
    let second = script.invoke("b", 1, None, user_delete("y"));
    let late = script.propose(second);
    let answer = script.commit(late);
    let _ = script.commit(early);
    script.end(second, answer);
    breaks(
        &script.history(),
        "LIN",
        &[second, first],
        &["had been answered before it was sent"],
    );
}

#[test]
fn an_answer_before_the_entry_is_applied_is_wrong() {
    let mut script = Script::new();
    let call = script.invoke("a", 1, None, put("x", "1"));
    let request = script.propose(call);
    let reply = Reply {
        revision: 2,
        ..Reply::default()
    };
    script.end(call, Ok(reply));
    let _ = script.commit(request);
    breaks(
        &script.history(),
        "LIN",
        &[call],
        &["before any member had applied it"],
    );
}

#[test]
fn an_acknowledged_write_that_nobody_applied_is_lost() {
    let mut script = Script::new();
    let call = script.invoke("a", 1, None, put("x", "1"));
    script.propose(call);
    script.end(call, Ok(Reply::default()));
    breaks(
        &script.history(),
        "P11",
        &[call],
        &["no member ever applied it"],
    );
}

#[test]
fn the_content_of_an_answer_counts() {
    let wrongs: [fn(&mut Reply); 3] = [
        |reply| reply.revision += 1,
        |reply| reply.kvs.clear(),
        |reply| reply.kvs[0].version += 1,
    ];
    for wrong in wrongs {
        let mut script = Script::new();
        script.done("a", 1, None, put("x", "1"));
        let call = script.done("a", 1, None, put("x", "2"));
        let mut history = script.history();
        for event in &mut history.events {
            if let What::Return {
                call: ended,
                outcome: Outcome::Ok(reply),
            } = &mut event.what
                && *ended == call
            {
                wrong(reply);
            }
        }
        breaks(&history, "LIN", &[call], &["was answered with"]);
    }
}

/// Swaps what two entries say, on every member, and keeps the members' own running numbers in place.
pub(super) fn swap_entries(history: &mut crate::history::History, one: u64, other: u64) {
    let entry = |index: u64, history: &crate::history::History| {
        history.events.iter().find_map(|event| match &event.what {
            What::Applied(applied) if applied.index == index => Some(applied.clone()),
            _ => None,
        })
    };
    let (first, second) = (entry(one, history).unwrap(), entry(other, history).unwrap());
    for event in &mut history.events {
        let What::Applied(applied) = &mut event.what else {
            continue;
        };
        let source = match applied.index {
            index if index == one => &second,
            index if index == other => &first,
            _ => continue,
        };
        applied.request_id = source.request_id;
        applied.kind.clone_from(&source.kind);
        applied.user.clone_from(&source.user);
        applied.header_auth_revision = source.header_auth_revision;
        applied.decision.clone_from(&source.decision);
    }
}
