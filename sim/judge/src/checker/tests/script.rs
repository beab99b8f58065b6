//! Writes histories by hand: a make-believe cluster of three members that decides as the model does, unless the test
//! says otherwise.

use crate::history::{
    Applied, Event, FORMAT_VERSION, Grant, GrantKind, Header, History, Installed, Op, Outcome,
    Reply, TokenNote, TokenRules, What,
};
use crate::history_file::FORMAT;
use crate::model::{Caller, Model, Refusal};
use crate::words;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const MEMBERS: u64 = 3;

/// What the cluster says to a call.
pub(super) type Answer = Result<Reply, Refusal>;

/// A history in the making.
pub(super) struct Script {
    /// State after each index.
    pub(super) states: Vec<Model>,
    pub(super) events: Vec<Event>,
    /// Members that apply nothing for now.
    pub(super) lagging: BTreeSet<u64>,
    rules: TokenRules,
    now_us: u64,
    calls: BTreeMap<u64, (u64, Option<u64>, Op)>,
    requests: BTreeMap<u64, u64>,
    log: Vec<Applied>,
    applied: BTreeMap<u64, u64>,
}

impl Script {
    /// A new cluster.
    pub(super) fn new() -> Script {
        Script::with_rules(TokenRules::default())
    }

    /// A new cluster with these limits on tokens.
    pub(super) fn with_rules(rules: TokenRules) -> Script {
        let mut script = Script {
            states: vec![Model::with_rules(rules)],
            events: Vec::new(),
            lagging: BTreeSet::new(),
            rules,
            now_us: 0,
            calls: BTreeMap::new(),
            requests: BTreeMap::new(),
            log: Vec::new(),
            applied: BTreeMap::new(),
        };
        for member in 1..=MEMBERS {
            script.push(What::Started { member, index: 0 });
        }
        let empty = script.model().clone();
        script.append(0, "", "", 0, "ok", empty); // The leader's empty entry.
        script
    }

    /// A cluster with auth on: `root` with password `r`; `alice` with password `old` and the role `app`, which may read
    /// and write everything under `/app/`. Gives root's login.
    pub(super) fn with_auth() -> (Script, u64) {
        Script::with_auth_and_rules(TokenRules::default())
    }

    /// The same, with these limits on tokens.
    pub(super) fn with_auth_and_rules(rules: TokenRules) -> (Script, u64) {
        let mut script = Script::with_rules(rules);
        for op in setup() {
            script.done("root", 1, None, op);
        }
        let root = script.log_in("root", 1, "root", "r");
        (script, root)
    }

    /// Adds an event, a millisecond after the last one.
    pub(super) fn push(&mut self, what: What) {
        self.now_us += 1000;
        let at_us = self.now_us;
        self.events.push(Event { at_us, what });
    }

    /// Time of the last event, milliseconds.
    pub(super) fn now_ms(&self) -> u64 {
        self.now_us / 1000
    }

    /// Newest log index.
    pub(super) fn index(&self) -> u64 {
        self.states.len() as u64 - 1
    }

    /// State at the newest index.
    pub(super) fn model(&self) -> &Model {
        self.states.last().unwrap()
    }

    pub(super) fn invoke(&mut self, client: &str, member: u64, token: Option<u64>, op: Op) -> u64 {
        let call = self.calls.len() as u64 + 1;
        self.calls.insert(call, (member, token, op.clone()));
        self.push(What::Invoke {
            call,
            client: client.into(),
            member,
            token,
            op: Box::new(op),
        });
        call
    }

    pub(super) fn propose(&mut self, call: u64) -> u64 {
        let request_id = 1000 + self.requests.len() as u64;
        let member = self.calls[&call].0;
        self.requests.insert(request_id, call);
        self.push(What::Proposed {
            member,
            call,
            request_id,
        });
        request_id
    }

    /// Commits a proposal, decided as the model decides.
    pub(super) fn commit(&mut self, request_id: u64) -> Answer {
        let revision = self.model().accounts().revision();
        self.commit_stamped(request_id, revision)
    }

