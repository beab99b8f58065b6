//! How long the judge's search takes without any hint: 2,000 calls of 16 clients, a third of the answers lost, on right
//! histories and on those in which one put was carried out that should have been refused.
//!
//! `cargo bench -p gatehouse-judge --bench search` prints verdicts, seconds and the peak of memory so far, and fails if a
//! history is not settled or takes too long.

mod memory;

use gatehouse_judge::search::workload::{Size, make};
use gatehouse_judge::search::{Budget, Settled, settle};
use memory::peak_kib;
use std::error::Error;
use std::process::ExitCode;
use std::time::Instant;

/// As the judge has it where the search alone judges.
const BUDGET: Budget = Budget {
    steps: 30_000_000,
    states: 2_000_000,
};

const SEEDS: u64 = 12;

/// Most seconds that one history may take.
const SECONDS_MAX: f64 = 30.0;

#[expect(
    clippy::print_stdout,
    reason = "the figures are what this program is for"
)]
fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut right = true;
    for unknown_percent in [0, 10, 20, 33] {
        for wrong in [false, true] {
            let size = Size {
                clients: 16,
                calls: 2_000,
                unknown_percent,
                wrong,
            };
            let (mut definite, mut worst, mut total) = (0, 0.0_f64, 0.0);
            for seed in 1..=SEEDS {
                let history = make(seed, size);
                let start = Instant::now();
                let settled = settle(&history, BUDGET);
                let seconds = start.elapsed().as_secs_f64();
                definite += u64::from(!matches!(settled, Settled::Open { .. }));
                worst = worst.max(seconds);
                total += seconds;
            }
            let kind = if wrong { "one wrong put" } else { "right" };
            println!(
                "2,000 calls, {unknown_percent} % lost, {kind}: {definite} of {SEEDS} settled, {total:.1} s in all, \
                 {worst:.1} s at most, peak {} MiB",
                peak_kib()? >> 10
            );
            if definite < SEEDS {
                println!("not settled: {} of {SEEDS}", SEEDS - definite);
                right = false;
            }
            if worst > SECONDS_MAX {
                println!("too slow: {SECONDS_MAX} s for a history is the limit");
                right = false;
            }
        }
    }
    Ok(if right {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
