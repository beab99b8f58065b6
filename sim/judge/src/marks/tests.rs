//! Each mark from the smallest history that holds it, and from one that only looks like it.

use super::{Mark, Marks, of_history};
use crate::history::{
    Applied, Event, FORMAT_VERSION, Grant, GrantKind, Header, History, Installed, Op, Outcome,
    TokenNote, What,
};
use crate::model::Refusal;

/// A history in the making: a millisecond between two events, if nobody holds the clock.
#[derive(Default)]
struct Script {
    events: Vec<Event>,
    now_us: u64,
    calls: u64,
    index: u64,
    frozen: bool,
    /// From here on, entries are alice's, and auth has changed since her token was looked up.
    is_overtaken: bool,
}

impl Script {
    fn push(&mut self, what: What) {
        if !self.frozen {
            self.now_us += 1000;
        }
        let at_us = self.now_us;
        self.events.push(Event { at_us, what });
    }

    fn send(&mut self, member: u64, token: Option<u64>, op: Op) -> u64 {
        self.calls += 1;
        let call = self.calls;
        self.push(What::Invoke {
            call,
            client: format!("c{call}").as_str().into(),
            member,
            token,
            op: Box::new(op),
        });
        call
    }

    /// The call becomes the next entry, which members 1 and 2 apply.
    fn enter(&mut self, call: u64, decision: &str) {
        self.index += 1;
        let (member, request_id) = (1, 100 + self.index);
        self.push(What::Proposed {
            member,
            call,
            request_id,
        });
        for member in [1, 2] {
            self.apply(member, self.index, request_id, decision);
        }
    }

    fn apply(&mut self, member: u64, index: u64, request_id: u64, decision: &str) {
        let (user, auth_revision) = if self.is_overtaken {
            ("alice", 1)
        } else {
            ("", 0)
        };
        self.push(What::Applied(Box::new(Applied {
            member,
            index,
            term: 1,
            request_id,
            kind: "".into(),
            user: user.into(),
            header_auth_revision: 0,
            decision: decision.into(),
            auth_revision,
            auth_enabled: false,
            kv_revision: 0,
            digest: 0,
            tokens: Vec::new(),
        })));
    }

    /// The member gets the newest entry after all.
    fn catch_up(&mut self, member: u64) {
        self.apply(member, self.index, 100 + self.index, "ok");
    }

    fn end(&mut self, call: u64, outcome: Outcome) {
        self.push(What::Return { call, outcome });
    }

    fn done(&mut self, member: u64, token: Option<u64>, op: Op) -> u64 {
        let call = self.send(member, token, op);
        self.enter(call, "ok");
        self.end(call, ok());
        call
    }

    fn log_in(&mut self, member: u64, user: &str) -> u64 {
        self.done(member, None, login(user))
    }

    fn fault(&mut self, what: &str) {
        self.push(What::Fault { what: what.into() });
    }

    fn lead(&mut self, member: u64) {
        let (term, leader) = (2, true);
        self.push(What::Role {
            member,
            term,
            leader,
        });
    }

    /// A cluster with auth on, and `alice`, who may write everything by the role `writer`.
    fn with_auth() -> Script {
        let mut script = Script::default();
        for op in [
            user_add("root"),
            grant("root", "root"),
            user_add("alice"),
            Op::RoleAdd {
                role: "writer".into(),
            },
            Op::GrantPermission {
                role: "writer".into(),
                grant: Grant {
                    kind: GrantKind::Readwrite,
                    key: "a".into(),
                    range_end: "b".into(),
                },
            },
            grant("alice", "writer"),
            Op::AuthEnable {},
        ] {
            script.done(1, None, op);
        }
        script
    }

    fn marks(self) -> Marks {
        of_history(&History {
            header: Header {
                version: FORMAT_VERSION,
                members: 3,
                ..Header::default()
            },
            events: self.events,
        })
    }
}

fn login(user: &str) -> Op {
    Op::Login {
        user: user.into(),
        password: "p".into(),
    }
}

fn user_add(user: &str) -> Op {
    Op::UserAdd {
        user: user.into(),
        password: "p".into(),
    }
}

fn user_delete(user: &str) -> Op {
    Op::UserDelete { user: user.into() }
}

fn grant(user: &str, role: &str) -> Op {
    Op::GrantRole {
        user: user.into(),
        role: role.into(),
    }
}

fn revoke() -> Op {
    Op::RevokeRole {
        user: "alice".into(),
        role: "writer".into(),
    }
}

fn put() -> Op {
    Op::Put {
        key: "a1".into(),
        value: "v".into(),
        prev_kv: false,
    }
}

fn get() -> Op {
    Op::Get {
        key: "a1".into(),
        range_end: "".into(),
        serializable: false,
        limit: 0,
        revision: 0,
        count_only: false,
    }
}

