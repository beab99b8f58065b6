//! The judge: says of a finished run whether every auth decision in it was right. It reads the history and nothing else,
//! and shares no code with the server.
//!
//! Stages, each in a file of its own: [`run`] makes calls of events and finds defects of the history itself; [`log`]
//! joins the members' records into one agreed log; [`bounds`] holds every call's place in that log against real time;
//! [`evidence`] asks that answers have a place at all; [`replay`] steps a model through the log and compares every
//! decision and every answer. What each finds goes to [`findings`], and the earliest in the history's own order wins.
//!
//! A history without members' records is judged by [`crate::search`] alone, which also comments on violations and doubts a
//! sample of what passes.

mod answers;
mod blame;
mod bounds;
pub(crate) mod describe;
mod evidence;
mod findings;
mod log;
mod logins;
mod probes;
mod replay;
mod run;
mod statistics;
mod windows;

#[cfg(test)]
mod tests;

pub use statistics::{Counts, count};

pub(crate) use answers::is_same;
pub(crate) use windows::tells_nothing;

use crate::history::History;
use crate::search;
use crate::verdict::Verdict;
use bounds::Bounds;
use findings::Findings;
use log::Log;
use run::Run;

/// Judges a run. The verdict is `Ok`, `Violation` or `Undecided`; the same history always gets the same one. It is
/// `Undecided` when the history contradicts itself or leaves out what the answer needs, and never `Ok` then.
pub fn judge(history: &History) -> Verdict {
    let run = match Run::read(history) {
        Ok(run) => run,
        Err(defect) => return findings::undecided(defect, Vec::new()),
    };
    if search::is_bare(history) {
        return search::judge_alone(history);
    }
    let mut findings = Findings::default();
    let log = Log::agree(history, &run, &mut findings);
    let bounds = Bounds::sweep(history, &run, &log, &mut findings);
    evidence::check(&run, &log, &mut findings);
    probes::check(history, &log, &mut findings);
    replay::check(&run, &log, &bounds, &mut findings);
    search::second(history, findings.verdict())
}
