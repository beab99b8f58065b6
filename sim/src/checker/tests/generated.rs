//! Random right histories: clients that overlap, members that lag and restart, answers that get lost, and a cluster that
//! does what the rules say. The judge must let all of them pass, and must reject them once they are mutated. It is long because the
//! generator, the cluster that it plays and the mutations read each other at every step.

use super::decisions::swap_entries;
use super::passes;
use super::script::*;
use crate::history::{Compare, GrantKind, History, Op, Operand, Outcome, TokenRules, What};
use crate::model::Refusal;
use crate::verdict::VerdictKind;
use std::collections::{BTreeMap, BTreeSet};

/// Runs to generate; each has some hundred calls.
const RUNS: u64 = 150;
/// Moves in one run.
const MOVES: usize = 900;

/// Few tokens that live shortly, so that they expire and make room.
pub(super) const RULES: TokenRules = TokenRules {
    ttl_ms: 100,
    per_user_max: 5,
    total_max: 8,
    drift_ppm: 0,
};

/// A small generator of its own (splitmix64), so that the tests are the same everywhere.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % bound
    }

    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        let index = self.below(choices.len() as u64);
        choices[usize::try_from(index).unwrap()]
    }
}

/// How far a call is on the cluster's side.
#[derive(Clone, Copy, Debug)]
enum Stage {
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
struct Client {
    name: String,
    token: Option<u64>,
    member: u64,
    op: Op,
    stage: Stage,
}

pub(super) struct Run {
    script: Script,
    random: Random,
    clients: Vec<Client>,
    /// Proposals of calls that were given up; they may still come into the log.
    limbo: Vec<Stage>,
    /// Answers of committed calls, and the indices at which they stand.
    answers: BTreeMap<u64, (u64, Answer)>,
    /// Logins that gave a token, which any client may use.
    tokens: Vec<u64>,
    /// When the last report of each login's token came into the log, milliseconds.
    reported_ms: BTreeMap<u64, u64>,
    /// Whether logins compare passwords with their member's own state, as old as it is.
    skips_barrier: bool,
}

impl Run {
    pub(super) fn generate(seed: u64) -> History {
        Run::generate_with(seed, false)
    }

    fn generate_with(seed: u64, skips_barrier: bool) -> History {
        let (script, root) = Script::with_auth_and_rules(RULES);
        let client = |number: usize| Client {
            name: format!("c{number}"),
            token: None,
            member: 1,
            op: Op::AuthStatus {},
            stage: Stage::Idle,
        };
        let mut run = Run {
            script,
            random: Random(seed),
            clients: (0..5).map(client).collect(),
            limbo: Vec::new(),
            answers: BTreeMap::new(),
            tokens: vec![root],
            reported_ms: BTreeMap::new(),
            skips_barrier,
        };
        for _ in 0..MOVES {
            run.step();
        }
        for member in 1..=MEMBERS {
            run.script.catch_up(member);
        }
        run.script.history()
    }

    fn step(&mut self) {
        let number = usize::try_from(self.random.below(5)).unwrap();
        match self.random.below(100) {
            0..4 => self.lag(),
            4 => self.restart(),
            5 if !self.limbo.is_empty() => {
                let late = self.limbo.remove(0);
                self.commit(late);
            }
            6 => self.lose(number),
            7..13 => self.own_entry(),
            _ => {
                let stage = self.clients[number].stage;
                self.clients[number].stage = self.advance(number, stage);
            }
        }
    }

    fn lag(&mut self) {
        let member = 1 + self.random.below(MEMBERS);
        if self.script.lagging.remove(&member) {
            self.script.catch_up(member);
        } else {
            self.script.lagging.insert(member);
        }
    }

