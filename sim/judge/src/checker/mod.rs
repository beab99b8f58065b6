//! Judges by what members recorded: whether every decision was right where it stands in their log.
//!
//! Stages, each in a file of its own: [`run`] makes calls of events and finds defects of the history itself; [`log`]
//! joins the members' records into one agreed log; [`bounds`] holds every call's place in that log against real time;
//! [`evidence`] asks that answers have a place at all; [`replay`] steps a model through the log and compares every
//! decision and every answer. What follows needs the whole pass: [`lifetimes`] holds the tokens' ages against virtual
//! time, [`staleness`] measures how long revocations took, [`local`] looks for another index behind local reads that do
//! not fit. [`blame`] names the property, with [`needs`] (P14) and [`names`] (P15). What each finds goes to
//! [`findings`], and the earliest in the history's own order wins.

mod answers;
mod blame;
mod bounds;
mod calm;
mod describe;
mod evidence;
mod findings;
mod lifetimes;
mod local;
mod log;
mod logins;
mod names;
mod needs;
mod probes;
mod reach;
mod replay;
mod run;
mod snapshots;
mod staleness;
mod state_shown;
mod statistics;
mod windows;

#[cfg(test)]
mod tests;

pub use staleness::Staleness;
pub use statistics::{Counts, count};

use crate::history::History;
use crate::verdict::{Verdict, VerdictKind};
use bounds::Bounds;
use findings::Findings;
use log::Log;
use run::Run;

/// A history whose calls are known, so that it can be judged.
pub(crate) struct Case<'h> {
    history: &'h History,
    run: Run<'h>,
}

impl<'h> Case<'h> {
    /// Makes calls of the history's events.
    ///
    /// # Errors
    /// The verdict on a history that contradicts itself or leaves out what the answer needs.
    pub(crate) fn open(history: &'h History) -> Result<Case<'h>, Verdict> {
        match Run::read(history) {
            Ok(run) => Ok(Case { history, run }),
            Err(defect) => Err(findings::undecided(defect, Vec::new())),
        }
    }

    /// Judges by what members recorded.
    pub(crate) fn judge(&self) -> (Verdict, Staleness) {
        let Case { history, run } = self;
        let mut findings = Findings::default();
        let log = Log::agree(history, run, &mut findings);
        let bounds = Bounds::sweep(history, run, &log, &mut findings);
        evidence::check(run, &log, &mut findings);
        probes::check(history, &log, &mut findings);
        snapshots::check(history, &log, &mut findings);
        let staleness = replay::check(history, run, &log, &bounds, &mut findings);
        let mut verdict = findings.verdict();
        if verdict.kind == VerdictKind::Violation {
            let at = state_shown::around(history, run, &log, &bounds, &verdict.calls);
            verdict.explanation.extend(at);
        }
        (verdict, staleness)
    }
}
