//! Checks what a plan says about disks.

use super::{Checked, Plan, latency, wrong};
use crate::plan::{FaultKind, Span};

/// Most operations until a power cut: some thousand commits.
const OPERATIONS_MAX: u64 = 100_000;
/// Most bytes that rot at once.
const ROT_BYTES_MAX: u64 = 4_096;
/// Most operations that fail, if they are counted.
const FAILING_MAX: u64 = 1_000_000;
/// Most room on a full disk, bytes.
const ROOM_BYTES_MAX: u64 = 1 << 30;

impl Plan {
    /// A store that has rotted may have to stay closed, and nobody replaces it: the others must be a quorum. Whom a fault
    /// will hit is not known yet, so each counts as another member.
    pub(super) fn check_rot(&self) -> Checked {
        let rots = |kind: &FaultKind| matches!(kind, FaultKind::DiskRot { .. });
        let count = self.faults.iter().filter(|fault| rots(&fault.kind)).count() as u64;
        let most = (self.cluster.members - 1) / 2;
        if count <= most {
            return Ok(());
        }
        let members = self.cluster.members;
        let problem = format!(
            "{count} times disk-rot; of {members} members at most {most} may lose their store"
        );
        wrong("fault", problem)
    }
}

/// How badly a disk may fail; other faults pass.
pub(super) fn fault(field: &str, kind: &FaultKind) -> Checked {
    match kind {
        FaultKind::PowerCut { operations, .. } => {
            within(&format!("{field}, operations"), *operations, OPERATIONS_MAX)
        }
        FaultKind::DiskRot { bytes, .. } => {
            count(&format!("{field}, bytes"), *bytes, ROT_BYTES_MAX)
        }
        FaultKind::DiskError {
            next: Some(next), ..
        } => count(&format!("{field}, next"), *next, FAILING_MAX),
        FaultKind::DiskFull { room, .. } => {
            within(&format!("{field}, room"), *room, ROOM_BYTES_MAX)
        }
        FaultKind::DiskSlow { ms, .. } => latency(&format!("{field}, ms"), *ms),
        _ => Ok(()),
    }
}

fn count(field: &str, number: u64, most: u64) -> Checked {
    if (1..=most).contains(&number) {
        Ok(())
    } else {
        wrong(field, format!("1 to {most}, not {number}"))
    }
}

fn within(field: &str, span: Span, most: u64) -> Checked {
    if span.low > span.high {
        let Span { low, high } = span;
        return wrong(field, format!("[{low}, {high}] has its lowest number last"));
    }
    if span.high > most {
        return wrong(field, format!("at most {most}, not {}", span.high));
    }
    Ok(())
}
