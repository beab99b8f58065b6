//! Codes and texts that only a raw client sees: tokens, passwords, malformed requests.

use crate::client::{Client, block_on, refusal};
use crate::etcdctl::guard;
use crate::harness::Cluster;
use gatehouse::pb::authpb;
use gatehouse::pb::etcdserverpb as pb;
use std::time::{Duration, Instant};

const INVALID_TOKEN: (i32, &str) = (16, "etcdserver: invalid auth token");
const USER_EMPTY: (i32, &str) = (3, "etcdserver: user name is empty");
const DENIED: (i32, &str) = (7, "etcdserver: permission denied");
const WRONG: (i32, &str) = (
    3,
    "etcdserver: authentication failed, invalid user ID or password",
);
const NO_PASSWORD_USER: (i32, &str) = (
    2,
    "auth: authentication failed, password was given for no password user",
);
const TOO_LONG: (i32, &str) = (2, "bcrypt: password length exceeds 72 bytes");

#[track_caller]
fn refused<T>(answer: Result<T, tonic::Status>, (code, text): (i32, &str)) {
    assert_eq!(refusal(answer), Some((code, text.to_owned())));
}

/// One member, guarded, and a client without credentials.
fn guarded() -> (Cluster, Client) {
    let cluster = Cluster::start(1, &["--bcrypt-cost=4"]);
    guard(&cluster.addresses());
    let client = Client::anonymous(&cluster.members[0].address());
    (cluster, client)
}

#[test]
fn a_token_is_taken_from_where_etcds_clients_put_it() {
    let (_cluster, client) = guarded();
    block_on(async {
        let token = client.login("alice", "alicepw").await.unwrap();
        for (key, value) in [
            ("token", token.clone()),
            ("token", format!("Bearer {token}")),
            ("authorization", token.clone()),
            ("authorization", format!("Bearer {token}")),
        ] {
            assert_eq!(
                client.presenting(key, &value).get("foo").await.unwrap(),
                None,
                "{key}"
            );
        }
        refused(
            client
                .presenting("token", &format!("bearer {token}"))
                .get("foo")
                .await,
            INVALID_TOKEN,
        );
    });
}

#[test]
fn what_is_no_token_is_refused_at_once_while_auth_is_on() {
    let (_cluster, client) = guarded();
    block_on(async {
        let token = client.login("alice", "alicepw").await.unwrap();
        let (prefix, index) = token.split_once('.').unwrap();
        let next = index.parse::<u64>().unwrap() + 1_000_000;
        let start = Instant::now();
        for bad in [
            "".to_owned(),
            "garbage".to_owned(),
            format!("{token}.1"),
            format!("aaaaaaaaaaaaaaaa.{index}"),
            format!("{prefix}.1"),
            format!("{prefix}.{next}"),
            format!("{prefix}.{}", u64::MAX),
        ] {
            let bearer = client.presenting("token", &bad);
            refused(bearer.get("foo").await, INVALID_TOKEN);
            refused(bearer.set("foo", "bar").await, INVALID_TOKEN);
            refused(bearer.status(pb::StatusRequest {}).await, INVALID_TOKEN);
            // Who needs a new token has to be able to learn the auth revision and to log in.
            assert!(
                bearer
                    .auth_status(pb::AuthStatusRequest {})
                    .await
                    .unwrap()
                    .enabled
            );
            bearer.login("alice", "alicepw").await.unwrap();
        }
        assert!(
            start.elapsed() < Duration::from_secs(7),
            "an index from the future was waited for"
        );
    });
}

#[test]
fn a_token_means_nothing_while_auth_is_off() {
    let cluster = Cluster::start(1, &["--bcrypt-cost=4"]);
    let client = Client::anonymous(&cluster.members[0].address());
    block_on(async {
        for token in ["garbage", "aaaaaaaaaaaaaaaa.1", "aaaaaaaaaaaaaaaa.99999999"] {
            client
                .presenting("token", token)
                .set("foo", "bar")
                .await
                .unwrap();
        }
        let not_enabled = (9, "etcdserver: authentication is not enabled");
        refused(client.login("root", "rootpw").await, not_enabled);
    });
}

#[test]
fn a_password_change_ends_tokens_and_old_passwords() {
    let (_cluster, client) = guarded();
    block_on(async {
        let root = client.logged_in("root", "rootpw").await;
        let alice = client.logged_in("alice", "alicepw").await;
        assert_eq!(alice.get("foo").await.unwrap(), None);
        let change = pb::AuthUserChangePasswordRequest {
            name: "alice".to_owned(),
            password: "newpw".to_owned(),
            ..Default::default()
        };
        root.user_change_password(change).await.unwrap();
        refused(alice.get("foo").await, INVALID_TOKEN);
        refused(client.login("alice", "alicepw").await, WRONG);
        client.login("alice", "newpw").await.unwrap();
    });
}

#[test]
fn a_client_may_send_a_hash_in_place_of_a_password() {
    let (_cluster, client) = guarded();
    block_on(async {
        let root = client.logged_in("root", "rootpw").await;
        let change = |password: &str, hashed_password: &str| pb::AuthUserChangePasswordRequest {
            name: "alice".to_owned(),
            password: password.to_owned(),
            hashed_password: hashed_password.to_owned(),
        };
        // bcrypt of "sent" at cost 4, then base64.
        let hash = base64_of_bcrypt("sent");
        root.user_change_password(change("", &hash)).await.unwrap();
        client.login("alice", "sent").await.unwrap();
        root.user_change_password(change("typed", &hash))
            .await
            .unwrap();
        refused(client.login("alice", "sent").await, WRONG);
        client.login("alice", "typed").await.unwrap();
        refused(
            root.user_change_password(change("", "no base64!")).await,
            NO_PASSWORD_USER,
        );
        refused(
            client.user_change_password(change("", "no base64!")).await,
            USER_EMPTY,
        );
        client.login("alice", "typed").await.unwrap();
        root.user_change_password(change("", "")).await.unwrap();
        for password in ["typed", ""] {
            refused(client.login("alice", password).await, WRONG);
        }
    });
}

