//! `bugs`: the kill table. For each planted bug the scenarios that were written to show it run on every seed that was asked
//! for. A bug that shows on the first seed by luck alone is told from one that most seeds show.

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
    /// Whether a property that must notice it did.
    found: bool,
    property: Option<String>,
    /// The properties of which one must notice it.
    expected: &'static [&'static str],
    scenario: Option<String>,
    seed: Option<u64>,
    seeds_to_find: Option<usize>,
    /// Runs made, and how many of them showed the bug.
    runs: usize,
    runs_found: usize,
    /// Runs until it shows, from a starting point drawn at random: the median over all of them. None if it lies beyond
    /// the last run.
    median_runs_to_find: Option<usize>,
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
    let (mut hunted, mut found) = (0, 0);
    for bug in bugs {
        let line = hunt(bug, &scenarios, asked, settings);
        hunted += 1;
        if line.found {
            found += 1;
        } else {
            exit = Exit::Violation;
        }
        match settings.format {
            Format::Json => json_line(out, &line)?,
            Format::Text => writeln!(out, "{}", text(&line))?,
        }
        // The next row takes a while.
        out.flush()?;
    }
    if settings.format == Format::Text {
        writeln!(
            out,
            "{found} of {hunted} planted bugs found by a property that must notice them"
        )?;
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
            .any(|shown| Bug::named(&shown.bug).contains(&bug))
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
    let mut shown = Vec::with_capacity(work.len());
    let mut found: Option<(Run, f64)> = None;
    run_all(&work, settings.jobs, |run| {
        let is_shown = run.found_bug() && is_right(bug, &run);
        shown.push(is_shown);
        if found.is_none() && is_shown {
            found = Some((run, start.elapsed().as_secs_f64()));
        }
        ControlFlow::Continue(())
    });
    let (found, seconds) = found.unzip();
    BugLine {
        bug: bug.slug(),
        found: found.is_some(),
        expected: bug.properties(),
        property: found.as_ref().and_then(|run| run.verdict.property.clone()),
        scenario: found.as_ref().map(|run| run.scenario.clone()),
        seed: found.as_ref().map(|run| run.seed),
        seeds_to_find: runs_to_find(&shown),
        runs: shown.len(),
        runs_found: shown.iter().filter(|shown| **shown).count(),
        median_runs_to_find: median_runs_to_find(&shown),
        seconds_to_find: seconds,
        shrunk_ops: None,
        sentence: found.map(|run| run.verdict.sentence),
    }
}

/// Whether the verdict names a property that must notice the bug, and not one that happens to be broken too.
fn is_right(bug: Bug, run: &Run) -> bool {
    let property = run.verdict.property.as_deref();
    property.is_some_and(|property| bug.properties().contains(&property))
}

/// How many runs it takes from the first on, the one that shows the bug included.
fn runs_to_find(shown: &[bool]) -> Option<usize> {
    shown.iter().position(|shown| *shown).map(|at| at + 1)
}

fn median_runs_to_find(shown: &[bool]) -> Option<usize> {
    let from_each = (0..shown.len()).map(|from| runs_to_find(&shown[from..]));
    // A start after which nothing is found counts as longer than any other.
    let mut runs: Vec<usize> = from_each.map(|runs| runs.unwrap_or(usize::MAX)).collect();
    runs.sort_unstable();
    let median = runs.get(runs.len() / 2).copied()?;
    (median != usize::MAX).then_some(median)
}

fn text(line: &BugLine) -> String {
    match (&line.scenario, line.seed, line.seconds_to_find) {
        (Some(scenario), Some(seed), Some(seconds)) => format!(
            "{}: found by {} in {scenario}, first with seed {seed} after {seconds:.2} s; in {} of {} runs, median {}\n    {}",
            line.bug,
            line.property.as_deref().unwrap_or("the judge"),
            line.runs_found,
            line.runs,
            line.median_runs_to_find
                .map_or("beyond them".to_owned(), |runs| format!("{runs} run(s)")),
            line.sentence.as_deref().unwrap_or_default()
        ),
        _ => format!(
            "{}: NOT FOUND by {} in {} runs",
            line.bug,
            line.expected.join(" or "),
            line.runs
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_taken_over_every_starting_point() {
        assert_eq!(median_runs_to_find(&[true, true, true]), Some(1));
        // From the five starts: 3, 2, 1, 2, 1.
        assert_eq!(
            median_runs_to_find(&[false, false, true, false, true]),
            Some(2)
        );
        assert_eq!(median_runs_to_find(&[true, false, false, false]), None);
        assert_eq!(median_runs_to_find(&[]), None);
        assert_eq!(runs_to_find(&[false, true]), Some(2));
    }
}
