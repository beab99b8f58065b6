//! Hands a snapshot to one member, part by part, in a task of its own, so that the event loop goes on meanwhile. The
//! receiver says with every answer what it wants next. Whatever goes wrong ends the transfer; raft asks for another.

use super::snapshot_offers::Offer;
use crate::pb::gatehousepb as pb;
use crate::pb::gatehousepb::peer_client::PeerClient;
use crate::platform::{Channel, blocking};
use crate::storage::StorageError;
use crate::window::{self, Window};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// How long one part may take. A slower network cannot carry a snapshot.
const PART_TIMEOUT: Duration = Duration::from_secs(10);

/// How often in a row a receiver may want something else than what comes after what it got.
const REPEATS_MAX: u32 = 8;

/// Why a transfer ended before its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum TransferError {
    #[error("{}", .0.message())]
    Call(#[from] tonic::Status),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error("the receiver refused it")]
    Refused,
    #[error("the receiver wants part {0}, which does not exist")]
    NoSuchPart(u64),
    #[error("the receiver wants the same parts again and again")]
    NoProgress,
}

/// One transfer.
pub(super) struct Transfer {
    pub(super) cluster_id: u64,
    pub(super) member_id: u64,
    pub(super) channel: Channel,
    /// Raft's MsgSnapshot, encoded.
    pub(super) message: Bytes,
    pub(super) offer: Arc<Offer>,
}

impl Transfer {
    /// Hands everything over; the receiver then has all of it, or needs it no more.
    ///
    /// # Errors
    /// [`TransferError`].
    pub(super) async fn run(self) -> Result<(), TransferError> {
        let mut number = 0;
        let mut repeats = 0;
        loop {
            let part = self.part(number)?;
            let progress = self.call(part).await?;
            if progress.complete {
                return Ok(());
            }
            if progress.refused {
                return Err(TransferError::Refused);
            }
            // After the announcement any part may be next; then each follows the one before.
            let expected = number == 0 || progress.next == number + 1;
            repeats = if expected { 0 } else { repeats + 1 };
            if repeats > REPEATS_MAX {
                return Err(TransferError::NoProgress);
            }
            number = progress.next;
            window::pass(Window::SnapshotPartToNext, self.member_id).await;
        }
    }

    fn part(&self, number: u64) -> Result<pb::SnapshotPart, TransferError> {
        let part = if number == 0 {
            pb::SnapshotPart {
                snapshot_id: self.offer.id,
                message: self.message.clone(),
                ..pb::SnapshotPart::default()
            }
        } else {
            let part = blocking(|| self.offer.part(number))?;
            part.ok_or(TransferError::NoSuchPart(number))?
        };
        Ok(pb::SnapshotPart {
            cluster_id: self.cluster_id,
            sender: self.member_id,
            ..part
        })
    }

    async fn call(&self, part: pb::SnapshotPart) -> Result<pb::SnapshotProgress, TransferError> {
        let mut request = tonic::Request::new(part);
        request.set_timeout(PART_TIMEOUT);
        let mut client = PeerClient::new(self.channel.clone());
        Ok(client.snapshot(request).await?.into_inner())
    }
}
