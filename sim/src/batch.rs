//! Many runs: plans times seeds, on several threads, with the results in the order in which they were asked for. Each run
//! is on a thread of its own, so how many go at once changes nothing but the time it takes.

use crate::plan::Plan;
use crate::run::{Options, Run, run};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

/// One run to be made.
#[derive(Clone)]
pub struct Work {
    /// What to run.
    pub plan: Arc<Plan>,
    /// With which seed.
    pub seed: u64,
    /// How.
    pub options: Options,
}

/// Makes the runs, `jobs` at a time, and hands each to `each` in order, until `each` breaks off.
pub fn run_all(work: &[Work], jobs: usize, each: impl FnMut(Run) -> ControlFlow<()>) {
    run_each(work.len(), |number| work[number].clone(), jobs, each);
}

/// The same for `count` runs, each of which is thought of when its turn comes.
pub fn run_each(
    count: usize,
    work: impl Fn(usize) -> Work + Sync,
    jobs: usize,
    mut each: impl FnMut(Run) -> ControlFlow<()>,
) {
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    // A bound keeps workers from running far ahead of whoever takes the results, each of which holds a history.
    let (done, results) = mpsc::sync_channel(2 * jobs.max(1));
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, count.max(1)) {
            let (next, stop, work, done) = (&next, &stop, &work, done.clone());
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        break;
                    }
                    let one = work(number);
                    let result = run(&one.plan, one.seed, &one.options);
                    if done.send((number, result)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(done);
        let mut waiting = BTreeMap::new();
        let mut due = 0;
        // Moved in, so that it is gone when this ends early and no worker waits for a place in it.
        for (number, result) in results {
            waiting.insert(number, result);
            while let Some(result) = waiting.remove(&due) {
                due += 1;
                if each(result).is_break() {
                    stop.store(true, Ordering::Relaxed);
                    return;
                }
            }
        }
    });
}