    /// The cluster reports a use of a token, or expires it: too late for its last use, or because it is time.
    fn own_entry(&mut self) {
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

    fn restart(&mut self) {
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

    /// The client gives its call up.
    fn lose(&mut self, number: usize) {
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

    fn advance(&mut self, number: usize, stage: Stage) -> Stage {
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
        let op = self.op();
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

    fn begin(&mut self, number: usize, call: u64) -> Stage {
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
    fn knows(&self, token: Option<u64>, applied: u64) -> bool {
        let issued = token.and_then(|token| self.script.model().token(token));
        issued.is_none_or(|issued| issued.index <= applied)
    }

    /// Commits what was proposed; `None` for a login that has to start over.
    fn commit(&mut self, stage: Stage) -> Option<Answer> {
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
                    let reply = crate::history::Reply::default();
                    return Some(self.script.commit_as(request, 0, Ok(reply)));
                }
                self.script.commit_again(request);
                None
            }
            _ => None,
        }
    }

    fn op(&mut self) -> Op {
        let user = self.random.pick(&["root", "alice", "alice", "bob"]);
        let password = self.random.pick(&["r", "old", "new"]);
        let role = self.random.pick(&["root", "app", "x"]);
        match self.random.below(40) {
            0..8 if user == "root" => login("root", "r"),
            0..8 => login(user, password),
            8 if user != "root" => change_password(user, password),
            9 => user_add(user, password),
            10 if self.random.chance(30) => user_delete(user),
            11 => grant_role(user, role),
            12 if user != "root" => revoke_role(user, role),
            13 => Op::RoleAdd { role: role.into() },
            14 if self.random.chance(30) => Op::RoleDelete { role: role.into() },
            15 if self.random.chance(20) => Op::AuthDisable {},
            16 | 17 => Op::AuthEnable {},
            18 => Op::AuthStatus {},
            19 => Op::UserGet { user: user.into() },
            20 => Op::RoleGet { role: role.into() },
            21 => self.random_listing(),
            22 | 23 => self.permission(role),
            _ => self.data(),
        }
    }

    fn random_listing(&mut self) -> Op {
        if self.random.chance(50) {
            Op::UserList {}
        } else {
            Op::RoleList {}
        }
    }

    fn permission(&mut self, role: &str) -> Op {
        let (key, range_end) = [("/app/", "/app0"), ("/app/x", ""), ("/b", "\0"), ("z", "a")]
            [usize::try_from(self.random.below(4)).unwrap()];
        if self.random.chance(40) {
            return Op::RevokePermission {
                role: role.into(),
                key: key.into(),
                range_end: range_end.into(),
            };
        }
        let kinds = [GrantKind::Read, GrantKind::Write, GrantKind::Readwrite];
        let kind = kinds[usize::try_from(self.random.below(3)).unwrap()];
        grant(role, kind, key, range_end)
    }

    fn data(&mut self) -> Op {
        let key = self.random.pick(&["/app/x", "/app/y", "/b"]);
        let value = self.random.pick(&["1", "2", "3"]);
        match self.random.below(8) {
            0 => Op::Delete {
                key: key.into(),
                range_end: "".into(),
                prev_kv: true,
            },
            1 => Op::Txn {
                compare: vec![Compare {
                    key: key.into(),
                    equals: Operand::Value(value.into()),
                }],
                success: vec![put("/app/y", value), get("/app/y")],
                failure: vec![get(key), put(key, value)],
            },
            2 => local_get(key),
            3 => Op::Get {
                key: "/app/".into(),
                range_end: "/app0".into(),
                serializable: false,
                limit: 1,
                revision: i64::try_from(self.random.below(6)).unwrap(),
                count_only: self.random.chance(20),
            },
            4 | 5 => get(key),
            _ => put(key, value),
        }
    }
}

#[test]
fn right_histories_pass() {
    let mut seen = crate::checker::Counts::default();
    for seed in 0..RUNS {
        let history = Run::generate(seed);
        passes(&history);
        let counts = crate::checker::count(&history);
        seen.allowed += counts.allowed;
        seen.denied += counts.denied;
        seen.logins_ok += counts.logins_ok;
        seen.logins_refused += counts.logins_refused;
        seen.unknown += counts.unknown;
    }
    let least = [
        seen.allowed,
        seen.denied,
        seen.logins_ok,
        seen.logins_refused,
        seen.unknown,
    ];
    assert!(least.iter().all(|count| *count > 5 * RUNS), "{seen:?}");
}

#[test]
fn comparing_passwords_without_a_barrier_is_found() {
    let mut found = 0;
    for seed in 0..RUNS {
        let verdict = super::judge(&Run::generate_with(seed, true));
        if verdict.kind != VerdictKind::Ok {
            // Or the second opinion has found what the members' records hide.
            let property = verdict.property.as_deref();
            assert!(
                matches!(property, Some("P5" | "judge")),
                "seed {seed}: {verdict:?}"
            );
            found += 1;
        }
    }
    assert!(found > 0);
}

/// Claims that the judge does not let the mutated history pass.
#[track_caller]
pub(super) fn is_rejected(history: &History, mutation: &str, seed: u64) {
    let verdict = super::judge(history);
    assert_ne!(verdict.kind, VerdictKind::Ok, "{mutation}, seed {seed}");
}

/// Indices of entries that a choice takes, as the first member reports them.
fn entries(history: &History, choose: fn(&crate::history::Applied) -> bool) -> Vec<u64> {
    let mut indices = BTreeSet::new();
    for event in &history.events {
        if let What::Applied(applied) = &event.what
            && applied.request_id != 0
            && choose(applied)
        {
            indices.insert(applied.index);
        }
    }
    indices.into_iter().collect()
}

#[test]
fn a_flipped_decision_is_rejected() {
    for seed in 0..RUNS {
        let mut random = Random(seed);
        let mut history = Run::generate(seed);
        // A login that started over may as well have been given its token, if nobody used it.
        let indices = entries(&history, |applied| applied.decision != "again");
        let chosen = indices[usize::try_from(random.below(indices.len() as u64)).unwrap()];
        let on_one_member = random.chance(50);
        for event in &mut history.events {
            if let What::Applied(applied) = &mut event.what
                && applied.index == chosen
                && (!on_one_member || applied.member == 2)
            {
                let flipped = if applied.decision == "ok" {
                    "permission denied"
                } else {
                    "ok"
                };
                applied.decision = flipped.into();
            }
        }
        is_rejected(&history, "flipped decision", seed);
    }
}

#[test]
fn a_changed_digest_is_rejected() {
    for seed in 0..RUNS {
        let mut random = Random(seed);
        let mut history = Run::generate(seed);
        let places: Vec<usize> = (0..history.events.len())
            .filter(|at| matches!(history.events[*at].what, What::Applied(_)))
            .collect();
        let at = places[usize::try_from(random.below(places.len() as u64)).unwrap()];
        if let What::Applied(applied) = &mut history.events[at].what {
            applied.digest ^= 1;
        }
        is_rejected(&history, "changed digest", seed);
    }
}

#[test]
fn swapped_positions_are_rejected() {
    let mut swapped = 0;
    for seed in 0..RUNS {
        let mut history = Run::generate(seed);
        let indices = entries(&history, |applied| {
            applied.kind == "put" && applied.decision == "ok"
        });
        let Some([one, other]) = indices.first_chunk() else {
            continue;
        };
        // Of two lost writes nobody can say which came first.
        swap_entries(&mut history, *one, *other);
        let answered = entries_were_answered(&history, [*one, *other]);
        if answered {
            swapped += 1;
            is_rejected(&history, "swapped positions", seed);
        }
    }
    assert!(swapped > RUNS / 2);
}

fn entries_were_answered(history: &History, indices: [u64; 2]) -> bool {
    let log = history.events.iter().filter_map(|event| match &event.what {
        What::Applied(applied) if indices.contains(&applied.index) => Some(applied.request_id),
        _ => None,
    });
    let requests: BTreeSet<u64> = log.collect();
    let calls: BTreeSet<u64> = history
        .events
        .iter()
        .filter_map(|event| match event.what {
            What::Proposed {
                call, request_id, ..
            } if requests.contains(&request_id) => Some(call),
            _ => None,
        })
        .collect();
    history.events.iter().any(|event| {
        matches!(&event.what, What::Return { call, outcome: Outcome::Ok(_) } if calls.contains(call))
    })
}

#[test]
fn a_moved_return_is_rejected() {
    for seed in 0..RUNS {
        let mut random = Random(seed);
        let mut history = Run::generate(seed);
        let ends: Vec<usize> = (0..history.events.len())
            .filter(|at| {
                matches!(
                    history.events[*at].what,
                    What::Return {
                        outcome: Outcome::Ok(_),
                        ..
                    }
                )
            })
            .collect();
        let from = ends[usize::try_from(random.below(ends.len() as u64)).unwrap()];
        let What::Return { call, .. } = history.events[from].what else {
            continue;
        };
        let invoked = history.events.iter().position(
            |event| matches!(event.what, What::Invoke { call: sent, .. } if sent == call),
        );
        // To just behind the call's own start, before anything was done for it.
        let to = invoked.unwrap() + 1;
        let mut moved = history.events.remove(from);
        moved.at_us = history.events[to - 1].at_us;
        history.events.insert(to, moved);
        is_rejected(&history, "moved return", seed);
    }
}

#[test]
fn a_flipped_answer_is_rejected() {
    for seed in 0..RUNS {
        let mut random = Random(seed);
        let mut history = Run::generate(seed);
        let mut ends: Vec<&mut Outcome> = history
            .events
            .iter_mut()
            .filter_map(|event| match &mut event.what {
                What::Return { outcome, .. } => Some(outcome),
                _ => None,
            })
            .filter(|outcome| matches!(outcome, Outcome::Ok(_)))
            .collect();
        let chosen = usize::try_from(random.below(ends.len() as u64)).unwrap();
        *ends[chosen] = refused(Refusal::PermissionDenied);
        is_rejected(&history, "flipped answer", seed);
    }
}

#[test]
fn a_scrambled_history_is_judged_without_a_panic() {
    for seed in 0..RUNS {
        let mut random = Random(seed);
        let mut history = Run::generate(seed);
        for _ in 0..8 {
            let at = usize::try_from(random.below(history.events.len() as u64)).unwrap();
            scramble(&mut random, &mut history, at);
        }
        let verdict = super::judge(&history);
        assert_eq!(super::judge(&history), verdict, "seed {seed}");
    }
}

fn scramble(random: &mut Random, history: &mut History, at: usize) {
    let number = [0, 1, u64::MAX][usize::try_from(random.below(3)).unwrap()];
    match &mut history.events[at].what {
        What::Applied(applied) if random.chance(50) => applied.index = number,
        What::Applied(applied) => applied.request_id = number,
        What::Served { index, .. } | What::Started { index, .. } => *index = number,
        What::Proposed { request_id, .. } => *request_id = number,
        What::Invoke { member, .. } => *member = number,
        _ => {
            history.events.remove(at);
        }
    }
}
