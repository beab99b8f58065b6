//! Reads a history event by event and notices its marks.

use super::Mark;
use crate::history::{Applied, Event, Op, Outcome, What};
use crate::model::Accounts;
use crate::text::Text;
use std::collections::{BTreeMap, BTreeSet};

/// Writes of one user that must be in flight for [`Mark::RevokeWithEightWritesInFlight`].
const WRITES_IN_FLIGHT: usize = 8;

/// One call.
struct Call<'h> {
    member: u64,
    op: &'h Op,
    /// The login whose token it presents, if any.
    token: Option<u64>,
    is_open: bool,
    /// Elections until it was sent.
    elections: u64,
    /// Members without power when it was sent.
    down: BTreeSet<u64>,
    /// Index of its token's login, if its member had not applied that when the call was sent.
    awaited: Option<u64>,
    /// Whether its user has been deleted since it was sent.
    is_orphan: bool,
}

impl Call<'_> {
    /// Whom its token names.
    fn bearer<'c>(&self, calls: &BTreeMap<u64, Call<'c>>) -> Option<&'c Text> {
        match calls.get(&self.token?)?.op {
            Op::Login { user, .. } => Some(user),
            _ => None,
        }
    }

    /// Whether it succeeds only if its token is good. AuthStatus answers everybody.
    fn needs_token(&self) -> bool {
        self.token.is_some() && !matches!(self.op, Op::Login { .. } | Op::AuthStatus {})
    }
}

/// What is known after some of the history.
#[derive(Default)]
pub(super) struct Watch<'h> {
    /// How many members there are.
    members: u64,
    counts: BTreeMap<Mark, u64>,
    calls: BTreeMap<u64, Call<'h>>,
    /// Calls by request id.
    requests: BTreeMap<u64, u64>,
    /// Indexes of logins' entries, by call.
    logins: BTreeMap<u64, u64>,
    /// Users of live tokens, by index.
    tokens: BTreeMap<u64, &'h Text>,
    accounts: Accounts,
    /// Highest index that any member has applied.
    newest: u64,
    /// What each member has applied.
    reached: BTreeMap<u64, u64>,
    /// When each member last applied an auth change, and its index.
    changed: BTreeMap<u64, (u64, u64)>,
    /// Members without power.
    down: BTreeSet<u64>,
    elections: u64,
}

