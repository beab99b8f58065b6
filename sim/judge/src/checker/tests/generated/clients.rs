//! The clients: each has at most one call open, which goes from stage to stage until it is answered or given up.

use super::Run;
use crate::checker::tests::script::*;
use crate::history::Op;

/// How far a call is on the cluster's side.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
    Idle,
    /// Sent, nothing done yet.
    Sent(u64),
    /// A write whose token has been looked up; `named` unless auth was off there.
    Resolved {
        call: u64,
        revision: u64,
        named: bool,
    },
    /// A write that is on its way into the log.
    Proposed {
        call: u64,
        request: u64,
        revision: u64,
        named: bool,
    },
    /// A login whose password was right in this epoch.
    Compared {
        call: u64,
        request: u64,
        epoch: u64,
    },
    /// In the log, but not yet applied by the member that took the call.
    Committed(u64),
    /// A read whose barrier is this index.
    Barrier {
        call: u64,
        index: u64,
    },
}

/// A client and its call.
pub(super) struct Client {
    pub(super) name: String,
    pub(super) token: Option<u64>,
    pub(super) member: u64,
    pub(super) op: Op,
    pub(super) stage: Stage,
}

impl Run {
    /// The client gives its call up.
    pub(super) fn lose(&mut self, number: usize) {
        let stage = self.clients[number].stage;
        let call = match stage {
            Stage::Idle => return,
            Stage::Sent(call)
            | Stage::Resolved { call, .. }
            | Stage::Committed(call)
            | Stage::Barrier { call, .. } => call,
            Stage::Proposed { call, .. } | Stage::Compared { call, .. } => {
                self.limbo.push(stage);
                call
            }
        };
        self.script.lose(call);
        self.clients[number].stage = Stage::Idle;
    }

    pub(super) fn advance(&mut self, number: usize, stage: Stage) -> Stage {
        match stage {
            Stage::Idle => self.send(number),
            Stage::Sent(call) => self.begin(number, call),
            Stage::Resolved {
                call,
                revision,
                named,
            } => {
                let request = self.script.propose(call);
                Stage::Proposed {
                    call,
                    request,
                    revision,
                    named,
                }
            }
            Stage::Proposed { call, .. } | Stage::Compared { call, .. } => {
                let Some(answer) = self.commit(stage) else {
                    return Stage::Sent(call);
                };
                let index = self.script.index();
                self.answers.insert(call, (index, answer));
                Stage::Committed(call)
            }
            Stage::Committed(call) => {
                let (index, answer) = self.answers[&call].clone();
                let Client { member, ref op, .. } = self.clients[number];
                if self.script.applied(member) < index {
                    return stage; // The member waits.
                }
                if answer.is_ok() && matches!(op, Op::Login { .. }) {
                    self.tokens.push(call);
                }
                self.script.end(call, answer);
                Stage::Idle
            }
            Stage::Barrier { call, index } => {
                let applied = self.script.applied(self.clients[number].member);
                let token = self.clients[number].token;
                if applied < index || !self.knows(token, applied) {
                    return stage; // The member waits.
                }
                let answer = self.script.serve(call, applied);
                self.script.end(call, answer);
                Stage::Idle
            }
        }
    }

    fn send(&mut self, number: usize) -> Stage {
        let member = 1 + self.random.below(MEMBERS);
        let op = self.random.op();
        let is_login = matches!(op, Op::Login { .. });
        let token = (!is_login && self.random.chance(90)).then(|| {
            // The newest are good more often.
            let back = self.random.below((self.tokens.len() as u64).min(6));
            self.tokens[self.tokens.len() - 1 - usize::try_from(back).unwrap()]
        });
        let name = self.clients[number].name.clone();
        let call = self.script.invoke(&name, member, token, op.clone());
        let client = &mut self.clients[number];
        (client.member, client.token, client.op) = (member, token, op);
        Stage::Sent(call)
    }
}
