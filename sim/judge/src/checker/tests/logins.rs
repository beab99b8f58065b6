//! P5 to P8: logins, tokens, identities.

use super::script::*;
use super::{breaks, is_undecided, passes};
use crate::history::{Op, Outcome, Reply, What};
use crate::model::Refusal;

/// alice's login with `old` is on its way when her password is changed; then its entry is committed with a token.
fn overlapped() -> (Script, u64, u64) {
    let (mut script, root) = Script::with_auth();
    let login = script.invoke("mallory", 2, None, login("alice", "old"));
    let request = script.propose(login);
    let change = script.done("root", 1, Some(root), change_password("alice", "new"));
    let answer = script.commit_as(request, 0, Ok(Reply::default()));
    script.end(login, answer);
    (script, login, change)
}

#[test]
fn a_login_that_overlaps_the_change_may_stand_before_it() {
    let (mut script, login, _) = overlapped();
    // Its token is dead from the beginning, and that is how it must be treated.
    script.done("mallory", 2, Some(login), put("/app/x", "1"));
    passes(&script.history());
}

#[test]
fn a_token_for_the_old_password_must_not_work_after_the_change() {
    let (mut script, login, change) = overlapped();
    let put = script.forced("mallory", 2, Some(login), put("/app/x", "1"));
    let words = [
        &format!("call {put} (mallory put /app/x on n2 at "),
        "was allowed at index",
        &format!("its token is that of login {login}, which presented alice's password `old`"),
        &format!("call {change} (root change-password alice on n1 at "),
        "acknowledged at",
        "[P6]",
    ];
    breaks(&script.history(), "P6", &[put, login, change], &words);
}

#[test]
fn a_read_with_a_token_for_the_old_password_is_as_bad() {
    let (mut script, login, change) = overlapped();
    let read = script.invoke("mallory", 2, Some(login), get("/app/x"));
    let index = script.index();
    let _ = script.serve(read, index);
    let revision = script.model().kv_revision();
    let reply = Reply {
        revision,
        ..Reply::default()
    };
    script.end(read, Ok(reply));
    breaks(
        &script.history(),
        "P6",
        &[read, login, change],
        &["view of index"],
    );
}

#[test]
fn a_login_that_started_over_and_was_refused_is_right() {
    let (mut script, root) = Script::with_auth();
    let login = script.invoke("mallory", 2, None, login("alice", "old"));
    let request = script.propose(login);
    script.done("root", 1, Some(root), change_password("alice", "new"));
    script.commit_again(request);
    let index = script.index();
    let _ = script.serve(login, index);
    script.end(login, Err(Refusal::AuthFailed));
    passes(&script.history());
}

#[test]
fn a_login_starts_over_only_for_its_own_user() {
    let (mut script, root) = Script::with_auth();
    let login = script.invoke("alice", 2, None, login("alice", "old"));
    let request = script.propose(login);
    script.done("root", 1, Some(root), user_add("bob", "b"));
    script.commit_again(request);
    let request = script.propose(login);
    let answer = script.commit_as(request, 0, Ok(Reply::default()));
    script.end(login, answer);
    breaks(&script.history(), "P17", &[login], &["had to start over"]);
}

#[test]
fn a_login_after_the_change_must_not_take_the_old_password() {
    let (mut script, root) = Script::with_auth();
    script.done("root", 1, Some(root), change_password("alice", "new"));
    let login = script.log_in("mallory", 2, "alice", "old");
    breaks(
        &script.history(),
        "P5",
        &[login],
        &["password `old`, which was not alice's"],
    );
}

#[test]
fn a_lagging_member_must_not_refuse_the_new_password() {
    let (mut script, root) = Script::with_auth();
    let old_index = script.index();
    script.lagging.insert(3);
    script.done("root", 1, Some(root), change_password("alice", "new"));
    let login = script.invoke("alice", 3, None, login("alice", "new"));
    let _ = script.serve(login, old_index);
    script.end(login, Err(Refusal::AuthFailed));
    script.catch_up(3);
    let words = [
        "was refused as wrong",
        "`new` was alice's password from before",
    ];
    breaks(&script.history(), "P5", &[login], &words);
}

#[test]
fn a_login_refused_while_the_password_is_changed_is_right_either_way() {
    for password in ["old", "new"] {
        let (mut script, root) = Script::with_auth();
        let login = script.invoke("alice", 3, None, login("alice", password));
        script.done("root", 1, Some(root), change_password("alice", "new"));
        script.end(login, Err(Refusal::AuthFailed));
        passes(&script.history());
    }
}

#[test]
fn a_login_is_refused_as_not_enabled_only_while_auth_is_off() {
    let mut script = Script::new();
    let early = script.invoke("alice", 1, None, login("alice", "old"));
    script.end(early, Err(Refusal::NotEnabled));
    passes(&script.history());

    let (mut script, _) = Script::with_auth();
    let late = script.invoke("alice", 1, None, login("alice", "old"));
    script.end(late, Err(Refusal::NotEnabled));
    breaks(&script.history(), "P5", &[late], &["as if auth were off"]);
}

#[test]
fn a_token_dies_with_its_user_and_does_not_come_back_with_the_name() {
    let (mut script, root) = Script::with_auth();
    let login = script.log_in("alice", 1, "alice", "old");
    let deletion = script.done("root", 1, Some(root), user_delete("alice"));
    script.done("root", 1, Some(root), user_add("alice", "old"));
    script.done("root", 1, Some(root), grant_role("alice", "app"));
    let put = script.forced("alice", 2, Some(login), put("/app/x", "1"));
    breaks(
        &script.history(),
        "P6",
        &[put, login, deletion],
        &["root user-delete alice"],
    );
}

