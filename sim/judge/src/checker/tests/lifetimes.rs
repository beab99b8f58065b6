//! Tokens' ages and limits: expiry (P7, P17), reports of use (P7), room for later logins.

use super::script::*;
use super::{breaks, is_undecided, passes};
use crate::history::{Op, Reply, TokenRules, What};
use crate::model::Refusal;

/// Lifetime of a token in these tests, milliseconds.
const TTL_MS: u64 = 60_000;

fn rules() -> TokenRules {
    TokenRules {
        ttl_ms: TTL_MS,
        ..TokenRules::default()
    }
}

/// A cluster with auth on and a leader; alice has logged in.
fn logged_in(rules: TokenRules) -> (Script, u64, u64) {
    let (mut script, root) = Script::with_auth_and_rules(rules);
    script.push(What::Role {
        member: 1,
        term: 1,
        leader: true,
    });
    let alice = script.log_in("alice", 1, "alice", "old");
    (script, root, alice)
}

#[test]
fn an_expired_token_is_dead_for_every_call() {
    let (mut script, _, alice) = logged_in(rules());
    script.wait_ms(TTL_MS * 5 / 4);
    let expired = script.expire(alice, 0);
    let mut right = script;
    right.done("alice", 2, Some(alice), put("/app/x", "1"));
    let read = right.invoke("alice", 2, Some(alice), get("/app/x"));
    right.end(read, Err(Refusal::InvalidToken));
    passes(&right.history());

    let (mut script, _, alice) = logged_in(rules());
    script.wait_ms(TTL_MS * 5 / 4);
    assert_eq!(script.expire(alice, 0), expired);
    let call = script.forced("alice", 2, Some(alice), put("/app/x", "1"));
    let words = [&format!("had expired at index {expired}"), "unused since"];
    breaks(
        &script.history(),
        "P6",
        &[call, alice],
        &words.map(|w| w as &str),
    );
}

#[test]
fn an_expiry_that_has_not_seen_the_last_use_ends_nothing() {
    let (mut script, _, alice) = logged_in(rules());
    script.wait_ms(TTL_MS);
    script.refresh(&[alice]);
    script.expire(alice, 0);
    script.done("alice", 2, Some(alice), put("/app/x", "1"));
    let op = put("/app/x", "2");
    let mut wrong = script;
    let call = wrong.denied("alice", Some(alice), op, Refusal::InvalidToken);
    breaks(&wrong.history(), "P7", &[call, alice], &["was good"]);
}

#[test]
fn an_expiry_must_not_come_before_its_time() {
    let early = |after_ms, drift_ppm| {
        let (mut script, _, alice) = logged_in(TokenRules {
            drift_ppm,
            ..rules()
        });
        script.wait_ms(30_000);
        script.refresh(&[alice]);
        script.wait_ms(after_ms);
        script.expire(alice, 1);
        (script.history(), alice)
    };
    passes(&early(75_000, 0).0);
    let (history, alice) = early(74_900, 0);
    let words = [
        "was expired at index",
        "it lives at least 75000 ms from there",
    ];
    breaks(&history, "P7", &[alice], &words);
    // A fast clock comes to the same reading sooner.
    passes(&early(74_000, 100_000).0);
    let (history, alice) = early(60_000, 100_000);
    breaks(&history, "P7", &[alice], &["was expired at index"]);
}

#[test]
fn a_token_that_nobody_uses_must_end() {
    let idle = |between: &dyn Fn(&mut Script), drift_ppm| {
        let (mut script, _, alice) = logged_in(TokenRules {
            drift_ppm,
            ..rules()
        });
        script.wait_ms(60_000);
        between(&mut script);
        script.wait_ms(33_000);
        let call = script.done("alice", 2, Some(alice), put("/app/x", "1"));
        (script.history(), [call, alice])
    };
    let fault = |what: &str| What::Fault { what: what.into() };
    let (history, calls) = idle(&|_| {}, 0);
    let words = ["should have expired", "it lives at most 90000 ms"];
    breaks(&history, "P17", &calls, &words);
    // A slow clock comes to the same reading later.
    passes(&idle(&|_| {}, 50_000).0);
    // A fault, a restart or a change of leader begins the time anew.
    passes(&idle(&|script| script.push(fault("kill n2")), 0).0);
    let restart = |script: &mut Script| script.restart(2, script.index());
    passes(&idle(&restart, 0).0);
    let leads = |script: &mut Script| {
        script.push(What::Role {
            member: 2,
            term: 2,
            leader: true,
        });
    };
    passes(&idle(&leads, 0).0);
}

