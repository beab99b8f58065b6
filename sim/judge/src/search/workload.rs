//! Random histories of a make-believe cluster that is right: each call takes effect at one moment between its sending and
//! its end, as the rules say, or its answer is lost. They hold what clients see and nothing else. Tests and measurements
//! of the search share them.

use crate::history::{
    Compare, Event, FORMAT_VERSION, Grant, GrantKind, Header, History, Op, Operand, Outcome, Reply,
    What,
};
use crate::history_file::FORMAT;
use crate::model::{Caller, Model, Refusal};
use crate::random::Random;
use crate::text::Text;
use std::collections::BTreeMap;

/// What to make.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Clients that call at the same time; the first is an administrator, and so is every fourth.
    pub clients: u64,
    /// Calls in all, without those that set the cluster up.
    pub calls: u64,
    /// How many answers of a hundred get lost.
    pub unknown_percent: u64,
    /// Whether the cluster is wrong once: in its second half it carries out a put that it should have refused.
    pub wrong: bool,
}

/// The next thing to happen to a call.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// The client sends its next call.
    Send,
    /// The call takes effect.
    Decide(u64),
    /// The client is told.
    End(u64),
}

/// A call between its sending and its end.
struct Open {
    client: usize,
    token: Option<u64>,
    op: Op,
    answer: Option<Result<Reply, Refusal>>,
    is_lost: bool,
}

#[derive(Default)]
struct Client {
    token: Option<u64>,
    user: &'static str,
    password: String,
}

/// Users that are not administrators.
const USERS: [&str; 6] = ["alice", "bob", "carol", "dave", "erin", "frank"];
const ROLES: [&str; 4] = ["app", "ops", "log", "web"];
const KEYS: [&str; 8] = [
    "/app/a", "/app/b", "/app/c", "/ops/a", "/ops/b", "/log/a", "/web/a", "/web/b",
];

struct Making {
    random: Random,
    model: Model,
    /// Entries so far.
    index: u64,
    now_us: u64,
    queue: BTreeMap<(u64, u64), (Stage, usize)>,
    queued: u64,
    open: BTreeMap<u64, Open>,
    calls: u64,
    clients: Vec<Client>,
    events: Vec<Event>,
    values: u64,
    order: Vec<u64>,
    size: Size,
}

/// Makes the history of a seed.
pub fn make(seed: u64, size: Size) -> History {
    make_with_order(seed, size).0
}

/// Makes the history of a seed; and says in which order the calls were decided: all that were answered, and of
/// the others those that took effect.
pub fn make_with_order(seed: u64, size: Size) -> (History, Vec<u64>) {
    let mut making = Making {
        random: Random(seed),
        model: Model::new(),
        index: 0,
        now_us: 0,
        queue: BTreeMap::new(),
        queued: 0,
        open: BTreeMap::new(),
        calls: 0,
        clients: Vec::new(),
        events: Vec::new(),
        values: 0,
        order: Vec::new(),
        size,
    };
    making.set_up();
    making.run();
    let header = Header {
        format: FORMAT.into(),
        version: FORMAT_VERSION,
        scenario: "make-believe".into(),
        seed,
        members: 3,
        ..Header::default()
    };
    let events = making.events;
    (History { header, events }, making.order)
}

impl Making {
    fn set_up(&mut self) {
        let mut ops = vec![user_add("root", "r"), grant_role("root", "root")];
        for role in ROLES {
            ops.push(Op::RoleAdd { role: role.into() });
            let (key, end) = (format!("/{role}/"), format!("/{role}0"));
            ops.push(grant_permission(role, GrantKind::Readwrite, &key, &end));
        }
        for (number, user) in USERS.iter().enumerate() {
            ops.push(user_add(user, "p"));
            ops.push(grant_role(user, ROLES[number % ROLES.len()]));
        }
        ops.push(Op::AuthEnable {});
        self.clients.push(Client::default());
        for op in ops {
            let call = self.send(0, None, op, false);
            self.decide(call);
            self.end(call);
        }
        self.clients.clear();
        for number in 0..self.size.clients {
            let user = if number % 4 == 0 {
                "root"
            } else {
                let index = self.random.below(USERS.len() as u64);
                USERS[usize::try_from(index).unwrap_or(0)]
            };
            self.clients.push(Client {
                token: None,
                user,
                password: if user == "root" { "r" } else { "p" }.into(),
            });
        }
    }

