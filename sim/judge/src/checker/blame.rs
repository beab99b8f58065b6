//! Which property a wrong decision breaks, and the sentence that tells it: what was done with which right or token, and
//! which call had given or taken that.

use super::describe;
use super::logins::moves_epoch;
use super::needs;
use super::replay::{Change, Replay};
use super::run::{Call, Moment};
use crate::history::{Op, Outcome};
use crate::model::{Accounts, Ending, Refusal};
use crate::words;

/// Grants that a sentence shows of a user; more would hide the point.
const GRANTS_SHOWN: usize = 4;

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

/// What is held against the cluster.
#[derive(Clone, Debug)]
pub(super) struct Accusation {
    /// The event that shows it.
    pub(super) event: usize,
    pub(super) property: &'static str,
    pub(super) sentence: String,
    pub(super) calls: Vec<u64>,
}

/// A sentence's second half, with the calls that it names.
type Because = (String, Vec<u64>);

impl Replay<'_, '_> {
    /// Reports what is held against the cluster.
    pub(super) fn report(&mut self, accusation: Accusation) {
        let Accusation {
            event,
            property,
            sentence,
            calls,
        } = accusation;
        self.findings.violation(event, property, &sentence, calls);
    }

    /// Names what is wrong with a decision, which the event at `shown` shows.
    pub(super) fn blame(&self, call: &Call<'_>, shown: Moment, decision: Verdicted) -> Accusation {
        let Verdicted {
            index,
            from_view,
            expected,
            reported,
        } = decision;
        let (property, (because, calls)) = match (reported, expected) {
            (Err(Refusal::OldRevision), _) => ("P18", self.a_strangers_change(call, index)),
            (Ok(()), Err(Refusal::InvalidToken)) => ("P6", self.dead_token(call, index)),
            (Ok(()), Err(Refusal::PermissionDenied | Refusal::UserEmpty)) => {
                self.wrongly_allowed(call, decision)
            }
            (Err(Refusal::InvalidToken), Ok(())) => {
                let login = call.token.unwrap_or_default();
                (
                    "P7",
                    (format!("the token of login {login} was good"), vec![login]),
                )
            }
            (Err(refusal @ (Refusal::PermissionDenied | Refusal::UserEmpty)), Ok(())) => {
                self.wrongly_refused(call, index, refusal)
            }
            _ => self.wrong_otherwise(call, decision),
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
        Accusation {
            event: shown.event,
            property,
            sentence,
            calls: std::iter::once(call.number).chain(calls).collect(),
        }
    }

    /// A call was allowed that its caller has no right to.
    fn wrongly_allowed(&self, call: &Call<'_>, decision: Verdicted) -> (&'static str, Because) {
        let Verdicted {
            index, from_view, ..
        } = decision;
        let low = self.bounds.window(call.number).low;
        let user = self.user_of(call);
        let accounts = self.model.accounts();
        if let Some(loss) = self.reused(&user, call.op, index) {
            let because = self.lost_with_name(&user, loss.deleted, loss.again);
            return ("P15", because);
        }
        let taken = self.turn(call, &user, index);
        // Switching auth on takes from a user only what was never granted.
        let was_granted = taken.is_some_and(|taken| {
            let op = self.run.call(taken.call).op;
            user.is_empty() || !matches!(op, Op::AuthEnable {})
        });
        let was_known = taken.is_none_or(|taken| self.had_applied(call, taken.index));
        if !was_granted && was_known && needs::lacks_at_an_edge(accounts, &user, call.op) {
            let grants = self.grants_in_words(&user);
            let text = format!("{user} may only {grants}, which does not cover that");
            return ("P14", (text, taken.map(|t| t.call).into_iter().collect()));
        }
        let is_before = taken.is_none_or(|taken| taken.index <= low);
        let lacking = needs::lacking(accounts, &user, call.op);
        let discloses = lacking.iter().any(|need| !need.to_write);
        let property = match (call.is_serializable(), was_granted && is_before) {
            (true, _) => "P4",
            (false, true) => "P2",
            (false, false) if is_admin(call.op) && !was_granted && is_before => "P16",
            (false, false) if discloses || (from_view && is_admin(call.op)) => "P12",
            (false, false) => "P1",
        };
        (property, self.no_right(&user, taken))
    }

    /// A call was refused that its caller has the right to.
    fn wrongly_refused(
        &self,
        call: &Call<'_>,
        index: u64,
        refusal: Refusal,
    ) -> (&'static str, Because) {
        let low = self.bounds.window(call.number).low;
        let user = self.user_of(call);
        let given = self.turn(call, &user, index);
        let visible = given.is_some_and(|given| given.index <= low);
        // A member that had not applied the grant yet need not have reckoned wrongly.
        let was_known = given.is_none_or(|given| self.had_applied(call, given.index));
        if refusal == Refusal::PermissionDenied
            && was_known
            && !self.model.accounts().is_admin(&user)
            && needs::is_covered_at_an_edge(self.model.accounts(), &user, call.op)
        {
            let grants = self.grants_in_words(&user);
            let text = format!("{user} may {grants}, which covers that");
            return ("P14", (text, given.map(|g| g.call).into_iter().collect()));
        }
        let property = match (call.is_serializable(), visible) {
            (true, _) => "P4",
            (false, true) => "P3",
            (false, false) if is_admin(call.op) && given.is_none() => "P16",
            (false, false) => "P1",
        };
        (property, self.a_right(&user, given))
    }

    /// A decision for or against what was asked, not for or against who asked.
    fn wrong_otherwise(&self, call: &Call<'_>, decision: Verdicted) -> (&'static str, Because) {
        let Verdicted {
            index,
            expected,
            reported,
            ..
        } = decision;
        let should = format!("it should have been {}", words(expected));
        if let Op::RevokeRole { user, role } = call.op
            && reported == Ok(())
            && let Some(loss) = self.lost(user, role, index)
        {
            return ("P15", self.lost_with_name(user, loss.deleted, loss.again));
        }
        // Two refusals that differ are about the order of the checks, not about root.
        let protects = match (expected, reported) {
            (Ok(()), Err(refusal)) | (Err(refusal), Ok(())) => matches!(
                refusal,
                Refusal::InvalidManagement | Refusal::NoRootUser | Refusal::NoRootRole
            ),
            _ => false,
        };
        if protects && keeps_root(call.op) {
            let text = format!("{should}: while auth is on, root must be there and be root");
            return ("P16", (text, Vec::new()));
        }
        let property = if call.is_serializable() { "P4" } else { "P1" };
        (property, (should, Vec::new()))
    }

    /// Whether the call's member had applied `index` before the call was sent.
    fn had_applied(&self, call: &Call<'_>, index: u64) -> bool {
        self.reach.of_member(call.member, call.invoked.event) >= index
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
        if let Some((why, call)) = self.ended_by_age(login) {
            let text = format!("its token is that of login {login}, which {why}");
            return (text, std::iter::once(login).chain(call).collect());
        }
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

    /// How a token has ended that its user's epoch did not end, and the call that ended it.
    fn ended_by_age(&self, login: u64) -> Option<(String, Option<u64>)> {
        let token = self.model.token(login)?;
        let end = token.end?;
        match end.why {
            Ending::Expired => {
                let last = token.refreshed_at;
                let text = format!(
                    "had expired at index {}, unused since index {last}",
                    end.index
                );
                Some((text, None))
            }
            Ending::MadeRoom(other) => {
                let later = describe::call(self.run.call(other));
                let text = format!("had made room for {later} at index {}", end.index);
                Some((text, Some(other)))
            }
            Ending::EpochMoved => None,
        }
    }

    fn lost_with_name(&self, user: &str, deleted: Change, again: Option<Change>) -> Because {
        let by = describe::call_with_end(self.run.call(deleted.call));
        let index = deleted.index;
        let mut text = format!("{user} had lost that when {by} took effect at index {index}");
        if let Some(again) = again {
            let back = describe::call(self.run.call(again.call));
            text = format!("{text}, and {back} brings nothing back");
        }
        let calls = [Some(deleted), again].into_iter().flatten();
        (text, calls.map(|change| change.call).collect())
    }

    fn grants_in_words(&self, user: &str) -> String {
        let grants = self.model.accounts().grants_of(user);
        let more = grants.len() > GRANTS_SHOWN;
        let shown = grants.into_iter().take(GRANTS_SHOWN).map(words::grant);
        let shown: Vec<String> = shown.chain(more.then(|| "…".to_owned())).collect();
        shown.join(", ")
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

    /// What came between a token's look-up and its call's entry: nothing that is a reason to refuse the call.
    fn a_strangers_change(&self, call: &Call<'_>, index: u64) -> Because {
        let user = self.user_of(call);
        let before = self
            .changes
            .iter()
            .rev()
            .find(|change| change.index <= index);
        let Some(last) = before else {
            return ("nothing had changed".to_owned(), Vec::new());
        };
        let by = describe::call(self.run.call(last.call));
        let text = format!(
            "{by} at index {} was the last change of auth, and none is a reason to refuse {user} as old",
            last.index
        );
        (text, vec![last.call])
    }

    fn a_right(&self, user: &str, given: Option<Change>) -> Because {
        match given {
            Some(given) => {
                let by = describe::call_with_end(self.run.call(given.call));
                let index = given.index;
                let text = format!("{user} had the right since {by} took effect at index {index}");
                (text, vec![given.call])
            }
            None if user.is_empty() => ("that needs no right".to_owned(), Vec::new()),
            None => (format!("{user} had the right to that"), Vec::new()),
        }
    }

    /// The auth change up to `index` that last turned the caller's right into what it is there.
    pub(super) fn turn(&self, call: &Call<'_>, user: &str, index: u64) -> Option<Change> {
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
    pub(super) fn user_of(&self, call: &Call<'_>) -> String {
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

/// Whether the call is about users, roles or the flag; to log in and to ask for the flag anybody may.
fn is_admin(op: &Op) -> bool {
    !matches!(
        op,
        Op::Put { .. }
            | Op::Get { .. }
            | Op::Delete { .. }
            | Op::Txn { .. }
            | Op::Login { .. }
            | Op::AuthStatus {}
    )
}

/// Whether the call would leave nobody who can administer, or switch auth on for nobody.
fn keeps_root(op: &Op) -> bool {
    match op {
        Op::UserDelete { user } => user == "root",
        Op::RevokeRole { user, role } => user == "root" && role == "root",
        Op::RoleDelete { role } => role == "root",
        Op::AuthEnable {} => true,
        _ => false,
    }
}
