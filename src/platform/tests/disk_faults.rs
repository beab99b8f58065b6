//! What can be wrong with a simulated disk besides a power cut.

use super::world::simulate;
use crate::platform::{Backend, Disk, DiskOperation, SimDisk};
use redb::StorageBackend;
use std::io::ErrorKind;
use std::time::Duration;
use tokio::time::Instant;

const BLOCK: usize = 4_096;

/// Opens a disk that holds a block of sevens, durably.
async fn one_block(sim: &SimDisk) -> (Disk, Backend) {
    let disk = Disk::simulated(sim.clone());
    let backend = disk.backend().unwrap();
    backend.write(0, &[7; BLOCK]).unwrap();
    backend.sync_data().unwrap();
    disk.barrier().await.unwrap();
    (disk, backend)
}

fn content(backend: &Backend) -> Vec<u8> {
    let mut out = vec![0; usize::try_from(backend.len().unwrap()).unwrap()];
    backend.read(0, &mut out).unwrap();
    out
}

#[test]
fn writes_fail_as_often_as_asked_for_and_change_nothing() {
    simulate(1, 0.0, || async {
        let sim = SimDisk::new(1);
        let (disk, backend) = one_block(&sim).await;
        sim.set_failing(DiskOperation::Write, Some(2));
        let failed = backend.write(0, &[1]).unwrap_err();
        assert_eq!(failed.raw_os_error(), Some(5), "{failed}");
        assert!(backend.set_len(1).is_err());
        assert!(sim.has_failed());
        assert_eq!(content(&backend), [7; BLOCK]);
        backend.write(0, &[2]).unwrap();
        assert_eq!(content(&backend)[0], 2);
        sim.set_failing(DiskOperation::Write, None);
        for _ in 0..10 {
            assert!(backend.write(0, &[3]).is_err());
        }
        sim.heal();
        backend.write(0, &[4]).unwrap();
        let _again = disk.backend().unwrap();
        assert!(!sim.has_failed(), "a new boot has seen nothing yet");
    });
}

#[test]
fn what_a_failed_sync_was_to_keep_is_kept_in_part_and_never_more() {
    let mut kept = std::collections::BTreeSet::new();
    for seed in 0..60 {
        kept.insert(simulate(seed, 0.0, move || async move {
            let sim = SimDisk::new(seed);
            let (disk, backend) = one_block(&sim).await;
            sim.set_failing(DiskOperation::Sync, Some(1));
            backend.write(0, &[1; 1_024]).unwrap();
            let failed = backend.sync_data().unwrap_err();
            assert_eq!(failed.raw_os_error(), Some(5), "{failed}");
            assert_eq!(content(&backend)[..1_024], [1; 1_024], "memory has it");
            // The next sync says that all is well, and keeps nothing more.
            backend.sync_data().unwrap();
            disk.barrier().await.unwrap();
            sim.crash();
            let after = content(&disk.backend().unwrap());
            [after[0], after[512]]
        }));
    }
    assert_eq!(
        kept.into_iter().collect::<Vec<_>>(),
        [[1, 1], [1, 7], [7, 1], [7, 7]]
    );
}

#[test]
fn a_full_disk_refuses_new_blocks_only() {
    simulate(1, 0.0, || async {
        let sim = SimDisk::new(1);
        let (_disk, backend) = one_block(&sim).await;
        sim.set_room(Some(BLOCK));
        backend.set_len(100 * BLOCK as u64).unwrap();
        backend.write(9, &[1; 50]).unwrap();
        assert!(!sim.has_failed());
        let full = backend.write(BLOCK as u64, &[1; BLOCK + 1]).unwrap_err();
        assert_eq!(full.kind(), ErrorKind::StorageFull);
        assert!(sim.has_failed());
        backend.write(BLOCK as u64, &[1; BLOCK]).unwrap();
        sim.set_room(None);
        backend.write(50 * BLOCK as u64, &[1; BLOCK]).unwrap();
    });
}

#[test]
fn a_stalled_disk_ends_no_barrier_until_it_goes_on_or_the_power_is_cut() {
    simulate(1, 0.0, || async {
        for cut in [false, true] {
            let sim = SimDisk::new(1);
            let (disk, backend) = one_block(&sim).await;
            sim.set_stalled(true);
            backend.write(0, &[1]).unwrap();
            backend.sync_data().unwrap();
            let start = Instant::now();
            let waiting = tokio::spawn(async move { disk.barrier().await });
            tokio::time::sleep(Duration::from_secs(5)).await;
            assert!(!waiting.is_finished());
            if cut {
                sim.cut_power();
            } else {
                sim.set_stalled(false);
            }
            assert_eq!(waiting.await.unwrap().is_err(), cut);
            assert!(start.elapsed() < Duration::from_millis(5_001));
        }
    });
}

#[test]
fn rot_changes_what_was_written_and_survives_a_crash() {
    simulate(1, 0.0, || async {
        let sim = SimDisk::new(1);
        assert_eq!(sim.rot(3), 0, "there is nothing to rot");
        assert!(!sim.is_rotten());
        let (disk, backend) = one_block(&sim).await;
        // A hole takes no space, so nothing in it can rot.
        backend.set_len(100 * BLOCK as u64).unwrap();
        backend.sync_data().unwrap();
        disk.barrier().await.unwrap();
        assert_eq!(sim.rot(3), 3);
        assert!(sim.is_rotten());
        sim.crash();
        let after = content(&disk.backend().unwrap());
        let changed = after[..BLOCK].iter().filter(|byte| **byte != 7).count();
        assert_eq!(changed, 3);
        assert!(after[BLOCK..].iter().all(|byte| *byte == 0));
    });
}

#[test]
fn whoever_waits_for_a_power_cut_hears_of_it() {
    simulate(1, 0.0, || async {
        let sim = SimDisk::new(1);
        let (_disk, backend) = one_block(&sim).await;
        sim.set_fuse(Some(1));
        let waiting = {
            let sim = sim.clone();
            tokio::spawn(async move { sim.power_cut().await })
        };
        tokio::time::sleep(Duration::from_secs(1)).await;
        backend.write(0, &[1]).unwrap();
        assert!(sim.has_unsynced());
        assert!(!sim.has_no_power());
        assert!(backend.sync_data().is_err());
        waiting.await.unwrap();
        assert!(sim.has_no_power());
        assert!(sim.has_unsynced(), "it failed inside a commit");
    });
}
