//! One client: sends a call, lets the cluster take it a step further at each turn, and ends it.

use super::cluster::Cluster;
use super::{MEMBERS, Record, workload};
use crate::history::{Op, Outcome, Reply, What};
use crate::model::{Caller, Refusal};
use crate::random::Random;
use crate::text::Text;

/// How many answers get lost.
const LOST_OF_1000: u64 = 5;

pub(super) struct Client {
    name: Text,
    /// The user as which it logs in.
    pub(super) user: Text,
    /// Its token.
    pub(super) token: Option<u64>,
    stage: Stage,
}

/// A call on its way.
struct Sent {
    call: u64,
    member: u64,
    token: Option<u64>,
    op: Op,
}

/// How far the client's call is.
enum Stage {
    Idle,
    Sent(Sent),
    /// A write whose token was looked up under an auth revision, or a login whose password was right in an epoch.
    Proposed {
        sent: Sent,
        request_id: u64,
        stamp: u64,
    },
    /// In the log at an index, but not yet applied by the member that took it.
    Committed {
        sent: Sent,
        index: u64,
        answer: Result<Reply, Refusal>,
    },
}

impl Client {
    pub(super) fn new(number: u64) -> Client {
        Client {
            name: format!("c{number}").into(),
            user: workload::user(number),
            token: None,
            stage: Stage::Idle,
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        !matches!(self.stage, Stage::Idle)
    }

    /// Sends a call.
    pub(super) fn send(
        &mut self,
        op: Op,
        token: Option<u64>,
        record: &mut Record,
        rng: &mut Random,
    ) {
        record.calls += 1;
        let (call, member) = (record.calls, rng.between(1, MEMBERS));
        record.push(What::Invoke {
            call,
            client: self.name.clone(),
            member,
            token,
            op: Box::new(op.clone()),
        });
        self.stage = Stage::Sent(Sent {
            call,
            member,
            token,
            op,
        });
    }

    /// Takes the next step.
    pub(super) fn advance(&mut self, cluster: &mut Cluster, record: &mut Record, rng: &mut Random) {
        match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Idle => {
                let (op, token) = workload::next(self, cluster, record, rng);
                self.send(op, token, record, rng);
            }
            Stage::Sent(sent) => self.take(sent, cluster, record),
            Stage::Proposed {
                sent,
                request_id,
                stamp,
            } => self.commit(sent, request_id, stamp, cluster),
            Stage::Committed {
                sent,
                index,
                answer,
            } => {
                if rng.rarely(LOST_OF_1000) {
                    self.lose(&sent, record);
                    return;
                }
                cluster.catch_up(sent.member, index, record);
                self.end(&sent, answer, record);
            }
        }
    }

    /// The member takes the call: it answers a read, and proposes what writes.
    fn take(&mut self, sent: Sent, cluster: &mut Cluster, record: &mut Record) {
        let accounts = cluster.model.accounts();
        let (stamp, refusal) = match &sent.op {
            Op::Login { user, password } => {
                let is_right = accounts
                    .user(user)
                    .is_some_and(|found| found.password == *password);
                let epoch = accounts.epoch(user).unwrap_or(0);
                (epoch, (!is_right).then_some(Refusal::AuthFailed))
            }
            op if workload::is_read(op) => return self.read(&sent, cluster, record),
            _ => {
                let is_good = sent.token.is_none_or(|login| cluster.model.is_alive(login));
                let refusal = (!is_good).then_some(Refusal::InvalidToken);
                (accounts.revision(), refusal)
            }
        };
        // The barrier in front of either look-up.
        cluster.catch_up(sent.member, cluster.index, record);
        if let Some(refusal) = refusal {
            self.serve(&sent, cluster, record);
            self.end(&sent, Err(refusal), record);
            return;
        }
        let request_id = cluster.propose(sent.member, sent.call, record);
        self.stage = Stage::Proposed {
            sent,
            request_id,
            stamp,
        };
    }

    fn read(&mut self, sent: &Sent, cluster: &mut Cluster, record: &mut Record) {
        cluster.catch_up(sent.member, cluster.index, record);
        let caller = sent
            .token
            .map_or(Caller::Anonymous, |login| Caller::Bearer { login });
        self.serve(sent, cluster, record);
        let answer = cluster.model.read(caller, &sent.op);
        self.end(sent, answer, record);
    }

    fn serve(&self, sent: &Sent, cluster: &Cluster, record: &mut Record) {
        record.push(What::Served {
            member: sent.member,
            call: sent.call,
            index: cluster.index,
        });
    }

    fn commit(&mut self, sent: Sent, request_id: u64, stamp: u64, cluster: &mut Cluster) {
        let answer = match &sent.op {
            Op::Login { user, password } => {
                if !cluster.commit_login(request_id, sent.call, (user, password), stamp) {
                    self.stage = Stage::Sent(sent); // It starts over.
                    return;
                }
                Ok(Reply::default())
            }
            op => cluster.commit(request_id, sent.token, stamp, op),
        };
        self.stage = Stage::Committed {
            sent,
            index: cluster.index,
            answer,
        };
    }

    fn end(&mut self, sent: &Sent, answer: Result<Reply, Refusal>, record: &mut Record) {
        if matches!(sent.op, Op::Login { .. }) {
            self.token = answer.is_ok().then_some(sent.call);
        } else if answer == Err(Refusal::InvalidToken) {
            self.token = None;
        }
        let outcome = match answer {
            Ok(reply) => Outcome::Ok(Box::new(reply)),
            Err(refusal) => Outcome::Refused {
                code: "FailedPrecondition".into(),
                message: format!("etcdserver: {}", refusal.text()).into(),
            },
        };
        let call = sent.call;
        record.push(What::Return { call, outcome });
    }

    fn lose(&mut self, sent: &Sent, record: &mut Record) {
        let outcome = Outcome::Unknown {
            code: "DeadlineExceeded".into(),
            message: "the call's deadline passed".into(),
        };
        let call = sent.call;
        record.push(What::Return { call, outcome });
    }
}
