//! Members that jump: the state of a snapshot must be that of its place in the agreed log (P9), and whatever a member
//! derives from its stored state must be what a start would derive from it (P10).

use super::findings::Findings;
use super::log::Log;
use crate::history::{Applied, Event, History, Installed, What};

/// Holds every installed state against the log, and takes the members' own comparisons.
pub(super) fn check(history: &History, log: &Log<'_>, findings: &mut Findings) {
    for (event, Event { what, .. }) in history.events.iter().enumerate() {
        match what {
            What::Installed(installed) => installed_at(event, installed, log, findings),
            What::Compared {
                member,
                index,
                equal: false,
            } => {
                let sentence = format!(
                    "what n{member} derives from its stored state at index {index} is not what a start would derive from it"
                );
                findings.violation(event, "P10", &sentence, Vec::new());
            }
            _ => {}
        }
    }
}

fn installed_at(event: usize, installed: &Installed, log: &Log<'_>, findings: &mut Findings) {
    let Installed { member, index, .. } = installed;
    let Some(entry) = log.entry(*index) else {
        let doubt = format!(
            "n{member} installed a snapshot of index {index}, and no member's record of that index is in the history"
        );
        findings.doubt(event, doubt, Vec::new());
        return;
    };
    if let Some((name, one, other)) = difference(entry.applied, installed) {
        let first = entry.applied.member;
        let sentence = format!(
            "n{member} installed a snapshot of index {index} with {name} {other}; n{first} had {one} when it applied that \
             index"
        );
        findings.violation(event, "P9", &sentence, Vec::new());
    }
}

/// What an installed state differs in from the one that a member reached entry by entry.
fn difference(applied: &Applied, installed: &Installed) -> Option<(&'static str, String, String)> {
    let fields = [
        ("term", applied.term, installed.term),
        ("digest", applied.digest, installed.digest),
        (
            "auth revision",
            applied.auth_revision,
            installed.auth_revision,
        ),
    ];
    let numbers = fields.map(|(name, one, other)| (name, one.to_string(), other.to_string()));
    let rest = [
        (
            "auth flag",
            applied.auth_enabled.to_string(),
            installed.auth_enabled.to_string(),
        ),
        (
            "key-value revision",
            applied.kv_revision.to_string(),
            installed.kv_revision.to_string(),
        ),
    ];
    let mut all = numbers.into_iter().chain(rest);
    all.find(|(_, one, other)| one != other)
}
