//! Steps the model through the agreed log and compares, at every index, what the members decided, what state they
//! reported, and what the calls that were answered there were told.
//!
//! Each call is looked at where it stands, so one pass is enough: reads wait in an agenda for their index. After the
//! first wrong decision the pass ends, because the model and the cluster are in different states from there on.

use super::blame::{Accusation, Verdicted};
use super::bounds::Bounds;
use super::describe;
use super::findings::Findings;
use super::lifetimes;
use super::local;
use super::log::{Entry, Log};
use super::reach::Reach;
use super::run::{Call, Run};
use super::staleness::{self, Stale, Staleness};
use super::windows::Windows;
use crate::history::{History, Op, Outcome, TokenRules};
use crate::model::{Caller, Model, Refusal};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// An accepted auth change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) index: u64,
    pub(super) call: u64,
}

/// The pass over the log.
pub(super) struct Replay<'r, 'h> {
    pub(super) run: &'r Run<'h>,
    pub(super) log: &'r Log<'h>,
    pub(super) bounds: &'r Bounds,
    pub(super) findings: &'r mut Findings,
    pub(super) model: Model,
    /// Auth changes so far, by index.
    pub(super) changes: Vec<Change>,
    /// Last index after which auth was off.
    pub(super) last_off: u64,
    pub(super) reach: &'r Reach,
    pub(super) rules: TokenRules,
    /// Calls that were accepted on the strength of their token, and the indices where they were decided.
    pub(super) uses: Vec<(u64, u64)>,
    /// Local reads whose answer is not that of the index which their member named, with what is held against them if
    /// no other index explains them.
    suspects: BTreeMap<u64, Accusation>,
    /// Local reads that were allowed although the right to them, or the token, had been taken before they were sent.
    stale: Vec<Stale>,
}

/// Whether the pass can go on.
pub(super) type Step = Result<(), Diverged>;

/// The model and the cluster are in different states; the finding has been reported.
#[derive(Debug)]
pub(super) struct Diverged;

/// Replays the log as far as it is agreed; gives how long revocations took to reach every member.
pub(super) fn check(
    history: &History,
    run: &Run<'_>,
    log: &Log<'_>,
    bounds: &Bounds,
    findings: &mut Findings,
) -> Staleness {
    let agenda = Agenda::of(run, log, bounds);
    let mut windows = Windows::of(run, log, bounds, findings);
    let reach = Reach::of(history);
    let rules = history.header.tokens;
    let mut replay = Replay::new(run, log, bounds, findings, (&reach, rules));
    replay.suspect_backward(&agenda);
    let next = replay.walk(|replay, indices| {
        replay.look(&agenda, indices.clone());
        windows.look(replay, indices);
    });
    agenda.give_up(&mut replay, next);
    lifetimes::check(history, &mut replay);
    let staleness = staleness::measure(history, &mut replay);
    local::settle(history, &mut replay);
    staleness
}

/// What is to be looked at after which index.
#[derive(Default)]
struct Agenda {
    /// Calls that were answered from the view of an index, with that index, in its order.
    views: Vec<(u64, u64)>,
    /// Calls that should have seen at least this index, but did not.
    late: BTreeMap<u64, Vec<u64>>,
    /// Local reads that were answered from an older index than what others had been told before they were sent.
    old: BTreeMap<u64, Vec<u64>>,
}

impl Agenda {
    fn of(run: &Run<'_>, log: &Log<'_>, bounds: &Bounds) -> Agenda {
        let mut agenda = Agenda::default();
        for call in run.calls.values() {
            if let Some(index) = view(call, log) {
                agenda.views.push((index, call.number));
                let low = bounds.window(call.number).low;
                if call.is_serializable() && call.is_ok() && index < low {
                    agenda.old.entry(low).or_default().push(call.number);
                }
            }
        }
        agenda.views.sort_unstable();
        for call in bounds.late_reads.keys() {
            let low = bounds.window(*call).low;
            agenda.late.entry(low).or_default().push(*call);
        }
        agenda
    }

    /// Names the late reads that the pass does not reach.
    fn give_up(&self, replay: &mut Replay<'_, '_>, from: u64) {
        for calls in self.late.range(from..).map(|(_, calls)| calls) {
            for call in calls {
                replay.late(replay.run.call(*call), None);
            }
        }
    }
}