    /// Commits a proposal that was stamped with an auth revision.
    pub(super) fn commit_stamped(&mut self, request_id: u64, revision: u64) -> Answer {
        self.commit_from(request_id, revision, true)
    }

    /// The same, for a token that may have been ignored because auth was off where it was looked up.
    pub(super) fn commit_from(&mut self, request_id: u64, revision: u64, named: bool) -> Answer {
        let (_, token, op) = self.calls[&self.requests[&request_id]].clone();
        let token = token.filter(|_| named);
        let caller = token.map_or(Caller::Anonymous, |login| Caller::Bearer { login });
        let mut next = self.model().clone();
        let answer = next.apply(self.index() + 1, caller, &op);
        self.commit_named(request_id, revision, answer, token)
    }

    /// Commits a proposal, decided as the test says.
    pub(super) fn commit_as(&mut self, request_id: u64, revision: u64, answer: Answer) -> Answer {
        let token = self.calls[&self.requests[&request_id]].1;
        self.commit_named(request_id, revision, answer, token)
    }

    fn commit_named(
        &mut self,
        request_id: u64,
        revision: u64,
        answer: Answer,
        token: Option<u64>,
    ) -> Answer {
        let call = self.requests[&request_id];
        let op = self.calls[&call].2.clone();
        let index = self.index() + 1;
        let mut next = self.model().clone();
        let done = match (&answer, &op) {
            (Err(_), _) => Reply::default(),
            (Ok(_), Op::Login { user, password }) => {
                next.issue(index, call, user, password, 0);
                Reply::default()
            }
            (Ok(_), op) => next.perform(index, op),
        };
        let decision = match &answer {
            Ok(_) => "ok",
            Err(refusal) => refusal.text(),
        };
        let user = token.map(|login| self.user_of(login)).unwrap_or_default();
        let stamp = if token.is_some() { revision } else { 0 };
        self.append(request_id, kind(&op), &user, stamp, decision, next);
        answer.map(|_| done)
    }

    /// Commits a login that has to start over.
    pub(super) fn commit_again(&mut self, request_id: u64) {
        let same = self.model().clone();
        self.append(request_id, "login", "", 0, "again", same);
    }

    /// Lets time pass.
    pub(super) fn wait_ms(&mut self, ms: u64) {
        self.now_us += ms * 1000;
    }

    /// The entry that reports uses of the tokens of these logins.
    pub(super) fn refresh(&mut self, logins: &[u64]) -> u64 {
        let notes = logins.iter().map(|login| self.note(*login, 0)).collect();
        self.own("token-refresh", notes)
    }

    /// The entry that expires the token of a login, if its use has been reported just that often.
    pub(super) fn expire(&mut self, login: u64, refresh_count: u64) -> u64 {
        let note = self.note(login, refresh_count);
        self.own("token-expire", vec![note])
    }

    fn note(&self, login: u64, refresh_count: u64) -> TokenNote {
        TokenNote {
            login_index: self.model().token(login).unwrap().index,
            refresh_count,
        }
    }

    /// Commits an entry that no call asks for; gives its index.
    fn own(&mut self, kind: &str, notes: Vec<TokenNote>) -> u64 {
        let index = self.index() + 1;
        let mut next = self.model().clone();
        if kind == "token-refresh" {
            next.refresh(index, &notes);
        } else {
            next.expire(index, &notes);
        }
        self.append_own(7_000_000 + index, kind, notes, next);
        index
    }

    fn append(
        &mut self,
        request_id: u64,
        kind: &str,
        user: &str,
        stamp: u64,
        decision: &str,
        next: Model,
    ) {
        let entry = Applied {
            user: user.into(),
            header_auth_revision: stamp,
            decision: decision.into(),
            ..self.entry(request_id, kind, &next)
        };
        self.append_entry(entry, next);
    }

    fn append_own(&mut self, request_id: u64, kind: &str, tokens: Vec<TokenNote>, next: Model) {
        let entry = Applied {
            tokens,
            ..self.entry(request_id, kind, &next)
        };
        self.append_entry(entry, next);
    }

