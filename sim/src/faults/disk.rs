//! Strikes disks. Each fault is undone at its end; a member that stopped for it then boots again.

use super::{on_member, waited};
use crate::cluster::{Cluster, travel};
use crate::plan::{DiskOperation, FaultKind};
use crate::rng::Rng;
use gatehouse::platform;
use std::time::Duration;

/// Strikes the disk of `member`, waits, undoes; faults of other kinds are none.
pub(super) async fn strike(
    cluster: &Cluster,
    kind: &FaultKind,
    member: u64,
    lasts: Option<Duration>,
    rng: &mut Rng,
) {
    match kind {
        FaultKind::PowerCut { operations, .. } => {
            let operations = rng.between(operations.low, operations.high);
            cluster.cut_power_after(member, operations).await;
            if waited(lasts).await {
                cluster.restart(member);
            }
        }
        FaultKind::DiskRot { bytes, running, .. } => {
            if *running {
                cluster.rot(member, *bytes);
                return;
            }
            cluster.expect_rot(member);
            cluster.kill(member);
            cluster.rot(member, *bytes);
            if waited(lasts).await {
                cluster.restart(member);
            }
        }
        FaultKind::DiskError {
            operation, next, ..
        } => {
            let operation = match operation {
                DiskOperation::Write => platform::DiskOperation::Write,
                DiskOperation::Sync => platform::DiskOperation::Sync,
            };
            let begin = |cluster: &Cluster, member| cluster.fail_disk(member, operation, *next);
            let end = |cluster: &Cluster, member| cluster.mend_disk(member, operation);
            on_member(cluster, member, lasts, begin, end).await;
        }
        FaultKind::DiskFull { room, .. } => {
            let room = rng.between(room.low, room.high);
            let begin = |cluster: &Cluster, member| cluster.fill_disk(member, room);
            on_member(cluster, member, lasts, begin, Cluster::empty_disk).await;
        }
        FaultKind::DiskStall { .. } => {
            let (begin, end) = (Cluster::stall_disk, Cluster::unstall_disk);
            on_member(cluster, member, lasts, begin, end).await;
        }
        FaultKind::DiskSlow { ms, .. } => {
            let begin = |cluster: &Cluster, member| cluster.slow_disk(member, travel(*ms));
            on_member(cluster, member, lasts, begin, Cluster::quicken_disk).await;
        }
        _ => {}
    }
}
