//! What a member does with what its peers should never send.

use super::cluster::{Cluster, PATIENCE, put, simulate, write};
use crate::node::entry;
use crate::pb::gatehousepb::peer_client::PeerClient;
use crate::pb::gatehousepb::{ForwardRequest, RaftFrame};
use crate::platform::{Channel, ChannelOptions};
use bytes::Bytes;
use madsim::runtime::Handle;
use protobuf::Message as _;
use raft::eraftpb::{Entry, Message, MessageType};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;

const CLUSTER: u64 = 77;

/// Runs `story` on a machine that is no member, against the cluster's leader.
fn intrude<F, Fut>(seed: u64, story: F)
where
    F: FnOnce(Cluster, u64, PeerClient<Channel>) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    simulate(seed, 0.0, move || async move {
        let cluster = Cluster::start(3, seed);
        let leader = cluster.leader().await;
        write(&cluster.node(leader).await, "k", "v").await.unwrap();
        let machine = Handle::current()
            .create_node()
            .name("intruder")
            .ip("10.0.0.9".parse().unwrap())
            .build();
        let story = async move {
            let channel = Channel::new(format!("10.0.0.{leader}:2380"), ChannelOptions::default());
            story(cluster, leader, PeerClient::new(channel)).await;
        };
        machine.spawn(story).await.unwrap();
    });
}

/// How the member ends a stream on which it gets `frame`; `None` if it does not.
async fn end_of_stream(client: &mut PeerClient<Channel>, frame: RaftFrame) -> Option<Code> {
    let (frames, outgoing) = mpsc::channel(1);
    let mut answers = client
        .raft(ReceiverStream::new(outgoing))
        .await
        .unwrap()
        .into_inner();
    frames.send(frame).await.unwrap();
    let answer = timeout(Duration::from_secs(2), answers.message())
        .await
        .ok()?;
    Some(
        answer
            .expect_err("a stream that goes on sends nothing")
            .code(),
    )
}

fn frame(message: &Message) -> RaftFrame {
    RaftFrame {
        cluster_id: CLUSTER,
        messages: vec![message.write_to_bytes().unwrap().into()],
    }
}

fn message(kind: MessageType, from: u64, to: u64) -> Message {
    // Far above every term of the cluster: raft would believe it.
    let mut message = Message {
        from,
        to,
        term: 1_000,
        ..Message::default()
    };
    message.set_msg_type(kind);
    message
}

#[test]
fn garbage_ends_the_stream() {
    intrude(21, |cluster, leader, mut client| async move {
        let messages = vec![Bytes::from_static(&[0xff; 9])];
        let garbage = RaftFrame {
            cluster_id: CLUSTER,
            messages,
        };
        assert_eq!(
            end_of_stream(&mut client, garbage).await,
            Some(Code::InvalidArgument)
        );
        assert_eq!(cluster.failure(leader), None);
    });
}

#[test]
fn another_clusters_frames_end_the_stream() {
    intrude(22, |_cluster, _leader, mut client| async move {
        let foreign = RaftFrame {
            cluster_id: CLUSTER + 1,
            messages: Vec::new(),
        };
        assert_eq!(
            end_of_stream(&mut client, foreign).await,
            Some(Code::FailedPrecondition)
        );
    });
}

#[test]
fn messages_from_strangers_or_for_others_are_dropped() {
    intrude(23, |cluster, leader, mut client| async move {
        let term = cluster.node(leader).await.status().term;
        let peer = leader % 3 + 1;
        for message in [
            message(MessageType::MsgHeartbeat, 9, leader),
            message(MessageType::MsgHeartbeat, leader, leader),
            message(MessageType::MsgHeartbeat, peer, peer),
        ] {
            assert_eq!(end_of_stream(&mut client, frame(&message)).await, None);
        }
        assert_eq!(cluster.node(leader).await.status().term, term);
    });
}

