//! Users, roles, logins and refusals, as an operator sees them.

use crate::etcdctl::{Etcdctl, guard};
use crate::harness::Cluster;

const DENIED: &str = "etcdserver: permission denied";
const WRONG_PASSWORD: &str = "etcdserver: authentication failed, invalid user ID or password";

fn cluster() -> Cluster {
    // The cheapest hashes: these stories are about answers, not about their cost.
    Cluster::start(1, &["--bcrypt-cost=4"])
}

#[test]
fn a_user_may_do_what_its_roles_allow_and_nothing_else() {
    let cluster = cluster();
    let (root, alice) = guard(&cluster.addresses());
    root.run("put foo bar").says("OK\n");
    root.run("put other secret").says("OK\n");
    root.run("get foo").says("foo\nbar\n");
    alice.run("get foo").says("foo\nbar\n");
    alice.run("get foo fop").says("foo\nbar\n");
    alice.run("get fop").refuses(1, DENIED);
    alice.run("get foo foz").refuses(1, DENIED);
    alice.run("get other").refuses(1, DENIED);
    alice.run("put foo changed").refuses(1, DENIED);
    alice.run("del foo").refuses(1, DENIED);
    alice.run("user list").refuses(1, DENIED);
    alice.run("role add mine").refuses(1, DENIED);
    alice.run("auth disable").refuses(1, DENIED);
    root.run("get foo").says("foo\nbar\n");
    root.run("del foo").says("1\n");
    alice.run("get foo").says("");
}

#[test]
fn without_a_name_nothing_is_allowed() {
    let cluster = cluster();
    guard(&cluster.addresses());
    let anyone = Etcdctl::anonymous(&cluster.addresses());
    for line in [
        "get foo",
        "put foo bar",
        "del foo",
        "user list",
        "user add eve:eve",
        "role list",
        "auth disable",
    ] {
        anyone
            .run(line)
            .refuses(1, "etcdserver: user name is empty");
    }
}

#[test]
fn a_wrong_password_and_an_unknown_user_look_the_same() {
    let cluster = cluster();
    guard(&cluster.addresses());
    for user in ["alice:wrong", "alice:rootpw", "nobody:alicepw"] {
        Etcdctl::user(&cluster.addresses(), user)
            .run("get foo")
            .refuses(2, WRONG_PASSWORD);
    }
}

#[test]
fn a_revoked_role_stops_the_next_request() {
    let cluster = cluster();
    let (root, alice) = guard(&cluster.addresses());
    alice.run("get foo").says("");
    root.run("user revoke-role alice reader")
        .says("Role reader is revoked from user alice\n");
    alice.run("get foo").refuses(1, DENIED);
    root.run("user revoke-role alice reader")
        .refuses(1, "etcdserver: role is not granted to the user");
}

#[test]
fn a_changed_password_replaces_the_old_one() {
    let cluster = cluster();
    let (root, alice) = guard(&cluster.addresses());
    root.run_with_input("user passwd alice --interactive=false", "newpw\n")
        .says("Password updated\n");
    alice.run("get foo").refuses(2, WRONG_PASSWORD);
    Etcdctl::user(&cluster.addresses(), "alice:newpw")
        .run("get foo")
        .says("");
}

#[test]
fn users_and_roles_are_shown_as_etcd_shows_them() {
    let cluster = cluster();
    let (root, alice) = guard(&cluster.addresses());
    root.run("user list").says("alice\nroot\n");
    root.run("role list").says("reader\n");
    root.run("user get alice")
        .says("User: alice\nRoles: reader\n");
    alice
        .run("user get alice")
        .says("User: alice\nRoles: reader\n");
    alice.run("user get root").refuses(1, DENIED);
    alice
        .run("role get reader")
        .says("Role reader\nKV Read:\n\t[foo, fop) (prefix foo)\nKV Write:\n");
    root.run("role revoke-permission reader foo")
        .refuses(1, "etcdserver: permission is not granted to the role");
    root.run("role revoke-permission reader foo fop")
        .says("Permission of range [foo, fop) is revoked from role reader\n");
    root.run("role delete reader").says("Role reader deleted\n");
    root.run("user get alice").says("User: alice\nRoles:\n");
    root.run("user delete alice").says("User alice deleted\n");
    root.run("user delete root")
        .refuses(1, "etcdserver: invalid auth management");
    root.run("user delete alice")
        .refuses(1, "etcdserver: user name not found");
    root.run("user add root:again")
        .refuses(1, "etcdserver: user name already exists");
    root.run("auth disable").says("Authentication Disabled\n");
    Etcdctl::anonymous(&cluster.addresses())
        .run("user list")
        .says("root\n");
}

