//! What clients do: admins who change things, and users who log in, use their tokens here and there, lend them, or have
//! none.

use super::admin::{AdminCalls, any_password};
use super::cast::{Cast, ORDINARY};
use super::data::DataCalls;
use crate::plan::{Client, Cluster, Expect, MemberName, Members, Span, Step, When};
use crate::rng::Rng;
use gatehouse_judge::history::Op;

/// Longest pause of a busy client, and of one that comes by now and then, milliseconds.
const PAUSES_MS: [u64; 3] = [50, 400, 1_500];

/// How a client behaves.
#[derive(Clone, Copy, Debug)]
enum Manner {
    /// Logs in once and goes on.
    Steady,
    /// Logs in again every few calls.
    LogsInOften,
    /// Has somebody else's token.
    Borrows,
    /// Presents none.
    Anonymous,
    /// Reads what its member has.
    Local,
    /// Has no rights, and writes all the same.
    Refused,
}

const MANNERS: [Manner; 8] = [
    Manner::Steady,
    Manner::Steady,
    Manner::LogsInOften,
    Manner::LogsInOften,
    Manner::Borrows,
    Manner::Anonymous,
    Manner::Local,
    Manner::Refused,
];

pub(super) fn clients(cast: &Cast, cluster: &Cluster, rng: &mut Rng) -> Vec<Client> {
    let admin_calls = AdminCalls::new(rng);
    let mut data_calls = DataCalls::new(rng);
    let calls = (&admin_calls, &mut data_calls);
    let mut clients = vec![admin("admin", "root", cast, cluster, calls, rng)];
    if rng.chance(0.6) {
        let calls = (&admin_calls, &mut data_calls);
        clients.push(admin("boss", "boss", cast, cluster, calls, rng));
    }
    // Whose rights and tokens the others use, and who is there in every plan.
    clients.push(alice(cluster, &mut data_calls, rng));
    for number in 1..=rng.between(1, 4) {
        let manner = *rng.pick(&MANNERS).expect("not empty");
        let name = format!("client-{number}");
        clients.push(ordinary(&name, manner, cluster, &mut data_calls, rng));
    }
    clients
}

/// What a run must have seen at least: the clients that repeat have logged in, and somebody was allowed something.
pub(super) fn expect(cast: &Cast) -> Expect {
    Expect {
        logins_ok: u64::from(cast.auth_on),
        allowed: 1,
        ..Expect::default()
    }
}

fn pause(rng: &mut Rng) -> Span {
    let high = *rng.pick(&PAUSES_MS).expect("not empty");
    Span { low: 0, high }
}

fn step(op: Op, pause: Span) -> Step {
    Step {
        op,
        when: When {
            after_ms: Some(pause),
            ..When::default()
        },
    }
}

fn members(cluster: &Cluster, rng: &mut Rng) -> Members {
    match rng.between(1, 6) {
        1 => Members::Named(MemberName::Leader),
        2 => Members::Named(MemberName::Follower),
        3 => Members::Named(MemberName::LastFollower),
        4 => Members::One(rng.between(1, cluster.members)),
        _ => Members::Named(MemberName::Any),
    }
}

fn login(user: &str, password: gatehouse_judge::text::Text, pause: Span) -> Step {
    let login = Op::Login {
        user: user.into(),
        password,
    };
    step(login, pause)
}

fn admin(
    name: &str,
    user: &str,
    cast: &Cast,
    cluster: &Cluster,
    (calls, data): (&AdminCalls, &mut DataCalls),
    rng: &mut Rng,
) -> Client {
    let mut steps = Vec::new();
    if !cast.auth_on && user == "root" {
        steps.push(step(
            Op::AuthEnable {},
            Span {
                low: 0,
                high: 1_000,
            },
        ));
    }
    steps.push(login(user, format!("{user}-1").into(), Span::default()));
    // Nobody takes a right from `root`, so that something is allowed in every run.
    if user == "root" {
        steps.push(step(data.put(rng), Span::default()));
    }
    for _ in 0..rng.between(3, 8) {
        let pause = pause(rng);
        for (at, op) in calls.draw(rng).into_iter().enumerate() {
            // Calls that belong together follow each other closely.
            let after = if at == 0 {
                pause
            } else {
                Span { low: 0, high: 50 }
            };
            steps.push(step(op, after));
        }
    }
    if user == "root" {
        // Faults may have cost it its first login.
        steps.push(login(user, format!("{user}-1").into(), pause(rng)));
        steps.push(step(data.put(rng), Span::default()));
    }
    Client {
        name: name.to_owned(),
        member: members(cluster, rng),
        retry: user == "root" || rng.chance(0.5),
        copies: None,
        steps,
    }
}

fn alice(cluster: &Cluster, calls: &mut DataCalls, rng: &mut Rng) -> Client {
    let mut first = login("alice", "alice-1".into(), Span { low: 0, high: 200 });
    first.when.label = Some("alice-in".to_owned());
    let mut steps = vec![first];
    for _ in 0..rng.between(4, 10) {
        steps.push(step(calls.draw(rng), pause(rng)));
    }
    Client {
        name: "alice".to_owned(),
        member: members(cluster, rng),
        retry: true,
        copies: None,
        steps,
    }
}

fn ordinary(
    name: &str,
    manner: Manner,
    cluster: &Cluster,
    calls: &mut DataCalls,
    rng: &mut Rng,
) -> Client {
    let user = match manner {
        Manner::Refused => "dave",
        _ => rng.pick(&ORDINARY).expect("not empty"),
    };
    let elsewhere = rng.chance(0.4).then(|| members(cluster, rng));
    let mut steps = Vec::new();
    if !matches!(manner, Manner::Borrows | Manner::Anonymous) {
        let mut first = login(user, any_password(user, rng), pause(rng));
        first.when.member = elsewhere;
        steps.push(first);
    }
    for number in 1..=rng.between(3, 10) {
        if matches!(manner, Manner::LogsInOften) && number % 3 == 0 {
            steps.push(login(user, any_password(user, rng), pause(rng)));
        }
        steps.push(one_call(manner, calls, rng));
    }
    Client {
        name: name.to_owned(),
        member: members(cluster, rng),
        retry: rng.chance(0.4),
        copies: None,
        steps,
    }
}

fn one_call(manner: Manner, calls: &mut DataCalls, rng: &mut Rng) -> Step {
    let op = match manner {
        Manner::Refused => calls.put(rng),
        Manner::Local => match calls.draw(rng) {
            Op::Get {
                key,
                range_end,
                limit,
                count_only,
                ..
            } => Op::Get {
                key,
                range_end,
                serializable: true,
                limit,
                revision: 0,
                count_only,
            },
            other => other,
        },
        _ => calls.draw(rng),
    };
    let mut step = step(op, pause(rng));
    step.when.anonymous = matches!(manner, Manner::Anonymous);
    if matches!(manner, Manner::Borrows) {
        step.when.use_token_of = Some("alice-in".to_owned());
    }
    if rng.chance(0.1) {
        step.when.repeat = Some(rng.between(2, 6));
    }
    if rng.chance(0.1) {
        step.when.timeout_ms = Some(rng.between(50, 1_000));
    }
    step
}
