//! The way to the other members: one task and one stream for each of them.
//!
//! raft copes with lost messages, so nothing here waits: a full mailbox loses messages and says so, a broken stream loses
//! what was in it and is opened again. Forwarded proposals are calls of their own on the same connection.

use super::event::Event;
use super::proposals::Outgoing;
use super::snapshot_offers::Offer;
use super::snapshot_sender::Transfer;
use crate::config::Config;
use crate::pb::gatehousepb::peer_client::PeerClient;
use crate::pb::gatehousepb::{ForwardRequest, RaftFrame};
use crate::platform::{Channel, ChannelOptions, Keepalive, is_unsent, random_u64};
use bytes::Bytes;
use protobuf::Message as _;
use raft::eraftpb::Message;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

/// Pings on every connection between members, from both ends: a partition is silent, and without them a connection
/// needs seven seconds to recover from it.
pub const PEER_KEEPALIVE: Keepalive = Keepalive {
    interval: Duration::from_millis(500),
    timeout: Duration::from_secs(1),
};

/// Messages that wait for a member's stream. Twice raft's window of unanswered appends.
const MAILBOX_MESSAGES_MAX: usize = 1024;

/// Messages put into one frame while their bytes stay below [`FRAME_BYTES_SOFT_MAX`].
const FRAME_MESSAGES_MAX: usize = 256;

/// A frame that has reached this size, bytes, takes no more messages. A single message may be larger.
const FRAME_BYTES_SOFT_MAX: usize = 1 << 20;

/// Frames that wait for the connection. Few, so that a slow connection fills the mailbox, which notices.
const FRAMES_WAITING_MAX: usize = 4;

/// How long opening a stream may take.
const OPEN_TIMEOUT: Duration = Duration::from_secs(1);

/// Shortest pause before a broken stream is opened again, and the most that chance adds to it.
const REOPEN_PAUSE: Duration = Duration::from_millis(100);

/// The other members.
pub(super) struct Peers {
    cluster_id: u64,
    member_id: u64,
    links: BTreeMap<u64, Link>,
    events: mpsc::Sender<Event>,
}

struct Link {
    mailbox: mpsc::Sender<Message>,
    channel: Channel,
    /// The snapshot on its way, if one is.
    transfer: Option<JoinHandle<()>>,
}

impl Peers {
    /// Starts a task for each other member; they end when this is dropped.
    pub(super) fn start(config: &Config, events: &mpsc::Sender<Event>) -> Peers {
        let options = ChannelOptions {
            connect_timeout: OPEN_TIMEOUT,
            keepalive: Some(PEER_KEEPALIVE),
        };
        let others = config
            .members
            .iter()
            .filter(|member| member.id != config.member_id);
        let links = others.map(|member| {
            let channel = Channel::new(member.peer_address.clone(), options);
            let (mailbox, letters) = mpsc::channel(MAILBOX_MESSAGES_MAX);
            let stream = PeerStream {
                cluster_id: config.cluster_id,
                peer_id: member.id,
                peer_name: format!("{} ({})", member.name, member.peer_address),
                channel: channel.clone(),
                letters,
                events: events.clone(),
            };
            tokio::spawn(stream.run());
            let transfer = None;
            (
                member.id,
                Link {
                    mailbox,
                    channel,
                    transfer,
                },
            )
        });
        Peers {
            cluster_id: config.cluster_id,
            member_id: config.member_id,
            links: links.collect(),
            events: events.clone(),
        }
    }

    /// Sends what can be sent; the members whose messages were lost come back. Every raft message passes here, so this is
    /// where faults that act on messages belong.
    pub(super) fn send(&self, messages: Vec<Message>) -> BTreeSet<u64> {
        let mut unreachable = BTreeSet::new();
        for message in messages {
            let to = message.to;
            let Some(link) = self.links.get(&to) else {
                continue;
            };
            if link.mailbox.try_send(message).is_err() {
                unreachable.insert(to);
            }
        }
        unreachable
    }

    /// Hands a snapshot to the member that `message` is for, in place of any that is on its way there. One
    /// [`Event::SnapshotSent`] follows; false if there is no such member.
    pub(super) fn send_snapshot(&mut self, message: &Message, offer: Arc<Offer>) -> bool {
        let to = message.to;
        let Some(link) = self.links.get_mut(&to) else {
            return false;
        };
        let (id, index) = (offer.id, offer.index());
        let transfer = Transfer {
            cluster_id: self.cluster_id,
            member_id: self.member_id,
            channel: link.channel.clone(),
            message: encode(message),
            offer,
        };
        let events = self.events.clone();
        link.end_transfer();
        link.transfer = Some(tokio::spawn(async move {
            tracing::info!(peer = to, index, "sending a snapshot");
            let outcome = transfer.run().await;
            if let Err(reason) = &outcome {
                tracing::warn!(peer = to, index, %reason, "the snapshot did not arrive");
            }
            let complete = outcome.is_ok();
            // Fails only when the member has stopped.
            let _ = events.send(Event::SnapshotSent { to, id, complete }).await;
        }));
        true
    }

