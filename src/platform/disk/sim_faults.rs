//! What can be wrong with a simulated disk besides a power cut. All of it can be undone, but rot.

use super::failing::DiskOperation;
use super::rot;
use super::sim_disk::SimDisk;

impl SimDisk {
    /// Lets the next `times` operations of a kind fail with `EIO`, all of them with `None`, none with `Some(0)`.
    ///
    /// What a failed sync was to make durable is then durable in some sectors only, and no later sync will do more: Linux
    /// counts pages as clean once it has told that they could not be written.
    pub fn set_failing(&self, operation: DiskOperation, times: Option<u64>) {
        self.state().failing.set(operation, times);
    }

    /// Leaves room for so many more bytes, in blocks; a write that needs more fails with `StorageFull`. Any number of bytes
    /// with `None`.
    pub fn set_room(&self, bytes: Option<usize>) {
        self.state().space.set_room(bytes);
    }

    /// While it stalls, no barrier ends. Reads and writes go on, as those that the system keeps in memory do.
    pub fn set_stalled(&self, stalled: bool) {
        let mut state = self.state();
        state.stalled = stalled;
        state.changed.notify_waiters();
    }

    /// To be called before a power cut that [`SimDisk::rot`] follows: from now on a power cut loses no note of a commit that
    /// is durable. The two together are more than a member can notice.
    pub fn expect_rot(&self) {
        self.state().rots = true;
    }

    /// Changes `count` bytes of what has been written, durable or not. Gives how many it found.
    pub fn rot(&self, count: u64) -> usize {
        let mut state = self.state();
        let state = &mut *state;
        let len = state.durable.len();
        let flips = rot::choose(&state.space, len, count, &mut state.fault_chance);
        rot::apply(&flips, &mut state.durable);
        rot::apply(&flips, &mut state.view);
        state.rots = true;
        state.rotten |= !flips.is_empty();
        flips.len()
    }

    /// Whether [`SimDisk::rot`] ever changed anything on it.
    pub fn is_rotten(&self) -> bool {
        self.state().rotten
    }

    /// Whether it has failed an operation, by one of these faults, since it was last opened.
    pub fn has_failed(&self) -> bool {
        self.state().failed
    }

    /// Ends every fault that can be ended, an armed fuse included.
    pub fn heal(&self) {
        for operation in [DiskOperation::Write, DiskOperation::Sync] {
            self.set_failing(operation, Some(0));
        }
        self.set_room(None);
        self.set_stalled(false);
        self.set_fuse(None);
        self.reset_latency();
    }

    /// Whether the power has been cut since it was last opened.
    pub fn has_no_power(&self) -> bool {
        self.state().is_cut()
    }

    /// Whether something has been written that no sync has followed yet: a power cut now falls inside a commit.
    pub fn has_unsynced(&self) -> bool {
        self.state().has_open_batch()
    }

    /// Resolves when the power is cut, by a fuse or by anybody.
    pub async fn power_cut(&self) {
        let epoch = self.state().current_epoch();
        self.until(|state| state.current_epoch() != epoch).await;
    }
}
