//! P9 and P11, and histories that are no basis for a verdict.

use super::script::*;
use super::{breaks, is_undecided, passes};
use crate::checker::{Counts, count};
use crate::history::{Event, History, Outcome, TokenNote, What};
use crate::model::Refusal;

/// A defect's name in the sentence, and what makes it.
type Defect = (&'static str, fn(&mut What));

/// A run with one write on three members, and the write.
fn written() -> (History, u64) {
    let mut script = Script::new();
    let call = script.done("a", 1, None, put("x", "1"));
    (script.history(), call)
}

fn on_member_3(history: &mut History, change: fn(&mut What)) {
    for event in &mut history.events {
        match &event.what {
            What::Applied(applied) if applied.member == 3 && applied.index == 2 => {}
            What::Probe { member: 3, .. } => {}
            _ => continue,
        }
        change(&mut event.what);
    }
}

#[test]
fn members_must_agree_on_every_entry() {
    let changes: [Defect; 4] = [
        ("decision", |what| {
            if let What::Applied(applied) = what {
                applied.decision = "permission denied".into();
            }
        }),
        ("digest", |what| {
            if let What::Applied(applied) = what {
                applied.digest += 1;
            }
        }),
        ("key-value revision", |what| {
            if let What::Applied(applied) = what {
                applied.kv_revision += 1;
            }
        }),
        ("auth flag", |what| {
            if let What::Applied(applied) = what {
                applied.auth_enabled = true;
            }
        }),
    ];
    for (what, change) in changes {
        let (mut history, call) = written();
        on_member_3(&mut history, change);
        breaks(
            &history,
            "P9",
            &[call],
            &["n1 and n3 differ at index 2", what],
        );
    }
}

#[test]
fn tokens_that_members_see_differently_are_named_in_words() {
    let (mut script, root) = Script::with_auth();
    let login = script.model().token(root).unwrap().index;
    let refresh = script.refresh(&[root]);
    let expiry = script.expire(root, 1);
    let history = script.history();
    let on_member_3 = |index: u64, change: fn(&mut Vec<TokenNote>)| {
        let mut history = history.clone();
        for event in &mut history.events {
            if let What::Applied(applied) = &mut event.what
                && applied.member == 3
                && applied.index == index
            {
                change(&mut applied.tokens);
            }
        }
        history
    };
    let none = on_member_3(refresh, Vec::clear);
    let words = format!("n1 and n3 differ at index {refresh}: tokens `{login}` and `none`");
    breaks(&none, "P9", &[], &[&words]);
    let more = on_member_3(expiry, |tokens| tokens[0].refresh_count = 2);
    let words =
        format!("tokens `{login} with 1 report of use` and `{login} with 2 reports of use`");
    breaks(&more, "P9", &[], &[&words]);
}

#[test]
fn members_must_agree_at_the_end() {
    let changes: [Defect; 3] = [
        ("keys and values", |what| {
            if let What::Probe { kv_hash, .. } = what {
                *kv_hash += 1;
            }
        }),
        ("users, roles and tokens", |what| {
            if let What::Probe { auth_hash, .. } = what {
                *auth_hash += 1;
            }
        }),
        ("applied entries", |what| {
            if let What::Probe { digest, .. } = what {
                *digest += 1;
            }
        }),
    ];
    for (what, change) in changes {
        let (mut history, _) = written();
        on_member_3(&mut history, change);
        breaks(
            &history,
            "P9",
            &[],
            &["n1 and n3 are both at index 2", what],
        );
    }
}

#[test]
fn state_that_all_members_report_wrongly_is_found() {
    let (mut history, call) = written();
    for event in &mut history.events {
        if let What::Applied(applied) = &mut event.what
            && applied.index == 2
        {
            applied.auth_revision = 2;
        }
    }
    breaks(
        &history,
        "P1",
        &[call],
        &["auth revision was 2 and should have been 1"],
    );
}

#[test]
fn a_request_takes_effect_once() {
    let mut script = Script::new();
    let call = script.invoke("a", 1, None, put("x", "1"));
    let request = script.propose(call);
    let answer = script.commit(request);
    script.end(call, answer);
    let _ = script.commit(request);
    breaks(
        &script.history(),
        "P11",
        &[call],
        &["took effect twice, at index 2 and again at index 3"],
    );

    // Under two request ids as well.
    let mut script = Script::new();
    let call = script.invoke("a", 1, None, put("x", "1"));
    let requests = [script.propose(call), script.propose(call)];
    let answers = requests.map(|request| script.commit(request));
    script.end(call, answers[0].clone());
    breaks(&script.history(), "P11", &[call], &["took effect twice"]);
}

#[test]
fn a_member_applies_every_index_once_and_again_only_after_a_restart() {
    let (mut history, _) = written();
    history.events.retain(|event| {
        !matches!(&event.what, What::Applied(applied) if applied.member == 2 && applied.index == 1)
    });
    breaks(
        &history,
        "P11",
        &[],
        &["n2 went on to index 2 from index 0"],
    );

    let mut script = Script::new();
    script.done("a", 1, None, put("x", "1"));
    script.restart(2, 1);
    passes(&script.history());

    let (mut history, _) = written();
    let again = history
        .events
        .iter()
        .position(|event| matches!(&event.what, What::Applied(applied) if applied.member == 2))
        .unwrap();
    let copy = history.events[again].clone();
    history.events.insert(again, copy);
    breaks(&history, "P11", &[], &["n2 applied index 1 again"]);
}

#[test]
fn a_replay_after_a_restart_must_say_the_same() {
    let mut script = Script::new();
    let call = script.done("a", 1, None, put("x", "1"));
    script.restart(2, 1);
    let mut history = script.history();
    let last = history
        .events
        .iter_mut()
        .rev()
        .find_map(|event| match &mut event.what {
            What::Applied(applied) => Some(applied),
            _ => None,
        });
    last.unwrap().digest += 1;
    breaks(&history, "P9", &[call], &["n1 and n2 differ"]);
}

#[test]
fn a_hole_in_the_log_is_not_decided() {
    let mut script = Script::new();
    for value in ["1", "2", "3"] {
        script.done("a", 1, None, put("x", value));
    }
    let mut history = script.history();
    history.events.retain(|event| match &event.what {
        What::Applied(applied) => applied.index != 3,
        What::Started { .. } => false,
        _ => true,
    });
    let verdict = super::judge(&history);
    assert_ne!(verdict.kind, crate::verdict::VerdictKind::Ok, "{verdict:?}");
}

#[test]
fn entries_of_unknown_calls_are_not_decided() {
    let (mut history, _) = written();
    history
        .events
        .retain(|event| !matches!(event.what, What::Proposed { .. }));
    is_undecided(&history, "belongs to no call that was proposed");
}

#[test]
fn a_history_that_contradicts_itself_is_not_decided() {
    let at = |what| Event { at_us: 0, what };
    let invoke = |call: u64| What::Invoke {
        call,
        client: "a".into(),
        member: 1,
        token: None,
        op: Box::new(get("x")),
    };
    let end = |call| What::Return {
        call,
        outcome: refused(Refusal::UserEmpty),
    };
    let proposed = |call| What::Proposed {
        member: 1,
        call,
        request_id: 9,
    };
    let rows = [
        (vec![], "holds no call"),
        (vec![end(1)], "event 0: call 1 ends before it was sent"),
        (
            vec![invoke(1), invoke(1)],
            "event 1: call 1 is sent a second time",
        ),
        (
            vec![invoke(1), invoke(2)],
            "a sends call 2 while it waits for call 1",
        ),
        (
            vec![invoke(1), end(1), end(1)],
            "event 2: call 1 ends a second time",
        ),
        (
            vec![proposed(1)],
            "event 0: call 1 is proposed before it was sent",
        ),
        (
            vec![invoke(1), end(1), invoke(2), proposed(1), proposed(2)],
            "request id 9 stands for call 1 and for call 2",
        ),
    ];
    for (whats, expected) in rows {
        let events = whats.into_iter().map(at).collect();
        let header = crate::history::Header::default();
        is_undecided(&History { header, events }, expected);
    }
    let (mut history, _) = written();
    history.events[5].at_us = 1;
    is_undecided(&history, "event 5: time goes back");
}

#[test]
fn a_record_that_fits_to_no_other_is_not_decided() {
    let (mut history, _) = written();
    for event in &mut history.events {
        if let What::Proposed { member, .. } = &mut event.what {
            *member = 2;
        }
    }
    is_undecided(
        &history,
        "n2 says that it took call 1, which was sent to n1",
    );
    let (mut history, _) = written();
    for event in &mut history.events {
        if let What::Applied(applied) = &mut event.what
            && applied.index == 2
        {
            applied.tokens = vec![crate::history::TokenNote {
                login_index: 1,
                refresh_count: 0,
            }];
        }
    }
    is_undecided(
        &history,
        "index 2 speaks of the token of index 1, where no login was applied",
    );
}

#[test]
fn an_unknown_refusal_is_not_decided_but_a_busy_cluster_is_no_matter() {
    let refuse = |code: &str, message: &str| {
        let mut script = Script::new();
        let call = script.invoke("a", 1, None, put("x", "1"));
        let (code, message) = (code.into(), message.into());
        let outcome = Outcome::Refused { code, message };
        script.push(What::Return { call, outcome });
        script.history()
    };
    is_undecided(
        &refuse("Internal", "etcdserver: oops"),
        "refused with `etcdserver: oops`",
    );
    passes(&refuse("Unavailable", "etcdserver: no leader"));
    passes(&refuse(
        "InvalidArgument",
        "etcdserver: key is not provided",
    ));
}

#[test]
fn calls_are_counted_by_what_became_of_them() {
    let (mut script, _) = Script::with_auth();
    let alice = script.log_in("alice", 2, "alice", "old");
    script.done("alice", 2, Some(alice), put("/app/x", "1"));
    script.done("alice", 2, Some(alice), put("/other", "1"));
    script.done("alice", 2, None, put("/app/x", "1"));
    let wrong = script.invoke("eve", 1, None, login("alice", "guess"));
    script.end(wrong, Err(Refusal::AuthFailed));
    let lost = script.invoke("alice", 2, Some(alice), put("/app/x", "2"));
    script.lose(lost);
    script.invoke("alice", 2, Some(alice), put("/app/x", "3"));
    let expected = Counts {
        calls: 15,
        logins_ok: 2,
        logins_refused: 1,
        allowed: 8,
        denied: 2,
        refused_otherwise: 0,
        unknown: 2,
    };
    assert_eq!(count(&script.history()), expected);
}
