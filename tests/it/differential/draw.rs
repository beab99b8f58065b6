//! Draws calls from a seed. The same seed and the same answers give the same calls; what has been answered only tells
//! which passwords count and whether auth is on, so that most calls get somewhere.

use super::administration::permission;
use super::data;
use super::request::{Answer, Request};
use super::rng::Rng;
use super::step::{Caller, Step};
use gatehouse::pb::etcdserverpb as pb;
use std::collections::{BTreeMap, VecDeque};

/// Who is added at the start, besides root.
pub(super) const FIRST_USERS: [&str; 4] = ["alice", "bob", "carol", "dave"];
pub(super) const FIRST_ROLES: [&str; 3] = ["reader", "writer", "wide"];
const FIRST_GRANTS: [(&str, i32, &str, &str); 3] = [
    ("reader", 0, "a", "\0"),
    ("writer", 1, "a", "c"),
    ("wide", 2, "\0", "\0"),
];
pub(super) const PASSWORDS: [&str; 4] = ["one", "two", "with:colon", "ünïcode"];

/// Draws one seed's calls.
pub(super) struct Draw {
    pub(super) rng: Rng,
    /// Calls that come next whatever is drawn.
    pub(super) queue: VecDeque<Step>,
    /// The password of everybody who has one.
    pub(super) passwords: BTreeMap<String, String>,
    auth_on: bool,
    /// What was granted; some of it may have been taken away.
    pub(super) granted: Vec<pb::AuthRoleRevokePermissionRequest>,
    /// Newest revision and the compacted one, as far as answers have told.
    past: data::Past,
}

impl Draw {
    pub(super) fn new(seed: u64) -> Draw {
        let mut draw = Draw {
            rng: Rng::new(seed),
            queue: VecDeque::new(),
            passwords: BTreeMap::new(),
            auth_on: false,
            granted: Vec::new(),
            past: data::Past::default(),
        };
        draw.begin();
        draw
    }

    /// The next call.
    pub(super) fn next(&mut self) -> Step {
        if let Some(step) = self.queue.pop_front() {
            return step;
        }
        if !self.auth_on && self.rng.chance(15) {
            self.switch_on();
        }
        match self.rng.below(100) {
            0..72 => {
                let caller = self.caller(30);
                let request = data::draw(&mut self.rng, self.past);
                Step { caller, request }
            }
            72..92 => self.administration(),
            92..98 => self.login(),
            _ => self.rarely(),
        }
    }

    /// Takes note of a call that both servers have carried out.
    pub(super) fn heard(&mut self, step: &Step, answer: &Answer) {
        if let Some(revision) = answer.revision() {
            self.past.revision = self.past.revision.max(revision);
        }
        match &step.request {
            Request::AuthEnable(_) => {
                self.auth_on = true;
                self.log_in("root");
                for user in FIRST_USERS {
                    self.log_in(user);
                }
            }
            Request::AuthDisable(_) => self.auth_on = false,
            Request::UserAdd(add) if add.options.is_some_and(|options| options.no_password) => {}
            Request::UserAdd(add) => {
                self.passwords
                    .insert(add.name.clone(), add.password.clone());
            }
            Request::UserChangePassword(change) => {
                if let Some(password) = self.passwords.get_mut(&change.name) {
                    password.clone_from(&change.password);
                    self.log_in(&change.name);
                }
            }
            Request::UserDelete(delete) => {
                self.passwords.remove(&delete.name);
            }
            // What a role lists shows what the grant came to.
            Request::RoleGrantPermission(grant) => {
                let role = grant.name.clone();
                if let Some(perm) = grant.perm.clone() {
                    self.granted.push(pb::AuthRoleRevokePermissionRequest {
                        role: role.clone(),
                        key: perm.key,
                        range_end: perm.range_end,
                    });
                }
                self.queue_first(pb::AuthRoleGetRequest { role });
            }
            Request::Compact(compact) => self.past.compacted = compact.revision,
            _ => {}
        }
    }

    /// The first users, roles and keys; then auth is switched on.
    fn begin(&mut self) {
        for user in FIRST_USERS {
            self.queue_add(user);
        }
        for (role, kind, key, range_end) in FIRST_GRANTS {
            self.queue(pb::AuthRoleAddRequest { name: role.into() });
            self.queue(permission(role, kind, key.into(), range_end.into()));
            let grant = self.grant(role);
            self.queue(grant);
        }
        for (user, role) in [
            ("alice", "reader"),
            ("alice", "writer"),
            ("bob", "wide"),
            ("carol", "writer"),
        ] {
            self.queue(pb::AuthUserGrantRoleRequest {
                user: user.into(),
                role: role.into(),
            });
        }
        for _ in 0..8 {
            let put = data::put(&mut self.rng);
            self.queue(put);
        }
        self.switch_on();
    }

    fn switch_on(&mut self) {
        self.queue_add("root");
        self.queue(pb::AuthUserGrantRoleRequest {
            user: "root".into(),
            role: "root".into(),
        });
        self.queue(pb::AuthEnableRequest {});
    }

    fn queue(&mut self, request: impl Into<Request>) {
        self.queue.push_back(Step {
            caller: Caller::Anonymous,
            request: request.into(),
        });
    }

    fn queue_add(&mut self, user: &str) {
        let password = self.rng.pick(&PASSWORDS);
        self.queue(pb::AuthUserAddRequest {
            name: user.into(),
            password: password.into(),
            ..Default::default()
        });
    }

    fn queue_first(&mut self, request: impl Into<Request>) {
        self.queue.push_front(Step {
            caller: Caller::Administrator,
            request: request.into(),
        });
    }

    fn log_in(&mut self, user: &str) {
        let Some(password) = self.passwords.get(user).cloned() else {
            return;
        };
        self.queue(pb::AuthenticateRequest {
            name: user.into(),
            password,
        });
    }

    /// Who asks; `percent` of all times an administrator.
    pub(super) fn caller(&mut self, percent: usize) -> Caller {
        if self.rng.chance(percent) {
            return Caller::User("root".into());
        }
        match self.rng.below(20) {
            0..7 => Caller::User("alice".into()),
            7..12 => Caller::User("bob".into()),
            12..15 => Caller::User("carol".into()),
            15 => Caller::User("dave".into()),
            16 => Caller::Anonymous,
            17 => Caller::Former(self.rng.pick(&["root", "alice", "bob"]).into()),
            _ => Caller::Presenting(
                self.rng
                    .pick(&[
                        "",
                        "garbage",
                        "a.b",
                        "aaaaaaaaaaaaaaaa.1",
                        "aaaaaaaaaaaaaaaa.1.1",
                        ".1",
                        "1.",
                    ])
                    .into(),
            ),
        }
    }
}
