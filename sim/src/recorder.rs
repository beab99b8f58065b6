//! Writes the history of a run while it happens: what clients do, what members report, what faults strike. It also
//! feeds the trace hash, and knows who leads. It never waits and never draws: recording must not change a run.

use crate::stop::Stop;
use crate::trace::Trace;
use gatehouse::observer::{Observed, Observer};
use gatehouse::state::{self, Command, Identity, Meta, Response, TokenKey};
use gatehouse_judge::history::{Applied, Event, History, Installed, Op, Outcome, TokenNote, What};
use gatehouse_judge::text::Text;
use madsim::net::NetSim;
use madsim::time::TimeHandle;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Most events of one run: those of more than a million calls, and about a gigabyte of memory. Beyond it the run is cut
/// short as undecided, so that neither memory nor the judge drowns. A file takes more than that.
pub(crate) const EVENTS_MAX: usize = 6_000_000;

const _: () = assert!(EVENTS_MAX <= gatehouse_judge::history_file::EVENTS_MAX);

/// Records one run; clones share the record.
#[derive(Clone, Default)]
pub(crate) struct Recorder(Arc<Mutex<Record>>);

/// What was recorded. It outlives the run, so that a run that ends in a panic leaves its history.
#[derive(Default)]
pub(crate) struct Record {
    /// What happened.
    pub(crate) events: Vec<Event>,
    /// The hash over it.
    pub(crate) trace: Trace,
    /// Number of the last call.
    pub(crate) calls: u64,
    /// Virtual time of the last event.
    pub(crate) elapsed: Duration,
    /// Whether there were more than [`EVENTS_MAX`] events.
    pub(crate) overflowed: bool,
    /// Steps that did not do what their scenario expects, in one sentence each, with the call.
    pub(crate) unmet: Vec<(u64, String)>,
    /// Members that stopped although nobody stopped them, with what they said.
    pub(crate) stopped: Vec<(u64, Stop, String)>,
    /// Term and number of the last member that became leader.
    leader: Option<(u64, u64)>,
}

impl Recorder {
    fn record(&self) -> MutexGuard<'_, Record> {
        // A panic elsewhere on the thread cannot leave the record half written: every change is one push.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on keeps the lines of the trace.
    pub(crate) fn keep_trace(&self) {
        self.record().trace.keep();
    }

    /// Takes the record out, leaving an empty one.
    pub(crate) fn take(&self) -> Record {
        std::mem::take(&mut *self.record())
    }

    /// Takes note of what happens now.
    pub(crate) fn event(&self, what: What) {
        self.record().push(what);
    }

    /// A client sends a call; gives its number.
    pub(crate) fn invoke(&self, client: &str, member: u64, token: Option<u64>, op: &Op) -> u64 {
        let mut record = self.record();
        record.calls += 1;
        let call = record.calls;
        record.push(What::Invoke {
            call,
            client: client.into(),
            member,
            token,
            op: Box::new(op.clone()),
        });
        call
    }

    /// A call ends for its client.
    pub(crate) fn returned(&self, call: u64, outcome: &Outcome) {
        self.event(What::Return {
            call,
            outcome: outcome.clone(),
        });
    }

    /// The schedule did something.
    pub(crate) fn fault(&self, what: impl Into<String>) {
        let what = what.into();
        tracing::info!(fault = %what);
        self.event(What::Fault { what });
    }

    /// A step did not do what its scenario expects.
    pub(crate) fn unmet(&self, call: u64, sentence: String) {
        self.record().unmet.push((call, sentence));
    }

    /// A member stopped although nobody stopped it.
    pub(crate) fn stopped(&self, member: u64, stop: Stop, cause: String) {
        self.fault(format!("n{member} stopped by itself: {cause}"));
        self.record().stopped.push((member, stop, cause));
    }

    /// The last member that became leader, if it has not given up since.
    pub(crate) fn leader(&self) -> Option<u64> {
        self.record().leader.map(|(_, member)| member)
    }

    /// Takes note of facts that stand in no event: they go into the trace hash alone.
    pub(crate) fn facts(&self, facts: &[u64]) {
        let mut record = self.record();
        for fact in facts {
            record.trace.number(*fact);
        }
    }

    /// An observer that records what member `member` reports.
    pub(crate) fn observer(&self, member: u64) -> Arc<dyn Observer> {
        Arc::new(Watch {
            member,
            recorder: self.clone(),
        })
    }
}

impl Record {
    fn push(&mut self, what: What) {
        if self.events.len() >= EVENTS_MAX {
            self.overflowed = true;
            return;
        }
        let (elapsed, messages) = moment();
        self.elapsed = elapsed;
        self.trace.note(nanos(elapsed), messages, &what);
        self.events.push(Event {
            at_us: micros(elapsed),
            what,
        });
    }

    /// The history of what was recorded.
    pub(crate) fn into_history(self, header: gatehouse_judge::history::Header) -> History {
        History {
            header,
            events: self.events,
        }
    }
}

/// Virtual time since the start of the run, and messages sent so far.
fn moment() -> (Duration, u64) {
    (
        TimeHandle::current().elapsed(),
        NetSim::current().stat().msg_count,
    )
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).expect("a run ends centuries before its time overflows")
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).expect("a run ends centuries before its time overflows")
}

/// Records what one member reports.
struct Watch {
    member: u64,
    recorder: Recorder,
}