fn base64_of_bcrypt(password: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bcrypt::hash(password, 4).unwrap())
}

#[test]
fn users_without_password_cannot_log_in() {
    let (_cluster, client) = guarded();
    block_on(async {
        let root = client.logged_in("root", "rootpw").await;
        let add = |name: &str, password: &str, no_password| pb::AuthUserAddRequest {
            name: name.to_owned(),
            password: password.to_owned(),
            options: Some(authpb::UserAddOptions { no_password }),
            hashed_password: base64_of_bcrypt("ignored"),
        };
        root.user_add(add("robot", "ignored", true)).await.unwrap();
        refused(client.login("robot", "ignored").await, NO_PASSWORD_USER);
        root.user_add(add("blank", "", false)).await.unwrap();
        client.login("blank", "").await.unwrap();
        refused(client.login("blank", "ignored").await, WRONG);
        refused(
            root.user_add(add("long", &"x".repeat(73), false)).await,
            TOO_LONG,
        );
        // Hashed before anyone asks who calls.
        refused(
            client.user_add(add("long", &"x".repeat(73), false)).await,
            TOO_LONG,
        );
        refused(client.user_add(add("other", "x", false)).await, USER_EMPTY);
        refused(
            client.login("robot", &"x".repeat(73)).await,
            NO_PASSWORD_USER,
        );
        refused(client.login("alice", &"x".repeat(73)).await, WRONG);
    });
}

#[test]
fn maintenance_asks_for_a_name_or_an_administrator() {
    let (_cluster, client) = guarded();
    block_on(async {
        let root = client.logged_in("root", "rootpw").await;
        let alice = client.logged_in("alice", "alicepw").await;
        refused(client.status(pb::StatusRequest {}).await, USER_EMPTY);
        let status = alice.status(pb::StatusRequest {}).await.unwrap();
        let header = status.header.unwrap();
        assert_eq!(status.leader, header.member_id);
        assert!(status.db_size > 0);
        assert!(status.raft_applied_index > 0);
        assert_eq!(status.errors, [""; 0]);
        refused(
            client.hash_kv(pb::HashKvRequest::default()).await,
            USER_EMPTY,
        );
        refused(alice.hash_kv(pb::HashKvRequest::default()).await, DENIED);
        let before = root.hash_kv(pb::HashKvRequest::default()).await.unwrap();
        root.set("foo", "bar").await.unwrap();
        let after = root.hash_kv(pb::HashKvRequest::default()).await.unwrap();
        assert_ne!(before.hash, after.hash);
        assert_eq!(before.auth_hash, after.auth_hash);
        assert_eq!(after.hash_revision, before.hash_revision + 1);
        let future = pb::HashKvRequest { revision: 1_000 };
        refused(
            root.hash_kv(future).await,
            (
                11,
                "etcdserver: mvcc: required revision is a future revision",
            ),
        );
    });
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let cluster = Cluster::start(1, &["--max-txn-ops=2", "--max-request-bytes=2048"]);
    let client = Client::anonymous(&cluster.members[0].address());
    block_on(async {
        refused(
            client.set("", "v").await,
            (3, "etcdserver: key is not provided"),
        );
        refused(client.get("").await, (3, "etcdserver: key is not provided"));
        let op = |key: &'static str| pb::RequestOp {
            request: Some(pb::request_op::Request::RequestPut(pb::PutRequest {
                key: key.into(),
                ..Default::default()
            })),
        };
        let txn = |success| pb::TxnRequest {
            success,
            ..Default::default()
        };
        refused(
            client.txn(txn(vec![op("a"), op("b"), op("c")])).await,
            (3, "etcdserver: too many operations in txn request"),
        );
        refused(
            client.txn(txn(vec![op("a"), op("a")])).await,
            (3, "etcdserver: duplicate key given in txn request"),
        );
        refused(
            client.set("k", &"v".repeat(4096)).await,
            (3, "etcdserver: request is too large"),
        );
        let lease = pb::PutRequest {
            key: "k".into(),
            lease: 7,
            ..Default::default()
        };
        refused(
            client.put(lease).await,
            (5, "etcdserver: requested lease not found"),
        );
        let keep = pb::PutRequest {
            key: "k".into(),
            ignore_value: true,
            ..Default::default()
        };
        refused(client.put(keep).await, (3, "etcdserver: key not found"));
        let future = pb::RangeRequest {
            key: "k".into(),
            revision: 99,
            ..Default::default()
        };
        refused(
            client.range(future).await,
            (
                11,
                "etcdserver: mvcc: required revision is a future revision",
            ),
        );
        let nothing = pb::AuthRoleGrantPermissionRequest {
            name: "r".to_owned(),
            perm: None,
        };
        refused(
            client.role_grant_permission(nothing).await,
            (3, "etcdserver: permission not given"),
        );
        assert_eq!(client.get("k").await.unwrap(), None);
        let header = client.set("k", "v").await.unwrap().header.unwrap();
        assert_eq!(header.revision, 2, "refused requests changed the revision");
    });
}
