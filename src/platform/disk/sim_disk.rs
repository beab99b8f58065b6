//! A disk with crash semantics. It outlives the members that use it.
//!
//! Writes go to the *view*, which reads see, and to the open *batch*. A sync seals the batch. A barrier, some virtual time
//! later, makes the sealed batches *durable*, oldest first. A crash keeps a prefix of the sealed batches, tears the next
//! one and loses the rest, which is what a disk may do that honours syncs but has not answered them yet.
//!
//! What else can be wrong with it: `sim_faults.rs`. Not modelled: syncs that lie, lost directory entries.

use super::batch::{Batch, write};
use super::failing::{DiskOperation, Failing, io_error};
use super::register::Slot;
use super::sim_file::SimFile;
use super::sim_register::SimRegister;
use super::space::Space;
use crate::platform::seeded::Seeded;
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long a barrier takes unless told otherwise: an SSD that is not quite idle.
const LATENCY: Range<Duration> = Duration::from_micros(500)..Duration::from_micros(4_500);

/// Emptied batches kept for use again. One is enough for a member that awaits each barrier.
const SPARE_BATCHES_MAX: usize = 2;

/// A simulated disk; clones share it.
#[derive(Clone, Debug)]
pub struct SimDisk(Arc<Mutex<State>>);

/// What a disk was asked to do since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounters {
    /// Writes.
    pub writes: u64,
    /// Syncs.
    pub syncs: u64,
    /// Bytes in those writes.
    pub bytes: u64,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) view: Vec<u8>,
    pub(super) durable: Vec<u8>,
    open: Batch,
    /// Synced and not durable yet, oldest first.
    sealed: VecDeque<Batch>,
    /// Number of the first batch in `sealed`, counted from the disk's beginning.
    first_sealed: u64,
    spare: Vec<Batch>,
    /// Handles of an earlier epoch are dead.
    epoch: u64,
    /// Epoch of the newest handle.
    opened: Option<u64>,
    /// Operations left until the power fails.
    fuse: Option<u64>,
    latency: Range<Duration>,
    latency_chance: Seeded,
    crash_chance: Seeded,
    counters: DiskCounters,
    register: SimRegister,
    pub(super) space: Space,
    pub(super) failing: Failing,
    pub(super) stalled: bool,
    pub(super) rotten: bool,
    /// Whether its bytes rot, or are about to.
    pub(super) rots: bool,
    /// Whether a fault failed an operation since the disk was last opened.
    pub(super) failed: bool,
    pub(super) fault_chance: Seeded,
    /// Told when the power is cut or a stall begins or ends.
    pub(super) changed: Arc<Notify>,
}

impl SimDisk {
    /// An empty disk. `seed` decides its latencies and what its crashes leave, and nothing else does.
    pub fn new(seed: u64) -> SimDisk {
        let mut seeds = Seeded::new(seed);
        SimDisk(Arc::new(Mutex::new(State {
            view: Vec::new(),
            durable: Vec::new(),
            open: Batch::default(),
            sealed: VecDeque::new(),
            first_sealed: 0,
            spare: Vec::new(),
            epoch: 0,
            opened: None,
            fuse: None,
            latency: LATENCY,
            latency_chance: Seeded::new(seeds.next()),
            crash_chance: Seeded::new(seeds.next()),
            counters: DiskCounters::default(),
            register: SimRegister::new(seeds.next()),
            space: Space::default(),
            failing: Failing::default(),
            stalled: false,
            rotten: false,
            rots: false,
            failed: false,
            fault_chance: Seeded::new(seeds.next()),
            changed: Arc::default(),
        })))
    }

    /// How long barriers take from now on, virtual time. An empty range takes its start.
    pub fn set_latency(&self, latency: Range<Duration>) {
        self.state().latency = latency;
    }

    /// Barriers take as long again as they did at first.
    pub fn reset_latency(&self) {
        self.set_latency(LATENCY);
    }

    /// Cuts the power after so many more operations (reads, writes, syncs and the like): a crash inside a commit.
    pub fn set_fuse(&self, operations: Option<u64>) {
        self.state().fuse = operations;
    }

    /// Kills every open handle: whoever still holds one, such as a database about to be dropped, can no longer write.
    /// Nothing is lost unless [`SimDisk::crash`] follows; without it, this is a killed process on a machine that lives.
    pub fn cut_power(&self) {
        self.state().cut();
    }