impl<'h> Watch<'h> {
    /// Before the first event of a cluster of so many members.
    pub(super) fn new(members: u64) -> Watch<'h> {
        Watch {
            members,
            ..Watch::default()
        }
    }

    /// How often the mark was seen so far.
    pub(super) fn count(&self, mark: Mark) -> u64 {
        self.counts.get(&mark).copied().unwrap_or(0)
    }

    /// Takes the next event.
    pub(super) fn see(&mut self, event: &'h Event) {
        match &event.what {
            What::Invoke {
                call,
                member,
                token,
                op,
                ..
            } => self.invoke(*call, *member, *token, op),
            What::Return { call, outcome } => self.answered(*call, outcome),
            What::Proposed {
                call, request_id, ..
            } => {
                self.requests.insert(*request_id, *call);
            }
            What::Applied(applied) => self.applied(event.at_us, applied),
            What::Installed(installed) => {
                self.reached.insert(installed.member, installed.index);
                self.hit(Mark::SnapshotInstalled);
            }
            What::Started { member, index } => {
                self.down.remove(member);
                self.reached.insert(*member, *index);
            }
            What::Role { leader: true, .. } => self.elections += 1,
            What::Fault { what } => self.fault(what),
            _ => {}
        }
    }

    fn hit(&mut self, mark: Mark) {
        *self.counts.entry(mark).or_default() += 1;
    }

    fn invoke(&mut self, number: u64, member: u64, token: Option<u64>, op: &'h Op) {
        let index = token.and_then(|login| self.logins.get(&login).copied());
        let reached = self.reached.get(&member).copied().unwrap_or(0);
        let call = Call {
            member,
            op,
            token,
            is_open: true,
            elections: self.elections,
            down: self.down.clone(),
            awaited: index.filter(|index| *index > reached),
            is_orphan: false,
        };
        self.calls.insert(number, call);
    }

    fn answered(&mut self, number: u64, outcome: &Outcome) {
        let Some(call) = self.calls.get_mut(&number) else {
            return;
        };
        call.is_open = false;
        let call = &self.calls[&number];
        let marks = match outcome {
            Outcome::Ok(_) if matches!(call.op, Op::Login { .. }) => self.of_login(call),
            Outcome::Ok(_) if call.needs_token() && self.accounts.is_enabled() => {
                self.of_token(call)
            }
            Outcome::Ok(_) => [None; 2],
            Outcome::Refused { .. } => [None; 2],
            Outcome::Unknown { code, message } => {
                let reached = self.reached.get(&call.member).copied().unwrap_or(0);
                let still_behind = call.awaited.is_some_and(|index| index > reached);
                // The member's own word, and not that of a broken connection or of an impatient client.
                let said = &**code == "Unavailable" && message.starts_with("etcdserver: ");
                let timed_out = still_behind && said && call.needs_token();
                [timed_out.then_some(Mark::TokenWaitTimedOut), None]
            }
        };
        for mark in marks.into_iter().flatten() {
            self.hit(mark);
        }
    }

    fn of_login(&self, call: &Call<'_>) -> [Option<Mark>; 2] {
        let out = call.down.intersection(&self.down).count() as u64;
        let over_election = self.elections > call.elections;
        [
            over_election.then_some(Mark::LoginOverLeaderChange),
            (out > 0 && 2 * out < self.members).then_some(Mark::MinorityDownWithLogins),
        ]
    }

    fn of_token(&self, call: &Call<'_>) -> [Option<Mark>; 2] {
        let giver = call.token.and_then(|login| self.calls.get(&login));
        let moved = giver.is_some_and(|login| login.member != call.member);
        [
            moved.then_some(Mark::TokenUsedOnOtherMember),
            call.awaited.map(|_| Mark::TokenWaited),
        ]
    }

    fn fault(&mut self, what: &str) {
        if let Some(member) = what.strip_prefix("kill n").and_then(|n| n.parse().ok()) {
            self.down.insert(member);
        }
        // The words are those of `cluster.rs` and `recorder.rs`.
        for (words, mark) in [
            (" removed the log's entries ", Mark::ConflictingTailRemoved),
            (" failed inside a commit", Mark::PowerCutInCommit),
            (" stopped for its disk: ", Mark::StoppedForDisk),
        ] {
            if what.contains(words) {
                self.hit(mark);
            }
        }
    }

    fn applied(&mut self, at_us: u64, applied: &'h Applied) {
        let Applied { member, index, .. } = *applied;
        self.reached.insert(member, index);
        let call = self.requests.get(&applied.request_id).copied();
        let op = call
            .and_then(|call| self.calls.get(&call))
            .map(|call| call.op);
        let done = &*applied.decision == "ok";
        if done && op.is_some_and(changes_auth) {
            let last = self.changed.insert(member, (at_us, index));
            if last == Some((at_us, index.saturating_sub(1))) {
                self.hit(Mark::TwoAuthChangesAtOnce);
            }
        }
        // What an entry does is counted once, when the first member applies it.
        if index <= self.newest {
            return;
        }
        self.newest = index;
        let is_bearers = !applied.user.is_empty();
        let was_looked_up_before = applied.header_auth_revision < applied.auth_revision;
        let is_checked = self.accounts.is_enabled() && op.is_some_and(Op::is_data);
        if done && is_bearers && was_looked_up_before && is_checked {
            self.hit(Mark::AuthChangedInFlight);
        }
        for token in &applied.tokens {
            if &*applied.kind == "token-expire" && done {
                self.tokens.remove(&token.login_index);
            }
        }
        match (call, op) {
            (Some(_), Some(Op::Login { .. })) if &*applied.decision == "again" => {
                self.hit(Mark::LoginRepeated);
            }
            (Some(call), Some(Op::Login { user, .. })) if done => {
                self.logins.insert(call, index);
                self.tokens.insert(index, user);
            }
            (_, Some(op)) if done && changes_auth(op) => self.auth_change(op),
            _ => {}
        }
    }

    /// An auth change takes effect.
    fn auth_change(&mut self, op: &Op) {
        let before = self.accounts.clone();
        self.accounts.perform(op);
        match op {
            Op::AuthEnable {} if !before.is_enabled() && self.open().any(|call| reads(call.op)) => {
                self.hit(Mark::EnableDuringRead);
            }
            Op::AuthDisable {} => {
                if before.is_enabled() && !self.tokens.is_empty() {
                    self.hit(Mark::AuthOffWithLiveTokens);
                }
                self.tokens.clear();
            }
            Op::ChangePassword { user, .. } => self.tokens.retain(|_, owner| *owner != user),
            Op::UserDelete { user } => {
                self.tokens.retain(|_, owner| *owner != user);
                for call in self.admin_calls_of(user) {
                    if let Some(call) = self.calls.get_mut(&call) {
                        call.is_orphan = true;
                    }
                }
            }
            Op::UserAdd { user, .. } => {
                for call in self.admin_calls_of(user) {
                    if self.calls[&call].is_orphan {
                        self.hit(Mark::AdminRecreatedInFlight);
                    }
                }
            }
            _ => {}
        }
        if before.is_enabled() && self.accounts.is_enabled() && self.most_cut_short(&before) {
            self.hit(Mark::RevokeWithEightWritesInFlight);
        }
    }

    fn open(&self) -> impl Iterator<Item = &Call<'h>> {
        self.calls.values().filter(|call| call.is_open)
    }

    /// Open calls with which `user` wants to change auth.
    fn admin_calls_of(&self, user: &Text) -> Vec<u64> {
        let theirs = |call: &Call<'_>| {
            call.is_open && changes_auth(call.op) && call.bearer(&self.calls) == Some(user)
        };
        let calls = self.calls.iter();
        calls
            .filter(|(_, call)| theirs(call))
            .map(|(number, _)| *number)
            .collect()
    }

    /// Whether some user has [`WRITES_IN_FLIGHT`] open calls that it had the right to `before` and has no more.
    fn most_cut_short(&self, before: &Accounts) -> bool {
        let mut cut: BTreeMap<&Text, usize> = BTreeMap::new();
        for call in self.open().filter(|call| changes(call.op)) {
            if let Some(user) = call.bearer(&self.calls)
                && before.may(user, call.op)
                && !self.accounts.may(user, call.op)
            {
                *cut.entry(user).or_default() += 1;
            }
        }
        cut.values().any(|count| *count >= WRITES_IN_FLIGHT)
    }
}