#[test]
fn a_token_dies_when_auth_is_switched_off() {
    let (mut script, root) = Script::with_auth();
    let login = script.log_in("alice", 1, "alice", "old");
    let off = script.done("root", 1, Some(root), Op::AuthDisable {});
    script.done("root", 1, None, Op::AuthEnable {});
    let put = script.forced("alice", 2, Some(login), put("/app/x", "1"));
    breaks(
        &script.history(),
        "P6",
        &[put, login, off],
        &["root auth-disable"],
    );
}

#[test]
fn a_good_token_is_never_called_invalid() {
    // At an entry.
    let (mut script, _) = Script::with_auth();
    let login = script.log_in("alice", 1, "alice", "old");
    let op = put("/app/x", "1");
    let call = script.denied("alice", Some(login), op, Refusal::InvalidToken);
    breaks(&script.history(), "P7", &[call, login], &["was good"]);

    // Before one, on a member that lags; with and without a word of the view.
    for is_served in [false, true] {
        let (mut script, _) = Script::with_auth();
        script.lagging.insert(3);
        let login = script.log_in("alice", 1, "alice", "old");
        let call = script.invoke("alice", 3, Some(login), get("/app/x"));
        if is_served {
            let index = script.applied(3);
            let _ = script.serve(call, index);
        }
        script.end(call, Err(Refusal::InvalidToken));
        script.catch_up(3);
        breaks(&script.history(), "P7", &[call], &["was good all the time"]);
    }
}

#[test]
fn an_invalid_token_is_explained_by_what_killed_it() {
    let changes = [
        change_password("alice", "new"),
        user_delete("alice"),
        Op::AuthDisable {},
    ];
    for change in changes {
        let (mut script, root) = Script::with_auth();
        let login = script.log_in("alice", 1, "alice", "old");
        let early = script.invoke("alice", 2, Some(login), get("/app/x"));
        script.done("root", 1, Some(root), change);
        script.end(early, Err(Refusal::InvalidToken));
        passes(&script.history());
    }
    // Other users' changes, and a restart, explain nothing.
    let (mut script, root) = Script::with_auth();
    let login = script.log_in("alice", 1, "alice", "old");
    script.done("root", 1, Some(root), user_add("bob", "b"));
    script.restart(2, 3);
    let call = script.invoke("alice", 2, Some(login), get("/app/x"));
    script.end(call, Err(Refusal::InvalidToken));
    breaks(&script.history(), "P7", &[call], &[]);
}

#[test]
fn an_entry_names_the_user_whose_token_was_presented() {
    let (mut script, _) = Script::with_auth();
    let login = script.log_in("alice", 1, "alice", "old");
    let call = script.done("alice", 2, Some(login), put("/app/x", "1"));
    let mut history = script.history();
    for event in &mut history.events {
        if let What::Applied(applied) = &mut event.what
            && applied.kind == "put"
        {
            applied.user = "root".into();
        }
    }
    breaks(
        &history,
        "P8",
        &[call],
        &["names root, but the token of login"],
    );
}

#[test]
fn a_token_is_ignored_where_auth_is_still_off_but_not_where_it_is_on() {
    let (mut script, root) = Script::with_auth();
    let login = script.log_in("alice", 1, "alice", "old");
    let call = script.invoke("alice", 2, Some(login), put("/app/x", "1"));
    let request = script.propose(call);
    script.done("root", 1, Some(root), Op::AuthDisable {});
    script.done("root", 1, None, Op::AuthEnable {});
    let answer = script.commit_as(request, 0, Err(Refusal::UserEmpty));
    script.end(call, answer);
    let mut history = script.history();
    for event in &mut history.events {
        if let What::Applied(applied) = &mut event.what
            && applied.request_id == request
        {
            applied.user = "".into();
        }
    }
    passes(&history);
}

#[test]
fn a_lost_login_may_have_given_a_token_or_not() {
    let (mut script, _) = Script::with_auth();
    let lost = script.invoke("alice", 1, None, login("alice", "old"));
    let request = script.propose(lost);
    script.lose(lost);
    let _ = script.commit_as(request, 0, Ok(Reply::default()));
    let other = script.invoke("bob", 1, None, login("alice", "old"));
    script.propose(other);
    script.lose(other);
    passes(&script.history());
}

#[test]
fn a_refused_login_must_not_leave_a_token() {
    let (mut script, _) = Script::with_auth();
    let call = script.invoke("alice", 1, None, login("alice", "old"));
    let request = script.propose(call);
    let _ = script.commit_as(request, 0, Ok(Reply::default()));
    script.end(call, Err(Refusal::AuthFailed));
    breaks(
        &script.history(),
        "P1",
        &[call],
        &["although it has a token"],
    );
}

#[test]
fn a_token_of_what_is_no_login_is_a_defect_of_the_history() {
    let (mut script, _) = Script::with_auth();
    let call = script.invoke("alice", 1, Some(1), get("/app/x"));
    let message = "etcdserver: invalid auth token".into();
    let code = "Unauthenticated".into();
    let outcome = Outcome::Refused { code, message };
    script.push(What::Return { call, outcome });
    is_undecided(&script.history(), "which is no login");
}
