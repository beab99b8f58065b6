//! How fast the simulator is, in the two figures that decide what a night of fuzzing sees: seeds a minute of the login
//! scenario (three members, about 70 calls, 8 virtual seconds, judged), and virtual seconds a second of an idle cluster.
//!
//! `cargo bench -p gatehouse-sim` prints them; one job and as many as there are processors.

use gatehouse_judge::verdict::VerdictKind;
use gatehouse_sim::batch::{Work, run_all};
use gatehouse_sim::plan::Plan;
use gatehouse_sim::run::{Options, run};
use gatehouse_sim::scenarios;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

/// Seeds of one measurement: some ten seconds of work.
const SEEDS: u64 = 200;

/// Virtual seconds of the idle run.
const IDLE_SECONDS: u32 = 1_000;

#[expect(
    clippy::print_stdout,
    reason = "the figures are what this program is for"
)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scenario = scenarios::named("login-vs-change-password")?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for jobs in [1, cores] {
        let one = |seed| Work {
            plan: Arc::clone(&scenario.plan),
            seed,
            options: Options::default(),
        };
        let work: Vec<Work> = (1..=SEEDS).map(one).collect();
        let start = Instant::now();
        let mut ok = 0;
        run_all(&work, jobs, |run| {
            ok += u32::from(run.verdict.kind == VerdictKind::Ok);
            ControlFlow::Continue(())
        });
        let seconds = start.elapsed().as_secs_f64();
        let rate = f64::from(ok) * 60.0 / seconds;
        println!(
            "login-vs-change-password, {jobs} job(s): {ok} of {SEEDS} ok in {seconds:.2} s = {rate:.0} seeds/min"
        );
    }
    let idle = Arc::new(idle()?);
    let start = Instant::now();
    let run = run(&idle, 1, &Options::default());
    let rate = run.virtual_time.as_secs_f64() / start.elapsed().as_secs_f64();
    println!(
        "idle cluster of three, {:.0} virtual seconds: {rate:.0} times real time",
        run.virtual_time.as_secs_f64()
    );
    Ok(())
}

/// Three members with nothing to do: one call after a long pause.
fn idle() -> Result<Plan, Box<dyn std::error::Error>> {
    let pause = IDLE_SECONDS * 1_000;
    let text = format!(
        "version = 1\nname = \"idle\"\nlimit_ms = {}\n[[client]]\nname = \"sleeper\"\n\
         steps = [{{ do = \"put\", key = \"k\", value = \"v\", after_ms = {pause} }}]\n",
        pause * 2
    );
    let plan: Plan = toml::from_str(&text)?;
    plan.check()?;
    Ok(plan)
}
