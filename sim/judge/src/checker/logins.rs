//! Login entries: was the password right at some moment of the call (P5)? The entry itself says little: whether a token
//! may be used is judged when it is used (P6), with the epochs that are noted here.

use super::bounds::Window;
use super::describe;
use super::log::Entry;
use super::replay::{Diverged, Replay, Step};
use super::run::Call;
use crate::history::{Op, Outcome};
use crate::model::{Model, Refusal};

impl Replay<'_, '_> {
    /// Judges a login's entry.
    pub(super) fn login(
        &mut self,
        entry: &Entry<'_>,
        call: &Call<'_>,
        user: &str,
        password: &str,
    ) -> Step {
        let index = entry.applied.index;
        let window = self.bounds.window(call.number);
        let decision = entry.applied.decision.as_str();
        let enabled = self.model.accounts().is_enabled();
        let objection = match decision {
            "ok" if !enabled => Some(("P5", "gave a token while auth was off".to_owned())),
            "ok" if !self.model.has_room(user) => {
                let most = self.rules.total_max;
                Some((
                    "P1",
                    format!("gave a token, although there were {most} already"),
                ))
            }
            "ok" => self.issue(call, index, user, password, window),
            "again" => self.object_to_again(user, index, window),
            _ => match Refusal::from_message(decision) {
                Some(Refusal::NotEnabled) if !enabled => None,
                Some(Refusal::NotEnabled) => Some((
                    "P5",
                    "was refused as if auth were off, but it was on".to_owned(),
                )),
                Some(Refusal::TooManyTokens) if !self.model.has_room(user) => None,
                Some(Refusal::TooManyTokens) => Some((
                    "P1",
                    "was refused for too many tokens, although there was room".to_owned(),
                )),
                Some(Refusal::AuthFailed) => self.object_to_refusal(user, password, index, window),
                _ => return Err(self.strange(entry, call)),
            },
        };
        if let Some((property, what)) = objection {
            let sentence = format!("{} {what}, at index {index}", describe::call(call));
            self.findings
                .violation(entry.seen.event, property, &sentence, vec![call.number]);
            return Err(Diverged);
        }
        self.compare_login_answer(entry, call);
        Ok(())
    }

    fn issue(
        &mut self,
        call: &Call<'_>,
        index: u64,
        user: &str,
        password: &str,
        window: Window,
    ) -> Option<(&'static str, String)> {
        let was_right = self
            .model
            .issue(index, call.number, user, password, window.low);
        (!was_right).then(|| {
            let what = format!(
                "gave a token for password `{password}`, which was not {user}'s at any moment of the call"
            );
            ("P5", what)
        })
    }

    /// A login starts over because the user's epoch moved, not for anything else.
    fn object_to_again(
        &self,
        user: &str,
        index: u64,
        window: Window,
    ) -> Option<(&'static str, String)> {
        let moved = self
            .changes
            .iter()
            .rev()
            .take_while(|change| change.index > window.local_low && change.index <= index)
            .any(|change| moves_epoch(self.run.call(change.call).op, user));
        (!moved).then(|| {
            let what = format!("had to start over, although {user}'s epoch had not moved");
            ("P17", what)
        })
    }

    fn object_to_refusal(
        &self,
        user: &str,
        password: &str,
        index: u64,
        window: Window,
    ) -> Option<(&'static str, String)> {
        let was_wrong = is_wrong(&self.model, user, password)
            || self
                .changes
                .iter()
                .rev()
                .take_while(|change| change.index > window.low && change.index <= index)
                .any(|change| moves_epoch(self.run.call(change.call).op, user));
        (!was_wrong).then(|| {
            let what =
                format!("was refused, although `{password}` was {user}'s password all the time");
            ("P5", what)
        })
    }

    fn compare_login_answer(&mut self, entry: &Entry<'_>, call: &Call<'_>) {
        let Some((end, Outcome::Refused { message, .. })) = call.answer() else {
            return;
        };
        if !entry.is_ok() {
            return;
        }
        let sentence = format!(
            "{} was refused (`{}`), although it has a token since index {}",
            describe::call(call),
            message.escape_debug(),
            entry.applied.index
        );
        self.findings
            .violation(end.event, "P1", &sentence, vec![call.number]);
    }
}

/// Whether `password` is not the user's now, or there is no such user.
pub(super) fn is_wrong(model: &Model, user: &str, password: &str) -> bool {
    model
        .accounts()
        .user(user)
        .is_none_or(|user| user.password != password)
}

/// Whether an accepted auth change moves the user's epoch.
pub(super) fn moves_epoch(change: &Op, user: &str) -> bool {
    match change {
        Op::AuthDisable {} => true,
        Op::UserAdd { user: other, .. }
        | Op::UserDelete { user: other }
        | Op::ChangePassword { user: other, .. } => other == user,
        _ => false,
    }
}
