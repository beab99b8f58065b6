//! `fuzz`: plans that are drawn from seed numbers.

use super::run::Report;
use super::{Exit, Failure};
use crate::args::Seeds;
use crate::settings::Settings;
use gatehouse_judge::verdict::VerdictKind;
use gatehouse_sim::batch::{Work, run_each};
use gatehouse_sim::fuzz::{self, Profile};
use gatehouse_sim::run::Run;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// Runs the plans of the given seeds of a profile.
///
/// # Errors
/// Bad input, a stdout or a report directory that cannot be written.
pub(crate) fn execute(
    profile: Profile,
    asked: &Seeds,
    settings: &Settings,
    out: &mut impl Write,
) -> Result<Exit, Failure> {
    let Some(seeds) = asked.given() else {
        let problem = "say which seeds: --seeds A..B or --seed N";
        return Err(Failure::Usage(problem.to_owned()));
    };
    let mut seeds: Vec<u64> = seeds.collect();
    if settings.backwards {
        seeds.reverse();
    }
    let bugs = settings.bug_runs();
    let count = seeds.len() * bugs.len();
    let work = |number: usize| {
        let seed = seeds[number % seeds.len()];
        Work {
            plan: Arc::new(fuzz::plan(profile, seed)),
            seed,
            options: settings.options(bugs[number / seeds.len()]),
        }
    };
    let mut report = Report::new(settings, count, out)?;
    report.wide = true;
    let mut failure = None;
    run_each(count, work, settings.jobs, |run| {
        match take(&mut report, &run, profile) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        }
    });
    match failure {
        Some(failure) => Err(failure),
        None => report.finish(),
    }
}

fn take<W: Write>(report: &mut Report<'_, W>, run: &Run, profile: Profile) -> Result<(), Failure> {
    let again = format!("{} --profile {}", run.seed, profile.name());
    let history = report.take(run, &again)?;
    if run.verdict.kind != VerdictKind::Ok
        && let Some(history) = history
    {
        keep_plan(run, profile, &history)?;
    }
    Ok(())
}

/// Writes the plan beside the history: whoever wants to cut it down needs no seed for it.
fn keep_plan(run: &Run, profile: Profile, history: &Path) -> io::Result<()> {
    let plan = fuzz::plan(profile, run.seed);
    let text = toml::to_string(&plan).map_err(io::Error::other)?;
    std::fs::write(history.with_extension("toml"), text)
}
