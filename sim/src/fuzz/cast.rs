//! Who and what there is: users, roles, rights and keys, from pools so small that everything collides.

use crate::plan::Step;
use crate::rng::Rng;
use gatehouse_judge::history::{Grant, GrantKind, Op};

/// Keys that are written. Neighbours in the order of keys, so that the ends of ranges fall between, on and beside them.
pub(super) const KEYS: [&str; 7] = ["a", "a0", "a1", "b", "b0", "c", "d"];

/// Ranges that are granted and asked for: single keys, neighbours that touch, one inside another, open ends, everything.
pub(super) const RANGES: [(&str, &str); 12] = [
    ("a", ""),
    ("b", ""),
    ("a", "a1"),
    ("a", "b"),
    ("a1", "b0"),
    ("b", "c"),
    ("c", "d"),
    ("a", "c"),
    ("b", "\0"),
    ("d", "\0"),
    ("\0", "\0"),
    ("b0", "c"),
];

/// Roles that come and go.
pub(super) const ROLES: [&str; 3] = ["reader", "writer", "keeper"];

/// Users that come and go. `boss` begins with role `root`; `dave` never gets a role at the start.
pub(super) const USERS: [&str; 5] = ["alice", "bob", "carol", "boss", "dave"];

/// Who logs in beside the admins.
pub(super) const ORDINARY: [&str; 4] = ["alice", "bob", "carol", "dave"];

/// The ids of a user's passwords: the first is the one it begins with.
pub(super) fn password(user: &str, number: u64) -> String {
    format!("{user}-{number}")
}

/// Most passwords of one user.
pub(super) const PASSWORDS: u64 = 2;

/// What exists when the clients start.
pub(super) struct Cast {
    grants: Vec<(&'static str, Grant)>,
    roles_of: Vec<(&'static str, &'static str)>,
    keys: Vec<&'static str>,
    /// Whether auth is on from the start.
    pub(super) auth_on: bool,
}

impl Cast {
    pub(super) fn draw(rng: &mut Rng) -> Cast {
        let mut grants = Vec::new();
        for role in ROLES {
            for _ in 0..rng.between(0, 2) {
                grants.push((role, grant(rng)));
            }
        }
        // Somebody has a right to something, or nothing would ever be allowed.
        let everything = Grant {
            kind: GrantKind::Readwrite,
            key: "a".into(),
            range_end: "c".into(),
        };
        grants.push((ROLES[0], everything));
        let mut roles_of = vec![("boss", "root"), ("alice", ROLES[0])];
        for user in ["alice", "bob", "carol"] {
            for role in ROLES {
                if rng.chance(0.4) && !roles_of.contains(&(user, role)) {
                    roles_of.push((user, role));
                }
            }
        }
        Cast {
            grants,
            roles_of,
            keys: KEYS.into_iter().filter(|_| rng.chance(0.5)).collect(),
            auth_on: rng.chance(0.9),
        }
    }

    /// The set-up.
    pub(super) fn setup(&self) -> Vec<Step> {
        let mut steps = vec![add("root"), grant_role("root", "root")];
        let role_add = |role: &&str| {
            Step::plain(Op::RoleAdd {
                role: (*role).into(),
            })
        };
        steps.extend(ROLES.iter().map(role_add));
        steps.extend(self.grants.iter().map(|(role, grant)| {
            Step::plain(Op::GrantPermission {
                role: (*role).into(),
                grant: grant.clone(),
            })
        }));
        steps.extend(USERS.iter().map(|user| add(user)));
        steps.extend(
            self.roles_of
                .iter()
                .map(|(user, role)| grant_role(user, role)),
        );
        steps.extend(self.keys.iter().map(|key| {
            Step::plain(Op::Put {
                key: (*key).into(),
                value: "first".into(),
                prev_kv: false,
            })
        }));
        if self.auth_on {
            steps.push(Step::plain(Op::AuthEnable {}));
        }
        steps
    }
}

/// A right to some range.
pub(super) fn grant(rng: &mut Rng) -> Grant {
    let (key, range_end) = *rng.pick(&RANGES).expect("not empty");
    let kinds = [GrantKind::Read, GrantKind::Write, GrantKind::Readwrite];
    Grant {
        kind: *rng.pick(&kinds).expect("not empty"),
        key: key.into(),
        range_end: range_end.into(),
    }
}

fn add(user: &str) -> Step {
    Step::plain(Op::UserAdd {
        user: user.into(),
        password: password(user, 1).into(),
    })
}

fn grant_role(user: &str, role: &str) -> Step {
    Step::plain(Op::GrantRole {
        user: user.into(),
        role: role.into(),
    })
}
