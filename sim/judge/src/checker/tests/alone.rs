//! Histories of which nothing is known but what clients saw, and what clients alone can tell of the others.

use super::script::*;
use super::{breaks, is_undecided, passes};
use crate::history::{Event, History, Outcome, Reply, What};
use crate::judgement::judge;
use crate::model::Refusal;
use crate::verdict::VerdictKind;

/// What clients saw of a history.
fn seen_by_clients(history: &History) -> History {
    let is_seen = |event: &&Event| {
        matches!(
            event.what,
            What::Invoke { .. } | What::Return { .. } | What::Fault { .. } | What::Healed
        )
    };
    History {
        header: history.header.clone(),
        events: history.events.iter().filter(is_seen).cloned().collect(),
    }
}

/// The same, of a script.
fn bare(script: Script) -> History {
    seen_by_clients(&script.history())
}

/// Claims that the explanation says all of `words`.
#[track_caller]
fn explains(history: &History, words: &[&str]) {
    let verdict = judge(history);
    let text = verdict.explanation.join("\n");
    for word in words {
        assert!(text.contains(word), "`{word}` is not in:\n{text}");
    }
}

#[test]
fn a_right_history_needs_no_records() {
    let (mut script, root) = Script::with_auth();
    let alice = script.log_in("alice", 2, "alice", "old");
    script.done("alice", 2, Some(alice), put("/app/x", "1"));
    script.done("root", 1, Some(root), change_password("alice", "new"));
    script.done("alice", 2, Some(alice), put("/app/x", "2"));
    let index = script.index();
    script.read_at("root", 3, Some(root), get("/app/x"), index);
    passes(&bare(script));
}

#[test]
fn a_token_for_the_old_password_must_not_work() {
    let (mut script, root) = Script::with_auth();
    let alice = script.log_in("alice", 2, "alice", "old");
    let change = script.done("root", 1, Some(root), change_password("alice", "new"));
    let write = script.forced("alice", 2, Some(alice), put("/app/x", "2"));
    let history = bare(script);
    breaks(
        &history,
        "P6",
        &[alice, change, write],
        &["no order of the calls", "invalid auth token", "[P6]"],
    );
    explains(
        &history,
        &[
            "3 calls cannot be put in order, but without any one of them the others can",
            "change-password alice",
            "alice has password `new`",
            "next would be call",
        ],
    );
}

#[test]
fn a_revoked_right_must_not_be_used() {
    let (mut script, root) = Script::with_auth();
    let alice = script.log_in("alice", 2, "alice", "old");
    let revoke = script.done("root", 1, Some(root), revoke_role("alice", "app"));
    let write = script.forced("alice", 2, Some(alice), put("/app/x", "2"));
    let verdict = judge(&bare(script));
    assert_eq!(verdict.kind, VerdictKind::Violation);
    assert_eq!(verdict.property.as_deref(), Some("P2"), "{verdict:?}");
    assert!(verdict.calls.contains(&revoke), "{verdict:?}");
    assert!(verdict.calls.contains(&write), "{verdict:?}");
}

#[test]
fn a_right_that_was_given_must_be_seen() {
    let (mut script, _) = Script::with_auth();
    let alice = script.log_in("alice", 2, "alice", "old");
    let write = script.denied(
        "alice",
        Some(alice),
        put("/app/x", "2"),
        Refusal::PermissionDenied,
    );
    let verdict = judge(&bare(script));
    assert_eq!(verdict.property.as_deref(), Some("P3"), "{verdict:?}");
    assert!(verdict.calls.contains(&write), "{verdict:?}");
}

#[test]
fn a_good_token_must_not_be_called_invalid() {
    let (mut script, _) = Script::with_auth();
    let alice = script.log_in("alice", 2, "alice", "old");
    script.denied(
        "alice",
        Some(alice),
        put("/app/x", "2"),
        Refusal::InvalidToken,
    );
    let verdict = judge(&bare(script));
    assert_eq!(verdict.property.as_deref(), Some("P7"), "{verdict:?}");
}

#[test]
fn an_old_token_may_have_died() {
    let (mut script, _) = Script::with_auth();
    let alice = script.log_in("alice", 2, "alice", "old");
    script.denied(
        "alice",
        Some(alice),
        put("/app/x", "2"),
        Refusal::InvalidToken,
    );
    let mut history = bare(script);
    history.header.tokens.ttl_ms = 1;
    passes(&history);
    history.header.tokens.ttl_ms = 300_000;
    history.header.tokens.per_user_max = 1;
    assert_eq!(judge(&history).kind, VerdictKind::Violation, "it is alone");
}

#[test]
fn a_password_is_right_or_wrong_at_some_moment_of_the_login() {
    let (mut script, root) = Script::with_auth();
    let login_call = script.invoke("alice", 2, None, login("alice", "old"));
    script.done("root", 1, Some(root), change_password("alice", "new"));
    script.end(login_call, Err(Refusal::AuthFailed));
    passes(&bare(script));

    let (mut script, root) = Script::with_auth();
    script.done("root", 1, Some(root), change_password("alice", "new"));
    script.log_in("alice", 2, "alice", "old");
    let verdict = judge(&bare(script));
    assert_eq!(verdict.property.as_deref(), Some("P5"), "{verdict:?}");
}

