//! When members truncate their logs, and in how large parts they send their state instead.

use super::{Checked, wrong};
use crate::plan::Plan;

/// Largest `cluster.snapshot_part_bytes`: what a member takes in one call is limited.
const PART_BYTES_MAX: usize = 1 << 20;

impl Plan {
    pub(super) fn check_snapshots(&self) -> Checked {
        let cluster = &self.cluster;
        if cluster.snapshot_count == 0 {
            return wrong("cluster.snapshot_count", "1 at least, not 0");
        }
        let bytes = cluster.snapshot_part_bytes;
        if !(1..=PART_BYTES_MAX).contains(&bytes) {
            let problem = format!("1 to {PART_BYTES_MAX}, not {bytes}");
            return wrong("cluster.snapshot_part_bytes", problem);
        }
        Ok(())
    }
}
