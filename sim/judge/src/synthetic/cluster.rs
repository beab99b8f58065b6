//! The make-believe cluster: one log, the state after its last entry, and how far each member has applied it.

use super::{MEMBERS, Record};
use crate::history::{Applied, Op, Reply, What};
use crate::model::{Caller, Model, Refusal};
use crate::random::Random;
use std::collections::VecDeque;

/// Most entries that a member lags behind.
const LAG_MAX: u64 = 40;

pub(super) struct Cluster {
    /// State after the last entry.
    pub(super) model: Model,
    /// The newest entries: those that some member may not have applied.
    log: VecDeque<Applied>,
    /// Index of the last entry.
    pub(super) index: u64,
    /// Last index that each member has applied.
    applied: Vec<u64>,
    /// The last request id of each member.
    request_ids: Vec<u64>,
    digest: u64,
}

impl Cluster {
    /// Three empty members, and the leader's empty entry.
    pub(super) fn start(record: &mut Record, rng: &mut Random) -> Cluster {
        let mut cluster = Cluster {
            model: Model::new(),
            log: VecDeque::new(),
            index: 0,
            applied: vec![0; usize::try_from(MEMBERS).expect("a few")],
            // As the server does it: from a nonce of the boot on.
            request_ids: (0..MEMBERS).map(|_| rng.draw() >> 1).collect(),
            digest: 0,
        };
        for member in 1..=MEMBERS {
            record.push(What::Started { member, index: 0 });
        }
        record.push(What::Role {
            member: 1,
            term: 1,
            leader: true,
        });
        cluster.append(0, "", "", 0, "ok");
        cluster
    }

    /// The members' states at the end.
    pub(super) fn stop(mut self, record: &mut Record) {
        record.push(What::Healed);
        for member in 1..=MEMBERS {
            self.catch_up(member, self.index, record);
            record.push(What::Probe {
                member,
                index: self.index,
                kv_hash: 1,
                auth_hash: 2,
                digest: self.digest,
            });
        }
    }

    /// A request id for a call that this member proposes.
    pub(super) fn propose(&mut self, member: u64, call: u64, record: &mut Record) -> u64 {
        let last = &mut self.request_ids[place(member)];
        *last += 1;
        let request_id = *last;
        record.push(What::Proposed {
            member,
            call,
            request_id,
        });
        request_id
    }

    /// Decides a proposal as the next entry of the log. The token was looked up under auth revision `stamp`.
    pub(super) fn commit(
        &mut self,
        request_id: u64,
        token: Option<u64>,
        stamp: u64,
        op: &Op,
    ) -> Result<Reply, Refusal> {
        let caller = token.map_or(Caller::Anonymous, |login| Caller::Bearer { login });
        let answer = self.model.apply(self.index + 1, caller, op);
        let decision = answer
            .as_ref()
            .map_or_else(|refusal| refusal.text(), |_| "ok");
        let issued = token.and_then(|login| self.model.token(login));
        let user = issued.map(|token| token.user.clone()).unwrap_or_default();
        let stamp = if token.is_some() { stamp } else { 0 };
        self.append(request_id, kind(op), &user, stamp, decision);
        answer
    }

    /// Makes the token of a login whose password was right in `epoch`; gives whether that epoch has lasted.
    pub(super) fn commit_login(
        &mut self,
        request_id: u64,
        call: u64,
        (user, password): (&str, &str),
        epoch: u64,
    ) -> bool {
        let accounts = self.model.accounts();
        let has_lasted = accounts.is_enabled() && accounts.epoch(user) == Some(epoch);
        if has_lasted {
            let index = self.index + 1;
            self.model.issue(index, call, user, password, index);
        }
        let decision = if has_lasted { "ok" } else { "again" };
        self.append(request_id, "login", "", 0, decision);
        has_lasted
    }

    fn append(&mut self, request_id: u64, kind: &str, user: &str, stamp: u64, decision: &str) {
        self.index += 1;
        self.digest = (self.digest ^ request_id ^ self.index).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let accounts = self.model.accounts();
        self.log.push_back(Applied {
            member: 0,
            index: self.index,
            term: 1,
            request_id,
            kind: kind.into(),
            user: user.into(),
            header_auth_revision: stamp,
            decision: decision.into(),
            auth_revision: accounts.revision(),
            auth_enabled: accounts.is_enabled(),
            kv_revision: self.model.kv_revision(),
            digest: self.digest,
            tokens: Vec::new(),
        });
    }

    /// Lets a member apply what it has not applied, up to `index`.
    pub(super) fn catch_up(&mut self, member: u64, index: u64, record: &mut Record) {
        let first = self.index + 1 - self.log.len() as u64;
        let applied = &mut self.applied[place(member)];
        while *applied < index {
            *applied += 1;
            let at = usize::try_from(*applied - first).expect("an index into a log in memory");
            record.push(What::Applied(Box::new(Applied {
                member,
                ..self.log[at].clone()
            })));
        }
    }

    /// Lets some member apply what it has not applied, and each that lags far behind.
    pub(super) fn drift(&mut self, record: &mut Record, rng: &mut Random) {
        if rng.chance(20) {
            self.catch_up(rng.between(1, MEMBERS), self.index, record);
        }
        for member in 1..=MEMBERS {
            let least = self.index.saturating_sub(LAG_MAX);
            self.catch_up(member, least, record);
        }
        let everywhere = self.applied.iter().min().copied().unwrap_or(0);
        while self
            .log
            .front()
            .is_some_and(|entry| entry.index <= everywhere)
        {
            self.log.pop_front();
        }
    }
}

/// A member's place in lists of members.
fn place(member: u64) -> usize {
    usize::try_from(member - 1).expect("members are few")
}

/// The operation's tag, as it stands in the file format.
fn kind(op: &Op) -> &'static str {
    match op {
        Op::Put { .. } => "put",
        Op::Delete { .. } => "delete",
        Op::Txn { .. } => "txn",
        Op::AuthEnable {} => "auth-enable",
        Op::UserAdd { .. } => "user-add",
        Op::UserDelete { .. } => "user-delete",
        Op::ChangePassword { .. } => "change-password",
        Op::GrantRole { .. } => "grant-role",
        Op::RevokeRole { .. } => "revoke-role",
        Op::RoleAdd { .. } => "role-add",
        Op::RoleDelete { .. } => "role-delete",
        Op::GrantPermission { .. } => "grant-permission",
        Op::RevokePermission { .. } => "revoke-permission",
        _ => unreachable!("the workload proposes nothing else"),
    }
}
