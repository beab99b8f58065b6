//! Fewer steps with the same end: takes pieces out of what came before a difference, on new servers each time, as long as
//! the last step still differs and there is time.

use super::run::Run;
use super::step::Step;
use crate::client::block_on;
use crate::etcd::Version;
use std::time::{Duration, Instant};

/// How long to try.
const TIME: Duration = Duration::from_secs(60);

/// A shorter list of steps, the last of which still differs without an explanation.
pub(super) fn shrink(version: Version, mut steps: Vec<Step>) -> Vec<Step> {
    let start = Instant::now();
    let mut piece = steps.len().div_ceil(2).max(1);
    loop {
        let mut from = 0;
        // The last step is the one that differs.
        while from + 1 < steps.len() {
            if start.elapsed() > TIME {
                return steps;
            }
            let to = (from + piece).min(steps.len() - 1);
            let mut fewer = steps[..from].to_vec();
            fewer.extend_from_slice(&steps[to..]);
            if differs_last(version, &fewer) {
                steps = fewer;
            } else {
                from = to;
            }
        }
        if piece == 1 {
            return steps;
        }
        piece = piece.div_ceil(2);
    }
}

fn differs_last(version: Version, steps: &[Step]) -> bool {
    let mut run = Run::start(version);
    let (last, before) = steps.split_last().expect("there is a last step");
    block_on(async {
        for step in before {
            if run.take(step).await.is_err() {
                return false;
            }
        }
        run.take(last).await.is_err()
    })
}
