//! redb on a disk whose power fails at any moment: nothing acknowledged is lost, nothing is invented, and the database
//! always opens.

use super::world::simulate;
use crate::platform::seeded::Seeded;
use crate::platform::{Disk, SimDisk};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use std::collections::BTreeMap;
use std::time::Duration;

const ROWS: TableDefinition<u64, &[u8]> = TableDefinition::new("rows");
const BOOTS: u64 = 4;
const COMMITS_MAX: u64 = 40;

/// When a row counts as acknowledged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Acknowledge {
    AfterTheBarrier,
    /// The mistake that the torture must notice.
    BeforeTheBarrier,
}

/// What the world outside has been promised.
#[derive(Default)]
struct Promises {
    acknowledged: BTreeMap<u64, Vec<u8>>,
    /// Committed and not acknowledged, in order.
    in_flight: Vec<(u64, Vec<u8>)>,
    next_row: u64,
}

/// What one run saw.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    acknowledged: usize,
    lost: usize,
    in_flight: usize,
    in_flight_kept: usize,
    fingerprint: u64,
}

impl Promises {
    fn acknowledge_all(&mut self) {
        self.acknowledged.extend(self.in_flight.drain(..));
    }

    /// Compares the database with the promises, then takes what it holds as the truth.
    fn check(&mut self, rows: BTreeMap<u64, Vec<u8>>, outcome: &mut Outcome) {
        for (row, data) in &self.acknowledged {
            match rows.get(row) {
                Some(kept) => assert_eq!(kept, data, "row {row} changed"),
                None => outcome.lost += 1,
            }
        }
        let in_flight = std::mem::take(&mut self.in_flight);
        outcome.in_flight += in_flight.len();
        let kept = |(row, data): &&(u64, Vec<u8>)| rows.get(row) == Some(data);
        let prefix = in_flight.iter().take_while(kept).count();
        assert_eq!(
            in_flight.iter().filter(kept).count(),
            prefix,
            "commits reordered"
        );
        outcome.in_flight_kept += prefix;
        let known = rows.keys().all(|row| {
            self.acknowledged.contains_key(row) || in_flight[..prefix].iter().any(|(r, _)| r == row)
        });
        assert!(known, "a row nobody wrote");
        self.acknowledged = rows;
    }
}

fn read_all(database: &Database) -> BTreeMap<u64, Vec<u8>> {
    let reading = database.begin_read().unwrap();
    match reading.open_table(ROWS) {
        Ok(table) => table
            .iter()
            .unwrap()
            .map(|entry| {
                let (row, data) = entry.unwrap();
                (row.value(), data.value().to_vec())
            })
            .collect(),
        Err(redb::TableError::TableDoesNotExist(_)) => BTreeMap::new(),
        Err(error) => panic!("{error}"),
    }
}

fn commit(database: &Database, row: u64, data: &[u8]) -> Result<(), redb::Error> {
    let writing = database.begin_write()?;
    writing.open_table(ROWS)?.insert(row, data)?;
    writing.commit()?;
    Ok(())
}

/// Writes until the power fails.
async fn write_rows(
    database: &Database,
    disk: &Disk,
    chance: &mut Seeded,
    promises: &mut Promises,
    acknowledge: Acknowledge,
) {
    for _ in 0..COMMITS_MAX {
        // A barrier may serve several commits.
        for _ in 0..=chance.below(3) {
            let size = 16 + chance.below(3_000);
            let data: Vec<u8> = (0..size).map(|_| chance.next().to_le_bytes()[0]).collect();
            let row = promises.next_row;
            promises.next_row += 1;
            promises.in_flight.push((row, data.clone()));
            if commit(database, row, &data).is_err() {
                return;
            }
        }
        if acknowledge == Acknowledge::BeforeTheBarrier {
            promises.acknowledge_all();
        }
        if disk.barrier().await.is_err() {
            return;
        }
        promises.acknowledge_all();
    }
}

async fn torture(seed: u64, acknowledge: Acknowledge) -> Outcome {
    let mut chance = Seeded::new(!seed);
    let sim = SimDisk::new(seed);
    let disk = Disk::simulated(sim.clone());
    let (mut promises, mut outcome) = (Promises::default(), Outcome::default());
    for boot in 0..=BOOTS {
        let database = Database::builder()
            .create_with_backend(disk.backend().unwrap())
            .unwrap_or_else(|error| panic!("seed {seed}, boot {boot}: {error}"));
        promises.check(read_all(&database), &mut outcome);
        if boot == BOOTS {
            break;
        }
        // The power fails within a commit, or while a barrier waits.
        let crash = if chance.coin() {
            sim.set_fuse(Some(chance.below(300)));
            None
        } else {
            let (sim, after) = (sim.clone(), Duration::from_micros(chance.below(60_000)));
            Some(tokio::spawn(async move {
                tokio::time::sleep(after).await;
                sim.cut_power();
            }))
        };
        write_rows(&database, &disk, &mut chance, &mut promises, acknowledge).await;
        if let Some(crash) = crash {
            crash.abort();
        }
        sim.cut_power();
        drop(database);
        sim.crash();
    }
    outcome.acknowledged = promises.acknowledged.len();
    outcome.fingerprint = sim.fingerprint();
    outcome
}

fn torture_all(seeds: u64, acknowledge: Acknowledge) -> Vec<Outcome> {
    (0..seeds)
        .map(|seed| simulate(seed, 0.0, move || torture(seed, acknowledge)))
        .collect()
}

#[test]
fn nothing_acknowledged_after_the_barrier_is_lost() {
    let outcomes = torture_all(200, Acknowledge::AfterTheBarrier);
    for (seed, outcome) in outcomes.iter().enumerate() {
        assert_eq!(outcome.lost, 0, "seed {seed}: {outcome:?}");
    }
    let sum = |field: fn(&Outcome) -> usize| outcomes.iter().map(field).sum::<usize>();
    let (in_flight, kept) = (sum(|o| o.in_flight), sum(|o| o.in_flight_kept));
    assert!(sum(|o| o.acknowledged) > 1_000, "the torture did little");
    assert!(kept > 0, "no crash kept a commit in flight");
    assert!(kept < in_flight, "no crash lost a commit in flight");
}

#[test]
fn acknowledging_before_the_barrier_is_noticed() {
    let outcomes = torture_all(20, Acknowledge::BeforeTheBarrier);
    assert!(outcomes.iter().any(|outcome| outcome.lost > 0));
}

#[test]
fn same_seed_leaves_the_same_bytes() {
    let outcomes = || torture_all(5, Acknowledge::AfterTheBarrier);
    assert_eq!(outcomes(), outcomes());
}