fn ok() -> Outcome {
    Outcome::Ok(Box::default())
}

fn denied() -> Outcome {
    Outcome::Refused {
        code: "PermissionDenied".into(),
        message: Refusal::PermissionDenied.text().into(),
    }
}

fn unavailable(message: &str) -> Outcome {
    Outcome::Unknown {
        code: "Unavailable".into(),
        message: message.into(),
    }
}

/// The script holds these marks, so often, and no other.
#[track_caller]
fn check(script: Script, expected: &[(Mark, u64)]) {
    let marks = script.marks();
    assert_eq!(marks.len(), Mark::ALL.len());
    for mark in Mark::ALL {
        let count = expected.iter().find(|(known, _)| *known == mark);
        assert_eq!(
            marks[mark.name()],
            count.map_or(0, |(_, count)| *count),
            "{mark:?}"
        );
    }
}

#[test]
fn a_snapshot_that_was_installed_and_none_that_was_only_sent() {
    let mut script = Script::default();
    script.push(What::SnapshotSent {
        member: 1,
        to: 3,
        index: 7,
    });
    script.push(What::Installed(Box::new(Installed {
        member: 3,
        index: 7,
        term: 1,
        auth_revision: 1,
        auth_enabled: false,
        kv_revision: 1,
        digest: 0,
    })));
    check(script, &[(Mark::SnapshotInstalled, 1)]);
}

#[test]
fn a_login_that_starts_over() {
    let mut script = Script::with_auth();
    let call = script.send(1, None, login("alice"));
    script.enter(call, "again");
    script.enter(call, "again");
    script.enter(call, "ok");
    script.end(call, ok());
    check(script, &[(Mark::LoginRepeated, 2)]);
}

#[test]
fn auth_that_changes_while_a_call_is_under_way() {
    let mut script = Script::with_auth();
    let alice = script.log_in(1, "alice");
    script.done(1, Some(alice), put());
    script.is_overtaken = true;
    // An admin call is not about keys, and a refused one was not carried out.
    script.done(1, Some(alice), user_add("bob"));
    let call = script.send(1, Some(alice), put());
    script.enter(call, "permission denied");
    script.end(call, denied());
    script.done(1, Some(alice), put());
    check(script, &[(Mark::AuthChangedInFlight, 1)]);
}

#[test]
fn a_token_at_another_member() {
    let mut script = Script::with_auth();
    let alice = script.log_in(1, "alice");
    script.done(1, Some(alice), put());
    script.done(2, Some(alice), put());
    // It would have been answered without the token as well.
    script.done(2, Some(alice), Op::AuthStatus {});
    check(script, &[(Mark::TokenUsedOnOtherMember, 1)]);
}

#[test]
fn a_token_that_a_member_waits_for() {
    let mut script = Script::with_auth();
    let alice = script.log_in(3, "alice");
    let call = script.send(3, Some(alice), get());
    script.catch_up(3);
    script.end(call, ok());
    let call = script.send(3, Some(alice), get());
    script.end(call, ok());
    check(script, &[(Mark::TokenWaited, 1)]);
}

#[test]
fn a_token_that_a_member_waits_for_in_vain() {
    let mut script = Script::with_auth();
    let alice = script.log_in(3, "alice");
    let calls: Vec<u64> = (0..3).map(|_| script.send(3, Some(alice), get())).collect();
    script.end(calls[0], unavailable("etcdserver: no leader"));
    script.end(calls[1], unavailable("connection reset"));
    script.catch_up(3);
    script.end(calls[2], unavailable("etcdserver: request timed out"));
    check(script, &[(Mark::TokenWaitTimedOut, 1)]);
}

#[test]
fn a_revoke_among_writes() {
    for (writes, count) in [(7, 0), (8, 1)] {
        let mut script = Script::with_auth();
        let alice = script.log_in(1, "alice");
        for _ in 0..writes {
            script.send(1, Some(alice), put());
        }
        // Reads do not count, nor does a change that takes nothing from alice.
        script.send(1, Some(alice), get());
        script.done(1, None, user_add("bob"));
        script.done(1, None, revoke());
        check(script, &[(Mark::RevokeWithEightWritesInFlight, count)]);
    }
}

#[test]
fn a_revoke_after_writes() {
    let mut script = Script::with_auth();
    let alice = script.log_in(1, "alice");
    for _ in 0..8 {
        script.done(1, Some(alice), put());
    }
    script.done(1, None, revoke());
    check(script, &[]);
}