impl Observer for Watch {
    fn observe(&self, event: Observed<'_>) {
        let member = self.member;
        let mut record = self.recorder.record();
        match event {
            Observed::Started { applied } => record.push(What::Started {
                member,
                index: applied,
            }),
            Observed::Role { term, leader } => {
                record.role(member, term, leader);
                record.push(What::Role {
                    member,
                    term,
                    leader,
                });
            }
            Observed::Proposed { call, request_id } => {
                if let Some(call) = number(call) {
                    record.push(What::Proposed {
                        member,
                        call,
                        request_id,
                    });
                }
            }
            Observed::Served { call, index } => {
                if let Some(call) = number(call) {
                    record.push(What::Served {
                        member,
                        call,
                        index,
                    });
                }
            }
            Observed::Published { index } => {
                let (elapsed, messages) = moment();
                record
                    .trace
                    .note(nanos(elapsed), messages, &("published", member, index));
            }
            Observed::Applied {
                term,
                command,
                applied,
                meta,
            } => record.push(applied_entry(member, term, command, applied, &meta)),
            Observed::TailRemoved { .. }
            | Observed::Truncated { .. }
            | Observed::SnapshotSent { .. }
            | Observed::Installed { .. }
            | Observed::Compared { .. } => {
                if let Some(what) = of_store(member, &event) {
                    record.push(what);
                }
            }
        }
    }
}

/// What a member reports of its log and of snapshots.
fn of_store(member: u64, event: &Observed<'_>) -> Option<What> {
    Some(match *event {
        Observed::TailRemoved { first, last } => What::Fault {
            what: format!("n{member} removed the log's entries {first} to {last}"),
        },
        Observed::Truncated { first_index } => What::Truncated {
            member,
            first_index,
        },
        Observed::SnapshotSent { to, index } => What::SnapshotSent { member, to, index },
        Observed::Installed { meta } => What::Installed(Box::new(Installed {
            member,
            index: meta.applied_index,
            term: meta.applied_term,
            auth_revision: meta.auth_revision,
            auth_enabled: meta.auth_enabled,
            kv_revision: meta.kv_revision,
            digest: meta.digest,
        })),
        Observed::Compared { index, equal } => What::Compared {
            member,
            index,
            equal,
        },
        _ => return None,
    })
}

fn applied_entry(
    member: u64,
    term: u64,
    command: Option<&Command>,
    applied: &state::Applied,
    meta: &Meta,
) -> What {
    What::Applied(Box::new(Applied {
        member,
        index: applied.index,
        term,
        request_id: command.map_or(0, |command| command.request_id),
        kind: command.map_or("", |command| kind(&command.op)).into(),
        user: command.map(user).unwrap_or_default(),
        header_auth_revision: command.map_or(0, |command| command.caller.auth_revision),
        decision: decision(applied),
        auth_revision: meta.auth_revision,
        auth_enabled: meta.auth_enabled,
        kv_revision: meta.kv_revision,
        digest: meta.digest,
        tokens: command
            .map(|command| tokens(&command.op))
            .unwrap_or_default(),
    }))
}

impl Record {
    fn role(&mut self, member: u64, term: u64, leads: bool) {
        match (leads, self.leader) {
            (true, Some((newest, _))) if newest > term => {}
            (true, _) => self.leader = Some((term, member)),
            (false, Some((_, leader))) if leader == member => self.leader = None,
            (false, _) => {}
        }
    }
}

/// The call that a member names; none for a call that is not ours.
fn number(call: &str) -> Option<u64> {
    call.parse().ok()
}

fn user(command: &Command) -> Text {
    match &command.caller.identity {
        Identity::User(user, _) => user.as_str().into(),
        Identity::Anonymous | Identity::Internal => Text::default(),
    }
}

fn decision(applied: &state::Applied) -> Text {
    match &applied.result {
        Ok(Response::AuthenticateAgain) => "again".into(),
        Ok(_) => "ok".into(),
        Err(refusal) => refusal.to_string().into(),
    }
}

/// The name that the operation has in plans and histories.
fn kind(op: &state::Op) -> &'static str {
    match op {
        state::Op::Put(_) => "put",
        state::Op::DeleteRange(_) => "delete",
        state::Op::Txn(_) => "txn",
        state::Op::Compact(_) => "compact",
        state::Op::AuthEnable => "auth-enable",
        state::Op::AuthDisable => "auth-disable",
        state::Op::Authenticate(_) => "login",
        state::Op::UserAdd(_) => "user-add",
        state::Op::UserDelete(_) => "user-delete",
        state::Op::UserChangePassword(..) => "change-password",
        state::Op::UserGrantRole(..) => "grant-role",
        state::Op::UserRevokeRole(..) => "revoke-role",
        state::Op::RoleAdd(_) => "role-add",
        state::Op::RoleDelete(_) => "role-delete",
        state::Op::RoleGrantPermission(..) => "grant-permission",
        state::Op::RoleRevokePermission(..) => "revoke-permission",
        state::Op::TokenRefresh(_) => "token-refresh",
        state::Op::TokenExpire(_) => "token-expire",
    }
}

/// The tokens that an entry of the cluster's own names.
fn tokens(op: &state::Op) -> Vec<TokenNote> {
    let note = |key: &TokenKey, refresh_count| TokenNote {
        login_index: key.index,
        refresh_count,
    };
    match op {
        state::Op::TokenRefresh(used) => used.iter().map(|key| note(key, 0)).collect(),
        state::Op::TokenExpire(due) => due.iter().map(|(key, seen)| note(key, *seen)).collect(),
        _ => Vec::new(),
    }
}
