//! One fault each.

use super::cluster::{Cluster, PATIENCE, config, put, read, simulate, write};
use crate::node::NodeError;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

#[test]
fn a_lone_member_serves_at_once_and_after_a_restart() {
    simulate(1, 0.0, || async {
        let cluster = Cluster::start(1, 1);
        let began = Instant::now();
        let node = cluster.node(1).await;
        write(&node, "k", "v").await.unwrap();
        assert!(
            began.elapsed() < Duration::from_millis(100),
            "it waited for an election"
        );
        cluster.crash(1);
        cluster.restart(1);
        let node = cluster.node(1).await;
        node.barrier(Instant::now() + PATIENCE).await.unwrap();
        assert_eq!(read(&node, "k").unwrap(), "v");
    });
}

#[test]
fn proposals_at_every_member_are_applied_everywhere() {
    simulate(2, 0.01, || async {
        let cluster = Cluster::start(3, 2);
        for round in 0..20 {
            for id in cluster.ids() {
                let node = cluster.node(id).await;
                let outcome = write(&node, &format!("k{id}"), &round.to_string())
                    .await
                    .unwrap();
                assert!(
                    node.view().applied_index() >= outcome.index,
                    "answered before published"
                );
            }
        }
        cluster.converge().await;
        for id in cluster.ids() {
            assert_eq!(read(&cluster.node(id).await, "k3").unwrap(), "19");
        }
    });
}

#[test]
fn concurrent_proposals_share_syncs() {
    simulate(3, 0.0, || async {
        let cluster = Cluster::start(3, 3);
        let leader = cluster.leader().await;
        let node = cluster.node(leader).await;
        write(&node, "warm", "up").await.unwrap();
        let disk = &cluster.members[usize::try_from(leader).unwrap() - 1].disk;
        let before = disk.counters().syncs;
        let writers: Vec<_> = (0..200)
            .map(|n| {
                let node = node.clone();
                tokio::spawn(async move { write(&node, &format!("k{n}"), "v").await })
            })
            .collect();
        for writer in writers {
            writer.await.unwrap().unwrap();
        }
        let syncs = disk.counters().syncs - before;
        assert!(syncs <= 20, "200 proposals took {syncs} syncs");
    });
}

#[test]
fn an_idle_cluster_does_not_write() {
    simulate(4, 0.0, || async {
        let cluster = Cluster::start(3, 4);
        cluster.leader().await;
        cluster.converge().await;
        sleep(Duration::from_secs(5)).await;
        let writes = || {
            cluster
                .members
                .iter()
                .map(|m| m.disk.counters().writes)
                .sum::<u64>()
        };
        let before = writes();
        sleep(Duration::from_secs(60)).await;
        assert_eq!(writes(), before);
    });
}

#[test]
fn survivors_go_on_without_their_leader() {
    simulate(5, 0.0, || async {
        let cluster = Cluster::start(3, 5);
        let leader = cluster.leader().await;
        write(&cluster.node(leader).await, "before", "1")
            .await
            .unwrap();
        cluster.crash(leader);
        let survivors: Vec<u64> = cluster.ids().filter(|id| *id != leader).collect();
        for id in &survivors {
            write(&cluster.node(*id).await, &format!("after{id}"), "2")
                .await
                .unwrap();
        }
        cluster.restart(leader);
        cluster.converge().await;
        let node = cluster.node(leader).await;
        assert_eq!(read(&node, "before").unwrap(), "1");
        assert_eq!(read(&node, &format!("after{}", survivors[0])).unwrap(), "2");
    });
}

#[test]
fn a_barrier_sees_what_was_acknowledged_anywhere() {
    simulate(6, 0.01, || async {
        let cluster = Cluster::start(3, 6);
        for round in 0..30_u64 {
            let writer = cluster.node(round % 3 + 1).await;
            let reader = cluster.node((round + 1) % 3 + 1).await;
            let written = write(&writer, "k", &round.to_string()).await.unwrap();
            let view = reader.barrier(Instant::now() + PATIENCE).await.unwrap();
            assert!(view.applied_index() >= written.index);
            assert_eq!(read(&reader, "k").unwrap(), round.to_string());
        }
    });
}

#[test]
fn concurrent_barriers_are_all_answered() {
    simulate(7, 0.0, || async {
        let cluster = Cluster::start(3, 7);
        let leader = cluster.leader().await;
        let follower = cluster.node(leader % 3 + 1).await;
        let readers: Vec<_> = (0..500)
            .map(|_| {
                let node = follower.clone();
                tokio::spawn(async move { node.read_index(Instant::now() + PATIENCE).await })
            })
            .collect();
        for reader in readers {
            reader.await.unwrap().unwrap();
        }
    });
}