    /// The power fails: kills every open handle and loses what a disk may lose. See the module's description.
    pub fn crash(&self) {
        let mut state = self.state();
        let state = &mut *state;
        state.cut();
        state.crash_register();
        let sealed = std::mem::take(&mut state.sealed);
        let kept = state.crash_chance.below(sealed.len() as u64 + 1);
        let mut torn = &state.open;
        for (index, batch) in (0_u64..).zip(&sealed) {
            if index == kept {
                torn = batch;
                break;
            }
            batch.apply(&mut state.durable);
        }
        let torn = torn.torn(&mut state.crash_chance);
        torn.apply(&mut state.durable);
        state.open.clear();
        state.first_sealed += sealed.len() as u64;
        state.view.clone_from(&state.durable);
    }

    /// Gives the memory back: the disk is empty from now on and every open handle fails.
    pub fn wipe(&self) {
        let mut state = self.state();
        state.cut();
        state.sealed.clear();
        state.open.clear();
        state.view = Vec::new();
        state.durable = Vec::new();
        state.register.wipe();
        state.space = Space::default();
    }

    /// See [`super::Disk::barrier`].
    pub(super) async fn barrier(&self) -> io::Result<()> {
        let (epoch, sealed_until, latency, register) = {
            let mut state = self.state();
            if state.is_cut() {
                return Err(power_cut());
            }
            if state.sealed.is_empty() {
                return Ok(());
            }
            let sealed_until = state.first_sealed + state.sealed.len() as u64;
            // One device: what was written beside the store before the flush began is durable after it, too.
            let register = state.register.is_pending();
            (state.epoch, sealed_until, state.draw_latency(), register)
        };
        tokio::time::sleep(latency).await;
        self.until(|state| !state.stalled || state.epoch != epoch)
            .await;
        let mut state = self.state();
        if state.epoch != epoch {
            return Err(power_cut());
        }
        state.settle(sealed_until);
        if register {
            state.register.settle();
        }
        Ok(())
    }

    /// Waits until something holds; it is looked at whenever `changed` is told.
    pub(super) async fn until(&self, holds: impl Fn(&State) -> bool) {
        loop {
            let changed = {
                let state = self.state();
                if holds(&state) {
                    return;
                }
                Arc::clone(&state.changed)
            };
            // Nothing runs between the look and this wait: a simulation has one thread.
            changed.notified().await;
        }
    }

    /// What it was asked to do so far.
    pub fn counters(&self) -> DiskCounters {
        self.state().counters
    }

    /// Hash of the durable bytes.
    pub fn fingerprint(&self) -> u64 {
        xxhash_rust::xxh3::xxh3_64(&self.state().durable)
    }

    /// A handle for one boot.
    pub(super) fn open(&self) -> SimFile {
        let mut state = self.state();
        state.opened = Some(state.epoch);
        state.failed = false;
        SimFile::new(self.clone(), state.epoch)
    }

    /// A number for a new store.
    pub(super) fn draw_id(&self) -> u64 {
        self.state().register.draw()
    }

    pub(super) fn read_register(&self, epoch: u64) -> io::Result<Option<[Slot; 2]>> {
        Ok(self.live(epoch)?.register.read())
    }

    pub(super) fn replace_register(&self, epoch: u64, content: Slot) -> io::Result<()> {
        self.live(epoch)?.register.replace(content);
        Ok(())
    }

    pub(super) fn set_register(&self, epoch: u64, content: Slot) -> io::Result<()> {
        let mut state = self.live(epoch)?;
        let now = Instant::now();
        if !state.stalled {
            state.register.settle_until(now);
        }
        let synced = now + state.draw_latency();
        state.register.set(content, synced);
        Ok(())
    }

    /// The epoch of the newest handle.
    pub(super) fn opened(&self) -> u64 {
        let state = self.state();
        state.opened.unwrap_or(state.epoch)
    }

