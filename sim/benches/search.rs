//! The search without hints, on the histories that it was made for: 2,000 calls of 16 clients, a third of them unknown.
//! Prints what came of each and how long it took, and fails if one of them got no definite verdict, the wrong one, or
//! none within the limit. `CALLS`, `UNKNOWN` (per cent) and `SEEDS` change the size.

#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

use gatehouse_sim::search::workload::{Size, make};
use gatehouse_sim::search::{Budget, Settled, settle};
use std::process::ExitCode;
use std::time::Instant;

/// Longest time for one history, seconds.
const SECONDS_MAX: f64 = 30.0;

const BUDGET: Budget = Budget {
    steps: 30_000_000,
    states: 2_000_000,
};

fn number(name: &str, default: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

fn main() -> ExitCode {
    let (calls, unknown_percent) = (number("CALLS", 2_000), number("UNKNOWN", 33));
    let mut failed = 0;
    for seed in 1..=number("SEEDS", 5) {
        for wrong in [false, true] {
            let size = Size {
                clients: 16,
                calls,
                unknown_percent,
                wrong,
            };
            let history = make(seed, size);
            let start = Instant::now();
            let settled = settle(&history, BUDGET);
            let seconds = start.elapsed().as_secs_f64();
            let (what, right) = match &settled {
                Settled::Ordered => ("an order", !wrong),
                Settled::Impossible(_) => ("no order", wrong),
                _ => ("not settled", false),
            };
            failed += u32::from(!right || seconds > SECONDS_MAX);
            let kind = if wrong { "one wrong decision" } else { "right" };
            println!(
                "seed {seed}, {kind}: {what} in {seconds:.2} s; peak {} MiB",
                peak_mib()
            );
        }
    }
    if failed > 0 {
        println!("{failed} without the right verdict in {SECONDS_MAX} s");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
