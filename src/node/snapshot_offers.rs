//! Snapshots that this member, as leader, offers to members which need what its log has lost. An offer is held for a
//! while after a broken transfer, so that the next one goes on where that ended; and as long as it is held, the log keeps
//! what comes after it, or its receiver would need another one at once.

use super::snapshot_part::{CHECKSUM_START, checksum, rows_to_pb};
use crate::pb::gatehousepb as pb;
use crate::storage::{Place, Snapshot, Storage, StorageError};
use raft::eraftpb;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Ticks that an offer is held while nothing is sent of it. It pins whatever the store has replaced since.
const IDLE_TICKS_MAX: u32 = 100;

/// One snapshot, and what is known of its parts.
pub(super) struct Offer {
    /// No two offers of this member have the same, in whatever life.
    pub(super) id: u64,
    snapshot: Snapshot,
    part_bytes: usize,
    /// Where each part begins that has been reached so far, with the checksum of what stands before it.
    parts: Mutex<Vec<(Place, u64)>>,
}

impl Offer {
    fn new(id: u64, snapshot: Snapshot, part_bytes: usize) -> Offer {
        Offer {
            id,
            snapshot,
            part_bytes,
            parts: Mutex::new(vec![(Place::START, CHECKSUM_START)]),
        }
    }

    /// The state's applied index.
    pub(super) fn index(&self) -> u64 {
        self.snapshot.index
    }

    /// What raft knows of it.
    fn announcement(&self) -> eraftpb::Snapshot {
        let mut announcement = eraftpb::Snapshot::default();
        let metadata = announcement.mut_metadata();
        metadata.index = self.snapshot.index;
        metadata.term = self.snapshot.term;
        metadata.set_conf_state(self.snapshot.conf_state.clone());
        announcement.data = self.id.to_be_bytes().to_vec().into();
        announcement
    }

    /// Part `number`, from 1, without what says whose it is. `None` for one that no receiver can want yet.
    ///
    /// # Errors
    /// [`StorageError`].
    pub(super) fn part(&self, number: u64) -> Result<Option<pb::SnapshotPart>, StorageError> {
        let at = number
            .checked_sub(1)
            .and_then(|at| usize::try_from(at).ok());
        let Some((at, (place, before))) =
            at.and_then(|at| Some((at, self.parts().get(at)?.clone())))
        else {
            return Ok(None);
        };
        let (rows, next) = self.snapshot.rows(&place, self.part_bytes)?;
        let checksum = checksum(before, &rows);
        let last = next.is_none();
        if let Some(next) = next {
            let mut parts = self.parts();
            if parts.len() == at + 1 {
                parts.push((next, checksum));
            }
        }
        Ok(Some(pb::SnapshotPart {
            snapshot_id: self.id,
            number,
            rows: rows_to_pb(rows),
            checksum,
            last,
            ..pb::SnapshotPart::default()
        }))
    }

    fn parts(&self) -> std::sync::MutexGuard<'_, Vec<(Place, u64)>> {
        // Every change is one push.
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Held {
    offer: Arc<Offer>,
    /// Whether a transfer is under way.
    sending: bool,
    idle_ticks: u32,
}

/// The offers that are held, by receiver. Two receivers may share one.
pub(super) struct Offers {
    next_id: u64,
    part_bytes: usize,
    held: BTreeMap<u64, Held>,
}

impl Offers {
    /// None so far. `boot_nonce` is a random number, drawn at each start.
    pub(super) fn new(boot_nonce: u64, part_bytes: usize) -> Offers {
        Offers {
            next_id: boot_nonce,
            part_bytes,
            held: BTreeMap::new(),
        }
    }

    /// What raft tells `to` of the snapshot that it gets: one that is held already, if the log goes on behind it.
    ///
    /// # Errors
    /// [`StorageError`].
    pub(super) fn announce(
        &mut self,
        to: u64,
        storage: &Storage,
        first_index: u64,
    ) -> Result<eraftpb::Snapshot, StorageError> {
        let own = self.held.get(&to).into_iter();
        let mut held = own.chain(self.held.values()).map(|held| &held.offer);
        let offer = match held.find(|offer| offer.index() + 1 >= first_index) {
            Some(offer) => Arc::clone(offer),
            None => {
                let id = self.next_id;
                self.next_id = id.wrapping_add(1);
                Arc::new(Offer::new(id, storage.snapshot()?, self.part_bytes))
            }
        };
        let announcement = offer.announcement();
        let held = Held {
            offer,
            sending: false,
            idle_ticks: 0,
        };
        self.held.insert(to, held);
        Ok(announcement)
    }

    /// The offer that has been announced to `to`, which is sent from now on.
    pub(super) fn send(&mut self, to: u64) -> Option<Arc<Offer>> {
        let held = self.held.get_mut(&to)?;
        held.sending = true;
        Some(Arc::clone(&held.offer))
    }

    /// A transfer of snapshot `id` to `to` has ended. Gives the index of the snapshot if the receiver has all of it now.
    pub(super) fn ended(&mut self, to: u64, id: u64, complete: bool) -> Option<u64> {
        let held = self.held.get_mut(&to).filter(|held| held.offer.id == id)?;
        held.sending = false;
        if !complete {
            return None;
        }
        let index = held.offer.index();
        self.held.remove(&to);
        Some(index)
    }

    /// The lowest index behind which the log must stay whole.
    pub(super) fn lowest_index(&self) -> Option<u64> {
        self.held.values().map(|held| held.offer.index()).min()
    }

    /// A tick: lets go of what nobody has come back for.
    pub(super) fn tick(&mut self) {
        self.held.retain(|_, held| {
            held.idle_ticks += 1;
            if held.sending {
                held.idle_ticks = 0;
            }
            held.idle_ticks < IDLE_TICKS_MAX
        });
    }

    /// This member leads no more.
    pub(super) fn withdraw(&mut self) {
        self.held.clear();
    }
}
