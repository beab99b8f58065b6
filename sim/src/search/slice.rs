//! What concerns one user: a part of the history that can be searched on its own, because what is left out could only
//! make it harder to find an order. If the part has none, the whole has none.

use super::calls::{Call, Told};
use crate::history::Op;
use crate::model::Refusal;
use std::collections::BTreeSet;

/// One user, with every role that anybody ever tried to give it.
#[derive(Clone, Debug)]
pub(super) struct Slice<'h> {
    pub(super) user: &'h str,
    roles: BTreeSet<&'h str>,
}

impl<'h> Slice<'h> {
    /// The slice of a user; an empty name stands for callers without a token.
    pub(super) fn of(user: &'h str, calls: &[Call<'h>]) -> Slice<'h> {
        let roles = calls.iter().filter_map(|call| match call.op {
            Op::GrantRole { user: to, role } if to == user => Some(role.as_str()),
            _ => None,
        });
        Slice {
            user,
            roles: roles.collect(),
        }
    }

    /// The roles that the user may ever have, in order.
    pub(super) fn roles(&self) -> impl Iterator<Item = &'h str> {
        self.roles.iter().copied()
    }

    /// Whether carrying the call out can change what the slice knows.
    pub(super) fn changes_with(&self, op: &Op) -> bool {
        match op {
            Op::AuthEnable {} | Op::AuthDisable {} => true,
            Op::UserAdd { user, .. }
            | Op::UserDelete { user }
            | Op::ChangePassword { user, .. } => user == self.user,
            Op::GrantRole { user, role } | Op::RevokeRole { user, role } => {
                user == self.user && self.roles.contains(role.as_str())
            }
            Op::RoleAdd { role }
            | Op::RoleDelete { role }
            | Op::GrantPermission { role, .. }
            | Op::RevokePermission { role, .. } => self.roles.contains(role.as_str()),
            _ => false,
        }
    }

    /// Whether the call is a login of the slice's user.
    pub(super) fn is_login(&self, op: &Op) -> bool {
        matches!(op, Op::Login { user, .. } if user == self.user)
    }

    /// Whether the slice knows everything that the call's own conditions are about.
    pub(super) fn knows_conditions(&self, op: &Op) -> bool {
        match op {
            Op::AuthEnable {} => false, // They are root's.
            Op::AuthStatus {} | Op::UserList {} | Op::RoleList {} => true,
            Op::UserGet { user } => user == self.user,
            Op::RoleGet { role } => self.roles.contains(role.as_str()),
            op => self.changes_with(op),
        }
    }

    /// Whether the slice knows who the caller is.
    pub(super) fn knows_caller(&self, call: &Call<'_>) -> bool {
        call.token.is_none() || call.user == self.user
    }

    /// Whether the call has any place in the slice. `happened`: although its answer is lost, it is known to have taken
    /// effect.
    pub(super) fn concerns(&self, call: &Call<'_>, happened: bool) -> bool {
        match call.told {
            Told::Nothing => false,
            Told::Unknown if happened => self.knows_caller(call),
            Told::Unknown => self.changes_with(call.op),
            // Old is what lies before any change of anybody's.
            Told::Refused(Refusal::OldRevision | Refusal::FutureRevision) => false,
            Told::Done(_) | Told::Refused(_) => match call.op {
                Op::Login { user, .. } => user == self.user,
                op => self.changes_with(op) || self.knows_conditions(op) || self.knows_caller(call),
            },
        }
    }
}
