//! Which property a wrong decision is blamed on: names used again (P15), edges of ranges (P14), administration (P16),
//! and what a transaction gives away (P12).

use super::breaks;
use super::script::*;
use crate::history::{Compare, GrantKind, Op, Operand, Reply, What};
use crate::model::Refusal;

fn range(key: &str, range_end: &str) -> Op {
    Op::Get {
        key: key.into(),
        range_end: range_end.into(),
        serializable: false,
        limit: 0,
        revision: 0,
        count_only: false,
    }
}

fn write(key: &str) -> Op {
    Op::Put {
        key: key.into(),
        value: "1".into(),
        prev_kv: false,
    }
}

/// A cluster whose alice holds these grants in addition to `/app/`, and her token.
fn granted(grants: &[(&str, &str)]) -> (Script, u64, Vec<u64>) {
    let (mut script, root) = Script::with_auth();
    let given = grants.iter().map(|(key, end)| {
        let op = grant("app", GrantKind::Readwrite, key, end);
        script.done("root", 1, Some(root), op)
    });
    let given = given.collect();
    let alice = script.log_in("alice", 2, "alice", "old");
    (script, alice, given)
}

/// The call that switched auth on in [`Script::with_auth`].
const ENABLING: u64 = 7;

#[test]
fn too_much_allowed_at_an_edge_is_wrong_arithmetic() {
    let edges: [(&[(&str, &str)], Op); 4] = [
        (&[], write("/app0")),
        (&[("a", "c"), ("d", "f")], range("b", "e")),
        (&[("a", "c")], range("b", "\0")),
        (&[("a", "c")], write("c")),
    ];
    for (grants, op) in edges {
        let (mut script, alice, _) = granted(grants);
        let call = script.forced("alice", 2, Some(alice), op);
        let words = ["alice may only readwrite /app/", "does not cover that"];
        breaks(&script.history(), "P14", &[call, ENABLING], &words);
    }
    // Far from every edge it is no arithmetic.
    let (mut script, alice, _) = granted(&[("a", "c")]);
    let call = script.forced("alice", 2, Some(alice), write("z"));
    breaks(&script.history(), "P1", &[call, ENABLING], &["no right"]);
    // Nor if the right was taken away.
    let (mut script, root) = Script::with_auth();
    let alice = script.log_in("alice", 2, "alice", "old");
    let op = grant("app", GrantKind::Readwrite, "/app0", "");
    script.done("root", 1, Some(root), op);
    let op = Op::RevokePermission {
        role: "app".into(),
        key: "/app0".into(),
        range_end: "".into(),
    };
    let revocation = script.done("root", 1, Some(root), op);
    let call = script.forced("alice", 2, Some(alice), write("/app0"));
    breaks(&script.history(), "P2", &[call, revocation], &["no right"]);
}

#[test]
fn too_little_allowed_at_an_edge_is_wrong_arithmetic() {
    let edges: [(&[(&str, &str)], Op); 3] = [
        // Two grants together, an open end, a single key that touches a range.
        (&[("a", "c"), ("c", "e")], range("b", "d")),
        (&[("x", "\0")], write("y")),
        (&[("/app0", "")], write("/app0")),
    ];
    for (grants, op) in edges {
        let (mut script, alice, given) = granted(grants);
        let call = script.denied("alice", Some(alice), op, Refusal::PermissionDenied);
        let calls = [call, *given.last().unwrap()];
        breaks(&script.history(), "P14", &calls, &["which covers that"]);
    }
    // A member that lags behind the grant need not have reckoned wrongly.
    let (mut script, root) = Script::with_auth();
    let alice = script.log_in("alice", 1, "alice", "old");
    script.lagging.insert(1);
    let op = grant("app", GrantKind::Readwrite, "x", "\0");
    let given = script.done("root", 2, Some(root), op);
    let call = script.denied("alice", Some(alice), write("y"), Refusal::PermissionDenied);
    breaks(&script.history(), "P3", &[call, given], &["had the right"]);
}

#[test]
fn a_new_role_does_not_belong_to_the_holders_of_the_old_one() {
    let (mut script, root) = Script::with_auth();
    let alice = script.log_in("alice", 2, "alice", "old");
    let role = || crate::text::Text::from("app");
    let root = Some(root);
    let deleted = script.done("root", 1, root, Op::RoleDelete { role: role() });
    let again = script.done("root", 1, root, Op::RoleAdd { role: role() });
    let op = grant("app", GrantKind::Readwrite, "/app/", "/app0");
    script.done("root", 1, root, op);
    let call = script.forced("alice", 2, Some(alice), write("/app/x"));
    let words = ["alice had lost that when", "brings nothing back"];
    breaks(&script.history(), "P15", &[call, deleted, again], &words);
}

