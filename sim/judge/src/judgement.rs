//! The two ways of judging put together: by the members' records where there are any, and by what clients saw alone.

use crate::checker::{Case, Staleness};
use crate::history::History;
use crate::search;
use crate::verdict::Verdict;

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

/// Judges a run, and measures it. A history without members' records is judged by the [search](crate::search) alone, which
/// also comments on violations and doubts a sample of what passes.
pub fn examine(history: &History) -> Judgement {
    let (verdict, staleness) = match Case::open(history) {
        Err(unfit) => (unfit, Staleness::default()),
        Ok(_) if search::is_bare(history) => (search::judge_alone(history), Staleness::default()),
        Ok(case) => {
            let (verdict, staleness) = case.judge();
            (search::second(history, verdict), staleness)
        }
    };
    Judgement { verdict, staleness }
}

/// Whether the history is free of the defects that make it unfit for judging.
#[cfg(test)]
pub(crate) fn is_sound(history: &History) -> bool {
    Case::open(history).is_ok()
}