#[test]
fn auth_is_switched_off_while_tokens_live() {
    let mut script = Script::with_auth();
    script.log_in(1, "alice");
    script.done(1, None, Op::AuthDisable {});
    script.done(1, None, Op::AuthEnable {});
    // The first one ended alice's token, and deleting her ends the next one.
    script.done(1, None, Op::AuthDisable {});
    script.done(1, None, Op::AuthEnable {});
    script.log_in(1, "alice");
    script.done(1, None, user_delete("alice"));
    script.done(1, None, Op::AuthDisable {});
    check(script, &[(Mark::AuthOffWithLiveTokens, 1)]);
}

#[test]
fn a_token_that_has_expired_does_not_live() {
    let mut script = Script::with_auth();
    script.log_in(1, "alice");
    let login_index = script.index;
    script.enter(0, "ok");
    let expire = script.events.iter_mut().rev().take(2);
    for event in expire {
        if let What::Applied(applied) = &mut event.what {
            applied.kind = "token-expire".into();
            applied.tokens = vec![TokenNote {
                login_index,
                refresh_count: 0,
            }];
        }
    }
    script.done(1, None, Op::AuthDisable {});
    check(script, &[]);
}

#[test]
fn auth_is_switched_on_while_somebody_reads() {
    let mut script = Script::with_auth();
    script.done(1, None, Op::AuthDisable {});
    // A login reads nothing, and switching on what is on does nothing.
    script.send(2, None, login("alice"));
    script.done(1, None, Op::AuthEnable {});
    script.done(1, None, Op::AuthDisable {});
    script.send(2, None, get());
    script.done(1, None, Op::AuthEnable {});
    script.done(1, None, Op::AuthEnable {});
    check(script, &[(Mark::EnableDuringRead, 1)]);
}

#[test]
fn a_login_over_a_leader_change() {
    let mut script = Script::with_auth();
    script.lead(1);
    script.log_in(1, "alice");
    let call = script.send(1, None, login("alice"));
    script.lead(2);
    script.enter(call, "ok");
    script.end(call, ok());
    check(script, &[(Mark::LoginOverLeaderChange, 1)]);
}

#[test]
fn two_auth_changes_at_one_moment() {
    let mut script = Script::with_auth();
    let calls = [
        script.send(1, None, user_add("bob")),
        script.send(1, None, user_add("carol")),
    ];
    for (request_id, call) in [(900, calls[0]), (901, calls[1])] {
        let member = 1;
        script.push(What::Proposed {
            member,
            call,
            request_id,
        });
    }
    let next = script.index + 1;
    for member in [1, 2] {
        // On member 2 time passes between the two.
        script.frozen = member == 1;
        script.apply(member, next, 900, "ok");
        script.apply(member, next + 1, 901, "ok");
    }
    check(script, &[(Mark::TwoAuthChangesAtOnce, 1)]);
}

#[test]
fn an_admin_is_created_again_while_its_call_is_under_way() {
    let mut script = Script::with_auth();
    let alice = script.log_in(1, "alice");
    let before = script.send(1, Some(alice), user_add("x"));
    script.end(before, unavailable("lost"));
    script.send(1, Some(alice), user_add("bob"));
    // A write of data is no admin call.
    script.send(1, Some(alice), put());
    script.done(1, None, user_delete("alice"));
    script.send(1, Some(alice), user_add("carol"));
    script.done(1, None, user_add("alice"));
    check(script, &[(Mark::AdminRecreatedInFlight, 1)]);
}

#[test]
fn a_login_while_a_member_is_down() {
    let mut script = Script::with_auth();
    script.fault("kill n3");
    script.log_in(1, "alice");
    // Down for a part of the time only; and two of three are no minority.
    let call = script.send(1, None, login("alice"));
    script.push(What::Started {
        member: 3,
        index: 0,
    });
    script.enter(call, "ok");
    script.end(call, ok());
    script.fault("kill n3");
    script.fault("kill n2");
    script.log_in(1, "alice");
    check(script, &[(Mark::MinorityDownWithLogins, 1)]);
}

#[test]
fn disks_and_log_tails() {
    let mut script = Script::with_auth();
    script.fault("power of n1 failed between two commits");
    script.fault("power of n1 failed inside a commit");
    script.fault("n2 removed the log's entries 7 to 9");
    script.fault("n2 stopped by itself: the store failed");
    script.fault("n3 stopped for its disk: the store failed");
    script.fault("n3 stopped for its disk: the store failed");
    check(
        script,
        &[
            (Mark::PowerCutInCommit, 1),
            (Mark::ConflictingTailRemoved, 1),
            (Mark::StoppedForDisk, 2),
        ],
    );
}

#[test]
fn what_comes_after_the_healing_does_not_count() {
    let mut script = Script::with_auth();
    script.push(What::Healed);
    let call = script.send(1, None, login("alice"));
    script.enter(call, "again");
    check(script, &[]);
}