#[test]
fn auth_needs_a_root_user_with_the_role() {
    let cluster = cluster();
    let anyone = Etcdctl::anonymous(&cluster.addresses());
    anyone
        .run("auth enable")
        .refuses(1, "etcdserver: root user does not exist");
    Etcdctl::user(&cluster.addresses(), "root:rootpw")
        .run("put a b")
        .says("OK\n");
    anyone
        .run("user add root:rootpw")
        .says("User root created\n");
    // etcdctl mends the missing role by itself.
    anyone.run("auth enable").says("Authentication Enabled\n");
    Etcdctl::user(&cluster.addresses(), "root:rootpw")
        .run("role list")
        .says("root\n");
}

#[test]
fn a_transaction_needs_every_right_of_both_branches() {
    let cluster = cluster();
    let (root, alice) = guard(&cluster.addresses());
    root.run("put foo bar").says("OK\n");
    let harmless = "value(\"foo\") = \"bar\"\n\nget foo\n\nget foo\n\n";
    alice
        .run_with_input("txn", harmless)
        .says("SUCCESS\n\nfoo\nbar\n");
    let hidden_put = "value(\"foo\") = \"bar\"\n\nget foo\n\nput foo changed\n\n";
    alice.run_with_input("txn", hidden_put).refuses(1, DENIED);
    let foreign_compare = "value(\"other\") = \"bar\"\n\nget foo\n\n\n";
    alice
        .run_with_input("txn", foreign_compare)
        .refuses(1, DENIED);
    root.run_with_input("txn", hidden_put)
        .says("SUCCESS\n\nfoo\nbar\n");
    let swap = "mod(\"foo\") > \"0\"\n\nput foo swapped\nput new value\n\nget foo\n\n";
    root.run_with_input("txn", swap)
        .says("SUCCESS\n\nOK\n\nOK\n");
    root.run("get foo").says("foo\nswapped\n");
}

#[test]
fn users_permissions_and_data_survive_a_restart() {
    let mut cluster = cluster();
    let (root, alice) = guard(&cluster.addresses());
    root.run("put foo bar").says("OK\n");
    for starts in [2, 3] {
        cluster.members[0].kill();
        cluster.members[0].start();
        cluster.members[0].serves(starts);
        alice.run("get foo").says("foo\nbar\n");
        alice.run("put foo changed").refuses(1, DENIED);
    }
    drop(root);
}

#[test]
fn an_administrator_compacts_and_the_past_is_gone_for_good() {
    let mut cluster = cluster();
    let (root, alice) = guard(&cluster.addresses());
    for value in ["1", "2", "3"] {
        root.run(&format!("put foo {value}")).says("OK\n");
    }
    alice.run("compaction 3").refuses(1, DENIED);
    Etcdctl::anonymous(&cluster.addresses())
        .run("compaction 3")
        .refuses(1, "etcdserver: user name is empty");
    root.run("compaction 9").refuses(
        1,
        "etcdserver: mvcc: required revision is a future revision",
    );
    root.run("get foo --rev=2").says("foo\n1\n");
    root.run("compaction 3").says("compacted revision 3\n");
    let gone = "etcdserver: mvcc: required revision has been compacted";
    for starts in 2..=3 {
        root.run("get foo --rev=2").refuses(1, gone);
        root.run("compaction 3").refuses(1, gone);
        root.run("get foo --rev=3").says("foo\n2\n");
        alice.run("get foo").says("foo\n3\n");
        cluster.members[0].kill();
        cluster.members[0].start();
        cluster.members[0].serves(starts);
    }
}
