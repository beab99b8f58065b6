//! One file for each command, and what they share: how a command ends.

pub(crate) mod bugs;
pub(crate) mod check;
pub(crate) mod fuzz;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod twice;

use gatehouse_judge::history_file::HistoryError;
use gatehouse_judge::verdict::VerdictKind;
use gatehouse_sim::scenarios::ScenarioError;
use std::io;

/// How a command ended; the number is the exit code, which scripts depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Exit {
    /// As expected; with a planted bug: found.
    #[default]
    Expected = 0,
    /// A safety violation; with a planted bug: not found.
    Violation = 1,
    /// Bad input, or an output that is gone.
    Usage = 2,
    /// No progress.
    Stuck = 3,
    /// The same run came out differently.
    Nondeterminism = 4,
    /// The judge cannot say.
    Undecided = 5,
}

impl Exit {
    /// The exit code that a verdict asks for.
    pub(crate) fn of(kind: VerdictKind) -> Exit {
        match kind {
            VerdictKind::Ok => Exit::Expected,
            VerdictKind::Violation => Exit::Violation,
            VerdictKind::Stuck => Exit::Stuck,
            VerdictKind::Nondeterminism => Exit::Nondeterminism,
            VerdictKind::Undecided => Exit::Undecided,
        }
    }

    /// The graver of two: what makes all other results doubtful comes first, "cannot say" last.
    pub(crate) fn worse(self, other: Exit) -> Exit {
        let grave = |exit: Exit| match exit {
            Exit::Expected => 0,
            Exit::Undecided => 1,
            Exit::Stuck => 2,
            Exit::Violation => 3,
            Exit::Nondeterminism => 4,
            Exit::Usage => 5,
        };
        if grave(other) > grave(self) {
            other
        } else {
            self
        }
    }
}

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The arguments make no sense.
    #[error("{0}")]
    Usage(String),
    /// No scenario to run.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A history cannot be read or written.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The system refused something.
    #[error(transparent)]
    Io(#[from] io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_graver_verdict_decides() {
        let worst = |exits: &[Exit]| exits.iter().copied().fold(Exit::Expected, Exit::worse);
        assert_eq!(
            worst(&[Exit::Undecided, Exit::Violation, Exit::Stuck]),
            Exit::Violation
        );
        assert_eq!(
            worst(&[Exit::Violation, Exit::Nondeterminism]),
            Exit::Nondeterminism
        );
        assert_eq!(worst(&[Exit::Expected, Exit::Undecided]), Exit::Undecided);
        assert_eq!(worst(&[]), Exit::Expected);
    }
}
