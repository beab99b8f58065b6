//! A snapshot on its way in. Its parts are staged in the store as they come, each once, in order and checked; raft hears
//! of it only when all of it is there, so that from raft's word to the install nothing is missing any more.

use super::snapshot_part::{CHECKSUM_START, checksum, rows_from_pb};
use crate::pb::gatehousepb as pb;
use crate::platform::blocking;
use crate::storage::{Durability, Storage, StorageError, Tables};
use protobuf::Message as _;
use raft::eraftpb::{Message, MessageType, SnapshotMetadata};

/// Ticks after which what has been staged is given up, if no part has come meanwhile.
const IDLE_TICKS_MAX: u32 = 100;

/// What this member is when a part comes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    /// Raft's term.
    pub(super) term: u64,
    /// Last applied index.
    pub(super) applied: u64,
    /// Whether raft waits for the install of an earlier one.
    pub(super) installing: bool,
}

/// What comes of a part.
#[derive(Debug, PartialEq)]
pub(super) struct Taken {
    /// For the sender.
    pub(super) progress: pb::SnapshotProgress,
    /// For raft: all is there.
    pub(super) complete: Option<Message>,
}

impl Taken {
    fn next(next: u64) -> Taken {
        let progress = pb::SnapshotProgress {
            next,
            ..pb::SnapshotProgress::default()
        };
        Taken {
            progress,
            complete: None,
        }
    }

    fn not_needed() -> Taken {
        let progress = pb::SnapshotProgress {
            complete: true,
            ..pb::SnapshotProgress::default()
        };
        Taken {
            progress,
            complete: None,
        }
    }

    fn refused() -> Taken {
        let progress = pb::SnapshotProgress {
            refused: true,
            ..pb::SnapshotProgress::default()
        };
        Taken {
            progress,
            complete: None,
        }
    }
}

struct Staged {
    sender: u64,
    id: u64,
    /// What raft is to hear.
    message: Message,
    /// Number of the part that is wanted.
    next: u64,
    /// Checksum of the parts so far.
    checksum: u64,
    idle_ticks: u32,
}

/// The snapshot that is being staged, one at most.
pub(super) struct Inbox {
    member_id: u64,
    staged: Option<Staged>,
}

impl Inbox {
    /// Nothing is staged.
    pub(super) fn new(member_id: u64) -> Inbox {
        Inbox {
            member_id,
            staged: None,
        }
    }

    /// Takes a part.
    ///
    /// # Errors
    /// [`StorageError`] when this member's store fails; what is wrong with the part is part of the answer.
    pub(super) fn take(
        &mut self,
        part: pb::SnapshotPart,
        standing: Standing,
        storage: &Storage,
    ) -> Result<Taken, StorageError> {
        if standing.installing {
            return Ok(Taken::refused());
        }
        if part.number == 0 {
            return self.announced(&part, standing, storage);
        }
        let staged = self.staged.as_mut();
        let Some(staged) = staged.filter(|staged| {
            (staged.sender, staged.id) == (part.sender, part.snapshot_id)
                && staged.message.term >= standing.term
        }) else {
            return Ok(Taken::refused());
        };
        staged.idle_ticks = 0;
        if part.number != staged.next {
            return Ok(Taken::next(staged.next));
        }
        let (last, sum) = (part.last, part.checksum);
        let Some(rows) = rows_from_pb(part.rows) else {
            return Ok(Taken::refused());
        };
        if checksum(staged.checksum, &rows) != sum {
            return Ok(Taken::next(staged.next));
        }
        match change(storage, |tables| tables.stage(&rows)) {
            Ok(()) => {}
            // The sender's fault, not that of this store.
            Err(refused @ StorageError::NotARow) => {
                tracing::warn!(reason = %refused, "a snapshot is refused");
                self.discard(storage)?;
                return Ok(Taken::refused());
            }
            Err(failure) => return Err(failure),
        }
        staged.next += 1;
        staged.checksum = sum;
        if !last {
            return Ok(Taken::next(staged.next));
        }
        Ok(Taken {
            complete: Some(staged.message.clone()),
            ..Taken::not_needed()
        })
    }

    fn announced(
        &mut self,
        part: &pb::SnapshotPart,
        standing: Standing,
        storage: &Storage,
    ) -> Result<Taken, StorageError> {
        let Some(message) = self.message(part) else {
            return Ok(Taken::refused());
        };
        let index = message.get_snapshot().get_metadata().index;
        if message.term < standing.term {
            return Ok(Taken::refused());
        }
        if index <= standing.applied {
            return Ok(Taken::not_needed());
        }
        let same =
            |staged: &&mut Staged| (staged.sender, staged.id) == (part.sender, part.snapshot_id);
        if let Some(staged) = self.staged.as_mut().filter(same) {
            staged.message = message;
            staged.idle_ticks = 0;
            return Ok(Taken::next(staged.next));
        }
        change(storage, |tables| tables.begin_staging())?;
        self.staged = Some(Staged {
            sender: part.sender,
            id: part.snapshot_id,
            message,
            next: 1,
            checksum: CHECKSUM_START,
            idle_ticks: 0,
        });
        Ok(Taken::next(1))
    }

    /// Raft's message, if it makes sense.
    fn message(&self, part: &pb::SnapshotPart) -> Option<Message> {
        let message = Message::parse_from_carllerche_bytes(&part.message).ok()?;
        let snapshot = message.get_snapshot();
        let is_sound = message.get_msg_type() == MessageType::MsgSnapshot
            && message.to == self.member_id
            && message.from == part.sender
            && message.from != self.member_id
            && snapshot.data == part.snapshot_id.to_be_bytes()[..]
            && snapshot.get_metadata().term <= message.term
            && snapshot
                .get_metadata()
                .get_conf_state()
                .voters
                .contains(&self.member_id);
        is_sound.then_some(message)
    }

    /// Whether what raft wants to be installed is what has been staged, all of it.
    pub(super) fn holds(&self, snapshot: &SnapshotMetadata) -> bool {
        self.staged
            .as_ref()
            .is_some_and(|staged| staged.message.get_snapshot().get_metadata() == snapshot)
    }

    /// What was staged has been installed: the store holds nothing of it any more.
    pub(super) fn installed(&mut self) {
        self.staged = None;
    }

    /// Gives up what has been staged.
    ///
    /// # Errors
    /// [`StorageError`].
    pub(super) fn discard(&mut self, storage: &Storage) -> Result<(), StorageError> {
        match self.staged.take() {
            Some(_) => change(storage, |tables| tables.clear_staging()),
            None => Ok(()),
        }
    }

    /// A tick: gives up what nobody continues, or nobody needs.
    ///
    /// # Errors
    /// [`StorageError`].
    pub(super) fn tick(
        &mut self,
        standing: Standing,
        storage: &Storage,
    ) -> Result<(), StorageError> {
        let Some(staged) = &mut self.staged else {
            return Ok(());
        };
        staged.idle_ticks += 1;
        let index = staged.message.get_snapshot().get_metadata().index;
        let is_idle = staged.idle_ticks > IDLE_TICKS_MAX || index <= standing.applied;
        if is_idle && !standing.installing {
            self.discard(storage)?;
        }
        Ok(())
    }
}

/// One transaction of its own. Nobody is told that it is durable, so it need not be: a start removes whatever is staged.
fn change(
    storage: &Storage,
    change: impl FnOnce(&mut Tables<'_>) -> Result<(), StorageError>,
) -> Result<(), StorageError> {
    blocking(|| {
        let transaction = storage.begin(Durability::Deferred)?;
        change(&mut transaction.tables())?;
        transaction.commit()?;
        Ok(())
    })
}