/// The proposal is appended by a leader that can no longer reach anyone, and must be dropped when the others have gone
/// on; it is then proposed again, and applied exactly once (the witness checks that).
#[test]
fn a_cut_off_leaders_proposal_is_proposed_again_after_the_heal() {
    simulate(8, 0.0, || async {
        let cluster = Cluster::start(3, 8);
        let leader = cluster.leader().await;
        let node = cluster.node(leader).await;
        write(&node, "warm", "up").await.unwrap();
        cluster.cut_off(leader);
        let command = put(&node, "k", "v");
        let request_id = command.request_id;
        let proposed = tokio::spawn({
            let node = node.clone();
            async move {
                node.propose(command, Instant::now() + Duration::from_secs(60))
                    .await
            }
        });
        let others: Vec<u64> = cluster.ids().filter(|id| *id != leader).collect();
        cluster.leader_among(&others).await;
        write(&cluster.node(others[0]).await, "other", "1")
            .await
            .unwrap();
        assert_eq!(cluster.witness.applied_at(request_id), None);
        cluster.heal(leader);
        let outcome = timeout(PATIENCE, proposed).await.unwrap().unwrap().unwrap();
        assert_eq!(cluster.witness.applied_at(request_id), Some(outcome.index));
        cluster.converge().await;
    });
}

#[test]
fn a_member_without_a_quorum_says_so() {
    simulate(9, 0.0, || async {
        let cluster = Cluster::start(3, 9);
        let leader = cluster.leader().await;
        let others: Vec<u64> = cluster.ids().filter(|id| *id != leader).collect();
        for id in &others {
            cluster.crash(*id);
        }
        let node = cluster.node(leader).await;
        // The leader does not know yet that it is alone.
        assert_eq!(write(&node, "k", "v").await, Err(NodeError::Timeout));
        // By now it has stepped down.
        assert_eq!(write(&node, "k", "v").await, Err(NodeError::NoLeader));
        let deadline = Instant::now() + Duration::from_secs(2);
        assert_eq!(node.read_index(deadline).await, Err(NodeError::NoLeader));
        let waiting = node
            .wait_applied(1_000_000, Instant::now() + Duration::from_secs(1))
            .await;
        assert_eq!(waiting.unwrap_err(), NodeError::WaitTimeout);
    });
}

#[test]
fn an_entry_above_the_limit_is_refused() {
    simulate(10, 0.0, || async {
        let cluster = Cluster::start(1, 10);
        let node = cluster.node(1).await;
        let large = "x".repeat(config(1, 1).max_request_bytes);
        assert_eq!(write(&node, "k", &large).await, Err(NodeError::TooLarge));
        let largest = "x".repeat(config(1, 1).max_request_bytes - 64);
        assert!(write(&node, "k", &largest).await.is_ok());
    });
}

/// Entries as large as the limit reach a follower that was away for more of them than one frame holds.
#[test]
fn a_follower_catches_up_on_large_entries() {
    simulate(11, 0.0, || async {
        let cluster = Cluster::start(3, 11);
        let leader = cluster.leader().await;
        let away = leader % 3 + 1;
        cluster.crash(away);
        let node = cluster.node(leader).await;
        let large = "x".repeat(config(1, 3).max_request_bytes - 64);
        for n in 0..20 {
            write(&node, &format!("k{n}"), &large).await.unwrap();
        }
        cluster.restart(away);
        cluster.converge().await;
        assert_eq!(
            read(&cluster.node(away).await, "k19").unwrap().len(),
            large.len()
        );
    });
}

#[test]
fn a_failing_disk_stops_the_member_and_wakes_who_waits() {
    simulate(12, 0.0, || async {
        let cluster = Cluster::start(3, 12);
        let leader = cluster.leader().await;
        let node = cluster.node(leader).await;
        write(&node, "k", "1").await.unwrap();
        cluster.members[usize::try_from(leader).unwrap() - 1]
            .disk
            .set_fuse(Some(3));
        assert_eq!(write(&node, "k", "2").await, Err(NodeError::Stopped));
        sleep(Duration::from_millis(10)).await;
        assert!(
            cluster.failure(leader).is_some(),
            "the member must say why it stopped"
        );
        assert_eq!(write(&node, "k", "3").await, Err(NodeError::Stopped));
        let deadline = Instant::now() + PATIENCE;
        assert_eq!(
            node.barrier(deadline).await.unwrap_err(),
            NodeError::Stopped
        );
        cluster.crash(leader);
        cluster.restart(leader);
        cluster.converge().await;
    });
}

#[test]
fn request_ids_are_not_repeated_after_a_restart() {
    simulate(13, 0.0, || async {
        let cluster = Cluster::start(1, 13);
        let mut ids = std::collections::BTreeSet::new();
        for _ in 0..5 {
            let node = cluster.node(1).await;
            for _ in 0..1_000 {
                assert!(ids.insert(node.next_request_id()));
            }
            cluster.crash(1);
            cluster.restart(1);
        }
    });
}