/// The index from whose view a call was answered, if the state there says what the answer must be.
pub(super) fn view(call: &Call<'_>, log: &Log<'_>) -> Option<u64> {
    if log.decisive(call.number).is_some() || matches!(call.op, Op::Login { .. }) {
        return None;
    }
    let decided_there = match call.answer()?.1 {
        Outcome::Ok(_) => call.is_read(),
        Outcome::Refused { message, .. } => !matches!(
            Refusal::from_message(message),
            None | Some(Refusal::InvalidToken | Refusal::OldRevision)
        ),
        Outcome::Unknown { .. } => false,
    };
    decided_there.then_some(call.served?.index)
}

impl<'r, 'h> Replay<'r, 'h> {
    /// A pass that has not begun.
    pub(super) fn new(
        run: &'r Run<'h>,
        log: &'r Log<'h>,
        bounds: &'r Bounds,
        findings: &'r mut Findings,
        (reach, rules): (&'r Reach, TokenRules),
    ) -> Self {
        Replay {
            run,
            log,
            bounds,
            findings,
            model: Model::with_rules(rules),
            changes: Vec::new(),
            last_off: log.base,
            reach,
            rules,
            uses: Vec::new(),
            suspects: BTreeMap::new(),
            stale: Vec::new(),
        }
    }

    /// Steps through the log, and shows each state to `look` with the indices whose state it is. Gives the first index
    /// that was not reached.
    pub(super) fn walk(&mut self, mut look: impl FnMut(&mut Self, RangeInclusive<u64>)) -> u64 {
        let (base, end) = (self.log.base, self.log.end);
        // States before the log's first entry are the empty one, whatever index a call names.
        look(self, 0..=base);
        for index in base.saturating_add(1)..=end {
            let Some(entry) = self.log.entry(index) else {
                return index;
            };
            if self.step(entry).is_err() {
                return index;
            }
            look(self, index..=index);
        }
        end.saturating_add(1)
    }

    /// Local reads that need another explanation than the index which their member named.
    pub(super) fn take_suspects(&mut self) -> BTreeMap<u64, Accusation> {
        std::mem::take(&mut self.suspects)
    }

    /// Stale local reads.
    pub(super) fn take_stale(&mut self) -> Vec<Stale> {
        std::mem::take(&mut self.stale)
    }
}

impl Replay<'_, '_> {
    fn step(&mut self, entry: &Entry<'_>) -> Step {
        let index = entry.applied.index;
        let generation = self.model.accounts().generation();
        if entry.call.is_none() {
            self.check_unsigned(entry)?;
            self.own(entry)?;
        }
        if let Some(number) = entry.call {
            let call = self.run.call(number);
            match call.op {
                Op::Login { user, password } => {
                    self.check_unsigned(entry)?;
                    self.login(entry, call, user, password)?;
                }
                _ => self.request(entry, call)?,
            }
            if self.model.accounts().generation() != generation {
                self.changes.push(Change {
                    index,
                    call: number,
                });
                self.check_administrable(entry, call)?;
            }
        }
        if !self.model.accounts().is_enabled() {
            self.last_off = index;
        }
        self.compare_state(entry)
    }

    /// The cluster's own entries and logins act for nobody (P8).
    fn check_unsigned(&mut self, entry: &Entry<'_>) -> Step {
        let user = &entry.applied.user;
        if user.is_empty() {
            return Ok(());
        }
        let index = entry.applied.index;
        let sentence =
            format!("the entry at index {index} names {user}, but no token came with it");
        let calls = entry.call.into_iter().collect();
        self.findings
            .violation(entry.seen.event, "P8", &sentence, calls);
        Err(Diverged)
    }

    /// Decides an entry that is no login, and compares the decision and the client's answer.
    fn request(&mut self, entry: &Entry<'_>, call: &Call<'_>) -> Step {
        let index = entry.applied.index;
        let caller = self.identify(entry, call)?;
        let (stamped, now) = (
            entry.applied.header_auth_revision,
            self.model.accounts().revision(),
        );
        if stamped > now {
            let sentence = format!(
                "{} was stamped with auth revision {stamped}, but at index {index} the auth revision is {now}",
                describe::call(call)
            );
            self.findings
                .violation(entry.seen.event, "P8", &sentence, vec![call.number]);
            return Err(Diverged);
        }
        let expected = self.model.apply(index, caller, call.op);
        let reported = match reported(&entry.applied.decision) {
            Some(reported) => reported,
            None => return Err(self.strange(entry, call)),
        };
        let decision = Verdicted {
            index,
            from_view: false,
            expected: expected.as_ref().map(|_| ()).map_err(|refusal| *refusal),
            reported,
        };
        if decision.expected != reported {
            let accusation = self.blame(call, entry.seen, decision);
            self.report(accusation);
            return Err(Diverged);
        }
        self.note_use(call, index, reported);
        // An entry that was applied once too often answers nobody.
        let decisive = self.log.decisive(call.number);
        if decisive.is_some_and(|decisive| decisive.applied.index == index)
            && let Some(accusation) = self.compare_answer(call, index, &expected)
        {
            self.report(accusation);
        }
        Ok(())
    }

