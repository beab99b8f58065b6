//! What the event loop does about snapshots: those that it offers as leader, and the one that it gets as a follower.

use super::event_loop::EventLoop;
use super::failure::MemberError;
use super::snapshot_inbox::Standing;
use crate::observer::Observed;
use crate::pb::gatehousepb as pb;
use raft::SnapshotStatus;
use raft::eraftpb::{Message, MessageType, Snapshot, SnapshotMetadata};
use tokio::sync::oneshot;

impl EventLoop {
    /// Takes a part of a snapshot. The last one lets raft hear of it.
    pub(super) fn take_part(
        &mut self,
        part: pb::SnapshotPart,
        answer: oneshot::Sender<pb::SnapshotProgress>,
    ) -> Result<(), MemberError> {
        let standing = self.standing();
        let taken = self.inbox.take(part, standing, &self.applier.storage)?;
        if let Some(message) = taken.complete {
            if let Err(reason) = self.raft.step(message) {
                tracing::debug!(%reason, "raft refused a snapshot");
            }
            self.check_log()?;
            if self.raft.snap().is_none() {
                // It was too old, or the log has caught up: raft has told the leader.
                self.inbox.discard(&self.applier.storage)?;
            }
        }
        // A sender that is gone asks again.
        let _ = answer.send(taken.progress);
        Ok(())
    }

    fn standing(&self) -> Standing {
        Standing {
            term: self.raft.raft.term,
            applied: self.applier.state.meta().applied_index,
            installing: self.raft.snap().is_some(),
        }
    }

    /// What of a `Ready` is to be installed.
    ///
    /// # Errors
    /// [`MemberError::NotStaged`] for a snapshot that has not come through the inbox.
    pub(super) fn staged(
        &mut self,
        snapshot: &Snapshot,
    ) -> Result<Option<SnapshotMetadata>, MemberError> {
        let metadata = snapshot.get_metadata();
        if metadata.index == 0 {
            return Ok(None);
        }
        if !self.inbox.holds(metadata) {
            let index = metadata.index;
            return Err(MemberError::NotStaged { index });
        }
        self.inbox.installed();
        Ok(Some(metadata.clone()))
    }

    /// Begins to send the snapshots among raft's messages; gives the other messages.
    pub(super) fn send_snapshots(&mut self, messages: Vec<Message>) -> Vec<Message> {
        let is_snapshot = |message: &Message| message.get_msg_type() == MessageType::MsgSnapshot;
        let (snapshots, others): (Vec<_>, Vec<_>) = messages.into_iter().partition(is_snapshot);
        for message in snapshots {
            let offer = self.raft.mut_store().offers().send(message.to);
            let is_sent = offer.is_some_and(|offer| self.peers.send_snapshot(&message, offer));
            if !is_sent {
                // Raft waits for a word about every snapshot.
                self.later.snapshot_lost.insert(message.to);
            }
        }
        others
    }

    /// A transfer has ended; raft goes on with that member, or tries again.
    pub(super) fn snapshot_sent(&mut self, to: u64, id: u64, complete: bool) {
        if let Some(index) = self.raft.mut_store().offers().ended(to, id, complete) {
            self.observer.observe(Observed::SnapshotSent { to, index });
        }
        let status = if complete {
            SnapshotStatus::Finish
        } else {
            SnapshotStatus::Failure
        };
        self.raft.report_snapshot(to, status);
    }

    pub(super) fn tick_snapshots(&mut self) -> Result<(), MemberError> {
        self.raft.mut_store().offers().tick();
        let standing = self.standing();
        Ok(self.inbox.tick(standing, &self.applier.storage)?)
    }

    /// This member leads no more: what it offered is the new leader's concern.
    pub(super) fn withdraw_snapshots(&mut self) {
        self.peers.end_transfers();
        self.raft.mut_store().offers().withdraw();
    }
}
