//! `run`: scenarios on their pinned or the given seeds.

use super::{Exit, Failure};
use crate::args::{Format, Seeds};
use crate::output::{Table, describe, explain, hash, json_run};
use crate::progress::Progress;
use crate::settings::Settings;
use crate::store::Store;
use gatehouse_judge::verdict::VerdictKind;
use gatehouse_sim::batch::{Work, run_all};
use gatehouse_sim::run::Run;
use gatehouse_sim::scenarios::{self, Scenario};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The scenarios in `files`, or all of them.
pub(crate) fn scenarios(files: &[PathBuf]) -> Result<Vec<Scenario>, Failure> {
    Ok(if files.is_empty() {
        scenarios::all()?
    } else {
        scenarios::from_files(files)?
    })
}

/// The seeds for a scenario: those asked for, else those it pins, else 1.
pub(crate) fn seeds(asked: &Seeds, scenario: &Scenario) -> Vec<u64> {
    match asked.given() {
        Some(range) => range.collect(),
        None if scenario.plan.seeds.is_empty() => vec![1],
        None => scenario.plan.seeds.clone(),
    }
}

/// Every run that was asked for, with the file of its scenario.
fn work(scenarios: &[Scenario], asked: &Seeds, settings: &Settings) -> Vec<(PathBuf, Work)> {
    let mut work = Vec::new();
    for bug in settings.bug_runs() {
        let options = settings.options(bug);
        for scenario in scenarios {
            for seed in seeds(asked, scenario) {
                let one = Work {
                    plan: Arc::clone(&scenario.plan),
                    seed,
                    options: options.clone(),
                };
                work.push((scenario.file.clone(), one));
            }
        }
    }
    work
}

/// Runs scenarios.
///
/// # Errors
/// Bad input, or a stdout that is gone.
pub(crate) fn execute(
    files: &[PathBuf],
    asked: &Seeds,
    settings: &Settings,
    out: &mut impl Write,
) -> Result<Exit, Failure> {
    execute_on(&scenarios(files)?, asked, settings, out)
}

/// Runs these scenarios.
///
/// # Errors
/// A stdout or a report directory that cannot be written.
pub(crate) fn execute_on(
    scenarios: &[Scenario],
    asked: &Seeds,
    settings: &Settings,
    out: &mut impl Write,
) -> Result<Exit, Failure> {
    let mut work = work(scenarios, asked, settings);
    if settings.backwards {
        work.reverse();
    }
    let (files, work): (Vec<PathBuf>, Vec<Work>) = work.into_iter().unzip();
    let mut report = Report::new(settings, work.len(), out)?;
    // One scenario cannot see everything.
    report.wide = scenarios.len() > 1;
    let mut files = files.iter();
    let mut failure = None;
    run_all(&work, settings.jobs, |run| {
        let file = files
            .next()
            .expect("one result for each piece of work, in order");
        let again = format!("{} --seed {}", file.display(), run.seed);
        match report.take(&run, &again) {
            Ok(_) => ControlFlow::Continue(()),
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

/// Prints results as they come, and sums them up.
pub(crate) struct Report<'r, W: Write> {
    settings: &'r Settings,
    out: &'r mut W,
    store: Store,
    table: Table,
    progress: Progress,
    jobs: u32,
    exit: Exit,
    found: Vec<&'static str>,
    with_bug: bool,
    /// Whether the runs together should have seen every window and mark.
    pub(crate) wide: bool,
}

impl<'r, W: Write> Report<'r, W> {
    /// For so many runs.
    ///
    /// # Errors
    /// A report directory that cannot be written.
    pub(crate) fn new(
        settings: &'r Settings,
        runs: usize,
        out: &'r mut W,
    ) -> Result<Report<'r, W>, Failure> {
        let store = Store::new(settings.report.clone())?;
        let jobs = u32::try_from(settings.jobs.min(runs).max(1)).unwrap_or(1);
        Ok(Report {
            settings,
            out,
            store,
            table: Table::default(),
            progress: Progress::new(runs, jobs, settings.log.is_some()),
            jobs,
            exit: Exit::Expected,
            found: Vec::new(),
            with_bug: false,
            wide: false,
        })
    }

    /// Takes the next result; `again` is what `replay` must be told to make the run again. Gives the file of the history
    /// if it was kept.
    ///
    /// # Errors
    /// A stdout or a report directory that cannot be written.
    pub(crate) fn take(&mut self, run: &Run, again: &str) -> Result<Option<PathBuf>, Failure> {
        let history = self.store.offer(run)?;
        if run.bug.is_some() {
            self.with_bug = true;
            if run.found_bug() {
                self.found.extend(run.bug);
            }
        } else {
            self.exit = self.exit.worse(Exit::of(run.verdict.kind));
        }
        self.table.add(run, self.jobs);
        match self.settings.format {
            Format::Json => json_run(self.out, run, history.as_deref())?,
            Format::Text if self.settings.details || run.verdict.kind != VerdictKind::Ok => {
                self.progress.aside(|| {
                    describe_run(self.out, run, again, history.as_deref(), self.settings)?;
                    // Shown now, and not in the middle of the next bar.
                    self.out.flush()
                })?;
            }
            Format::Text => {}
        }
        self.progress.advance();
        Ok(history)
    }

    /// Sums up.
    ///
    /// # Errors
    /// A stdout that is gone.
    pub(crate) fn finish(self) -> Result<Exit, Failure> {
        self.progress.clear();
        if self.settings.format == Format::Text {
            self.table.print(self.out, self.wide)?;
            writeln!(self.out, "histories: {}", self.settings.report.display())?;
        }
        if !self.with_bug {
            return Ok(self.exit);
        }
        // A name that selects several switches is found when each of them is.
        let all = self
            .settings
            .bugs
            .iter()
            .all(|bug| self.found.contains(&bug.slug()));
        if all && !self.found.is_empty() {
            return Ok(Exit::Expected);
        }
        if self.settings.format == Format::Text {
            let missed = self.settings.bugs.iter().map(|bug| bug.slug());
            let missed: Vec<&str> = missed.filter(|slug| !self.found.contains(slug)).collect();
            // The plan may have named it.
            let which = if missed.is_empty() {
                String::new()
            } else {
                format!(": {}", missed.join(", "))
            };
            writeln!(self.out, "planted, and not found by any run{which}")?;
        }
        Ok(Exit::Violation)
    }
}

/// Describes a run and how to see it again.
fn describe_run(
    out: &mut impl Write,
    run: &Run,
    again: &str,
    history: Option<&Path>,
    settings: &Settings,
) -> io::Result<()> {
    writeln!(
        out,
        "{} seed {}: {}",
        run.scenario,
        run.seed,
        describe(&run.verdict)
    )?;
    explain(out, &run.verdict)?;
    if settings.details {
        let seconds = run.virtual_time.as_secs_f64();
        writeln!(
            out,
            "    trace hash {}, {} calls, {seconds:.3} s of virtual time",
            hash(run.trace_hash),
            run.ops
        )?;
    }
    let bug = run
        .bug
        .map(|slug| format!(" --bug {slug}"))
        .unwrap_or_default();
    let general = if settings.general { " --general" } else { "" };
    writeln!(
        out,
        "    again: cargo run -- replay {again}{bug}{general} --verbose"
    )?;
    if let Some(history) = history {
        writeln!(out, "    history: {}", history.display())?;
    }
    Ok(())
}