    /// Takes note of an accepted call that needed its token.
    fn note_use(&mut self, call: &Call<'_>, index: u64, reported: Result<(), Refusal>) {
        // To see the flag nobody needs one, and the entry that switches it on is decided while auth is off.
        let needs_token = !matches!(call.op, Op::AuthStatus {} | Op::AuthEnable {});
        if reported.is_ok()
            && needs_token
            && call.token.is_some()
            && self.model.accounts().is_enabled()
        {
            self.uses.push((call.number, index));
        }
    }

    /// While auth is on, somebody can administer. The rules see to it; this is where they are held to it.
    fn check_administrable(&mut self, entry: &Entry<'_>, call: &Call<'_>) -> Step {
        if self.model.accounts().is_administrable() {
            return Ok(());
        }
        let sentence = format!(
            "after {} at index {}, auth was on and nobody could administer: there was no user root with the role root",
            describe::call(call),
            entry.applied.index
        );
        self.findings
            .violation(entry.seen.event, "P16", &sentence, vec![call.number]);
        Err(Diverged)
    }

    /// Who asks: the entry must name the user of the token that was presented, and nobody else (P8).
    fn identify(&mut self, entry: &Entry<'_>, call: &Call<'_>) -> Result<Caller, Diverged> {
        let named = entry.applied.user.as_str();
        let wrong = match call.token {
            None if named.is_empty() => return Ok(Caller::Anonymous),
            None => format!("names {named}, but no token was presented"),
            Some(login) => {
                let Op::Login { user, .. } = self.run.call(login).op else {
                    return Ok(Caller::Anonymous); // Cannot be: `Run::read` has seen to it.
                };
                let issued = self.model.token(login).map_or(0, |token| token.index);
                if named == user {
                    return Ok(Caller::Bearer { login });
                }
                // A token is ignored where auth is off, and the member may have been there still.
                if named.is_empty() && self.last_off >= issued {
                    return Ok(Caller::Anonymous);
                }
                let named = if named.is_empty() { "nobody" } else { named };
                format!("names {named}, but the token of login {login} is {user}'s")
            }
        };
        let index = entry.applied.index;
        let sentence = format!(
            "the entry of {} at index {index} {wrong}",
            describe::call(call)
        );
        self.findings
            .violation(entry.seen.event, "P8", &sentence, vec![call.number]);
        Err(Diverged)
    }

    /// A decision that the rules do not know, or that this kind of entry cannot have.
    pub(super) fn strange(&mut self, entry: &Entry<'_>, call: &Call<'_>) -> Diverged {
        let decision = entry.applied.decision.escape_debug();
        let sentence = format!(
            "{} was decided as `{decision}` at index {}, which the model does not know",
            describe::call(call),
            entry.applied.index
        );
        self.findings
            .doubt(entry.seen.event, sentence, vec![call.number]);
        Diverged
    }

    /// Compares what every member reported of its state after the entry.
    fn compare_state(&mut self, entry: &Entry<'_>) -> Step {
        let applied = entry.applied;
        let accounts = self.model.accounts();
        if accounts.revision() == applied.auth_revision
            && accounts.is_enabled() == applied.auth_enabled
            && self.model.kv_revision() == applied.kv_revision
        {
            return Ok(());
        }
        let flag = |on: bool| if on { "on" } else { "off" }.to_owned();
        let facts = [
            (
                "auth revision",
                accounts.revision().to_string(),
                applied.auth_revision.to_string(),
            ),
            (
                "auth",
                flag(accounts.is_enabled()),
                flag(applied.auth_enabled),
            ),
            (
                "key-value revision",
                self.model.kv_revision().to_string(),
                applied.kv_revision.to_string(),
            ),
        ];
        let wrong = facts.iter().find(|(_, right, said)| right != said);
        let Some((what, right, said)) = wrong else {
            return Ok(());
        };
        let index = applied.index;
        let call = entry.call.map(|call| self.run.call(call));
        let after = call.map_or_else(
            || "an entry of the cluster's own".to_owned(),
            describe::call,
        );
        let sentence = format!(
            "after {after} at index {index}, {what} was {said} and should have been {right}"
        );
        // Granting what a name has brought with it changes nothing.
        let property = match call.map(|call| call.op) {
            Some(Op::GrantRole { user, role }) if self.had_lost(user, role, index) => "P15",
            _ => "P1",
        };
        let calls = entry.call.into_iter().collect();
        self.findings
            .violation(entry.seen.event, property, &sentence, calls);
        Err(Diverged)
    }