    fn live(&self, epoch: u64) -> io::Result<MutexGuard<'_, State>> {
        let state = self.state();
        if state.epoch != epoch {
            return Err(power_cut());
        }
        Ok(state)
    }

    pub(super) fn len(&self, epoch: u64) -> io::Result<u64> {
        Ok(self.operate(epoch)?.view.len() as u64)
    }

    pub(super) fn read(&self, epoch: u64, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.operate(epoch)?;
        let bytes = usize::try_from(offset)
            .ok()
            .and_then(|start| state.view.get(start..start.checked_add(out.len())?))
            .ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "read past the end"))?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    pub(super) fn write(&self, epoch: u64, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.operate(epoch)?;
        let offset = position(offset)?;
        state.may(DiskOperation::Write)?;
        let end = offset.checked_add(data.len()).ok_or_else(too_far)?;
        let room = state.space.take(offset..end);
        state.noted(room)?;
        write(&mut state.view, offset, data);
        state.open.write(offset, data);
        state.counters.writes += 1;
        state.counters.bytes += data.len() as u64;
        Ok(())
    }

    pub(super) fn set_len(&self, epoch: u64, len: u64) -> io::Result<()> {
        let mut state = self.operate(epoch)?;
        let len = position(len)?;
        state.may(DiskOperation::Write)?;
        state.space.truncate(len);
        state.view.resize(len, 0);
        state.open.set_len(len);
        Ok(())
    }

    pub(super) fn sync(&self, epoch: u64) -> io::Result<()> {
        let mut state = self.operate(epoch)?;
        state.counters.syncs += 1;
        if let Err(error) = state.may(DiskOperation::Sync) {
            state.tear();
            return Err(error);
        }
        if !state.open.is_empty() {
            let empty = state.spare.pop().unwrap_or_default();
            let full = std::mem::replace(&mut state.open, empty);
            state.sealed.push_back(full);
        }
        Ok(())
    }

    /// One operation of a handle: counts the fuse down, and fails once the handle is dead.
    fn operate(&self, epoch: u64) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.live(epoch)?;
        match &mut state.fuse {
            None => {}
            Some(0) => {
                state.cut();
                return Err(power_cut());
            }
            Some(left) => *left -= 1,
        }
        Ok(state)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn cut(&mut self) {
        self.epoch += 1;
        self.fuse = None;
        self.changed.notify_waiters();
    }

    pub(super) fn current_epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether the newest handle is dead, or there is none.
    pub(super) fn is_cut(&self) -> bool {
        self.opened != Some(self.epoch)
    }

    pub(super) fn has_open_batch(&self) -> bool {
        !self.open.is_empty()
    }

    /// An error if a fault strikes this operation.
    fn may(&mut self, operation: DiskOperation) -> io::Result<()> {
        let struck = self.failing.strikes(operation);
        self.noted(if struck { Err(io_error()) } else { Ok(()) })
    }

    /// Takes note of a fault's error.
    fn noted<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        self.failed |= result.is_err();
        result
    }

    /// A sync failed: some sectors of the open batch will be durable as if synced, the others never.
    fn tear(&mut self) {
        let torn = self.open.torn(&mut self.fault_chance);
        self.open.clear();
        if !torn.is_empty() {
            self.sealed.push_back(torn);
        }
    }

    /// Makes the sealed batches before number `until` durable; another barrier may have done so already.
    fn settle(&mut self, until: u64) {
        while self.first_sealed < until {
            let mut batch = self
                .sealed
                .pop_front()
                .expect("batches leave the queue here or in a crash, which changes the epoch");
            batch.apply(&mut self.durable);
            self.first_sealed += 1;
            if self.spare.len() < SPARE_BATCHES_MAX {
                batch.clear();
                self.spare.push(batch);
            }
        }
    }

    /// What is left of the register. A note of what is durable is lost only if its own sync is under way, and not together
    /// with bytes that rot: that would be one fault more than a counter of commits can notice.
    fn crash_register(&mut self) {
        if self.rots {
            self.register.settle_all();
        } else if self.register.is_pending() && !self.stalled {
            self.register.settle_until(Instant::now());
        }
        self.register.crash();
    }

    fn draw_latency(&mut self) -> Duration {
        let width = self.latency.end.saturating_sub(self.latency.start);
        match u64::try_from(width.as_nanos()) {
            Ok(0) | Err(_) => self.latency.start,
            Ok(width) => {
                self.latency.start + Duration::from_nanos(self.latency_chance.below(width))
            }
        }
    }
}

fn position(offset: u64) -> io::Result<usize> {
    usize::try_from(offset).map_err(|_| too_far())
}

fn too_far() -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, "beyond the address space")
}

fn power_cut() -> io::Error {
    io::Error::other("simulated power cut")
}