#[test]
fn a_new_user_does_not_have_the_old_ones_roles() {
    let (mut script, root) = Script::with_auth();
    let root = Some(root);
    let deleted = script.done("root", 1, root, user_delete("alice"));
    let again = script.done("root", 1, root, user_add("alice", "old"));
    let alice = script.log_in("alice", 2, "alice", "old");
    let call = script.forced("alice", 2, Some(alice), write("/app/x"));
    breaks(&script.history(), "P15", &[call, deleted, again], &[]);
}

#[test]
fn a_deleted_role_is_not_listed_and_can_be_granted_again() {
    let (mut script, root) = Script::with_auth();
    let root = Some(root);
    script.done("root", 1, root, Op::RoleDelete { role: "app".into() });
    let user = Op::UserGet {
        user: "alice".into(),
    };
    let call = script.invoke("root", 1, root, user);
    let index = script.index();
    let mut reply = script.serve(call, index).unwrap();
    reply.names.push("app".into());
    script.end(call, Ok(reply));
    breaks(
        &script.history(),
        "P15",
        &[call],
        &["was answered with app"],
    );

    let (mut script, root) = Script::with_auth();
    let root = Some(root);
    script.done("root", 1, root, Op::RoleDelete { role: "app".into() });
    script.done("root", 1, root, Op::RoleAdd { role: "app".into() });
    let call = script.done("root", 1, root, grant_role("alice", "app"));
    let revision = script.model().accounts().revision();
    let mut history = script.history();
    for event in &mut history.events {
        if let What::Applied(applied) = &mut event.what
            && applied.auth_revision == revision
        {
            applied.auth_revision -= 1;
        }
    }
    breaks(&history, "P15", &[call], &["auth revision was"]);
}

#[test]
fn root_stays_root_while_auth_is_on() {
    let ops = [
        user_delete("root"),
        revoke_role("root", "root"),
        Op::RoleDelete {
            role: "root".into(),
        },
    ];
    for op in ops {
        let (mut script, root) = Script::with_auth();
        let call = script.invoke("root", 1, Some(root), op);
        let request = script.propose(call);
        let revision = script.model().accounts().revision();
        let _ = script.commit_as(request, revision, Ok(Reply::default()));
        script.end(call, Ok(Reply::default()));
        breaks(&script.history(), "P16", &[call], &["root must be there"]);
    }
    // Refused it was, but for the wrong reason.
    let (mut script, _) = Script::with_auth();
    let op = user_delete("root");
    let call = script.denied("ada", None, op, Refusal::InvalidManagement);
    let words = ["should have been refused with `user name is empty`"];
    breaks(&script.history(), "P1", &[call], &words);

    let mut script = Script::new();
    let call = script.forced("root", 1, None, Op::AuthEnable {});
    breaks(&script.history(), "P16", &[call], &["root must be there"]);
}

#[test]
fn who_never_was_an_administrator_must_not_administer() {
    let (mut script, _) = Script::with_auth();
    let alice = script.log_in("alice", 2, "alice", "old");
    let call = script.forced("alice", 2, Some(alice), user_add("eve", "e"));
    breaks(&script.history(), "P16", &[call, ENABLING], &["no right"]);

    // Whoever was one until lately is another matter.
    let (mut script, root) = Script::with_auth();
    script.done("root", 1, Some(root), grant_role("alice", "root"));
    let alice = script.log_in("alice", 2, "alice", "old");
    let taken = script.done("root", 1, Some(root), revoke_role("alice", "root"));
    let call = script.forced("alice", 2, Some(alice), user_add("eve", "e"));
    breaks(&script.history(), "P2", &[call, taken], &["no right"]);
}

#[test]
fn everybody_may_see_their_own_roles() {
    let (mut script, _) = Script::with_auth();
    let alice = script.log_in("alice", 2, "alice", "old");
    let user = "alice".into();
    let call = script.invoke("alice", 2, Some(alice), Op::UserGet { user });
    let index = script.index();
    let _ = script.serve(call, index);
    script.end(call, Err(Refusal::PermissionDenied));
    breaks(&script.history(), "P16", &[call], &["had the right"]);
}

#[test]
fn what_a_transaction_gives_away_depends_on_what_its_caller_lacks() {
    let nested = |op: Op| Op::Txn {
        compare: vec![],
        success: vec![Op::Txn {
            compare: vec![],
            success: vec![],
            failure: vec![op],
        }],
        failure: vec![get("/app/x")],
    };
    let compare = |depth| {
        let inner = Op::Txn {
            compare: vec![Compare {
                key: "/app0".into(),
                equals: Operand::Version(0),
            }],
            success: vec![write("/app/x")],
            failure: vec![],
        };
        if depth == 0 { inner } else { nested(inner) }
    };
    let rows = [
        ("P12", nested(get("/other"))),
        ("P12", nested(get("/app0"))), // At an edge, but nested.
        ("P1", nested(write("/other"))),
        ("P12", compare(1)),
        ("P14", compare(0)),
    ];
    for (property, op) in rows {
        let (mut script, alice, _) = granted(&[]);
        let call = script.forced("alice", 2, Some(alice), op);
        breaks(&script.history(), property, &[call, ENABLING], &[]);
    }
}