/// Whether the call would change keys or auth.
fn changes(op: &Op) -> bool {
    match op {
        Op::Put { .. } | Op::Delete { .. } => true,
        Op::Txn {
            success, failure, ..
        } => success.iter().chain(failure).any(changes),
        op => changes_auth(op),
    }
}

/// Whether the call asks for something that not everybody may know.
fn reads(op: &Op) -> bool {
    !changes(op) && !matches!(op, Op::Login { .. } | Op::AuthStatus {})
}

/// Whether the call would change users, roles or the flag.
fn changes_auth(op: &Op) -> bool {
    match op {
        Op::AuthEnable {}
        | Op::AuthDisable {}
        | Op::UserAdd { .. }
        | Op::UserDelete { .. }
        | Op::ChangePassword { .. }
        | Op::GrantRole { .. }
        | Op::RevokeRole { .. }
        | Op::RoleAdd { .. }
        | Op::RoleDelete { .. }
        | Op::GrantPermission { .. }
        | Op::RevokePermission { .. } => true,
        Op::Login { .. }
        | Op::AuthStatus {}
        | Op::UserGet { .. }
        | Op::UserList {}
        | Op::RoleGet { .. }
        | Op::RoleList {}
        | Op::Put { .. }
        | Op::Get { .. }
        | Op::Delete { .. }
        | Op::Txn { .. } => false,
    }
}