#[test]
fn a_stale_read_and_a_pair_that_nobody_wrote_are_found() {
    let mut script = Script::new();
    let first = script.done("a", 1, None, put("x", "1"));
    let before = script.index();
    let second = script.done("a", 1, None, put("x", "2"));
    let read = script.read_at("b", 2, None, get("x"), before);
    let history = bare(script);
    breaks(&history, "LIN", &[second, read], &["had ended before"]);
    assert!(first < second);

    let mut history = history;
    for event in &mut history.events {
        if let What::Return { call, outcome } = &mut event.what
            && *call == read
        {
            let mut reply = Reply {
                revision: 3,
                count: 1,
                ..Reply::default()
            };
            reply.kvs.push(crate::history::Pair {
                key: "x".into(),
                value: "3".into(),
                create_revision: 2,
                mod_revision: 3,
                version: 2,
            });
            *outcome = Outcome::Ok(Box::new(reply));
        }
    }
    breaks(&history, "LIN", &[read], &["no call can have written"]);
}

#[test]
fn a_lost_write_may_have_happened_or_not() {
    for happens in [false, true] {
        let mut script = Script::new();
        let lost = script.invoke("a", 1, None, put("x", "1"));
        if happens {
            let request = script.propose(lost);
            script.commit(request).unwrap();
        }
        script.lose(lost);
        let index = script.index();
        script.read_at("b", 2, None, get("x"), index);
        passes(&bare(script));
    }
}

/// The state that is told is that of all calls, not of the few that contradict each other.
#[test]
fn the_state_of_an_explanation_is_true() {
    let (mut script, _) = Script::with_auth();
    let login = script.log_in("b", 1, "alice", "old");
    script.done("b", 1, Some(login), put("/app/x", "1"));
    let call = script.invoke("b", 1, Some(login), put("/app/x", "2"));
    script.end(call, Err(Refusal::PermissionDenied));
    let history = bare(script);
    let verdict = judge(&history);
    assert_eq!(verdict.kind, VerdictKind::Violation, "{verdict:?}");
    assert!(
        verdict.sentence.contains("it would have been allowed"),
        "{verdict:#?}"
    );
    let text = verdict.explanation.join("\n");
    assert!(
        text.contains("alice has password `old` and the roles [app]"),
        "{text}"
    );
}

#[test]
fn an_old_local_read_is_right_and_one_from_the_future_undecided() {
    let mut script = Script::new();
    script.done("a", 1, None, put("x", "1"));
    let before = script.index();
    script.done("a", 1, None, put("x", "2"));
    script.read_at("b", 2, None, local_get("x"), before);
    passes(&bare(script));

    // A member has applied what it answers, so it does not go back behind that, unless it restarts.
    let mut script = Script::new();
    script.done("a", 2, None, put("x", "1"));
    let before = script.index();
    script.done("a", 2, None, put("x", "2"));
    script.read_at("b", 2, None, local_get("x"), before);
    is_undecided(&bare(script), "shows no state");

    let mut script = Script::new();
    script.done("a", 1, None, put("x", "1"));
    let read = script.invoke("b", 2, None, local_get("x"));
    let pair = script.model().keys().pair("x").cloned().unwrap();
    script.end(
        read,
        Ok(Reply {
            revision: 7,
            kvs: vec![pair],
            count: 1,
            ..Reply::default()
        }),
    );
    is_undecided(&bare(script), "shows no state");
}

#[test]
fn a_refusal_that_nobody_knows_is_undecided() {
    let mut script = Script::new();
    let call = script.invoke("a", 1, None, put("x", "1"));
    script.push(What::Return {
        call,
        outcome: Outcome::Refused {
            code: "FailedPrecondition".into(),
            message: "etcdserver: the moon is full".into(),
        },
    });
    is_undecided(&bare(script), "the moon is full");
}

#[test]
fn a_violation_says_whether_clients_could_tell() {
    let (mut script, root) = Script::with_auth();
    let alice = script.log_in("alice", 2, "alice", "old");
    script.done("root", 1, Some(root), revoke_role("alice", "app"));
    script.forced("alice", 2, Some(alice), put("/app/x", "2"));
    explains(
        &script.history(),
        &["no order of the calls explains this, even without the members' records"],
    );

    // Members that disagree are none of the clients' business.
    let mut script = Script::new();
    script.done("a", 1, None, put("x", "1"));
    let mut history = script.history();
    for event in &mut history.events {
        if let What::Applied(applied) = &mut event.what
            && applied.member == 3
            && applied.index == 2
        {
            applied.digest += 1;
        }
    }
    explains(&history, &["clients alone could not tell"]);
}
