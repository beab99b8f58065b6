//! Changes to users. Validation and its order are etcd's (`server/auth/store.go`); whoever asks has passed the gate.

use super::super::command::{PasswordHash, UserAdd};
use super::super::effects::Effects;
use super::super::name::{ROOT, RoleName, UserName};
use super::super::outcome::{ApplyError, Write};
use super::super::record::UserRecord;
use super::AuthStore;
use crate::planted::{Bug, planted};

impl AuthStore {
    /// Creates a user without roles.
    ///
    /// # Errors
    /// [`ApplyError::UserEmpty`], [`ApplyError::UserAlreadyExist`].
    pub(in crate::state) fn user_add(
        &mut self,
        add: UserAdd,
        effects: &mut Effects,
    ) -> Result<(), ApplyError> {
        let UserAdd {
            name,
            password,
            no_password,
        } = add;
        if name.as_str().is_empty() {
            return Err(ApplyError::UserEmpty);
        }
        if self.users.contains_key(&name) {
            return Err(ApplyError::UserAlreadyExist);
        }
        let user = UserRecord {
            password: if no_password {
                PasswordHash::default()
            } else {
                password
            },
            no_password,
            created_revision: self.revise(effects),
            ..UserRecord::default()
        };
        if planted(Bug::CredentialChangeKeepsTokensB) {
            self.keep_tokens(&name, user.created_revision, effects);
        }
        self.set_user(name, Some(user), effects);
        Ok(())
    }

    /// Deletes a user and its tokens.
    ///
    /// # Errors
    /// [`ApplyError::InvalidAuthMgmt`] for `root` while auth is on, [`ApplyError::UserNotFound`].
    pub(in crate::state) fn user_delete(
        &mut self,
        name: UserName,
        effects: &mut Effects,
    ) -> Result<(), ApplyError> {
        if self.enabled && name.as_str() == ROOT && !planted(Bug::RootUnprotected) {
            return Err(ApplyError::InvalidAuthMgmt);
        }
        self.user(&name)?;
        self.revise(effects);
        if !planted(Bug::CredentialChangeKeepsTokensB) {
            self.drop_tokens(&name, effects);
        }
        self.set_user(name, None, effects);
        Ok(())
    }

    /// Replaces a user's password and drops its tokens. A user without password stays so, but its epoch moves: whoever
    /// asked for the change wants older credentials to end.
    ///
    /// # Errors
    /// [`ApplyError::UserNotFound`].
    pub(in crate::state) fn user_change_password(
        &mut self,
        name: UserName,
        password: PasswordHash,
        effects: &mut Effects,
    ) -> Result<(), ApplyError> {
        let mut user = self.user(&name)?.clone();
        if !user.no_password {
            user.password = password;
        }
        user.password_revision = self.revise(effects);
        if planted(Bug::CredentialChangeKeepsTokensA) {
            self.keep_tokens(&name, user.password_revision, effects);
        } else {
            self.drop_tokens(&name, effects);
        }
        self.set_user(name, Some(user), effects);
        Ok(())
    }

    /// Gives a role to a user; nothing happens if it has the role. Role `root` needs no record.
    ///
    /// # Errors
    /// [`ApplyError::UserNotFound`], [`ApplyError::RoleNotFound`].
    pub(in crate::state) fn user_grant_role(
        &mut self,
        name: UserName,
        role: RoleName,
        effects: &mut Effects,
    ) -> Result<(), ApplyError> {
        let mut user = self.user(&name)?.clone();
        if role.as_str() != ROOT && !self.roles.contains_key(&role) {
            return Err(ApplyError::RoleNotFound);
        }
        if user.roles.insert(role) {
            self.revise(effects);
            self.set_user(name, Some(user), effects);
        }
        Ok(())
    }

    /// Takes a role from a user.
    ///
    /// # Errors
    /// [`ApplyError::InvalidAuthMgmt`] for role `root` of user `root` while auth is on, [`ApplyError::UserNotFound`],
    /// [`ApplyError::RoleNotGranted`].
    pub(in crate::state) fn user_revoke_role(
        &mut self,
        name: UserName,
        role: &RoleName,
        effects: &mut Effects,
    ) -> Result<(), ApplyError> {
        let is_last_admin = name.as_str() == ROOT && role.as_str() == ROOT;
        if self.enabled && is_last_admin && !planted(Bug::RootUnprotected) {
            return Err(ApplyError::InvalidAuthMgmt);
        }
        let mut user = self.user(&name)?.clone();
        if !user.roles.remove(role) {
            return Err(ApplyError::RoleNotGranted);
        }
        self.revise(effects);
        self.set_user(name, Some(user), effects);
        Ok(())
    }

    /// An existing user.
    pub(super) fn user(&self, name: &UserName) -> Result<&UserRecord, ApplyError> {
        self.users.get(name).ok_or(ApplyError::UserNotFound)
    }

    /// What planted bugs do in place of dropping a user's tokens: lets them live on in a new epoch.
    pub(super) fn keep_tokens(&mut self, name: &UserName, epoch: u64, effects: &mut Effects) {
        let kept = self.tokens.rebind(name, epoch).into_iter();
        effects
            .writes
            .extend(kept.map(|(key, record)| Write::Token(key, Some(record))));
    }

    fn drop_tokens(&mut self, name: &UserName, effects: &mut Effects) {
        let dropped = self.tokens.remove_user(name);
        effects
            .writes
            .extend(dropped.into_iter().map(|key| Write::Token(key, None)));
    }
}