    fn entry(&self, request_id: u64, kind: &str, next: &Model) -> Applied {
        let index = self.index() + 1;
        Applied {
            member: 0,
            index,
            term: 1,
            request_id,
            kind: kind.into(),
            user: "".into(),
            header_auth_revision: 0,
            decision: "ok".into(),
            auth_revision: next.accounts().revision(),
            auth_enabled: next.accounts().is_enabled(),
            kv_revision: next.kv_revision(),
            digest: index * 7919 + request_id,
            tokens: Vec::new(),
        }
    }

    fn append_entry(&mut self, entry: Applied, next: Model) {
        self.log.push(entry);
        self.states.push(next);
        for member in 1..=MEMBERS {
            if !self.lagging.contains(&member) {
                self.catch_up(member);
            }
        }
    }

    /// Lets a member apply what it has not applied.
    pub(super) fn catch_up(&mut self, member: u64) {
        let from = self.applied.insert(member, self.index()).unwrap_or(0);
        let entries: Vec<Applied> = self.log[usize::try_from(from).unwrap()..].to_vec();
        for entry in entries {
            self.push(What::Applied(Box::new(Applied { member, ..entry })));
        }
    }

    /// Restarts a member with what it had applied up to `index`; it applies the rest again.
    pub(super) fn restart(&mut self, member: u64, index: u64) {
        self.push(What::Started { member, index });
        self.applied.insert(member, index);
        self.catch_up(member);
    }

    /// Gives a member the newest state, without the entries that lead to it.
    pub(super) fn install(&mut self, member: u64) {
        let newest = self.log.last().expect("the leader's entry is always there");
        let installed = Installed {
            member,
            index: newest.index,
            term: newest.term,
            auth_revision: newest.auth_revision,
            auth_enabled: newest.auth_enabled,
            kv_revision: newest.kv_revision,
            digest: newest.digest,
        };
        self.applied.insert(member, installed.index);
        self.push(What::Installed(Box::new(installed)));
    }

    /// How far a member is.
    pub(super) fn applied(&self, member: u64) -> u64 {
        self.applied[&member]
    }

    /// Says that a call was answered from the view of an index.
    pub(super) fn serve(&mut self, call: u64, index: u64) -> Answer {
        let (member, token, op) = self.calls[&call].clone();
        self.push(What::Served {
            member,
            call,
            index,
        });
        let caller = token.map_or(Caller::Anonymous, |login| Caller::Bearer { login });
        self.states[usize::try_from(index).unwrap()].read(caller, &op)
    }

    pub(super) fn end(&mut self, call: u64, answer: Answer) {
        let outcome = match answer {
            Ok(reply) => Outcome::Ok(Box::new(reply)),
            Err(refusal) => refused(refusal),
        };
        self.push(What::Return { call, outcome });
    }

    /// Ends a call without an answer.
    pub(super) fn lose(&mut self, call: u64) {
        let outcome = Outcome::Unknown {
            code: "DeadlineExceeded".into(),
            message: "deadline".into(),
        };
        self.push(What::Return { call, outcome });
    }

    /// A whole call through the log.
    pub(super) fn done(&mut self, client: &str, member: u64, token: Option<u64>, op: Op) -> u64 {
        let call = self.invoke(client, member, token, op);
        let request = self.propose(call);
        let answer = self.commit(request);
        self.end(call, answer);
        call
    }

    /// A whole call through the log that is accepted whatever the model says.
    pub(super) fn forced(&mut self, client: &str, member: u64, token: Option<u64>, op: Op) -> u64 {
        let call = self.invoke(client, member, token, op);
        let request = self.propose(call);
        let revision = self.model().accounts().revision();
        let answer = self.commit_as(request, revision, Ok(Reply::default()));
        self.end(call, answer);
        call
    }

    /// A whole call through the log that is refused whatever the model says.
    pub(super) fn denied(
        &mut self,
        client: &str,
        token: Option<u64>,
        op: Op,
        refusal: Refusal,
    ) -> u64 {
        let call = self.invoke(client, 1, token, op);
        let request = self.propose(call);
        let revision = self.model().accounts().revision();
        let answer = self.commit_as(request, revision, Err(refusal));
        self.end(call, answer);
        call
    }

