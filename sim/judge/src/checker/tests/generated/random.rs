//! What is drawn: numbers, and the operations that clients ask for.

use crate::checker::tests::script::*;
use crate::history::{Compare, GrantKind, Op, Operand};

/// A small generator of its own (splitmix64), so that the tests are the same everywhere.
pub(in crate::checker::tests) struct Random(pub(in crate::checker::tests) u64);

impl Random {
    pub(in crate::checker::tests) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % bound
    }

    pub(in crate::checker::tests) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        let index = self.below(choices.len() as u64);
        choices[usize::try_from(index).unwrap()]
    }

    /// What a client asks for next.
    pub(super) fn op(&mut self) -> Op {
        let user = self.pick(&["root", "alice", "alice", "bob"]);
        let password = self.pick(&["r", "old", "new"]);
        let role = self.pick(&["root", "app", "x"]);
        match self.below(40) {
            0..8 if user == "root" => login("root", "r"),
            0..8 => login(user, password),
            8 if user != "root" => change_password(user, password),
            9 => user_add(user, password),
            10 if self.chance(30) => user_delete(user),
            11 => grant_role(user, role),
            12 if user != "root" => revoke_role(user, role),
            13 => Op::RoleAdd { role: role.into() },
            14 if self.chance(30) => Op::RoleDelete { role: role.into() },
            15 if self.chance(20) => Op::AuthDisable {},
            16 | 17 => Op::AuthEnable {},
            18 => Op::AuthStatus {},
            19 => Op::UserGet { user: user.into() },
            20 => Op::RoleGet { role: role.into() },
            21 => self.listing(),
            22 | 23 => self.permission(role),
            _ => self.data(),
        }
    }

    fn listing(&mut self) -> Op {
        if self.chance(50) {
            Op::UserList {}
        } else {
            Op::RoleList {}
        }
    }

    fn permission(&mut self, role: &str) -> Op {
        let (key, range_end) = [("/app/", "/app0"), ("/app/x", ""), ("/b", "\0"), ("z", "a")]
            [usize::try_from(self.below(4)).unwrap()];
        if self.chance(40) {
            return Op::RevokePermission {
                role: role.into(),
                key: key.into(),
                range_end: range_end.into(),
            };
        }
        let kinds = [GrantKind::Read, GrantKind::Write, GrantKind::Readwrite];
        let kind = kinds[usize::try_from(self.below(3)).unwrap()];
        grant(role, kind, key, range_end)
    }

    fn data(&mut self) -> Op {
        let key = self.pick(&["/app/x", "/app/y", "/b"]);
        let value = self.pick(&["1", "2", "3"]);
        match self.below(8) {
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
                revision: i64::try_from(self.below(6)).unwrap(),
                count_only: self.chance(20),
            },
            4 | 5 => get(key),
            _ => put(key, value),
        }
    }
}
