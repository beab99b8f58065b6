//! No password and no token in logs or on disk.

use crate::client::{Client, block_on};
use crate::etcdctl::guard;
use crate::harness::Cluster;
use gatehouse::pb::etcdserverpb as pb;
use std::fs;
use std::path::Path;

/// Files below `directory` whose bytes contain `needle`.
fn files_with(directory: &Path, needle: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, needle));
        } else if fs::read(&path)
            .unwrap()
            .windows(needle.len())
            .any(|window| window == needle.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
    found
}

/// Sends each password the ways it can be sent, and tokens with it; gives the tokens' secret halves.
async fn use_every_secret(client: &Client) -> [String; 2] {
    let prefix = |token: &str| token.split_once('.').unwrap().0.to_owned();
    let root_token = client.login("root", "rootpw").await.unwrap();
    let alice_token = client.login("alice", "alicepw").await.unwrap();
    let root = client.presenting("token", &root_token);
    let bearer = format!("Bearer {alice_token}");
    client
        .presenting("authorization", &bearer)
        .get("foo")
        .await
        .unwrap();
    let broken = format!("{alice_token}.broken");
    client
        .presenting("token", &broken)
        .get("foo")
        .await
        .unwrap_err();
    client.login("alice", "Wr0ng-guess").await.unwrap_err();
    client.login("nobody", "Wr0ng-guess").await.unwrap_err();
    let add = pb::AuthUserAddRequest {
        name: "temporary".to_owned(),
        password: "Z-added".to_owned(),
        ..Default::default()
    };
    // The second and third time it is refused, with the password in hand.
    let _ = root.user_add(add).await;
    let change = |name: &str, password: &str| pb::AuthUserChangePasswordRequest {
        name: name.to_owned(),
        password: password.to_owned(),
        ..Default::default()
    };
    root.user_change_password(change("temporary", "N3w-secret"))
        .await
        .unwrap();
    root.user_change_password(change("nobody", "In-no-log"))
        .await
        .unwrap_err();
    client
        .user_change_password(change("alice", "In-no-log"))
        .await
        .unwrap_err();
    [prefix(&root_token), prefix(&alice_token)]
}

#[test]
fn passwords_and_tokens_reach_neither_logs_nor_disk() {
    let mut cluster = Cluster::start(3, &["--bcrypt-cost=4", "--log-level=trace"]);
    guard(&cluster.addresses());
    let mut secrets: Vec<String> = [
        "rootpw",
        "alicepw",
        "Wr0ng-guess",
        "N3w-secret",
        "Z-added",
        "In-no-log",
    ]
    .map(str::to_owned)
    .into();
    block_on(async {
        for member in &cluster.members {
            let prefixes = use_every_secret(&Client::anonymous(&member.address())).await;
            secrets.extend(prefixes);
        }
    });
    for member in &mut cluster.members {
        assert!(member.terminate().success());
        assert!(
            member.log().contains("DEBUG"),
            "the log is not as detailed as asked:\n{}",
            member.log()
        );
        // What must be found, or a search that finds nothing would prove nothing.
        assert!(member.log().contains("Authenticate"));
    }
    assert!(!files_with(cluster.directory(), "temporary").is_empty());
    for secret in secrets {
        assert_eq!(
            files_with(cluster.directory(), &secret),
            [""; 0],
            "{secret} was written down"
        );
    }
}