    /// A whole call that is answered from the view of an index.
    pub(super) fn read_at(
        &mut self,
        client: &str,
        member: u64,
        token: Option<u64>,
        op: Op,
        index: u64,
    ) -> u64 {
        let call = self.invoke(client, member, token, op);
        let answer = self.serve(call, index);
        self.end(call, answer);
        call
    }

    /// A whole login that gives a token.
    pub(super) fn log_in(&mut self, client: &str, member: u64, user: &str, password: &str) -> u64 {
        let call = self.invoke(client, member, None, login(user, password));
        let request = self.propose(call);
        let answer = self.commit_as(request, 0, Ok(Reply::default()));
        self.end(call, answer);
        call
    }

    /// The finished history, with a probe of each member that is not behind.
    pub(super) fn history(mut self) -> History {
        let index = self.index();
        let digest = self.log.last().unwrap().digest;
        for member in 1..=MEMBERS {
            if self.applied[&member] == index {
                self.push(What::Probe {
                    member,
                    index,
                    kv_hash: 1,
                    auth_hash: 2,
                    digest,
                });
            }
        }
        let header = Header {
            format: FORMAT.into(),
            version: FORMAT_VERSION,
            members: MEMBERS,
            tokens: self.rules,
            ..Header::default()
        };
        let events = self.events;
        History { header, events }
    }

    /// The user that a proposed login is for.
    pub(super) fn subject(&self, request_id: u64) -> String {
        self.user_of(self.requests[&request_id])
    }

    fn user_of(&self, login: u64) -> String {
        match &self.calls[&login].2 {
            Op::Login { user, .. } => user.to_string(),
            _ => String::new(),
        }
    }
}

/// The calls that [`Script::with_auth`] makes.
pub(super) fn setup() -> Vec<Op> {
    vec![
        user_add("root", "r"),
        grant_role("root", "root"),
        user_add("alice", "old"),
        Op::RoleAdd { role: "app".into() },
        grant("app", GrantKind::Readwrite, "/app/", "/app0"),
        grant_role("alice", "app"),
        Op::AuthEnable {},
    ]
}

/// The operation's tag, as it stands in the file format.
pub(super) fn kind(op: &Op) -> &'static str {
    words::kind(op)
}

pub(super) fn refused(refusal: Refusal) -> Outcome {
    Outcome::Refused {
        code: "FailedPrecondition".into(),
        message: format!("etcdserver: {}", refusal.text()).into(),
    }
}

pub(super) fn login(user: &str, password: &str) -> Op {
    Op::Login {
        user: user.into(),
        password: password.into(),
    }
}

pub(super) fn user_add(user: &str, password: &str) -> Op {
    Op::UserAdd {
        user: user.into(),
        password: password.into(),
    }
}

pub(super) fn change_password(user: &str, password: &str) -> Op {
    Op::ChangePassword {
        user: user.into(),
        password: password.into(),
    }
}

pub(super) fn user_delete(user: &str) -> Op {
    Op::UserDelete { user: user.into() }
}

pub(super) fn grant_role(user: &str, role: &str) -> Op {
    Op::GrantRole {
        user: user.into(),
        role: role.into(),
    }
}

pub(super) fn revoke_role(user: &str, role: &str) -> Op {
    Op::RevokeRole {
        user: user.into(),
        role: role.into(),
    }
}

pub(super) fn grant(role: &str, kind: GrantKind, key: &str, range_end: &str) -> Op {
    Op::GrantPermission {
        role: role.into(),
        grant: Grant {
            kind,
            key: key.into(),
            range_end: range_end.into(),
        },
    }
}

pub(super) fn put(key: &str, value: &str) -> Op {
    Op::Put {
        key: key.into(),
        value: value.into(),
        prev_kv: true,
    }
}

pub(super) fn get(key: &str) -> Op {
    Op::Get {
        key: key.into(),
        range_end: "".into(),
        serializable: false,
        limit: 0,
        revision: 0,
        count_only: false,
    }
}

pub(super) fn local_get(key: &str) -> Op {
    Op::Get {
        key: key.into(),
        range_end: "".into(),
        serializable: true,
        limit: 0,
        revision: 0,
        count_only: false,
    }
}
