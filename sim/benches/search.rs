//! scratch
use gatehouse_sim::search::{Budget, settle};
use gatehouse_sim::search::workload::{Size, make};
use std::time::Instant;
fn main() {
    let budget = Budget { steps: std::env::var("STEPS").map_or(2_000_000, |v| v.parse().unwrap()), states: 1_000_000 };
    let calls: u64 = std::env::var("CALLS").map_or(2000, |v| v.parse().unwrap());
    let unknown_percent: u64 = std::env::var("UNKNOWN").map_or(33, |v| v.parse().unwrap());
    for seed in std::env::var("FROM").map_or(1, |v| v.parse().unwrap())..=std::env::var("SEEDS").map_or(5, |v| v.parse().unwrap()) {
        let history = make(seed, Size { clients: 16, calls, unknown_percent, wrong: std::env::var("WRONG").is_ok() });
        let start = Instant::now();
        let settled = settle(&history, budget);
        println!("seed {seed}: {settled:?} {:.2} s", start.elapsed().as_secs_f64());
    }
}