#[test]
fn a_report_or_a_call_keeps_a_token_alive() {
    for reports in [false, true] {
        let (mut script, _, alice) = logged_in(rules());
        script.wait_ms(60_000);
        if reports {
            script.refresh(&[alice]);
        } else {
            let call = script.invoke("alice", 2, Some(alice), put("/app/x", "1"));
            script.wait_ms(1000);
            script.lose(call);
        }
        script.wait_ms(33_000);
        script.done("alice", 2, Some(alice), put("/app/x", "1"));
        passes(&script.history());
    }
}

#[test]
fn a_use_must_be_reported_in_time() {
    let used = |before_ms, after: &dyn Fn(&mut Script, u64)| {
        let (mut script, root, alice) = logged_in(rules());
        script.wait_ms(before_ms);
        let call = script.done("alice", 2, Some(alice), put("/app/x", "1"));
        after(&mut script, alice);
        script.wait_ms(18_000);
        script.done("root", 1, Some(root), Op::AuthStatus {});
        (script.history(), [call, alice])
    };
    let (history, calls) = used(20_000, &|_, _| {});
    let words = ["no report of a use of it came into the log"];
    breaks(&history, "P7", &calls, &words);
    // The login itself is a report.
    passes(&used(16_000, &|_, _| {}).0);
    let refresh = |script: &mut Script, alice: u64| {
        script.wait_ms(16_000);
        script.refresh(&[alice]);
    };
    passes(&used(20_000, &refresh).0);
    let cut = |script: &mut Script, _| {
        let what = "cut n1 <-> n2+n3".into();
        script.push(What::Fault { what });
    };
    passes(&used(20_000, &cut).0);
    let end = |script: &mut Script, _| {
        script.done("alice", 1, None, Op::AuthStatus {});
        let root = script.log_in("root", 1, "root", "r");
        script.done("root", 1, Some(root), change_password("alice", "new"));
    };
    passes(&used(20_000, &end).0);
}

#[test]
fn the_oldest_token_makes_room_and_no_other() {
    let rules = TokenRules {
        per_user_max: 2,
        ..rules()
    };
    let three = || {
        let (mut script, _, first) = logged_in(rules);
        let second = script.log_in("alice", 2, "alice", "old");
        script.refresh(&[first]);
        let third = script.log_in("alice", 3, "alice", "old");
        (script, first, second, third)
    };
    let (mut script, first, second, third) = three();
    for token in [first, second, third] {
        script.done("alice", 2, Some(token), put("/app/x", "1"));
    }
    assert!(!script.model().is_alive(second));
    passes(&script.history());

    let (mut script, _, second, third) = three();
    let call = script.forced("alice", 2, Some(second), put("/app/x", "1"));
    let words = ["had made room for call"];
    breaks(&script.history(), "P6", &[call, second, third], &words);

    let (mut script, first, ..) = three();
    let op = put("/app/x", "1");
    let call = script.denied("alice", Some(first), op, Refusal::InvalidToken);
    breaks(&script.history(), "P7", &[call, first], &["was good"]);
}

#[test]
fn a_login_is_refused_when_there_are_as_many_tokens_as_there_may_be() {
    let full = |total_max, answer: Result<Reply, Refusal>| {
        let (mut script, _, _) = logged_in(TokenRules {
            total_max,
            ..rules()
        });
        let call = script.invoke("alice", 1, None, login("alice", "old"));
        let request = script.propose(call);
        let _ = script.commit_as(request, 0, answer);
        script.lose(call);
        (script.history(), call)
    };
    passes(&full(2, Err(Refusal::TooManyTokens)).0);
    passes(&full(3, Ok(Reply::default())).0);
    let (history, call) = full(2, Ok(Reply::default()));
    breaks(&history, "P1", &[call], &["there were 2 already"]);
    let (history, call) = full(3, Err(Refusal::TooManyTokens));
    breaks(&history, "P1", &[call], &["although there was room"]);
}

#[test]
fn a_member_that_did_not_wait_for_the_login_is_named() {
    let (mut script, _, _) = logged_in(rules());
    script.lagging.insert(3);
    let seen = script.applied(3);
    let alice = script.log_in("alice", 1, "alice", "old");
    let issued = script.model().token(alice).unwrap().index;
    let call = script.invoke("alice", 3, Some(alice), get("/app/x"));
    script.end(call, Err(Refusal::InvalidToken));
    let words = format!("n3 had applied index {seen}, the token's login stands at {issued}");
    breaks(&script.history(), "P7", &[call], &[&words]);
}

#[test]
fn an_own_entry_with_a_strange_decision_is_not_decided() {
    let (mut script, _, alice) = logged_in(rules());
    script.refresh(&[alice]);
    let mut history = script.history();
    for event in &mut history.events {
        if let What::Applied(applied) = &mut event.what
            && applied.kind == "token-refresh"
        {
            applied.decision = "no".into();
        }
    }
    is_undecided(&history, "the `token-refresh` entry");
}
