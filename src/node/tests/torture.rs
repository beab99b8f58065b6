//! Everything at once: crashes inside commits, partitions and pauses under load.

use super::cluster::{Cluster, HEARTBEAT, PATIENCE, read, simulate, write};
use crate::config::TOKEN_TTL;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};

const SEEDS: u64 = 50;
const FAULTS: u64 = 8;
const WRITERS: u64 = 4;
/// So few that most members that were away get a snapshot.
const SNAPSHOT_COUNT: u64 = 10;

/// A generator of its own for each purpose, so that one more draw here does not change what happens there.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from))
    }
}

#[test]
fn members_agree_and_keep_what_they_acknowledged() {
    let (mut acknowledged, mut installed) = (0, 0);
    for seed in 0..SEEDS {
        let total = Arc::new(Mutex::new((0, 0)));
        let count = Arc::clone(&total);
        simulate(seed, 0.01, move || async move {
            let acked = one_run(seed).await;
            *count.lock().unwrap() = acked;
        });
        let (acked, snapshots) = *total.lock().unwrap();
        acknowledged += acked;
        installed += snapshots;
    }
    // A torture that acknowledges nothing proves nothing.
    assert!(
        acknowledged > 100 * SEEDS,
        "only {acknowledged} writes were acknowledged"
    );
    assert!(
        installed > SEEDS,
        "only {installed} snapshots were installed"
    );
}

/// How many writes were acknowledged, and how many snapshots installed.
async fn one_run(seed: u64) -> (u64, u64) {
    let cluster = Arc::new(Cluster::start_with(3, seed, TOKEN_TTL, SNAPSHOT_COUNT));
    let acked: Arc<Mutex<BTreeMap<String, u64>>> = Arc::default();
    let until = Instant::now() + Duration::from_secs(20);
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            tokio::spawn(keep_writing(
                Arc::clone(&cluster),
                Arc::clone(&acked),
                seed,
                writer,
                until,
            ))
        })
        .collect();
    let mut chance = Chance(seed);
    for _ in 0..FAULTS {
        one_fault(&cluster, &mut chance).await;
        sleep(chance.millis(100, 1_500)).await;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    cluster.converge().await;
    let acked = acked.lock().unwrap().clone();
    for id in cluster.ids() {
        let node = cluster.node(id).await;
        node.barrier(Instant::now() + PATIENCE).await.unwrap();
        for (key, value) in &acked {
            let found = read(&node, key).map(|value| String::from_utf8(value.to_vec()).unwrap());
            assert_eq!(found, Some(value.to_string()), "member {id} lost {key}");
        }
    }
    (acked.len() as u64, cluster.witness.installed())
}

async fn keep_writing(
    cluster: Arc<Cluster>,
    acked: Arc<Mutex<BTreeMap<String, u64>>>,
    seed: u64,
    writer: u64,
    until: Instant,
) {
    let mut chance = Chance(seed << 8 | writer);
    let mut count = 0;
    while Instant::now() < until {
        count += 1;
        let node = cluster.node(1 + chance.below(3)).await;
        // A key is written once, so a lost answer leaves no doubt about a later value.
        let key = format!("{writer}/{count}");
        if write(&node, &key, &count.to_string()).await.is_ok() {
            acked.lock().unwrap().insert(key, count);
        } else {
            sleep(HEARTBEAT).await;
        }
        sleep(chance.millis(0, 50)).await;
    }
}

async fn one_fault(cluster: &Cluster, chance: &mut Chance) {
    let id = 1 + chance.below(3);
    match chance.below(4) {
        0 => {
            // A power cut after a few more disk operations, so most often inside a commit.
            let disk = &cluster.members[usize::try_from(id).unwrap() - 1].disk;
            disk.set_fuse(Some(chance.below(20)));
            sleep(chance.millis(50, 500)).await;
            cluster.crash(id);
            sleep(chance.millis(10, 3_000)).await;
            cluster.restart(id);
        }
        1 => {
            cluster.crash(id);
            sleep(chance.millis(0, 3_000)).await;
            cluster.restart(id);
        }
        2 => {
            cluster.cut_off(id);
            sleep(chance.millis(100, 4_000)).await;
            cluster.heal(id);
        }
        _ => {
            cluster.pause(id);
            sleep(chance.millis(100, 3_000)).await;
            cluster.resume(id);
        }
    }
}
