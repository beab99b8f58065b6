//! Changes to roles. Validation and its order are etcd's (`server/auth/store.go`); whoever asks has passed the gate.

use super::super::command::{Permission, RawRange};
use super::super::effects::Effects;
use super::super::name::{ROOT, RoleName};
use super::super::outcome::{ApplyError, Write};
use super::{AuthStore, Role, permissions};
use crate::planted::{Bug, planted};
use bytes::Bytes;

impl AuthStore {
    /// Creates a role without permissions.
    ///
    /// # Errors
    /// [`ApplyError::RoleEmpty`], [`ApplyError::RoleAlreadyExist`].
    pub(in crate::state) fn role_add(
        &mut self,
        name: RoleName,
        effects: &mut Effects,
    ) -> Result<(), ApplyError> {
        if name.as_str().is_empty() {
            return Err(ApplyError::RoleEmpty);
        }
        if self.roles.contains_key(&name) {
            return Err(ApplyError::RoleAlreadyExist);
        }
        self.revise(effects);
        self.set_role(name, Role::new(), effects);
        Ok(())
    }

    /// Deletes a role and takes it from every user.
    ///
    /// # Errors
    /// [`ApplyError::InvalidAuthMgmt`] for `root` while auth is on, [`ApplyError::RoleNotFound`].
    pub(in crate::state) fn role_delete(
        &mut self,
        name: RoleName,
        effects: &mut Effects,
    ) -> Result<(), ApplyError> {
        if self.enabled && name.as_str() == ROOT {
            return Err(ApplyError::InvalidAuthMgmt);
        }
        if self.roles.remove(&name).is_none() {
            return Err(ApplyError::RoleNotFound);
        }
        self.revise(effects);
        for holder in self.rights.holders(&name) {
            let mut user = self
                .users
                .get(&holder)
                .expect("only users hold roles")
                .clone();
            if !planted(Bug::RoleDeleteKeepsMembership) {
                user.roles.remove(&name);
            }
            if planted(Bug::RoleDeleteKeepsCache) {
                self.rights.forget_holder(&holder, &name);
                self.users.insert(holder.clone(), user.clone());
                effects.writes.push(Write::User(holder, Some(user)));
            } else {
                self.set_user(holder, Some(user), effects);
            }
        }
        effects.writes.push(Write::Role(name, None));
        Ok(())
    }

    /// Adds a permission to a role. A range that the role has already takes the new kind; the auth revision grows even
    /// if the kind is the old one.
    ///
    /// # Errors
    /// [`ApplyError::PermissionNotGiven`], [`ApplyError::InvalidAuthMgmt`] for a range that holds no key,
    /// [`ApplyError::RoleNotFound`].
    pub(in crate::state) fn role_grant_permission(
        &mut self,
        name: RoleName,
        permission: Option<Permission>,
        effects: &mut Effects,
    ) -> Result<(), ApplyError> {
        let Permission { kind, range } = permission.ok_or(ApplyError::PermissionNotGiven)?;
        if range.granted().is_none() {
            return Err(ApplyError::InvalidAuthMgmt);
        }
        let mut role = self.role(&name)?.clone();
        self.revise(effects);
        let range = detached(&range);
        let before = role.insert(range.clone(), kind);
        self.set_role(name.clone(), role, effects);
        match before {
            // Only a kind that changes can take something away.
            Some(before) if before != kind => self.rebuild_holders(&name),
            Some(_) | None => self.rights.grant(&name, &range, kind),
        }
        Ok(())
    }

    /// Takes the permission on exactly this key and range end from a role, whatever its kind.
    ///
    /// # Errors
    /// [`ApplyError::RoleNotFound`], [`ApplyError::PermissionNotGranted`].
    pub(in crate::state) fn role_revoke_permission(
        &mut self,
        name: RoleName,
        range: &RawRange,
        effects: &mut Effects,
    ) -> Result<(), ApplyError> {
        let mut role = self.role(&name)?.clone();
        if role.remove(range).is_none() {
            return Err(ApplyError::PermissionNotGranted);
        }
        self.revise(effects);
        self.set_role(name.clone(), role, effects);
        self.rebuild_holders(&name);
        Ok(())
    }

    /// An existing role.
    pub(super) fn role(&self, name: &RoleName) -> Result<&Role, ApplyError> {
        self.roles.get(name).ok_or(ApplyError::RoleNotFound)
    }

    fn set_role(&mut self, name: RoleName, role: Role, effects: &mut Effects) {
        effects
            .writes
            .push(Write::Role(name.clone(), Some(permissions(&role))));
        self.roles.insert(name, role);
    }

    /// Builds the rights of everybody who holds `role` anew, after the role lost something.
    fn rebuild_holders(&mut self, role: &RoleName) {
        for holder in self.rights.holders(role) {
            let user = self.users.get(&holder);
            assert!(user.is_some(), "only users hold roles");
            self.rights.set_user(&holder, user, user, &self.roles);
        }
    }
}

/// A copy that does not keep the message alive whose slice the range is.
fn detached(range: &RawRange) -> RawRange {
    RawRange {
        key: Bytes::copy_from_slice(&range.key),
        range_end: Bytes::copy_from_slice(&range.range_end),
    }
}
