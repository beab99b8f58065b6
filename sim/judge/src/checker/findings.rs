//! What was found, and which of it the verdict names: the finding that the history's own order puts first, so that a
//! defect is blamed and not what follows from it.

use crate::verdict::{Verdict, VerdictKind};

/// Findings so far: the first violation and the first reason not to decide.
#[derive(Debug, Default)]
pub(super) struct Findings {
    violation: Option<(usize, Verdict)>,
    doubt: Option<(usize, Verdict)>,
}

impl Findings {
    /// A property is broken; the event is the one that shows it.
    pub(super) fn violation(
        &mut self,
        event: usize,
        property: &str,
        sentence: &str,
        calls: Vec<u64>,
    ) {
        let sentence = format!("{sentence} [{property}]");
        let verdict = Verdict::violation(property, sentence, calls);
        keep_first(&mut self.violation, event, verdict);
    }

    /// Something that is needed is missing; the event is the one that needs it.
    pub(super) fn doubt(&mut self, event: usize, sentence: String, calls: Vec<u64>) {
        keep_first(&mut self.doubt, event, undecided(sentence, calls));
    }

    /// A violation stands whatever else could not be decided.
    pub(super) fn verdict(self) -> Verdict {
        self.violation
            .or(self.doubt)
            .map_or_else(Verdict::ok, |(_, verdict)| verdict)
    }
}

/// The verdict that the history does not tell.
pub(super) fn undecided(sentence: String, calls: Vec<u64>) -> Verdict {
    Verdict {
        kind: VerdictKind::Undecided,
        property: Some("history".to_owned()),
        sentence,
        calls,
        explanation: Vec::new(),
    }
}

fn keep_first(kept: &mut Option<(usize, Verdict)>, event: usize, verdict: Verdict) {
    if kept.as_ref().is_none_or(|(first, _)| event < *first) {
        *kept = Some((event, verdict));
    }
}