#[test]
fn what_would_make_raft_panic_does_not_reach_it() {
    intrude(24, |cluster, leader, mut client| async move {
        let peer = leader % 3 + 1;
        let mut gap = message(MessageType::MsgAppend, peer, leader);
        gap.index = 1;
        gap.log_term = 1;
        gap.set_entries(
            vec![Entry {
                index: 9,
                term: 2,
                ..Entry::default()
            }]
            .into(),
        );
        for message in [
            gap,
            message(MessageType::MsgReadIndex, peer, leader),
            message(MessageType::MsgPropose, peer, leader),
            message(MessageType::MsgSnapshot, peer, leader),
            message(MessageType::MsgHup, peer, leader),
        ] {
            assert_eq!(end_of_stream(&mut client, frame(&message)).await, None);
        }
        assert_eq!(cluster.failure(leader), None);
        write(&cluster.node(leader).await, "k", "w").await.unwrap();
    });
}

#[test]
fn a_member_whose_disk_lost_entries_stops_and_says_so() {
    intrude(25, |cluster, leader, mut client| async move {
        let mut heartbeat = message(MessageType::MsgHeartbeat, leader % 3 + 1, leader);
        heartbeat.commit = 1_000_000;
        end_of_stream(&mut client, frame(&heartbeat)).await;
        let failure = cluster.failure(leader).unwrap();
        assert!(failure.contains("the disk has lost"), "{failure}");
    });
}

#[test]
fn a_forked_log_stops_the_member() {
    intrude(26, |cluster, leader, mut client| async move {
        let mut append = message(MessageType::MsgAppend, leader % 3 + 1, leader);
        append.set_entries(
            vec![Entry {
                index: 1,
                term: 500,
                ..Entry::default()
            }]
            .into(),
        );
        end_of_stream(&mut client, frame(&append)).await;
        let failure = cluster.failure(leader).unwrap();
        assert!(failure.starts_with("entry 1 is committed"), "{failure}");
    });
}

#[test]
fn a_proposal_is_accepted_only_by_the_leader_of_its_term() {
    intrude(27, |cluster, leader, mut client| async move {
        let node = cluster.node(leader).await;
        let command = put(&node, "forwarded", "1");
        let request_id = command.request_id;
        let entry = entry::encode(&command);
        let term = node.status().term;
        let request = |term| ForwardRequest {
            cluster_id: CLUSTER,
            term,
            entry: entry.clone(),
        };
        for other in [term - 1, term + 1] {
            assert!(
                !client
                    .propose(request(other))
                    .await
                    .unwrap()
                    .into_inner()
                    .accepted
            );
        }
        assert_eq!(cluster.witness.applied_at(request_id), None);
        let next = node.view().applied_index() + 1;
        assert!(
            client
                .propose(request(term))
                .await
                .unwrap()
                .into_inner()
                .accepted
        );
        // Accepted means appended, not yet applied.
        node.wait_applied(next, Instant::now() + PATIENCE)
            .await
            .unwrap();
        assert!(cluster.witness.applied_at(request_id).is_some());
    });
}

#[test]
fn an_entry_that_nobody_could_apply_is_not_appended() {
    intrude(28, |cluster, leader, mut client| async move {
        let term = cluster.node(leader).await.status().term;
        for entry in [&b""[..], &b"\x01"[..], &b"\x02later"[..]] {
            let entry = Bytes::from_static(entry);
            let refused = client
                .propose(ForwardRequest {
                    cluster_id: CLUSTER,
                    term,
                    entry,
                })
                .await;
            assert_eq!(refused.unwrap_err().code(), Code::InvalidArgument);
        }
        let foreign = ForwardRequest {
            cluster_id: CLUSTER + 1,
            term,
            entry: Bytes::new(),
        };
        let refused = client.propose(foreign).await;
        assert_eq!(refused.unwrap_err().code(), Code::FailedPrecondition);
        timeout(PATIENCE, cluster.converge()).await.unwrap();
    });
}