    fn had_lost(&self, user: &str, role: &str, index: u64) -> bool {
        self.lost(user, role, index.saturating_sub(1)).is_some()
    }

    /// Looks at the calls that stand just after the given indices.
    fn look(&mut self, agenda: &Agenda, indices: RangeInclusive<u64>) {
        let views = &agenda.views;
        let first = views.partition_point(|(index, _)| index < indices.start());
        for (index, call) in &views[first..] {
            if index > indices.end() {
                break;
            }
            self.view(*index, self.run.call(*call));
        }
        for calls in agenda.late.range(indices.clone()).map(|(_, calls)| calls) {
            for call in calls {
                let call = self.run.call(*call);
                let here = self.model.decide(bearer(call), call.op);
                self.late(call, Some(here));
            }
        }
        for calls in agenda.old.range(indices).map(|(_, calls)| calls) {
            for call in calls {
                self.note_stale(self.run.call(*call));
            }
        }
    }

    /// Takes note of a local read that was allowed, if the state here, which it should have seen, refuses it.
    fn note_stale(&mut self, call: &Call<'_>) {
        let low = self.bounds.window(call.number).low;
        let since = match self.model.decide(bearer(call), call.op) {
            Err(Refusal::InvalidToken) => {
                let token = call.token.and_then(|login| self.model.token(login));
                token.and_then(|token| token.end).map(|end| end.index)
            }
            Err(Refusal::PermissionDenied | Refusal::UserEmpty) => {
                let taken = self.turn(call, &self.user_of(call), low);
                taken.map(|taken| taken.index)
            }
            _ => None,
        };
        if let (Some(since), Some(served)) = (since, call.served)
            && served.index < since
        {
            self.stale.push(Stale {
                call: call.number,
                since,
            });
        }
    }

    /// A member never answers from an older state than one that it has answered from before, unless it restarts.
    fn suspect_backward(&mut self, agenda: &Agenda) {
        for (number, last) in &self.bounds.backward {
            let call = self.run.call(*number);
            let (Some(served), Some((end, _))) = (call.served, call.answer()) else {
                continue;
            };
            let sentence = format!(
                "{} was answered from index {}, although n{} had answered from index {last} before it was sent",
                describe::call(call),
                served.index,
                served.member
            );
            let accusation = Accusation {
                event: end.event,
                property: "P4",
                sentence,
                calls: vec![*number],
            };
            if agenda.views.binary_search(&(served.index, *number)).is_ok() {
                self.suspects.insert(*number, accusation);
            } else {
                self.report(accusation);
            }
        }
    }

    /// Judges an answer from the view of an index.
    fn view(&mut self, index: u64, call: &Call<'_>) {
        let expected = self.model.read(bearer(call), call.op);
        let Some((end, outcome)) = call.answer() else {
            return;
        };
        let reported = match outcome {
            Outcome::Ok(_) => Ok(()),
            Outcome::Refused { message, .. } => match Refusal::from_message(message) {
                Some(refusal) => Err(refusal),
                None => return,
            },
            Outcome::Unknown { .. } => return,
        };
        let decision = Verdicted {
            index,
            from_view: true,
            expected: expected.as_ref().map(|_| ()).map_err(|refusal| *refusal),
            reported,
        };
        let accusation = if decision.expected == reported {
            self.note_use(call, index, reported);
            self.compare_answer(call, index, &expected)
        } else {
            Some(self.blame(call, end, decision))
        };
        let Some(accusation) = accusation else { return };
        if call.is_serializable() {
            let accusation = self.local_accusation(call, accusation);
            self.suspects.entry(call.number).or_insert(accusation);
        } else {
            self.report(accusation);
        }
    }
}

/// Who asks, for a call that is decided in the very state that it is answered from.
pub(super) fn bearer(call: &Call<'_>) -> Caller {
    call.token
        .map_or(Caller::Anonymous, |login| Caller::Bearer { login })
}

/// A decision as a member reported it; `None` if the rules do not know it.
fn reported(decision: &str) -> Option<Result<(), Refusal>> {
    if decision == "ok" {
        return Some(Ok(()));
    }
    Refusal::from_message(decision).map(Err)
}
