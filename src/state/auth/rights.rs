//! What each user may read and write, derived from users and roles so that a decision costs one lookup (etcd's unified
//! cache, `server/auth/range_perm_cache.go`, but kept up incrementally: a change touches the users that it is about).

use super::super::command::{PermissionKind, RawRange};
use super::super::key_range::UpperBound;
use super::super::name::{ROOT, RoleName, UserName};
use super::super::range_set::RangeSet;
use super::super::record::UserRecord;
use super::Role;
use crate::planted::{Bug, planted};
use imbl::{OrdMap, OrdSet};

/// The rights of every user. Holds an entry for exactly the users that exist.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rights {
    by_user: OrdMap<UserName, UserRights>,
    /// Who holds a role; no entry for a role that nobody holds.
    holders: OrdMap<RoleName, OrdSet<UserName>>,
}

/// The union of what a user's roles allow.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::state) struct UserRights {
    /// Whether the user holds role `root`, which stands above every range.
    pub(super) root: bool,
    /// What may be read.
    pub(super) read: RangeSet,
    /// What may be written.
    pub(super) write: RangeSet,
}

impl Rights {
    /// The rights of `user`; `None` if there is no such user.
    pub(super) fn of(&self, user: &UserName) -> Option<&UserRights> {
        self.by_user.get(user)
    }

    /// Whether `user` holds `role`.
    pub(super) fn holds(&self, user: &UserName, role: &RoleName) -> bool {
        self.holders
            .get(role)
            .is_some_and(|holders| holders.contains(user))
    }

    /// The users that hold `role`, in order.
    pub(super) fn holders(&self, role: &RoleName) -> Vec<UserName> {
        self.holders
            .get(role)
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }

    /// Builds the rights of one user anew from `user` (`None`: it is gone), given what it was `before` (`None`: new).
    pub(super) fn set_user(
        &mut self,
        name: &UserName,
        before: Option<&UserRecord>,
        user: Option<&UserRecord>,
        roles: &OrdMap<RoleName, Role>,
    ) {
        for role in before.into_iter().flat_map(|before| &before.roles) {
            self.forget_holder(name, role);
        }
        let Some(user) = user else {
            self.by_user.remove(name);
            return;
        };
        let mut rights = UserRights::default();
        for role in &user.roles {
            self.holders
                .entry(role.clone())
                .or_default()
                .insert(name.clone());
            rights.root |= role.as_str() == ROOT;
            for (range, kind) in roles.get(role).into_iter().flatten() {
                rights.grant(range, *kind);
            }
        }
        self.by_user.insert(name.clone(), rights);
    }

    /// Adds one permission of `role` to everybody who holds it.
    pub(super) fn grant(&mut self, role: &RoleName, range: &RawRange, kind: PermissionKind) {
        for holder in self.holders.get(role).into_iter().flatten() {
            let rights = self.by_user.get_mut(holder).expect("only users hold roles");
            rights.grant(range, kind);
        }
    }

    /// For a planted bug: whoever is known has what it had `before`, as in a cache that is filled on demand.
    pub(super) fn keep(&mut self, before: &Rights) {
        for (name, rights) in &before.by_user {
            if let Some(known) = self.by_user.get_mut(name) {
                *known = rights.clone();
            }
        }
    }

    /// For a planted bug: everybody is known and has nothing, as in a cache that nobody fills. Admins stay admins.
    pub(super) fn forget(&mut self) {
        let names: Vec<UserName> = self.by_user.keys().cloned().collect();
        for name in names {
            let root = self.by_user[&name].root;
            let nothing = UserRights {
                root,
                ..UserRights::default()
            };
            self.by_user.insert(name, nothing);
        }
    }

    /// Takes note that `name` no longer holds `role`; what it may do stays as it is.
    pub(super) fn forget_holder(&mut self, name: &UserName, role: &RoleName) {
        let holders = self
            .holders
            .get_mut(role)
            .expect("a role that is held has holders");
        holders.remove(name);
        if holders.is_empty() {
            self.holders.remove(role);
        }
    }
}

impl UserRights {
    fn grant(&mut self, range: &RawRange, kind: PermissionKind) {
        // An image made elsewhere may hold ranges that are refused today; like in etcd they give nothing.
        let Some(mut interval) = range.granted() else {
            return;
        };
        if planted(Bug::RangeMergeEdgesA) && !range.is_single() {
            interval = interval.with_its_end();
        }
        if planted(Bug::RangeMergeEdgesD) && interval.end == UpperBound::Open {
            return;
        }
        if planted(Bug::RangeMergeEdgesC)
            && range.is_single()
            && (self.read.touches(&interval) || self.write.touches(&interval))
        {
            return;
        }
        match kind {
            PermissionKind::Read => self.read.insert(interval),
            PermissionKind::Write => self.write.insert(interval),
            PermissionKind::ReadWrite => {
                self.read.insert(interval.clone());
                self.write.insert(interval);
            }
            PermissionKind::Unknown(_) => {}
        }
    }
}
