//! Members that lag behind the log's beginning, and what may happen to them while they catch up.

use super::cluster::{Cluster, PATIENCE, SNAPSHOT_COUNT, read, simulate, write};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Disk operations after which the power is cut, in steps: more than staging and install take.
const FUSES: std::ops::Range<u64> = 0..160;

async fn write_many(cluster: &Cluster, through: u64, from: u64, count: u64) {
    let node = cluster.node(through).await;
    for number in from..from + count {
        while write(&node, &format!("k{number}"), &number.to_string())
            .await
            .is_err()
        {
            sleep(Duration::from_millis(50)).await;
        }
    }
}

async fn check(cluster: &Cluster, count: u64) {
    cluster.converge().await;
    for id in cluster.ids() {
        let node = cluster.node(id).await;
        node.barrier(Instant::now() + PATIENCE).await.unwrap();
        for number in 0..count {
            let found = read(&node, &format!("k{number}"));
            assert_eq!(
                found.as_deref(),
                Some(number.to_string().as_bytes()),
                "member {id}"
            );
        }
    }
}

/// A cluster one of whose followers is so far behind that only a snapshot helps; and that follower.
async fn lagging(seed: u64, count: u64) -> (Cluster, u64) {
    let cluster = Cluster::start(3, seed);
    let leader = cluster.leader().await;
    let follower = leader % 3 + 1;
    cluster.cut_off(follower);
    write_many(&cluster, leader, 0, count).await;
    (cluster, follower)
}

#[test]
fn a_member_that_needs_what_the_log_has_lost_gets_the_state() {
    simulate(41, 0.0, || async {
        let count = 4 * SNAPSHOT_COUNT;
        let (cluster, follower) = lagging(41, count).await;
        assert_eq!(cluster.witness.installed(), 0);
        cluster.heal(follower);
        check(&cluster, count).await;
        assert!(cluster.witness.installed() > 0);
        // It goes on from there like any other.
        write_many(&cluster, follower, count, 10).await;
        cluster.crash(follower);
        cluster.restart(follower);
        check(&cluster, count + 10).await;
    });
}

#[test]
fn a_proposal_whose_entry_came_in_a_snapshot_is_answered_as_unknown_at_once() {
    simulate(42, 0.0, || async {
        let cluster = Cluster::start(3, 42);
        let leader = cluster.leader().await;
        let follower = leader % 3 + 1;
        write_many(&cluster, leader, 0, 1).await;
        // The follower's proposal reaches the leader, and nothing comes back.
        cluster.deafen(follower);
        let node = cluster.node(follower).await;
        let waiting = tokio::spawn(async move {
            let start = Instant::now();
            let outcome = write(&node, "waiting", "1").await;
            (outcome, start.elapsed())
        });
        write_many(&cluster, leader, 1, 4 * SNAPSHOT_COUNT).await;
        cluster.hear(follower);
        let (outcome, took) = waiting.await.unwrap();
        assert_eq!(outcome, Err(crate::node::NodeError::Timeout));
        check(&cluster, 4 * SNAPSHOT_COUNT).await;
        assert!(cluster.witness.installed() > 0);
        assert!(
            took < Duration::from_secs(7),
            "it was told before its time was over: {took:?}"
        );
        let node = cluster.node(follower).await;
        assert_eq!(read(&node, "waiting").as_deref(), Some(&b"1"[..]));
    });
}

#[test]
fn an_install_that_is_cut_short_at_any_disk_operation_has_happened_or_not() {
    let installed = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    for fuse in FUSES.step_by(3) {
        let installed = std::sync::Arc::clone(&installed);
        simulate(1_000 + fuse, 0.0, move || async move {
            let count = 3 * SNAPSHOT_COUNT;
            let (cluster, follower) = lagging(1_000 + fuse, count).await;
            let disk = &cluster.members[usize::try_from(follower).unwrap() - 1].disk;
            disk.set_fuse(Some(fuse));
            cluster.heal(follower);
            // Until the fuse has blown, or everything has gone well.
            let patience = Instant::now() + Duration::from_secs(3);
            while cluster.failure(follower).is_none() && Instant::now() < patience {
                sleep(Duration::from_millis(5)).await;
            }
            cluster.crash(follower);
            cluster.restart(follower);
            check(&cluster, count).await;
            installed.fetch_add(
                cluster.witness.installed(),
                std::sync::atomic::Ordering::SeqCst,
            );
        });
    }
    let installed = installed.load(std::sync::atomic::Ordering::SeqCst);
    assert!(installed > 40, "{installed} installs prove little");
}
