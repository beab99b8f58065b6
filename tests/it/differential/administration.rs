//! Draws logins and changes of users, roles and auth itself.

use super::data;
use super::draw::{Draw, FIRST_ROLES, FIRST_USERS, PASSWORDS};
use super::request::Request;
use super::step::{Caller, Step};
use bytes::Bytes;
use gatehouse::pb::authpb;
use gatehouse::pb::etcdserverpb as pb;

/// Everybody there may be; `ghost` is never added, and no name is a name too.
const USERS: [&str; 8] = ["root", "alice", "bob", "carol", "dave", "erin", "ghost", ""];
const ROLES: [&str; 7] = ["root", "reader", "writer", "wide", "odd", "ghost", ""];

impl Draw {
    pub(super) fn login(&mut self) -> Step {
        let name = self.rng.pick(&USERS);
        let password = match self.passwords.get(name) {
            Some(password) if self.rng.chance(75) => password.clone(),
            _ => self.rng.pick(&["one", "two", "", "wrong"]).into(),
        };
        Step {
            caller: self.caller(20),
            request: pb::AuthenticateRequest {
                name: name.into(),
                password,
            }
            .into(),
        }
    }

    /// What changes who may do what at all.
    pub(super) fn rarely(&mut self) -> Step {
        let request = match self.rng.below(6) {
            0..2 => pb::AuthDisableRequest {}.into(),
            2..4 => pb::AuthEnableRequest {}.into(),
            _ => self.user_deletion(),
        };
        Step {
            caller: self.caller(60),
            request,
        }
    }

    fn user_deletion(&mut self) -> Request {
        let name = self.rng.pick(&USERS).to_owned();
        self.queue_later(&name);
        pb::AuthUserDeleteRequest { name }.into()
    }

    /// Somebody who was deleted comes back, so that there is somebody to ask.
    fn queue_later(&mut self, user: &str) {
        if FIRST_USERS.contains(&user) && self.rng.chance(70) {
            let password = self.rng.pick(&PASSWORDS).to_owned();
            let caller = Caller::Administrator;
            let name = user.to_owned();
            let add = pb::AuthUserAddRequest {
                name: name.clone(),
                password: password.clone(),
                ..Default::default()
            };
            let grant = pb::AuthUserGrantRoleRequest {
                user: name.clone(),
                role: self.rng.pick(&FIRST_ROLES).into(),
            };
            let login = pb::AuthenticateRequest { name, password };
            for request in [add.into(), grant.into(), login.into()] {
                let caller = caller.clone();
                self.queue.push_back(Step { caller, request });
            }
        }
    }

    pub(super) fn administration(&mut self) -> Step {
        let caller = self.caller(65);
        let user: String = self.rng.pick(&USERS).into();
        let role: String = self.rng.pick(&ROLES).into();
        let request: Request = match self.rng.below(26) {
            0..2 => self.user_addition(user),
            2..4 => pb::AuthUserGetRequest { name: user }.into(),
            4 => pb::AuthUserListRequest {}.into(),
            5 => pb::AuthRoleListRequest {}.into(),
            6..8 => pb::AuthUserChangePasswordRequest {
                name: user,
                password: self.rng.pick(&PASSWORDS).into(),
                ..Default::default()
            }
            .into(),
            8..12 => pb::AuthUserGrantRoleRequest { user, role }.into(),
            12..14 => pb::AuthUserRevokeRoleRequest { name: user, role }.into(),
            14..16 => pb::AuthRoleAddRequest { name: role }.into(),
            16..18 => pb::AuthRoleGetRequest { role }.into(),
            18 => pb::AuthRoleDeleteRequest { role }.into(),
            19..23 => self.grant(&role).into(),
            23..25 => self.revocation(role),
            _ => pb::AuthStatusRequest {}.into(),
        };
        Step { caller, request }
    }

    fn user_addition(&mut self, name: String) -> Request {
        // Root needs a password: a cluster whose administrator cannot log in has nothing more to tell.
        let no_password = name != "root" && self.rng.chance(20);
        pb::AuthUserAddRequest {
            name,
            password: self.rng.pick(&PASSWORDS).into(),
            options: (no_password || self.rng.chance(20))
                .then_some(authpb::UserAddOptions { no_password }),
            ..Default::default()
        }
        .into()
    }

    pub(super) fn grant(&mut self, role: &str) -> pb::AuthRoleGrantPermissionRequest {
        let (key, range_end) = data::range(&mut self.rng);
        permission(role, self.rng.pick(&[0, 0, 1, 2, 2, 2, 7]), key, range_end)
    }

    fn revocation(&mut self, role: String) -> Request {
        if !self.granted.is_empty() && self.rng.chance(70) {
            let at = self.rng.below(self.granted.len());
            return self.granted.swap_remove(at).into();
        }
        let (key, range_end) = data::range(&mut self.rng);
        pb::AuthRoleRevokePermissionRequest {
            role,
            key,
            range_end,
        }
        .into()
    }
}

/// A grant to a role.
pub(super) fn permission(
    role: &str,
    perm_type: i32,
    key: Bytes,
    range_end: Bytes,
) -> pb::AuthRoleGrantPermissionRequest {
    pb::AuthRoleGrantPermissionRequest {
        name: role.into(),
        perm: Some(authpb::Permission {
            perm_type,
            key,
            range_end,
        }),
    }
}
