//! Admins who never rest, and users who have nothing to do with what they change.

use crate::client::{Client, block_on};
use crate::etcdctl::guard;
use crate::harness::Cluster;
use gatehouse::pb::etcdserverpb as pb;
use pb::compare::{CompareResult, CompareTarget, TargetUnion};
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::{JoinSet, LocalSet};
use tonic::Status;

/// Pairs of stretches, one without admins and one with them.
const ROUNDS: usize = 5;

/// Clients of alice's who work at the same time.
const WORKERS: usize = 4;

/// Calls of each in a stretch: 2,400 of all next to the admins.
const CALLS: usize = 120;

#[test]
fn nobody_is_refused_because_of_strangers_and_work_goes_on_at_half_its_speed_or_more() {
    let cluster = Cluster::start(3, &["--bcrypt-cost=4"]);
    let (root, _) = guard(&cluster.addresses());
    root.run("role grant-permission reader readwrite foo fop")
        .says("Role reader updated\n");
    let addresses: Vec<String> = cluster.members.iter().map(|m| m.address()).collect();
    let story = async move {
        let mut paces = Vec::new();
        for round in 0..ROUNDS {
            let quiet = stretch(&addresses).await;
            let rest = Rc::new(Cell::new(false));
            let mut admins = JoinSet::new();
            for (at, address) in addresses.iter().enumerate() {
                admins.spawn_local(add_roles(address.clone(), round, at, rest.clone()));
            }
            let restless = stretch(&addresses).await;
            rest.set(true);
            let added: usize = admins.join_all().await.into_iter().sum();
            // Else nobody was in alice's way.
            assert!(added > CALLS, "three admins added {added} roles");
            paces.push(quiet.as_secs_f64() / restless.as_secs_f64());
        }
        paces
    };
    let mut paces = block_on(LocalSet::new().run_until(story));
    paces.sort_by(f64::total_cmp);
    let median = paces[ROUNDS / 2];
    eprintln!("pace next to the admins, of that without them, by round: {paces:.2?}");
    assert!(median >= 0.5, "less than half the pace");
}

/// Adds role after role until it is told to rest; gives how many.
async fn add_roles(address: String, round: usize, at: usize, rest: Rc<Cell<bool>>) -> usize {
    let admin = Client::anonymous(&address)
        .logged_in("root", "rootpw")
        .await;
    let mut added = 0;
    while !rest.get() {
        let name = format!("unrelated-{round}-{at}-{added}");
        admin
            .role_add(pb::AuthRoleAddRequest { name })
            .await
            .unwrap();
        added += 1;
    }
    added
}

/// Lets all of alice's clients work, all of whose calls must be answered; gives how long they took.
async fn stretch(addresses: &[String]) -> Duration {
    let mut workers = JoinSet::new();
    let mut clients = Vec::new();
    for address in addresses {
        let client = Client::anonymous(address);
        clients.push(client.logged_in("alice", "alicepw").await);
    }
    let start = Instant::now();
    for worker in 0..WORKERS {
        workers.spawn_local(work(clients.clone(), worker));
    }
    workers.join_all().await;
    start.elapsed()
}

async fn work(clients: Vec<Client>, worker: usize) {
    let key = format!("foo/{worker}");
    for call in 0..CALLS {
        let client = &clients[(worker + call) % clients.len()];
        let answer = match call % 4 {
            0 | 1 => client.set(&key, "1").await.map(drop),
            2 => client.get(&key).await.map(drop),
            _ => create_or_read(client, &key).await,
        };
        assert_eq!(answer.err().map(|status| status.message().to_owned()), None);
    }
}

async fn create_or_read(client: &Client, key: &str) -> Result<(), Status> {
    let key = bytes::Bytes::from(key.to_owned());
    let put = pb::PutRequest {
        key: key.clone(),
        ..Default::default()
    };
    let range = pb::RangeRequest {
        key: key.clone(),
        ..Default::default()
    };
    let op = |request| {
        vec![pb::RequestOp {
            request: Some(request),
        }]
    };
    let message = pb::TxnRequest {
        compare: vec![pb::Compare {
            key,
            result: CompareResult::Equal.into(),
            target: CompareTarget::Version.into(),
            target_union: Some(TargetUnion::Version(0)),
            ..Default::default()
        }],
        success: op(pb::request_op::Request::RequestPut(put.clone())),
        failure: [
            op(pb::request_op::Request::RequestRange(range)),
            op(pb::request_op::Request::RequestPut(put)),
        ]
        .concat(),
    };
    client.txn(message).await.map(drop)
}