    fn run(&mut self) {
        self.calls = 0;
        for client in 0..self.clients.len() {
            self.later(10_000, Stage::Send, client);
        }
        while let Some(((at, _), (stage, client))) = self.queue.pop_first() {
            self.now_us = at;
            match stage {
                Stage::Send if self.calls >= self.size.calls => {}
                Stage::Send => {
                    let (token, op) = self.next_call(client);
                    let is_lost = self.random.chance(self.size.unknown_percent);
                    let call = self.send(client, token, op, is_lost);
                    let first = self.travel();
                    // A lost call takes effect before its client gives up, or after, or never.
                    if !is_lost || self.random.chance(70) {
                        let late = if is_lost && self.random.chance(30) {
                            20
                        } else {
                            1
                        };
                        self.at(first * late, Stage::Decide(call), client);
                    }
                    let back = self.travel();
                    self.at(first + back + 1, Stage::End(call), client);
                }
                Stage::Decide(call) => self.decide(call),
                Stage::End(call) => {
                    self.end(call);
                    self.later(4_000, Stage::Send, client);
                }
            }
        }
    }

    /// How long one way takes: mostly a millisecond or two, sometimes much longer.
    fn travel(&mut self) -> u64 {
        let most = if self.random.chance(10) {
            20_000
        } else {
            2_000
        };
        200 + self.random.below(most)
    }

    fn later(&mut self, most_us: u64, stage: Stage, client: usize) {
        let wait = self.random.below(most_us);
        self.at(wait, stage, client);
    }

    fn at(&mut self, wait_us: u64, stage: Stage, client: usize) {
        self.queued += 1;
        let key = (self.now_us + wait_us, self.queued);
        self.queue.insert(key, (stage, client));
    }

    fn push(&mut self, what: What) {
        let at_us = self.now_us;
        self.events.push(Event { at_us, what });
    }

    fn send(&mut self, client: usize, token: Option<u64>, op: Op, is_lost: bool) -> u64 {
        self.calls += 1;
        let call = self.events.len() as u64 + 1; // Unique, whatever the phase.
        let member = 1 + self.random.below(3);
        self.push(What::Invoke {
            call,
            client: format!("c{client}").into(),
            member,
            token,
            op: Box::new(op.clone()),
        });
        self.open.insert(
            call,
            Open {
                client,
                token,
                op,
                answer: None,
                is_lost,
            },
        );
        call
    }

    /// The moment at which the call is decided, and takes effect if it is accepted.
    fn decide(&mut self, call: u64) {
        let Some(mut open) = self.open.remove(&call) else {
            return;
        };
        self.index += 1;
        let answer = match &open.op {
            Op::Login { user, password } => self.log_in(call, user, password),
            op => {
                let caller = open
                    .token
                    .map_or(Caller::Anonymous, |login| Caller::Bearer { login });
                match self.model.apply(self.index, caller, op) {
                    Err(_) if self.is_to_be_wrong(&open) => {
                        self.size.wrong = false;
                        Ok(self.model.perform(self.index, op))
                    }
                    answer => answer,
                }
            }
        };
        if answer.is_ok() || !open.is_lost {
            self.order.push(call);
        }
        open.answer = Some(answer);
        self.open.insert(call, open);
    }

    fn is_to_be_wrong(&self, open: &Open) -> bool {
        let is_put = matches!(open.op, Op::Put { .. });
        self.size.wrong && is_put && !open.is_lost && 2 * self.calls > self.size.calls
    }

    fn log_in(&mut self, call: u64, user: &str, password: &str) -> Result<Reply, Refusal> {
        if !self.model.accounts().is_enabled() {
            return Err(Refusal::NotEnabled);
        }
        let found = self.model.accounts().user(user);
        if found.is_none_or(|found| found.password != password) {
            return Err(Refusal::AuthFailed);
        }
        self.model
            .issue(self.index, call, user, password, self.index);
        Ok(Reply::default())
    }

    fn end(&mut self, call: u64) {
        let Some(open) = self.open.get(&call) else {
            return;
        };
        let outcome = match &open.answer {
            Some(answer) if !open.is_lost => outcome(answer),
            _ => Outcome::Unknown {
                code: "DeadlineExceeded".into(),
                message: "deadline".into(),
            },
        };
        let client = &mut self.clients[open.client];
        match (&open.op, &outcome) {
            (Op::Login { .. }, Outcome::Ok(_)) => client.token = Some(call),
            (_, Outcome::Refused { message, .. }) if message.contains("invalid auth token") => {
                client.token = None;
            }
            _ => {}
        }
        if open.answer.is_some() {
            self.open.remove(&call);
        }
        self.push(What::Return { call, outcome });
    }

