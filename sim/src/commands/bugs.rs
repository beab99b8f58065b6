//! `bugs`: the kill table. For each planted bug the scenarios that were written to show it run until the judge objects.

use super::run::{scenarios, seeds};
use super::{Exit, Failure};
use crate::args::{Format, Seeds};
use crate::output::json_line;
use crate::settings::{Settings, planted};
use gatehouse::planted::Bug;
use gatehouse_sim::batch::{Work, run_all};
use gatehouse_sim::run::Run;
use gatehouse_sim::scenarios::Scenario;
use serde::Serialize;
use std::io::Write;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

/// One row of the kill table.
#[derive(Serialize)]
struct BugLine {
    bug: &'static str,
    found: bool,
    property: Option<String>,
    scenario: Option<String>,
    seed: Option<u64>,
    seeds_to_find: Option<usize>,
    seconds_to_find: Option<f64>,
    /// Calls of the smallest plan that still shows it; unknown until the plan has been shrunk.
    shrunk_ops: Option<u64>,
    sentence: Option<String>,
}

/// Tries every planted bug, or those named.
///
/// # Errors
/// Bad input, or a stdout that is gone.
pub(crate) fn execute(
    slugs: &[String],
    asked: &Seeds,
    settings: &Settings,
    out: &mut impl Write,
) -> Result<Exit, Failure> {
    let mut bugs: Vec<Bug> = settings.bugs.clone();
    for slug in slugs {
        bugs.extend(planted(slug).map_err(Failure::Usage)?);
    }
    if bugs.is_empty() {
        bugs.extend(Bug::ALL);
    }
    let scenarios = scenarios(&[])?;
    let mut exit = Exit::Expected;
    for bug in bugs {
        let line = hunt(bug, &scenarios, asked, settings);
        if !line.found {
            exit = Exit::Violation;
        }
        match settings.format {
            Format::Json => json_line(out, &line)?,
            Format::Text => writeln!(out, "{}", text(&line))?,
        }
    }
    Ok(exit)
}

/// The scenarios written to show `bug`; all of them if none was.
fn showing(bug: Bug, scenarios: &[Scenario]) -> Vec<&Scenario> {
    let shows = |scenario: &&Scenario| {
        scenario
            .plan
            .shows
            .iter()
            .any(|name| Bug::named(name).contains(&bug))
    };
    let chosen: Vec<&Scenario> = scenarios.iter().filter(shows).collect();
    if chosen.is_empty() {
        scenarios.iter().collect()
    } else {
        chosen
    }
}

fn hunt(bug: Bug, scenarios: &[Scenario], asked: &Seeds, settings: &Settings) -> BugLine {
    let start = Instant::now();
    let options = settings.options(Some(bug));
    let mut work = Vec::new();
    for scenario in showing(bug, scenarios) {
        for seed in seeds(asked, scenario) {
            work.push(Work {
                plan: Arc::clone(&scenario.plan),
                seed,
                options: options.clone(),
            });
        }
    }
    let mut tried = 0;
    let mut found: Option<Run> = None;
    run_all(&work, settings.jobs, |run| {
        tried += 1;
        if run.found_bug() {
            found = Some(run);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    let seconds = start.elapsed().as_secs_f64();
    BugLine {
        bug: bug.slug(),
        found: found.is_some(),
        property: found.as_ref().and_then(|run| run.verdict.property.clone()),
        scenario: found.as_ref().map(|run| run.scenario.clone()),
        seed: found.as_ref().map(|run| run.seed),
        seeds_to_find: found.is_some().then_some(tried),
        seconds_to_find: found.is_some().then_some(seconds),
        shrunk_ops: None,
        sentence: found.map(|run| run.verdict.sentence),
    }
}

fn text(line: &BugLine) -> String {
    match (
        &line.scenario,
        &line.property,
        line.seeds_to_find,
        line.seconds_to_find,
    ) {
        (Some(scenario), property, Some(seeds), Some(seconds)) => format!(
            "{}: found by {} in {scenario}, seed {}, after {seeds} seed(s) and {seconds:.2} s\n    {}",
            line.bug,
            property.as_deref().unwrap_or("the judge"),
            line.seed.unwrap_or_default(),
            line.sentence.as_deref().unwrap_or_default()
        ),
        _ => format!("{}: NOT FOUND", line.bug),
    }
}
