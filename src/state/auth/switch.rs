//! Switching auth on and off.

use super::super::effects::Effects;
use super::super::name::{ROOT, RoleName, UserName};
use super::super::outcome::{ApplyError, Write};
use super::AuthStore;
use crate::planted::{Bug, planted};

impl AuthStore {
    /// Whether auth is on.
    pub(in crate::state) fn enabled(&self) -> bool {
        self.enabled
    }

    /// Etcd's auth revision.
    pub(in crate::state) fn revision(&self) -> u64 {
        self.revision
    }

    /// Switches auth on; nothing happens if it is on. The auth revision stays, as in etcd; the generation grows.
    ///
    /// # Errors
    /// [`ApplyError::RootUserNotExist`], [`ApplyError::RootRoleNotExist`]: nobody could switch it off again.
    pub(in crate::state) fn enable(&mut self, effects: &mut Effects) -> Result<(), ApplyError> {
        if self.enabled {
            return Ok(());
        }
        let root = self
            .users
            .get(&UserName::from(ROOT))
            .ok_or(ApplyError::RootUserNotExist)?;
        if !root.roles.contains(&RoleName::from(ROOT)) {
            return Err(ApplyError::RootRoleNotExist);
        }
        self.enabled = true;
        self.change(effects);
        Ok(())
    }

    /// Switches auth off, drops every token and ends every other credential; nothing happens if it is off.
    pub(in crate::state) fn disable(&mut self, effects: &mut Effects) {
        if !self.enabled {
            return;
        }
        self.enabled = false;
        self.epoch_floor = self.revise(effects);
        if planted(Bug::DisableKeepsTokensA) {
            let users: Vec<UserName> = self.users.keys().cloned().collect();
            for user in users {
                self.keep_tokens(&user, self.epoch_floor, effects);
            }
            return;
        }
        let dropped = self.tokens.clear();
        effects
            .writes
            .extend(dropped.into_iter().map(|key| Write::Token(key, None)));
    }
}
