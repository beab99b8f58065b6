//! What the cluster does with the calls, as the rules say: members lag and restart, tokens are looked up and passwords
//! compared where the member stands, entries come into the log late.

use super::clients::{Client, Stage};
use super::{RULES, Run};
use crate::checker::tests::script::*;
use crate::history::{Op, Reply, What};
use crate::model::Refusal;

impl Run {
    pub(super) fn lag(&mut self) {
        let member = 1 + self.random.below(MEMBERS);
        if self.script.lagging.remove(&member) {
            self.script.catch_up(member);
        } else {
            self.script.lagging.insert(member);
        }
    }

    /// The cluster reports a use of a token, or expires it: too late for its last use, or because it is time.
    pub(super) fn own_entry(&mut self) {
        let back = self.random.below((self.tokens.len() as u64).min(6));
        let login = self.tokens[self.tokens.len() - 1 - usize::try_from(back).unwrap()];
        let count = self.script.model().token(login).unwrap().refreshes;
        let now_ms = self.script.now_ms();
        let reported_ms = self.reported_ms.get(&login).copied();
        match self.random.below(10) {
            0..3 if count > 0 => self.script.expire(login, count - 1),
            3..9 if reported_ms.is_some_and(|at| now_ms > at + RULES.ttl_ms * 5 / 4) => {
                self.script.expire(login, count)
            }
            _ => {
                // Who applies it at once can tell the time from there.
                if self.script.lagging.len() < usize::try_from(MEMBERS).unwrap() {
                    self.reported_ms.insert(login, now_ms + 10);
                } else {
                    self.reported_ms.remove(&login);
                }
                self.script.refresh(&[login])
            }
        };
    }

    pub(super) fn restart(&mut self) {
        let member = 1 + self.random.below(MEMBERS);
        for number in 0..self.clients.len() {
            if self.clients[number].member == member {
                self.lose(number);
            }
        }
        let applied = self.script.applied(member);
        let index = applied - self.random.below(applied.min(3));
        self.script.restart(member, index);
    }

    pub(super) fn begin(&mut self, number: usize, call: u64) -> Stage {
        let Client {
            token,
            member,
            ref op,
            ..
        } = self.clients[number];
        let op = op.clone();
        match &op {
            Op::Login { user, password } => self.compare(call, member, user, password),
            Op::Get {
                serializable: true, ..
            } => Stage::Barrier { call, index: 0 },
            Op::Get { .. }
            | Op::AuthStatus {}
            | Op::UserGet { .. }
            | Op::UserList {}
            | Op::RoleGet { .. }
            | Op::RoleList {} => {
                let index = self.script.index();
                Stage::Barrier { call, index }
            }
            _ => self.resolve(call, member, token),
        }
    }

    /// Compares a login's password behind a barrier.
    fn compare(&mut self, call: u64, member: u64, user: &str, password: &str) -> Stage {
        let index = self.script.applied(member);
        if index < self.script.index() && !self.skips_barrier {
            return Stage::Sent(call); // The member waits.
        }
        let state = &self.script.states[usize::try_from(index).unwrap()];
        let accounts = state.accounts().clone();
        let refusal = match accounts.user(user) {
            _ if !accounts.is_enabled() => Refusal::NotEnabled,
            Some(found) if found.password == password => {
                let request = self.script.propose(call);
                let epoch = accounts.epoch(user).unwrap();
                return Stage::Compared {
                    call,
                    request,
                    epoch,
                };
            }
            _ => Refusal::AuthFailed,
        };
        self.script.push(What::Served {
            member,
            call,
            index,
        });
        self.script.end(call, Err(refusal));
        Stage::Idle
    }

    /// Looks a write's token up in the member's own state.
    fn resolve(&mut self, call: u64, member: u64, token: Option<u64>) -> Stage {
        let applied = self.script.applied(member);
        if !self.knows(token, applied) {
            return Stage::Sent(call);
        }
        let state = &self.script.states[usize::try_from(applied).unwrap()];
        let named = state.accounts().is_enabled();
        let revision = state.accounts().revision();
        if named && token.is_some_and(|token| !state.is_alive(token)) {
            self.script.end(call, Err(Refusal::InvalidToken));
            return Stage::Idle;
        }
        Stage::Resolved {
            call,
            revision,
            named,
        }
    }

    /// Whether a member at `applied` has the token's login.
    pub(super) fn knows(&self, token: Option<u64>, applied: u64) -> bool {
        let issued = token.and_then(|token| self.script.model().token(token));
        issued.is_none_or(|issued| issued.index <= applied)
    }

    /// Commits what was proposed; `None` for a login that has to start over.
    pub(super) fn commit(&mut self, stage: Stage) -> Option<Answer> {
        match stage {
            Stage::Proposed {
                request,
                revision,
                named,
                ..
            } => Some(self.script.commit_from(request, revision, named)),
            Stage::Compared { request, epoch, .. } => {
                let user = self.script.subject(request);
                let accounts = self.script.model().accounts();
                if accounts.is_enabled() && accounts.epoch(&user) == Some(epoch) {
                    if !self.script.model().has_room(&user) {
                        let refusal = Err(Refusal::TooManyTokens);
                        return Some(self.script.commit_as(request, 0, refusal));
                    }
                    let reply = Reply::default();
                    return Some(self.script.commit_as(request, 0, Ok(reply)));
                }
                self.script.commit_again(request);
                None
            }
            _ => None,
        }
    }
}
