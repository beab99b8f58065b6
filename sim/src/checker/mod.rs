//! The judge: says of a finished run whether every auth decision in it was right. It reads the history and nothing else,
//! and shares no code with the server.
//!
//! Stages, each in a file of its own: [`run`] makes calls of events and finds defects of the history itself; [`log`]
//! joins the members' records into one agreed log; [`bounds`] holds every call's place in that log against real time;
//! [`evidence`] asks that answers have a place at all; [`replay`] steps a model through the log and compares every
//! decision and every answer. What follows needs the whole pass: [`lifetimes`] holds the tokens' ages against virtual
//! time, [`staleness`] measures how long revocations took, [`local`] looks for another index behind local reads that do
//! not fit. [`blame`] names the property, with [`needs`] (P14) and [`names`] (P15). What each finds goes to
//! [`findings`], and the earliest in the history's own order wins.
//!
//! A history without members' records is judged by [`crate::search`] alone, which also comments on violations and doubts a
//! sample of what passes.

mod answers;
mod blame;
mod bounds;
mod calm;
pub(crate) mod describe;
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

pub(crate) use answers::is_same;
pub(crate) use windows::tells_nothing;

use crate::history::History;
use crate::search;
use crate::verdict::{Verdict, VerdictKind};
use bounds::Bounds;
use findings::Findings;
use log::Log;
use run::Run;

/// What the judge says of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// Whether anything was wrong.
    pub verdict: Verdict,
    /// How long revocations took to reach every member.
    pub staleness: Staleness,
}

/// Judges a run. The verdict is `Ok`, `Violation` or `Undecided`; the same history always gets the same one. It is
/// `Undecided` when the history contradicts itself or leaves out what the answer needs, and never `Ok` then.
pub fn judge(history: &History) -> Verdict {
    examine(history).verdict
}

/// Judges a run, and measures it.
pub fn examine(history: &History) -> Judgement {
    let run = match Run::read(history) {
        Ok(run) => run,
        Err(defect) => {
            return Judgement {
                verdict: findings::undecided(defect, Vec::new()),
                staleness: Staleness::default(),
            };
        }
    };
    if search::is_bare(history) {
        return Judgement {
            verdict: search::judge_alone(history),
            staleness: Staleness::default(),
        };
    }
    let mut findings = Findings::default();
    let log = Log::agree(history, &run, &mut findings);
    let bounds = Bounds::sweep(history, &run, &log, &mut findings);
    evidence::check(&run, &log, &mut findings);
    probes::check(history, &log, &mut findings);
    snapshots::check(history, &log, &mut findings);
    let staleness = replay::check(history, &run, &log, &bounds, &mut findings);
    let mut verdict = findings.verdict();
    if verdict.kind == VerdictKind::Violation {
        let at = state_shown::around(history, &run, &log, &bounds, &verdict.calls);
        verdict.explanation.extend(at);
    }
    Judgement {
        verdict: search::second(history, verdict),
        staleness,
    }
}

/// Whether the history is free of the defects that make it unfit for judging.
#[cfg(test)]
pub(crate) fn is_sound(history: &History) -> bool {
    Run::read(history).is_ok()
}
