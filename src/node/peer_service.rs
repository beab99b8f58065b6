//! What other members ask of this one. Members of a cluster trust each other, but not the bytes that come in: whatever
//! cannot be decoded, or is not meant for this member, ends here.

use super::entry;
use super::event::{Event, Forwarded};
use crate::config::Config;
use crate::pb::gatehousepb::peer_server::{Peer, PeerServer};
use crate::pb::gatehousepb::{
    ForwardRequest, ForwardResponse, RaftFrame, SnapshotPart, SnapshotProgress,
};
use bytes::Bytes;
use protobuf::Message as _;
use raft::eraftpb::Message;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

/// What a frame holds besides its largest entry: other messages, other entries of the same message, and their heads.
const FRAME_OVERHEAD_BYTES: usize = 4 << 20;

/// The service's side of the `Peer` protocol; clones share the member.
#[derive(Clone)]
pub struct PeerService {
    member: Arc<Member>,
}

struct Member {
    cluster_id: u64,
    member_id: u64,
    max_request_bytes: usize,
    others: BTreeSet<u64>,
    events: mpsc::Sender<Event>,
}

impl PeerService {
    pub(super) fn new(config: &Config, events: mpsc::Sender<Event>) -> PeerService {
        let ids = config.members.iter().map(|member| member.id);
        PeerService {
            member: Arc::new(Member {
                cluster_id: config.cluster_id,
                member_id: config.member_id,
                max_request_bytes: config.max_request_bytes,
                others: ids.filter(|id| *id != config.member_id).collect(),
                events,
            }),
        }
    }

    /// The gRPC service, with the limit on a frame's size.
    pub fn into_server(self) -> PeerServer<PeerService> {
        let frame_bytes_max = self
            .member
            .max_request_bytes
            .saturating_add(FRAME_OVERHEAD_BYTES);
        PeerServer::new(self).max_decoding_message_size(frame_bytes_max)
    }
}

#[tonic::async_trait]
impl Peer for PeerService {
    type RaftStream = ReceiverStream<Result<RaftFrame, Status>>;

    async fn raft(
        &self,
        request: Request<Streaming<RaftFrame>>,
    ) -> Result<Response<Self::RaftStream>, Status> {
        let member = Arc::clone(&self.member);
        let mut frames = request.into_inner();
        // Nothing is ever answered but the reason for the end; dropping the sender ends the answer stream.
        let (answer, answers) = mpsc::channel(1);
        tokio::spawn(async move {
            if let Err(reason) = member.receive(&mut frames).await {
                let _ = answer.send(Err(reason)).await;
            }
        });
        Ok(Response::new(ReceiverStream::new(answers)))
    }

    async fn propose(
        &self,
        request: Request<ForwardRequest>,
    ) -> Result<Response<ForwardResponse>, Status> {
        let ForwardRequest {
            cluster_id,
            term,
            entry,
        } = request.into_inner();
        self.member.check_cluster(cluster_id)?;
        // An entry that cannot be decoded would stop every member once it is committed.
        entry::decode(&entry).map_err(|cause| Status::invalid_argument(cause.to_string()))?;
        if entry.len() > self.member.max_request_bytes {
            return Err(Status::invalid_argument("the entry is too large"));
        }
        let (answer, accepted) = oneshot::channel();
        let forwarded = Event::Forwarded(Forwarded {
            term,
            entry,
            answer,
        });
        let accepted = match self.member.events.try_send(forwarded) {
            // A member that stops now may have appended it.
            Ok(()) => accepted
                .await
                .map_err(|_| Status::unavailable("the member is stopping"))?,
            Err(_) => false,
        };
        Ok(Response::new(ForwardResponse { accepted }))
    }

    async fn snapshot(
        &self,
        request: Request<SnapshotPart>,
    ) -> Result<Response<SnapshotProgress>, Status> {
        let part = request.into_inner();
        self.member.check_cluster(part.cluster_id)?;
        if !self.member.others.contains(&part.sender) {
            return Err(Status::failed_precondition("the sender is no other member"));
        }
        let (answer, progress) = oneshot::channel();
        let event = Event::SnapshotPart { part, answer };
        // The sender comes again.
        let sent = self.member.events.try_send(event);
        sent.map_err(|_| Status::unavailable("the member is busy or stopping"))?;
        let progress = progress
            .await
            .map_err(|_| Status::unavailable("the member is stopping"))?;
        Ok(Response::new(progress))
    }
}

impl Member {
    fn check_cluster(&self, cluster_id: u64) -> Result<(), Status> {
        if cluster_id == self.cluster_id {
            Ok(())
        } else {
            Err(Status::failed_precondition(
                "the sender belongs to another cluster",
            ))
        }
    }

    /// Takes frames until the sender ends the stream.
    async fn receive(&self, frames: &mut Streaming<RaftFrame>) -> Result<(), Status> {
        while let Some(frame) = frames.message().await? {
            self.check_cluster(frame.cluster_id)?;
            let mut messages = Vec::with_capacity(frame.messages.len());
            for bytes in &frame.messages {
                messages.extend(self.accept(bytes)?);
            }
            if let Err(mpsc::error::TrySendError::Closed(_)) =
                self.events.try_send(Event::Messages(messages))
            {
                return Err(Status::unavailable("the member is stopping"));
            }
            // A full queue loses the frame, as a network might: raft sends again.
        }
        Ok(())
    }

    /// The message, unless it is not for this member.
    fn accept(&self, bytes: &Bytes) -> Result<Option<Message>, Status> {
        let message = Message::parse_from_carllerche_bytes(bytes)
            .map_err(|_| Status::invalid_argument("a raft message cannot be decoded"))?;
        let known = message.to == self.member_id && self.others.contains(&message.from);
        Ok(known.then_some(message))
    }
}
