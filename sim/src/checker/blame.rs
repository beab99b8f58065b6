//! Which property a wrong decision breaks, and the sentence that tells it: what was done with which right or token, and
//! which call had given or taken that.

use super::describe;
use super::logins::moves_epoch;
use super::replay::{Change, Replay};
use super::run::{Call, Moment};
use crate::history::{Op, Outcome};
use crate::model::{Accounts, Refusal};

/// A decision of the cluster next to the right one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verdicted {
    /// The entry's index, or that of the view.
    pub(super) index: u64,
    /// Whether it was decided in a view instead of at an entry.
    pub(super) from_view: bool,
    pub(super) expected: Result<(), Refusal>,
    pub(super) reported: Result<(), Refusal>,
}

/// A sentence's second half, with the calls that it names.
type Because = (String, Vec<u64>);

impl Replay<'_, '_> {
    /// Reports a wrong decision, which the event at `shown` shows.
    pub(super) fn blame(&mut self, call: &Call<'_>, shown: Moment, decision: Verdicted) {
        let low = self.bounds.window(call.number).low;
        let Verdicted {
            index,
            from_view,
            expected,
            reported,
        } = decision;
        let user = self.user_of(call);
        let (property, (because, calls)) = match (reported, expected) {
            (Ok(()), Err(Refusal::InvalidToken)) => ("P6", self.dead_token(call, index)),
            (Ok(()), Err(Refusal::PermissionDenied | Refusal::UserEmpty)) => {
                let taken = self.turn(call, &user, index);
                // Switching auth on takes from a user only what was never granted.
                let is_revocation = taken.is_some_and(|taken| {
                    let op = self.run.call(taken.call).op;
                    taken.index <= low && (user.is_empty() || !matches!(op, Op::AuthEnable {}))
                });
                let property = match (call.is_serializable(), is_revocation) {
                    (true, _) => "P4",
                    (false, true) => "P2",
                    (false, false) if from_view || discloses(call.op) => "P12",
                    (false, false) => "P1",
                };
                (property, self.no_right(&user, taken))
            }
            (Err(Refusal::InvalidToken), Ok(())) => {
                let login = call.token.unwrap_or_default();
                (
                    "P7",
                    (format!("the token of login {login} was good"), vec![login]),
                )
            }
            (Err(Refusal::PermissionDenied | Refusal::UserEmpty), Ok(())) => {
                let given = self.turn(call, &user, index);
                let visible = given.is_some_and(|given| given.index <= low);
                let property = match (call.is_serializable(), visible) {
                    (true, _) => "P4",
                    (false, true) => "P3",
                    (false, false) => "P1",
                };
                (property, self.a_right(&user, given))
            }
            _ => {
                let property = if call.is_serializable() { "P4" } else { "P1" };
                (
                    property,
                    (format!("it should have been {}", words(expected)), vec![]),
                )
            }
        };
        let place = if from_view {
            "from the view of index"
        } else {
            "at index"
        };
        let was = words(reported);
        let sentence = format!(
            "{} was {was} {place} {index}, but {because}",
            describe::call(call)
        );
        let calls = std::iter::once(call.number).chain(calls).collect();
        self.findings
            .violation(shown.event, property, &sentence, calls);
    }

    /// Reports a read that stands before a call that it should have seen. `here` is the right decision where it should
    /// have stood at least, if the pass has come that far.
    pub(super) fn late(&mut self, call: &Call<'_>, here: Option<Result<(), Refusal>>) {
        let Some(late) = self.bounds.late_reads.get(&call.number) else {
            return;
        };
        let Some((end, outcome)) = call.answer() else {
            return;
        };
        let low = self.bounds.window(call.number).low;
        let allowed = matches!(outcome, Outcome::Ok(_));
        let denied = matches!(outcome, Outcome::Refused { message, .. }
            if Refusal::from_message(message) == Some(Refusal::PermissionDenied));
        let user = self.user_of(call);
        let (property, (because, calls)) = match here {
            Some(Err(Refusal::InvalidToken)) if allowed => ("P6", self.dead_token(call, low)),
            Some(Err(Refusal::PermissionDenied | Refusal::UserEmpty)) if allowed => {
                let taken = self.turn(call, &user, low);
                ("P2", self.no_right(&user, taken))
            }
            Some(Ok(())) if denied => {
                let given = self.turn(call, &user, low);
                ("P3", self.a_right(&user, given))
            }
            _ => {
                let unseen = describe::call_with_end(self.run.call(late.unseen));
                let because = format!("{unseen} stands at index {low}");
                ("LIN", (because, vec![late.unseen]))
            }
        };
        let was = if allowed { "answered" } else { "refused" };
        let sentence = format!(
            "{} was {was} from the view of index {}, but {because}",
            describe::call(call),
            late.index
        );
        let calls = std::iter::once(call.number).chain(calls).collect();
        self.findings
            .violation(end.event, property, &sentence, calls);
    }

