//! Three members: crashes lose nothing, and members agree.

use crate::client::{Client, block_on};
use crate::etcdctl::guard;
use crate::harness::{Cluster, PATIENCE};
use gatehouse::pb::etcdserverpb as pb;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Asks until the answer is a success; a cluster between two leaders refuses for a while.
async fn persistent<T, E: std::fmt::Display>(
    what: &str,
    mut ask: impl AsyncFnMut() -> Result<T, E>,
) -> T {
    let start = Instant::now();
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => assert!(start.elapsed() < PATIENCE, "{what}: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The position of the member that leads.
async fn leader(clients: &[Client]) -> usize {
    persistent("a leader", async || {
        for (at, client) in clients.iter().enumerate() {
            let status = client.status(pb::StatusRequest {}).await;
            let Ok(status) = status else { continue };
            let own = status.header.expect("answers carry a header").member_id;
            if status.leader == own {
                return Ok(at);
            }
        }
        Err("no member says that it leads")
    })
    .await
}

/// Writes numbered keys through one member until told to stop; remembers what was acknowledged.
async fn write_until(
    client: Client,
    name: String,
    stop: Arc<AtomicBool>,
    acknowledged: Arc<Mutex<BTreeMap<String, String>>>,
) {
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let (key, value) = (format!("foo/{name}/{number}"), format!("{number}"));
        match client.set(&key, &value).await {
            Ok(_) => {
                acknowledged.lock().unwrap().insert(key, value);
            }
            // Perhaps written, perhaps not: nothing to hold the cluster to.
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

#[test]
fn a_killed_leader_loses_no_acknowledged_write_and_members_agree_again() {
    let mut cluster = Cluster::start(3, &["--bcrypt-cost=4"]);
    guard(&cluster.addresses());
    block_on(async {
        let anonymous: Vec<Client> = cluster
            .members
            .iter()
            .map(|member| Client::anonymous(&member.address()))
            .collect();
        // One login; its token must be good at every member.
        let token = persistent("a login", async || {
            anonymous[0].login("root", "rootpw").await
        })
        .await;
        let clients: Vec<Client> = anonymous
            .iter()
            .map(|client| client.presenting("token", &token))
            .collect();

        let stop = Arc::new(AtomicBool::new(false));
        let acknowledged = Arc::new(Mutex::new(BTreeMap::new()));
        let writers: Vec<_> = clients
            .iter()
            .enumerate()
            .map(|(at, client)| {
                let writes = write_until(
                    client.clone(),
                    format!("w{at}"),
                    Arc::clone(&stop),
                    Arc::clone(&acknowledged),
                );
                tokio::spawn(writes)
            })
            .collect();
        let count = || acknowledged.lock().unwrap().len();
        let more = async |wanted: usize| {
            let target = count() + wanted;
            persistent("more writes", async || {
                if count() >= target {
                    Ok(())
                } else {
                    Err("too few writes")
                }
            })
            .await;
        };

        more(100).await;
        let killed = leader(&clients).await;
        cluster.members[killed].kill();
        more(100).await;
        let next = leader(&clients).await;
        assert_ne!(next, killed, "the killed member answers");
        cluster.members[killed].start();
        cluster.members[killed].serves(2);
        more(50).await;
        stop.store(true, Ordering::Relaxed);
        for writer in writers {
            writer.await.unwrap();
        }

        let acknowledged = acknowledged.lock().unwrap().clone();
        for client in &clients {
            holds(client, &acknowledged).await;
        }
        agree(&clients).await;
    });
}

/// Claims that a member has everything that was acknowledged.
async fn holds(client: &Client, acknowledged: &BTreeMap<String, String>) {
    let everything = pb::RangeRequest {
        key: "foo/".into(),
        range_end: "foo0".into(),
        ..Default::default()
    };
    let found = persistent("a read", async || client.range(everything.clone()).await).await;
    let found: BTreeMap<&[u8], &[u8]> = found
        .kvs
        .iter()
        .map(|kv| (kv.key.as_ref(), kv.value.as_ref()))
        .collect();
    for (key, value) in acknowledged {
        assert_eq!(found.get(key.as_bytes()), Some(&value.as_bytes()), "{key}");
    }
}

/// Claims that all members have the same data, the same auth state and the same history of decisions.
async fn agree(clients: &[Client]) {
    persistent("members at one index", async || {
        let mut hashes = Vec::new();
        for client in clients {
            let hash = client
                .hash_kv(pb::HashKvRequest::default())
                .await
                .map_err(|status| status.to_string())?;
            hashes.push((
                hash.applied_index,
                hash.hash_revision,
                hash.hash,
                hash.auth_hash,
                hash.digest,
            ));
        }
        // An election in between moves the index; then they are compared again.
        if hashes.iter().any(|hash| hash.0 != hashes[0].0) {
            return Err(format!("different indexes: {hashes:?}"));
        }
        assert!(
            hashes.iter().all(|hash| *hash == hashes[0]),
            "members differ: {hashes:?}"
        );
        Ok(())
    })
    .await;
}

#[test]
fn a_token_is_good_at_every_member_at_once() {
    let cluster = Cluster::start(3, &["--bcrypt-cost=4"]);
    guard(&cluster.addresses());
    block_on(async {
        let clients: Vec<Client> = cluster
            .members
            .iter()
            .map(|member| Client::anonymous(&member.address()))
            .collect();
        for round in 0..10 {
            let token = clients[round % 3].login("root", "rootpw").await.unwrap();
            for (at, client) in clients.iter().enumerate() {
                let bearer = client.presenting("token", &token);
                bearer.set("foo", &format!("{round}.{at}")).await.unwrap();
                let serializable = pb::RangeRequest {
                    key: "foo".into(),
                    serializable: true,
                    ..Default::default()
                };
                bearer.range(serializable).await.unwrap();
            }
        }
    });
}

#[test]
fn a_member_without_a_quorum_answers_status_and_serializable_reads_only() {
    let mut cluster = Cluster::start(
        3,
        &[
            "--bcrypt-cost=4",
            "--election-timeout=500",
            "--heartbeat-interval=50",
        ],
    );
    block_on(async {
        let client = Client::anonymous(&cluster.members[0].address());
        client.set("foo", "bar").await.unwrap();
        cluster.members[1].kill();
        cluster.members[2].kill();
        let lonely = persistent("no leader", async || {
            let status = client
                .status(pb::StatusRequest {})
                .await
                .map_err(|status| status.to_string())?;
            if status.leader == 0 {
                Ok(status)
            } else {
                Err("still a leader".to_owned())
            }
        });
        assert_eq!(lonely.await.errors, ["etcdserver: no leader"]);
        let serializable = pb::RangeRequest {
            key: "foo".into(),
            serializable: true,
            ..Default::default()
        };
        assert_eq!(client.range(serializable).await.unwrap().count, 1);
        let refused = client.get("foo").await.unwrap_err();
        assert_eq!(i32::from(refused.code()), 14, "{refused}");
        let refused = client.set("foo", "lost").await.unwrap_err();
        assert_eq!(i32::from(refused.code()), 14, "{refused}");
    });
}
