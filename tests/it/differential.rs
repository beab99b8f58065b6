//! Random calls to the server and to Debian's `etcd` at the same time: every answer is the same, in code, text and
//! content, or differs as a row of `docs/differences.md` says. A failure prints the seed, the step, both answers, and few
//! steps that lead there.

mod administration;
mod data;
mod draw;
pub(crate) mod request;
mod rng;
mod run;
mod shrink;
pub(crate) mod step;

use crate::client::block_on;
use crate::etcd::Version;
use draw::Draw;
use run::{Run, Unexplained};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Instant;
use step::Step;

/// Each on new servers. Others: `GATEHOUSE_DIFFERENTIAL_SEEDS=7..200 cargo test-real --test it differential`.
const SEEDS: Range<u64> = 1..9;
const SEEDS_VARIABLE: &str = "GATEHOUSE_DIFFERENTIAL_SEEDS";
/// Calls of one seed.
const STEPS: usize = 1_500;

/// What became of all seeds.
#[derive(Default)]
struct Sum {
    calls: u64,
    /// By name of the call: successes and refusals.
    outcomes: BTreeMap<&'static str, [u64; 2]>,
    /// By row: differences that it explained.
    explained: BTreeMap<&'static str, u64>,
}

#[test]
fn no_random_call_is_answered_otherwise_than_by_etcd_but_as_documented() {
    let Some(version) = Version::installed() else {
        return;
    };
    let start = Instant::now();
    let mut sum = Sum::default();
    for seed in seeds() {
        play(version, seed, &mut sum);
    }
    let seconds = start.elapsed().as_secs_f64();
    eprintln!(
        "{} calls in {seconds:.1} s, and by call [ok, refused]: {:?}",
        sum.calls, sum.outcomes
    );
    eprintln!("differences by row: {:?}", sum.explained);
    for (call, [ok, refused]) in sum.outcomes {
        assert!(ok > 0, "{call} never gets anywhere");
        // Ours answers everybody who asks whether auth is on.
        assert!(
            refused > 0 || call == "AuthStatus",
            "{call} is never refused"
        );
    }
}

fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var(SEEDS_VARIABLE) else {
        return SEEDS;
    };
    let (from, to) = text
        .split_once("..")
        .expect("two numbers with two dots between");
    from.parse().expect("a number")..to.parse().expect("a number")
}

fn play(version: Version, seed: u64, sum: &mut Sum) {
    let mut run = Run::start(version);
    let mut draw = Draw::new(seed);
    let mut steps = Vec::new();
    let end = block_on(async {
        for _ in 0..STEPS {
            let step = draw.next();
            steps.push(step.clone());
            let answer = run.take(&step).await?;
            if answer.outcome.is_ok() {
                draw.heard(&step, &answer);
            }
        }
        Ok::<(), Box<Unexplained>>(())
    });
    if let Err(found) = end {
        drop(run);
        let number = steps.len();
        let few = shrink::shrink(version, steps);
        panic!("{}", report(seed, number, &found, &few));
    }
    sum.calls += steps.len() as u64;
    for (call, [ok, refused]) in run.outcomes {
        let counted = sum.outcomes.entry(call).or_default();
        counted[0] += ok;
        counted[1] += refused;
    }
    for (row, count) in run.explained {
        *sum.explained.entry(row).or_default() += count;
    }
}

fn report(seed: u64, number: usize, found: &Unexplained, few: &[Step]) -> String {
    use std::fmt::Write as _;
    let Unexplained {
        step,
        etcd,
        ours,
        rows,
        broken,
    } = found;
    let mut text = format!(
        "seed {seed}, step {number}: no row of docs/differences.md explains this\n  {step:?}\n  etcd: {:?}\n  ours: {:?}\n",
        etcd.outcome, ours.outcome
    );
    if !rows.is_empty() {
        let _ = writeln!(text, "  after {rows:?} {broken}");
    }
    let _ = writeln!(text, "these {} steps lead there:", few.len());
    for Step { caller, request } in few {
        let _ = writeln!(text, "  {caller:?}: {request:?}");
    }
    text
}
