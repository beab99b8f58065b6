//! What a client was told, against what the model says it should have been told.

use super::blame::Accusation;
use super::describe;
use super::replay::Replay;
use super::run::Call;
use crate::history::{Op, Outcome, Reply};
use crate::model::Refusal;
use crate::sameness::is_same;
use crate::words;

impl Replay<'_, '_> {
    /// Compares a call's answer. A lost answer may be anything.
    pub(super) fn compare_answer(
        &self,
        call: &Call<'_>,
        index: u64,
        expected: &Result<Reply, Refusal>,
    ) -> Option<Accusation> {
        let (end, outcome) = call.answer()?;
        let local = call.is_serializable();
        let (property, what) = match (outcome, expected) {
            (Outcome::Ok(told), Ok(right)) if is_same(call.op, told, right) => return None,
            (Outcome::Ok(told), Ok(right)) => {
                let what = format!(
                    "was answered with {}; at index {index} that is {}",
                    words::reply(told),
                    words::reply(right)
                );
                match (local, self.shows_lost_role(call.op, told, index)) {
                    (_, true) => ("P15", what),
                    (true, false) => ("P4", what),
                    (false, false) => ("LIN", what),
                }
            }
            (Outcome::Ok(_), Err(refusal)) => {
                let why = refusal.text();
                (
                    "P1",
                    format!("was told that it is done, but was refused at index {index} (`{why}`)"),
                )
            }
            (Outcome::Refused { message, .. }, Ok(_)) => {
                let why = message.escape_debug();
                (
                    "P1",
                    format!("was refused (`{why}`), but took effect at index {index}"),
                )
            }
            (Outcome::Refused { message, .. }, Err(refusal)) => {
                if Refusal::from_message(message) == Some(*refusal) {
                    return None;
                }
                let (told, why) = (message.escape_debug(), refusal.text());
                (
                    "P1",
                    format!("was refused at index {index} with `{why}`, but was told `{told}`"),
                )
            }
            (Outcome::Unknown { .. }, _) => return None,
        };
        let sentence = format!("{} {what}", describe::call(call));
        Some(Accusation {
            event: end.event,
            property,
            sentence,
            calls: vec![call.number],
        })
    }

    /// Whether an answer lists a role that its user lost because one of the two names was deleted.
    fn shows_lost_role(&self, op: &Op, told: &Reply, index: u64) -> bool {
        let Op::UserGet { user } = op else {
            return false;
        };
        let right = self.model.accounts().roles_of(user);
        let mut surplus = told.names.iter().filter(|role| !right.contains(role));
        surplus.any(|role| self.lost(user, role, index).is_some())
    }
}

/// Whether an answer is the one that the model gives, or the same refusal. A lost answer is anything.
pub(super) fn fits(call: &Call<'_>, expected: &Result<Reply, Refusal>) -> bool {
    match (call.answer().map(|(_, outcome)| outcome), expected) {
        (Some(Outcome::Ok(told)), Ok(right)) => is_same(call.op, told, right),
        (Some(Outcome::Refused { message, .. }), Err(refusal)) => {
            Refusal::from_message(message) == Some(*refusal)
        }
        (Some(_), _) => false,
        (None, _) => true,
    }
}
