//! Checks what a plan says about clocks.

use super::{Checked, Plan, wrong};
use crate::plan::FaultKind;

/// Fastest and slowest clock of a member, millionths: a tenth, a hundred times what real clocks do.
const DRIFT_PPM_MAX: u64 = 100_000;
/// Farthest jump of a member's time of day, milliseconds: a day.
const JUMP_MS_MAX: u64 = 86_400_000;

impl Plan {
    /// Every member's own drift.
    pub(super) fn check_drift(&self) -> Checked {
        let drifts = &self.cluster.drift_ppm;
        let field = "cluster.drift_ppm";
        if drifts.len() as u64 > self.cluster.members {
            let (named, members) = (drifts.len(), self.cluster.members);
            return wrong(field, format!("{named} clocks for {members} members"));
        }
        drifts
            .iter()
            .try_for_each(|ppm| within(field, *ppm, DRIFT_PPM_MAX))
    }
}

/// How far a fault may turn a clock; other faults pass.
pub(super) fn fault(field: &str, kind: &FaultKind) -> Checked {
    match kind {
        FaultKind::ClockDrift { ppm, .. } => within(&format!("{field}, ppm"), *ppm, DRIFT_PPM_MAX),
        FaultKind::ClockJump { ms, .. } => within(&format!("{field}, ms"), *ms, JUMP_MS_MAX),
        _ => Ok(()),
    }
}

fn within(field: &str, number: i64, most: u64) -> Checked {
    if number.unsigned_abs() <= most {
        Ok(())
    } else {
        wrong(field, format!("-{most} to {most}, not {number}"))
    }
}
