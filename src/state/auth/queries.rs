//! Questions about users and roles, each with its gate.

use super::super::command::{Caller, Permission, PermissionKind, RawRange};
use super::super::name::{ROOT, RoleName, UserName};
use super::super::outcome::ApplyError;
use super::{AuthStore, permissions};
use bytes::Bytes;

impl AuthStore {
    /// The roles of a user, for an admin or the user itself.
    ///
    /// # Errors
    /// The gate's, then [`ApplyError::UserNotFound`].
    pub(in crate::state) fn user_get(
        &self,
        caller: &Caller,
        user: &UserName,
    ) -> Result<Vec<RoleName>, ApplyError> {
        self.check_admin_or_self(caller, user)?;
        Ok(self.user(user)?.roles.iter().cloned().collect())
    }

    /// Every user's name, for an admin.
    ///
    /// # Errors
    /// The gate's.
    pub(in crate::state) fn user_list(&self, caller: &Caller) -> Result<Vec<UserName>, ApplyError> {
        self.check_admin(caller)?;
        Ok(self.users.keys().cloned().collect())
    }

    /// A role's permissions, for an admin or a holder. Role `root` answers with what it stands for, whatever was granted
    /// to it.
    ///
    /// # Errors
    /// The gate's, then [`ApplyError::RoleNotFound`].
    pub(in crate::state) fn role_get(
        &self,
        caller: &Caller,
        role: &RoleName,
    ) -> Result<Vec<Permission>, ApplyError> {
        self.check_admin_or_holder(caller, role)?;
        let record = self.role(role)?;
        if role.as_str() == ROOT {
            let range = RawRange {
                key: Bytes::new(),
                range_end: Bytes::from_static(&[0]),
            };
            return Ok(vec![Permission {
                kind: PermissionKind::ReadWrite,
                range,
            }]);
        }
        Ok(permissions(record))
    }

    /// Every role's name, for an admin.
    ///
    /// # Errors
    /// The gate's.
    pub(in crate::state) fn role_list(&self, caller: &Caller) -> Result<Vec<RoleName>, ApplyError> {
        self.check_admin(caller)?;
        Ok(self.roles.keys().cloned().collect())
    }
}
