//! What a fault can do to a member's disk.
//!
//! A member whose disk failed it stops by itself, and boots again when the fault is over. What it had not made durable is
//! lost by then, as in a power cut: after an error nobody knows what the device has. A member whose store has rotted and
//! cannot be used any more is *lost*: it stays down, and owes nothing from then on.

use super::Cluster;
use gatehouse::platform::DiskOperation;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Cluster {
    /// Cuts a member's power after so many more operations of its disk, and returns when it is cut.
    pub(crate) async fn cut_power_after(&self, member: u64, operations: u64) {
        let machine = self.machine(member);
        let disk = &machine.disk;
        self.recorder.fault(format!(
            "n{member} has power for {operations} more operations of its disk"
        ));
        machine.fused.store(true, Ordering::Relaxed);
        disk.set_fuse(Some(operations));
        disk.power_cut().await;
        let moment = if disk.has_unsynced() {
            "inside a commit"
        } else {
            "between two commits"
        };
        self.recorder
            .fault(format!("power of n{member} failed {moment}"));
        self.kill_if_fuse_blew(member);
    }

    /// Switches a member off whose disk has no power any more.
    pub(super) fn kill_if_fuse_blew(&self, member: u64) {
        let machine = self.machine(member);
        if machine.fused.swap(false, Ordering::Relaxed) && machine.disk.has_no_power() {
            self.kill(member);
        }
    }

    /// A power cut comes with bytes that rot.
    pub(crate) fn expect_rot(&self, member: u64) {
        self.machine(member).disk.expect_rot();
    }

    /// Changes bytes on a member's disk.
    pub(crate) fn rot(&self, member: u64, bytes: u64) {
        let changed = self.machine(member).disk.rot(bytes);
        self.recorder
            .fault(format!("{changed} bytes on the disk of n{member} rot"));
    }

    /// Lets operations of a member's disk fail: all of them, or the next few.
    pub(crate) fn fail_disk(&self, member: u64, operation: DiskOperation, next: Option<u64>) {
        let many = next.map_or_else(|| "all".to_owned(), |next| format!("the next {next}"));
        let which = match operation {
            DiskOperation::Write => "writes",
            DiskOperation::Sync => "syncs",
        };
        self.recorder
            .fault(format!("disk of n{member} fails: {which}, {many}"));
        self.machine(member).disk.set_failing(operation, next);
    }

    /// The end of [`Cluster::fail_disk`].
    pub(crate) fn mend_disk(&self, member: u64, operation: DiskOperation) {
        self.recorder.fault(format!("disk of n{member} mended"));
        self.machine(member).disk.set_failing(operation, Some(0));
        self.boot_if_failed(member);
    }

    /// Leaves so many bytes on a member's disk.
    pub(crate) fn fill_disk(&self, member: u64, room: u64) {
        self.recorder
            .fault(format!("disk of n{member} full but for {room} bytes"));
        let room = usize::try_from(room).expect("a checked plan leaves a gibibyte at most");
        self.machine(member).disk.set_room(Some(room));
    }

    /// The end of [`Cluster::fill_disk`].
    pub(crate) fn empty_disk(&self, member: u64) {
        self.recorder
            .fault(format!("disk of n{member} has room again"));
        self.machine(member).disk.set_room(None);
        self.boot_if_failed(member);
    }

    /// Lets a member's disk make nothing durable.
    pub(crate) fn stall_disk(&self, member: u64) {
        self.recorder.fault(format!("disk of n{member} stalls"));
        self.machine(member).disk.set_stalled(true);
    }

    /// The end of [`Cluster::stall_disk`].
    pub(crate) fn unstall_disk(&self, member: u64) {
        self.recorder.fault(format!("disk of n{member} goes on"));
        self.machine(member).disk.set_stalled(false);
    }

    /// How long every sync of a member's disk takes.
    pub(crate) fn slow_disk(&self, member: u64, range: Range<Duration>) {
        self.recorder.fault(format!(
            "disk of n{member} syncs in {} ms and more",
            range.start.as_millis()
        ));
        self.machine(member).disk.set_latency(range);
    }

    /// The end of [`Cluster::slow_disk`].
    pub(crate) fn quicken_disk(&self, member: u64) {
        self.recorder
            .fault(format!("disk of n{member} as fast as before"));
        self.machine(member).disk.reset_latency();
    }

    /// Whether the member is lost: its store has rotted, and it cannot go on.
    pub(crate) fn is_lost(&self, member: u64) -> bool {
        self.machine(member).lost.load(Ordering::Relaxed)
    }

    /// Boots a member whose disk has failed it. It may not have come to its end yet.
    pub(super) fn boot_if_failed(&self, member: u64) {
        let disk = &self.machine(member).disk;
        if disk.has_failed() && !disk.has_no_power() {
            self.restart(member);
        }
    }
}
