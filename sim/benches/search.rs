//! How long the judge's search takes without any hint: 2,000 calls of 16 clients, a third of the answers lost, on right
//! histories and on those in which one put was carried out that should have been refused.
//!
//! `cargo bench -p gatehouse-sim --bench search` prints verdicts, seconds and the peak of memory so far.

use gatehouse_sim::search::workload::{Size, make};
use gatehouse_sim::search::{Budget, Settled, settle};
use std::time::Instant;

/// As the judge has it where the search alone judges.
const BUDGET: Budget = Budget {
    steps: 30_000_000,
    states: 2_000_000,
};

const SEEDS: u64 = 12;

#[expect(
    clippy::print_stdout,
    reason = "the figures are what this program is for"
)]
fn main() {
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
                 {worst:.1} s at most, peak {} MB",
                peak_megabytes()
            );
        }
    }
}

/// The most memory that the process has held, as Linux counts it; 0 elsewhere.
fn peak_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) / 1024
}
