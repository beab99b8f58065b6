//! Calls of admins. User `root` and its role are left alone, since the proof of liveness needs them.

use super::cast::{PASSWORDS, RANGES, ROLES, USERS, grant, password};
use super::menu::Menu;
use crate::rng::Rng;
use gatehouse_judge::history::Op;

/// What an admin may do at once; some things are several calls in a row.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    ChangePassword,
    GrantRole,
    RevokeRole,
    GrantPermission,
    RevokePermission,
    UserDelete,
    UserAdd,
    /// Deleted and created again: the same name, another user.
    UserAgain,
    RoleDelete,
    RoleAdd,
    /// The same with a role, which comes back without rights.
    RoleAgain,
    Demote,
    Promote,
    Toggle,
    Status,
    UserGet,
    RoleGet,
    UserList,
    RoleList,
}

/// With weights.
const KINDS: [(u64, Kind); 19] = [
    (6, Kind::ChangePassword),
    (5, Kind::GrantRole),
    (6, Kind::RevokeRole),
    (5, Kind::GrantPermission),
    (6, Kind::RevokePermission),
    (2, Kind::UserDelete),
    (2, Kind::UserAdd),
    (3, Kind::UserAgain),
    (2, Kind::RoleDelete),
    (2, Kind::RoleAdd),
    (2, Kind::RoleAgain),
    (3, Kind::Demote),
    (3, Kind::Promote),
    (2, Kind::Toggle),
    (1, Kind::Status),
    (1, Kind::UserGet),
    (1, Kind::RoleGet),
    (1, Kind::UserList),
    (1, Kind::RoleList),
];

/// The calls of one seed.
pub(super) struct AdminCalls(Menu<Kind>);

impl AdminCalls {
    pub(super) fn new(rng: &mut Rng) -> AdminCalls {
        AdminCalls(Menu::some_of(&KINDS, rng))
    }

    /// One thing, as one or more calls.
    pub(super) fn draw(&self, rng: &mut Rng) -> Vec<Op> {
        let user = *rng.pick(&USERS).expect("not empty");
        let role = *rng.pick(&ROLES).expect("not empty");
        match self.0.draw(rng) {
            Kind::ChangePassword => vec![Op::ChangePassword {
                user: user.into(),
                password: any_password(user, rng),
            }],
            Kind::GrantRole => vec![grant_role(user, role)],
            Kind::RevokeRole => vec![revoke_role(user, role)],
            Kind::GrantPermission => vec![Op::GrantPermission {
                role: role.into(),
                grant: grant(rng),
            }],
            Kind::RevokePermission => {
                let (key, range_end) = *rng.pick(&RANGES).expect("not empty");
                vec![Op::RevokePermission {
                    role: role.into(),
                    key: key.into(),
                    range_end: range_end.into(),
                }]
            }
            Kind::UserDelete => vec![Op::UserDelete { user: user.into() }],
            Kind::UserAdd => vec![user_add(user, rng)],
            Kind::UserAgain => vec![
                Op::UserDelete { user: user.into() },
                user_add(user, rng),
                grant_role(user, role),
            ],
            Kind::RoleDelete => vec![Op::RoleDelete { role: role.into() }],
            Kind::RoleAdd => vec![Op::RoleAdd { role: role.into() }],
            Kind::RoleAgain => vec![
                Op::RoleDelete { role: role.into() },
                Op::RoleAdd { role: role.into() },
                grant_role(user, role),
            ],
            Kind::Demote => vec![revoke_role("boss", "root")],
            Kind::Promote => vec![grant_role("boss", "root")],
            Kind::Toggle => vec![Op::AuthDisable {}, Op::AuthEnable {}],
            Kind::Status => vec![Op::AuthStatus {}],
            Kind::UserGet => vec![Op::UserGet { user: user.into() }],
            Kind::RoleGet => vec![Op::RoleGet { role: role.into() }],
            Kind::UserList => vec![Op::UserList {}],
            Kind::RoleList => vec![Op::RoleList {}],
        }
    }
}

/// One of the user's passwords, the first more often than not.
pub(super) fn any_password(user: &str, rng: &mut Rng) -> gatehouse_judge::text::Text {
    let number = if rng.chance(0.6) {
        1
    } else {
        rng.between(1, PASSWORDS)
    };
    password(user, number).into()
}

fn user_add(user: &str, rng: &mut Rng) -> Op {
    Op::UserAdd {
        user: user.into(),
        password: any_password(user, rng),
    }
}

fn grant_role(user: &str, role: &str) -> Op {
    Op::GrantRole {
        user: user.into(),
        role: role.into(),
    }
}

fn revoke_role(user: &str, role: &str) -> Op {
    Op::RevokeRole {
        user: user.into(),
        role: role.into(),
    }
}