    /// Why a token is not good at `index`.
    fn dead_token(&self, call: &Call<'_>, index: u64) -> Because {
        let Some(login) = call.token else {
            return ("no token was presented".to_owned(), Vec::new());
        };
        let (Some(token), Op::Login { user, password }) =
            (self.model.token(login), self.run.call(login).op)
        else {
            return (format!("login {login} had given no token"), vec![login]);
        };
        let since = self.bounds.window(login).low;
        let window = since..=token.index;
        let last = self.model.passwords().last_with(user, password, window);
        let ended = self.changes.iter().find(|change| {
            let after = last.is_some_and(|last| change.index > last) && change.index <= index;
            after && moves_epoch(self.run.call(change.call).op, user)
        });
        let presented = format!(
            "its token is that of login {login}, which presented {user}'s password `{password}`"
        );
        match ended {
            Some(ended) => {
                let by = describe::call_with_end(self.run.call(ended.call));
                let text = format!(
                    "{presented}, and {by} had ended that at index {}",
                    ended.index
                );
                (text, vec![login, ended.call])
            }
            None => (presented, vec![login]),
        }
    }

    fn no_right(&self, user: &str, taken: Option<Change>) -> Because {
        let who = if user.is_empty() {
            "an anonymous caller"
        } else {
            user
        };
        match taken {
            Some(taken) => {
                let by = describe::call_with_end(self.run.call(taken.call));
                let index = taken.index;
                let text =
                    format!("{who} had no right to that since {by} took effect at index {index}");
                (text, vec![taken.call])
            }
            None => (format!("{who} had no right to that"), Vec::new()),
        }
    }

    fn a_right(&self, user: &str, given: Option<Change>) -> Because {
        match given {
            Some(given) => {
                let by = describe::call_with_end(self.run.call(given.call));
                let index = given.index;
                let text = format!("{user} had the right since {by} took effect at index {index}");
                (text, vec![given.call])
            }
            None => (format!("{user} had the right to that"), Vec::new()),
        }
    }

    /// The auth change up to `index` that last turned the caller's right into what it is there.
    fn turn(&self, call: &Call<'_>, user: &str, index: u64) -> Option<Change> {
        let mut accounts = Accounts::default();
        let mut allowed = true;
        let mut turn = None;
        for change in self
            .changes
            .iter()
            .take_while(|change| change.index <= index)
        {
            accounts.perform(self.run.call(change.call).op);
            let now = !accounts.is_enabled() || accounts.may(user, call.op);
            if now != allowed {
                allowed = now;
                turn = Some(*change);
            }
        }
        turn
    }

    /// Whom the call's token names; empty for no token.
    fn user_of(&self, call: &Call<'_>) -> String {
        match call.token.map(|login| self.run.call(login).op) {
            Some(Op::Login { user, .. }) => user.to_string(),
            _ => String::new(),
        }
    }
}

fn words(decision: Result<(), Refusal>) -> String {
    match decision {
        Ok(()) => "allowed".to_owned(),
        Err(refusal) => format!("refused with `{}`", refusal.text()),
    }
}

/// Whether the answer to an accepted call tells what keys hold.
fn discloses(op: &Op) -> bool {
    match op {
        Op::Get { .. } => true,
        Op::Put { prev_kv, .. } | Op::Delete { prev_kv, .. } => *prev_kv,
        Op::Txn {
            compare,
            success,
            failure,
        } => !compare.is_empty() || success.iter().chain(failure).any(discloses),
        _ => false,
    }
}
