//! What the clients ask: users with a role each, every role with a part of the keys.

use super::client::Client;
use super::cluster::Cluster;
use super::{CLIENTS, Record};
use crate::history::{Compare, Grant, GrantKind, Op, Operand};
use crate::random::Random;
use crate::text::Text;

/// Roles, and parts of the key space.
const PARTS: u64 = 16;

/// Keys in a part.
const KEYS: u64 = 32;

/// The user of a client; the first client is root's.
pub(super) fn user(client: u64) -> Text {
    if client == 0 {
        return "root".into();
    }
    format!("u{client}").into()
}

fn role(part: u64) -> Text {
    format!("r{part}").into()
}

fn key(part: u64, number: u64) -> Text {
    format!("/p{part:02}/k{number:02}").into()
}

/// The role's own part of the keys.
fn grant(part: u64) -> Grant {
    Grant {
        kind: GrantKind::Readwrite,
        key: format!("/p{part:02}/").into(),
        range_end: format!("/p{part:02}0").into(),
    }
}

/// A password that nobody had before.
fn password(record: &Record) -> Text {
    format!("p{}", record.calls).into()
}

/// Makes users and roles, switches auth on and logs root in.
pub(super) fn set_up(
    clients: &mut [Client],
    cluster: &mut Cluster,
    record: &mut Record,
    rng: &mut Random,
) {
    let mut ops = Vec::new();
    for part in 0..PARTS {
        ops.push(Op::RoleAdd { role: role(part) });
        ops.push(Op::GrantPermission {
            role: role(part),
            grant: grant(part),
        });
    }
    for client in 0..CLIENTS {
        ops.push(Op::UserAdd {
            user: user(client),
            password: "first".into(),
        });
        let role = if client == 0 {
            "root".into()
        } else {
            role(client % PARTS)
        };
        ops.push(Op::GrantRole {
            user: user(client),
            role,
        });
    }
    ops.push(Op::AuthEnable {});
    for op in ops.into_iter().chain([log_in(&user(0), "first")]) {
        let root = &mut clients[0];
        root.send(op, None, record, rng);
        while root.is_busy() {
            record.pause(rng);
            root.advance(cluster, record, rng);
        }
    }
}

fn log_in(user: &Text, password: &str) -> Op {
    Op::Login {
        user: user.clone(),
        password: password.into(),
    }
}

/// What the client asks next, and with which token.
pub(super) fn next(
    client: &Client,
    cluster: &Cluster,
    record: &Record,
    rng: &mut Random,
) -> (Op, Option<u64>) {
    if client.token.is_none() || rng.rarely(15) {
        let known = cluster.model.accounts().user(&client.user);
        let right = known.map_or("none", |user| user.password.as_str());
        let password = if rng.chance(10) { "wrong" } else { right };
        return (log_in(&client.user, password), None);
    }
    // Root alone may change accounts, and has one call at a time as everybody has.
    if client.user == "root" && rng.chance(60) {
        return (change(record, rng), client.token);
    }
    let part = part(client, rng);
    (data(record, rng, part), client.token)
}

/// The part of the keys that a call goes to: mostly one that the client's first role has.
fn part(client: &Client, rng: &mut Random) -> u64 {
    let number = client.user.trim_start_matches('u').parse::<u64>();
    match number {
        Ok(number) if rng.chance(90) => number % PARTS,
        _ => rng.between(0, PARTS - 1),
    }
}

/// A change of accounts. What one takes, another one gives back, so that most calls stay allowed.
fn change(record: &Record, rng: &mut Random) -> Op {
    let number = rng.between(1, CLIENTS - 1);
    let part = number % PARTS;
    match rng.between(0, 39) {
        0 => Op::UserDelete { user: user(number) },
        1..=4 => Op::UserAdd {
            user: user(number),
            password: password(record),
        },
        5..=10 => Op::ChangePassword {
            user: user(number),
            password: password(record),
        },
        11 => Op::RevokeRole {
            user: user(number),
            role: role(part),
        },
        12..=23 => Op::GrantRole {
            user: user(number),
            role: role(part),
        },
        24 => Op::RevokePermission {
            role: role(part),
            key: grant(part).key,
            range_end: grant(part).range_end,
        },
        25..=34 => Op::GrantPermission {
            role: role(part),
            grant: grant(part),
        },
        35..=36 => Op::RoleGet { role: role(part) },
        37..=38 => Op::UserGet { user: user(number) },
        _ => Op::UserList {},
    }
}

fn data(record: &Record, rng: &mut Random, part: u64) -> Op {
    let key = key(part, rng.between(0, KEYS - 1));
    let value: Text = format!("v{}", record.calls).into();
    match rng.between(0, 99) {
        0..=4 => Op::Delete {
            key,
            range_end: "".into(),
            prev_kv: rng.chance(50),
        },
        5..=9 => Op::Txn {
            compare: vec![Compare {
                key: key.clone(),
                equals: Operand::Version(0),
            }],
            success: vec![put(key.clone(), value, false), get(key.clone(), "", false)],
            failure: vec![get(key, "", false)],
        },
        10..=49 => put(key, value, rng.chance(10)),
        50..=51 => get(grant(part).key, &grant(part).range_end, false),
        52..=61 => get(key, "", true),
        _ => get(key, "", false),
    }
}

fn put(key: Text, value: Text, prev_kv: bool) -> Op {
    Op::Put {
        key,
        value,
        prev_kv,
    }
}

fn get(key: Text, range_end: &str, serializable: bool) -> Op {
    Op::Get {
        key,
        range_end: range_end.into(),
        serializable,
        limit: if range_end.is_empty() { 0 } else { 4 },
        revision: 0,
        count_only: false,
    }
}

/// Whether the call is answered without an entry.
pub(super) fn is_read(op: &Op) -> bool {
    matches!(
        op,
        Op::Get { .. } | Op::UserGet { .. } | Op::UserList {} | Op::RoleGet { .. }
    )
}
