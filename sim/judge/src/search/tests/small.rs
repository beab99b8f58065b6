//! Small random histories, so few calls that every order can be tried: some right, some with one thing changed.

use crate::history::{
    Compare, Event, Grant, GrantKind, Header, History, Op, Operand, Outcome, Reply, What,
};
use crate::model::{Caller, Model, Refusal};
use crate::random::Random;

/// Calls after the set-up.
const CALLS: u64 = 6;
const CLIENTS: usize = 3;

struct Open {
    number: u64,
    token: Option<u64>,
    op: Op,
    answer: Option<Result<Reply, Refusal>>,
}

struct Small {
    random: Random,
    model: Model,
    index: u64,
    events: Vec<Event>,
    calls: u64,
    logins: Vec<u64>,
}

/// A right history.
pub(super) fn make(seed: u64) -> History {
    let mut small = Small {
        random: Random(seed),
        model: Model::new(),
        index: 0,
        events: Vec::new(),
        calls: 0,
        logins: Vec::new(),
    };
    small.set_up();
    let mut clients: [Option<Open>; CLIENTS] = Default::default();
    let limit = small.calls + CALLS;
    while small.calls < limit || clients.iter().any(Option::is_some) {
        let number = usize::try_from(small.random.below(CLIENTS as u64)).unwrap();
        clients[number] = match clients[number].take() {
            None if small.calls < limit => Some(small.send(&format!("c{number}"))),
            None => None,
            Some(open) if open.answer.is_none() => {
                if small.random.chance(15) {
                    small.lose(&open); // Never decided.
                    None
                } else {
                    Some(small.decide(open))
                }
            }
            Some(open) if small.random.chance(15) => {
                small.lose(&open);
                None
            }
            Some(open) => {
                small.end(open);
                None
            }
        };
    }
    History {
        header: Header::default(),
        events: small.events,
    }
}

/// The same history with one thing changed; `None` if it has nothing of the kind.
pub(super) fn mutate(mut history: History, random: &mut Random) -> Option<History> {
    let from = history.events.len() - usize::try_from(2 * CALLS).unwrap();
    let is_end = |event: &Event| matches!(&event.what, What::Return { outcome, .. } if !matches!(outcome, Outcome::Unknown { .. }));
    let ends: Vec<usize> = (from..history.events.len())
        .filter(|at| is_end(&history.events[*at]))
        .collect();
    if ends.is_empty() {
        return None;
    }
    let mut pick = || ends[usize::try_from(random.below(ends.len() as u64)).unwrap()];
    let (one, other) = (pick(), pick());
    match random.below(4) {
        0 => flip(&mut history.events[one].what),
        1 => swap_revisions(&mut history, one, other),
        2 => move_up(&mut history, one),
        _ => alter_value(&mut history.events[one].what),
    }
    Some(history)
}

fn flip(what: &mut What) {
    let What::Return { outcome, .. } = what else {
        return;
    };
    *outcome = match outcome {
        Outcome::Ok(_) => refused(Refusal::PermissionDenied),
        _ => Outcome::Ok(Box::default()),
    };
}

fn swap_revisions(history: &mut History, one: usize, other: usize) {
    let revision = |what: &What| match what {
        What::Return {
            outcome: Outcome::Ok(reply),
            ..
        } => Some(reply.revision),
        _ => None,
    };
    let (first, second) = (
        revision(&history.events[one].what),
        revision(&history.events[other].what),
    );
    for (at, new) in [(one, second), (other, first)] {
        if let (
            What::Return {
                outcome: Outcome::Ok(reply),
                ..
            },
            Some(new),
        ) = (&mut history.events[at].what, new)
        {
            reply.revision = new;
        }
    }
}

/// Moves the end of a call to just behind its sending.
fn move_up(history: &mut History, at: usize) {
    let What::Return { call, .. } = history.events[at].what else {
        return;
    };
    let is_sending =
        |event: &Event| matches!(event.what, What::Invoke { call: sent, .. } if sent == call);
    let sent = history.events.iter().position(is_sending).unwrap();
    let moved = history.events.remove(at);
    history.events.insert(sent + 1, moved);
    for (number, event) in (0..).zip(&mut history.events) {
        event.at_us = number * 1000;
    }
}

fn alter_value(what: &mut What) {
    if let What::Return {
        outcome: Outcome::Ok(reply),
        ..
    } = what
    {
        match (reply.kvs.first_mut(), &mut reply.auth) {
            (Some(pair), _) => pair.value = format!("{}!", pair.value).into(),
            (None, Some(auth)) => auth.revision += 1,
            (None, None) => reply.count += 1,
        }
    }
}

impl Small {
    fn set_up(&mut self) {
        let ops = [
            user_add("root", "r"),
            grant_role("root", "root"),
            user_add("alice", "p"),
            Op::RoleAdd { role: "app".into() },
            grant("a"),
            grant_role("alice", "app"),
            Op::AuthEnable {},
            login("root", "r"),
            login("alice", "p"),
        ];
        for op in ops {
            let open = self.send_op("root", None, op);
            let open = self.decide(open);
            self.end(open);
        }
    }

    fn push(&mut self, what: What) {
        let at_us = self.events.len() as u64 * 1000;
        self.events.push(Event { at_us, what });
    }