    /// Ends every transfer of a snapshot; no event follows.
    pub(super) fn end_transfers(&mut self) {
        self.links.values_mut().for_each(Link::end_transfer);
    }

    /// Hands a proposal to `leader`, to be accepted in `term` only. An [`Event::Refused`] follows if it certainly was
    /// not; anything else, a lost answer included, shows in the log.
    pub(super) fn forward(&self, leader: u64, term: u64, proposal: Outgoing) {
        let Some(link) = self.links.get(&leader) else {
            return;
        };
        let mut client = PeerClient::new(link.channel.clone());
        let events = self.events.clone();
        let cluster_id = self.cluster_id;
        tokio::spawn(async move {
            let Outgoing {
                request_id,
                entry,
                deadline,
            } = proposal;
            let mut request = tonic::Request::new(ForwardRequest {
                cluster_id,
                term,
                entry,
            });
            request.set_timeout(deadline.saturating_duration_since(Instant::now()));
            let refused = match client.propose(request).await {
                Ok(response) => !response.into_inner().accepted,
                Err(status) => is_unsent(&status),
            };
            if refused {
                // Fails only when the member has stopped.
                let _ = events.send(Event::Refused { request_id, term }).await;
            }
        });
    }
}

impl Link {
    fn end_transfer(&mut self) {
        if let Some(transfer) = self.transfer.take() {
            transfer.abort();
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.end_transfer();
    }
}

struct PeerStream {
    cluster_id: u64,
    peer_id: u64,
    peer_name: String,
    channel: Channel,
    letters: mpsc::Receiver<Message>,
    events: mpsc::Sender<Event>,
}

impl PeerStream {
    async fn run(mut self) {
        // Said once for each change: a member that is away for a night must not fill the log.
        let mut away = false;
        loop {
            if let Some((frames, answers)) = self.open().await {
                tracing::info!(peer = self.peer_name, "connected");
                away = false;
                if self.pump(frames, answers).await.is_none() {
                    return;
                }
            }
            if !away {
                tracing::warn!(peer = self.peer_name, "cannot be reached, trying again");
                away = true;
            }
            // Raft stops streaming to a member it cannot reach, and probes it instead.
            if self
                .events
                .send(Event::Unreachable(self.peer_id))
                .await
                .is_err()
            {
                return;
            }
            let jitter = random_u64() % u64::try_from(REOPEN_PAUSE.as_millis()).unwrap_or(u64::MAX);
            tokio::time::sleep(REOPEN_PAUSE + Duration::from_millis(jitter)).await;
            // What waited is stale by now: raft sends again what still matters.
            while self.letters.try_recv().is_ok() {}
        }
    }

    async fn open(&self) -> Option<(mpsc::Sender<RaftFrame>, Streaming<RaftFrame>)> {
        let (frames, outgoing) = mpsc::channel(FRAMES_WAITING_MAX);
        let mut client = PeerClient::new(self.channel.clone());
        let opening = client.raft(ReceiverStream::new(outgoing));
        match tokio::time::timeout(OPEN_TIMEOUT, opening).await {
            Ok(Ok(response)) => Some((frames, response.into_inner())),
            Ok(Err(status)) => {
                tracing::debug!(
                    peer = self.peer_name,
                    reason = status.message(),
                    "no stream to peer"
                );
                None
            }
            Err(_) => None,
        }
    }

    /// Sends until the stream ends; `None` if the member itself is stopping.
    async fn pump(
        &mut self,
        frames: mpsc::Sender<RaftFrame>,
        mut answers: Streaming<RaftFrame>,
    ) -> Option<()> {
        loop {
            let first = tokio::select! {
                biased;
                // The answer stream carries nothing: whatever comes is its end.
                _ = answers.message() => return Some(()),
                first = self.letters.recv() => first?,
            };
            let frame = self.frame(&first);
            tokio::select! {
                biased;
                _ = answers.message() => return Some(()),
                sent = frames.send(frame) => if sent.is_err() { return Some(()) },
            }
        }
    }

    /// One frame of all that waits, within the limits.
    fn frame(&mut self, first: &Message) -> RaftFrame {
        let mut messages = vec![encode(first)];
        let mut bytes = messages[0].len();
        while messages.len() < FRAME_MESSAGES_MAX
            && bytes < FRAME_BYTES_SOFT_MAX
            && let Ok(next) = self.letters.try_recv()
        {
            let message = encode(&next);
            bytes += message.len();
            messages.push(message);
        }
        RaftFrame {
            cluster_id: self.cluster_id,
            messages,
        }
    }
}

fn encode(message: &Message) -> Bytes {
    message
        .write_to_bytes()
        .expect("a message is smaller than protobuf's 2 GiB, and a Vec takes it all")
        .into()
}
