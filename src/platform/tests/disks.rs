//! What the simulated disk promises, without a database.

use super::world::simulate;
use crate::platform::{Backend, Disk, SimDisk};
use redb::StorageBackend;
use std::time::Duration;
use tokio::time::Instant;

const BLOCK: usize = 2_048;

fn byte(backend: &Backend, block: u64) -> u8 {
    let mut out = [0];
    backend.read(offset(block), &mut out).unwrap();
    out[0]
}

/// Block 0 comes behind a head, since a disk that begins with zeros counts as a database in the making.
fn offset(block: u64) -> u64 {
    (block + 1) * BLOCK as u64
}

/// Opens a disk of four blocks of zeros, which are durable.
async fn four_blocks(sim: &SimDisk) -> (Disk, Backend) {
    let disk = Disk::simulated(sim.clone());
    let backend = disk.backend().unwrap();
    backend.set_len(offset(4)).unwrap();
    backend.write(0, b"something").unwrap();
    backend.sync_data().unwrap();
    disk.barrier().await.unwrap();
    (disk, backend)
}

fn put(backend: &Backend, block: u64, value: u8) {
    backend.write(offset(block), &[value; BLOCK]).unwrap();
}

#[test]
fn unfinished_database_is_emptied_and_anything_else_is_left_alone() {
    for (content, expected) in [
        (vec![], 0),
        (vec![0; 5], 0),
        (vec![0; 5_000], 0),
        ([[0; 9], [7; 9]].concat(), 0),
        (b"redb".to_vec(), 4),
        ([vec![0; 8], vec![1; 8]].concat(), 16),
    ] {
        let disk = Disk::simulated(SimDisk::new(1));
        disk.backend().unwrap().write(0, &content).unwrap();
        assert_eq!(
            disk.backend().unwrap().len().unwrap(),
            expected,
            "{content:?}"
        );
    }
}

#[test]
fn crash_keeps_a_prefix_of_the_synced_batches_and_everything_behind_a_barrier() {
    let mut outcomes = std::collections::BTreeSet::new();
    for seed in 0..200 {
        outcomes.insert(simulate(seed, 0.0, move || async move {
            let sim = SimDisk::new(seed);
            let (disk, backend) = four_blocks(&sim).await;
            put(&backend, 0, 1);
            backend.sync_data().unwrap();
            disk.barrier().await.unwrap();
            put(&backend, 1, 1);
            backend.sync_data().unwrap();
            put(&backend, 2, 1);
            backend.sync_data().unwrap();
            put(&backend, 3, 1);
            sim.crash();
            assert!(
                backend.len().is_err(),
                "a handle from before the crash is dead"
            );

            let backend = disk.backend().unwrap();
            let kept: Vec<u8> = (0..4).map(|block| byte(&backend, block)).collect();
            assert_eq!(kept[0], 1, "behind a barrier");
            if kept[2] == 1 {
                let mut first = [0; BLOCK];
                backend.read(offset(1), &mut first).unwrap();
                assert_eq!(
                    first, [1; BLOCK],
                    "a batch survives only behind a whole one"
                );
            }
            assert!(kept[3] == 0 || kept[2] == 1, "the open batch comes last");
            kept
        }));
    }
    for expected in [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]] {
        assert!(
            outcomes.contains(expected.as_slice()),
            "never saw {expected:?}"
        );
    }
}

#[test]
fn barrier_takes_time_only_for_what_was_synced_and_fails_when_the_power_does() {
    simulate(1, 0.0, || async {
        let sim = SimDisk::new(1);
        let (disk, backend) = four_blocks(&sim).await;
        let before = sim.fingerprint();
        let start = Instant::now();
        disk.barrier().await.unwrap();
        assert!(
            start.elapsed() < Duration::from_micros(10),
            "nothing to wait for"
        );

        put(&backend, 0, 1);
        backend.sync_data().unwrap();
        assert_eq!(
            sim.fingerprint(),
            before,
            "a sync alone makes nothing durable"
        );
        disk.barrier().await.unwrap();
        assert!(start.elapsed() >= Duration::from_micros(500));
        assert_ne!(sim.fingerprint(), before);

        sim.set_latency(Duration::from_secs(1)..Duration::from_secs(1));
        put(&backend, 1, 1);
        backend.sync_data().unwrap();
        let waiting = tokio::spawn({
            let disk = disk.clone();
            async move { disk.barrier().await }
        });
        tokio::time::sleep(Duration::from_millis(500)).await;
        sim.cut_power();
        assert!(waiting.await.unwrap().is_err());
        assert!(disk.barrier().await.is_err(), "nobody has opened it again");

        let backend = disk.backend().unwrap();
        assert_eq!(byte(&backend, 1), 1, "a killed process loses nothing");
        disk.barrier().await.unwrap();
        sim.crash();
        assert_eq!(byte(&disk.backend().unwrap(), 1), 1);
    });
}

#[test]
fn fuse_blows_after_the_given_operations_and_counters_count() {
    simulate(1, 0.0, || async {
        let sim = SimDisk::new(1);
        let (disk, backend) = four_blocks(&sim).await;
        let before = sim.counters();
        sim.set_fuse(Some(2));
        put(&backend, 0, 1);
        backend.sync_data().unwrap();
        assert!(backend.sync_data().is_err());
        assert!(backend.len().is_err());
        assert!(disk.barrier().await.is_err());
        let after = sim.counters();
        assert_eq!(after.writes - before.writes, 1);
        assert_eq!(after.syncs - before.syncs, 1);
        assert_eq!(after.bytes - before.bytes, BLOCK as u64);
        sim.crash();
        assert!(disk.backend().unwrap().len().is_ok(), "the fuse is gone");
    });
}

#[test]
fn reading_past_the_end_is_an_error() {
    let backend = Disk::simulated(SimDisk::new(1)).backend().unwrap();
    backend.set_len(10).unwrap();
    let mut out = [0; 4];
    for offset in [7, 10, u64::MAX] {
        let error = backend.read(offset, &mut out).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
    }
}