    fn send(&mut self, client: &str) -> Open {
        let op = self.op();
        let is_admin = !matches!(
            op,
            Op::Put { .. } | Op::Get { .. } | Op::Delete { .. } | Op::Txn { .. }
        );
        let token = match op {
            Op::Login { .. } => None,
            _ if self.random.chance(6) => None,
            _ if is_admin && self.random.chance(80) => Some(self.logins[0]),
            _ => {
                let back = self.random.below((self.logins.len() as u64).min(3));
                Some(self.logins[self.logins.len() - 1 - usize::try_from(back).unwrap()])
            }
        };
        self.send_op(client, token, op)
    }

    fn send_op(&mut self, client: &str, token: Option<u64>, op: Op) -> Open {
        self.calls += 1;
        let number = self.calls;
        self.push(What::Invoke {
            call: number,
            client: client.into(),
            member: 1,
            token,
            op: Box::new(op.clone()),
        });
        Open {
            number,
            token,
            op,
            answer: None,
        }
    }

    fn decide(&mut self, mut open: Open) -> Open {
        self.index += 1;
        let answer = match &open.op {
            Op::Login { user, password } => self.log_in(open.number, user, password),
            op => {
                let caller = open
                    .token
                    .map_or(Caller::Anonymous, |login| Caller::Bearer { login });
                self.model.apply(self.index, caller, op)
            }
        };
        // An auth call's revision is often not kept.
        let keeps = self.random.chance(30);
        open.answer = Some(answer.map(|reply| match open.op {
            Op::Put { .. } | Op::Get { .. } | Op::Delete { .. } | Op::Txn { .. } => reply,
            _ if keeps => reply,
            _ => Reply {
                revision: 0,
                ..reply
            },
        }));
        open
    }

    fn log_in(&mut self, number: u64, user: &str, password: &str) -> Result<Reply, Refusal> {
        let accounts = self.model.accounts();
        if !accounts.is_enabled() {
            return Err(Refusal::NotEnabled);
        }
        if accounts
            .user(user)
            .is_none_or(|user| user.password != password)
        {
            return Err(Refusal::AuthFailed);
        }
        self.model
            .issue(self.index, number, user, password, self.index);
        Ok(Reply::default())
    }

    fn end(&mut self, open: Open) {
        let outcome = match open.answer.unwrap() {
            Ok(reply) => {
                if matches!(open.op, Op::Login { .. }) {
                    self.logins.push(open.number);
                }
                Outcome::Ok(Box::new(reply))
            }
            Err(refusal) => refused(refusal),
        };
        let call = open.number;
        self.push(What::Return { call, outcome });
    }

    fn lose(&mut self, open: &Open) {
        let outcome = Outcome::Unknown {
            code: "Unavailable".into(),
            message: "lost".into(),
        };
        let call = open.number;
        self.push(What::Return { call, outcome });
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[usize::try_from(self.random.below(choices.len() as u64)).unwrap()]
    }

    fn op(&mut self) -> Op {
        let user = self.pick(&["alice", "alice", "bob"]);
        let password = self.pick(&["p", "q"]);
        let key = self.pick(&["a", "a", "b"]);
        let value = self.pick(&["1", "2"]);
        let prev_kv = self.random.chance(20);
        match self.random.below(32) {
            0..3 => login(user, password),
            3 | 4 => Op::ChangePassword {
                user: user.into(),
                password: password.into(),
            },
            5 => Op::UserDelete { user: user.into() },
            6 => user_add(user, password),
            7 | 8 => grant_role(user, "app"),
            9 | 10 => Op::RevokeRole {
                user: user.into(),
                role: "app".into(),
            },
            11 => grant(key),
            12 => Op::RevokePermission {
                role: "app".into(),
                key: key.into(),
                range_end: "".into(),
            },
            13 => Op::RoleDelete { role: "app".into() },
            14 => Op::RoleAdd { role: "app".into() },
            15 => Op::AuthDisable {},
            16 => Op::AuthEnable {},
            17 => Op::AuthStatus {},
            18 => Op::UserGet { user: user.into() },
            19 => self.listing(),
            20..24 => get(key),
            24 => Op::Delete {
                key: key.into(),
                range_end: "".into(),
                prev_kv,
            },
            25 => Op::Txn {
                compare: vec![Compare {
                    key: key.into(),
                    equals: Operand::Version(0),
                }],
                success: vec![put(key, value, false)],
                failure: vec![get(key)],
            },
            _ => put(key, value, prev_kv),
        }
    }

    fn listing(&mut self) -> Op {
        match self.random.below(3) {
            0 => Op::UserList {},
            1 => Op::RoleList {},
            _ => Op::RoleGet { role: "app".into() },
        }
    }
}

pub(super) fn refused(refusal: Refusal) -> Outcome {
    Outcome::Refused {
        code: "FailedPrecondition".into(),
        message: format!("etcdserver: {}", refusal.text()).into(),
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

fn grant(key: &str) -> Op {
    Op::GrantPermission {
        role: "app".into(),
        grant: Grant {
            kind: GrantKind::Readwrite,
            key: key.into(),
            range_end: "".into(),
        },
    }
}

fn login(user: &str, password: &str) -> Op {
    Op::Login {
        user: user.into(),
        password: password.into(),
    }
}

fn get(key: &str) -> Op {
    Op::Get {
        key: key.into(),
        range_end: "".into(),
        serializable: false,
        limit: 0,
        revision: 0,
        count_only: false,
    }
}

fn put(key: &str, value: &str, prev_kv: bool) -> Op {
    Op::Put {
        key: key.into(),
        value: value.into(),
        prev_kv,
    }
}