    fn next_call(&mut self, client: usize) -> (Option<u64>, Op) {
        let Client {
            token,
            user,
            ref password,
        } = self.clients[client];
        let login = Op::Login {
            user: user.into(),
            password: password.as_str().into(),
        };
        match token {
            None if user != "root" && self.random.chance(30) => {
                // Somebody has changed the password; there are only three.
                let password = self.random.pick(&["p", "q", "s"]).to_owned();
                self.clients[client].password.clone_from(&password);
                let (user, password) = (user.into(), password.into());
                (None, Op::Login { user, password })
            }
            None => (None, login),
            Some(_) if self.random.chance(2) => (None, login),
            Some(_) if self.random.chance(3) => (token, Op::AuthStatus {}),
            Some(_) if user == "root" && self.random.chance(30) => (token, self.admin_call()),
            Some(_) => (token, self.data_call()),
        }
    }

    fn admin_call(&mut self) -> Op {
        let user = self.random.pick(&USERS);
        let role = self.random.pick(&ROLES);
        let password = self.random.pick(&["p", "q", "s"]);
        let kinds = [GrantKind::Read, GrantKind::Write, GrantKind::Readwrite];
        let kind = kinds[usize::try_from(self.random.below(3)).unwrap_or(0)];
        let key = self.random.pick(&KEYS);
        match self.random.below(100) {
            0..22 => grant_role(user, role),
            22..40 => Op::RevokeRole {
                user: user.into(),
                role: role.into(),
            },
            40..50 => Op::ChangePassword {
                user: user.into(),
                password: password.into(),
            },
            50..56 => Op::UserDelete { user: user.into() },
            56..66 => user_add(user, password),
            66..76 => grant_permission(role, kind, key, ""),
            76..82 => Op::RevokePermission {
                role: role.into(),
                key: key.into(),
                range_end: Text::default(),
            },
            82..84 => Op::RoleDelete { role: role.into() },
            84..88 => Op::RoleAdd { role: role.into() },
            88..94 => Op::UserGet { user: user.into() },
            94..97 => Op::RoleGet { role: role.into() },
            97..99 => Op::UserList {},
            _ => Op::AuthEnable {},
        }
    }

    fn data_call(&mut self) -> Op {
        let key = self.random.pick(&KEYS);
        self.values += 1;
        let value = self.values.to_string();
        match self.random.below(20) {
            0 => Op::Delete {
                key: key.into(),
                range_end: Text::default(),
                prev_kv: self.random.chance(50),
            },
            1 => Op::Txn {
                compare: vec![Compare {
                    key: key.into(),
                    equals: Operand::Version(1),
                }],
                success: vec![put(key, &value)],
                failure: vec![get(key, "")],
            },
            2 => get("/app/", "/app0"),
            3..12 => get(key, ""),
            _ => put(key, &value),
        }
    }
}

fn outcome(answer: &Result<Reply, Refusal>) -> Outcome {
    match answer {
        Ok(reply) => Outcome::Ok(Box::new(reply.clone())),
        Err(refusal) => Outcome::Refused {
            code: "FailedPrecondition".into(),
            message: format!("etcdserver: {}", refusal.text()).into(),
        },
    }
}

fn put(key: &str, value: &str) -> Op {
    Op::Put {
        key: key.into(),
        value: value.into(),
        prev_kv: false,
    }
}

fn get(key: &str, range_end: &str) -> Op {
    Op::Get {
        key: key.into(),
        range_end: range_end.into(),
        serializable: false,
        limit: 0,
        revision: 0,
        count_only: false,
    }
}

fn user_add(user: &str, password: &str) -> Op {
    Op::UserAdd {
        user: user.into(),
        password: password.into(),
    }
}

fn grant_role(user: &str, role: &str) -> Op {
    Op::GrantRole {
        user: user.into(),
        role: role.into(),
    }
}

fn grant_permission(role: &str, kind: GrantKind, key: &str, range_end: &str) -> Op {
    Op::GrantPermission {
        role: role.into(),
        grant: Grant {
            kind,
            key: key.into(),
            range_end: range_end.into(),
        },
    }
}
