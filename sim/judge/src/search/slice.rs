//! What concerns one user, or one role: a part of the history that can be searched on its own, because what is left out
//! could only make it harder to find an order. If the part has none, the whole has none.

use super::calls::{Call, Told};
use crate::history::Op;
use crate::model::{Refusal, Span};
use std::collections::{BTreeMap, BTreeSet};

/// One user, with every role that anybody ever tried to give it; and one key that it has, or has not, rights to, or none.
#[derive(Clone, Debug)]
pub(super) struct Slice<'h> {
    pub(super) user: &'h str,
    /// The key. Without one, only whether the user's tokens are good counts, and what it may do as an administrator.
    pub(super) key: Option<&'h str>,
    roles: BTreeSet<&'h str>,
    /// Whether it is about its one role, with everything that is granted to it, and about nobody in particular.
    is_role: bool,
}

/// The user of a slice that is about a role: nobody can be called that.
const NOBODY: &str = "\0";

impl<'h> Slice<'h> {
    /// The slices of a history: for every role; and for every user that a token names, and for nobody, one without a key
    /// and one for every key that its calls name.
    pub(super) fn all(calls: &[Call<'h>]) -> Vec<Slice<'h>> {
        let mut found: BTreeMap<&str, BTreeSet<Option<&str>>> = BTreeMap::new();
        for call in calls {
            let keys = found
                .entry(call.user)
                .or_insert_with(|| BTreeSet::from([None]));
            keys.extend(key_of(call.op).map(Some));
        }
        let mut slices = Slice::of_roles(calls);
        for (user, keys) in found {
            let given = calls.iter().filter_map(|call| match call.op {
                Op::GrantRole { user: to, role } if to == user => Some(role.as_str()),
                _ => None,
            });
            let roles: BTreeSet<&str> = given.collect();
            slices.extend(keys.into_iter().map(|key| Slice {
                user,
                key,
                roles: roles.clone(),
                is_role: false,
            }));
        }
        slices
    }

    fn of_roles(calls: &[Call<'h>]) -> Vec<Slice<'h>> {
        let named = calls.iter().filter_map(|call| match call.op {
            Op::RoleAdd { role } => Some(role.as_str()),
            _ => None,
        });
        let named: BTreeSet<&str> = named.collect();
        let slices = named.into_iter().map(|role| Slice {
            user: NOBODY,
            key: None,
            roles: BTreeSet::from([role]),
            is_role: true,
        });
        slices.collect()
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
            Op::RoleAdd { role } | Op::RoleDelete { role } => self.roles.contains(role.as_str()),
            Op::GrantPermission { role, grant } => {
                self.roles.contains(role.as_str()) && self.is_reached(&grant.key, &grant.range_end)
            }
            Op::RevokePermission {
                role,
                key,
                range_end,
            } => self.roles.contains(role.as_str()) && self.is_reached(key, range_end),
            _ => false,
        }
    }

    /// Whether a right to the range is a right to the slice's key.
    fn is_reached(&self, key: &str, range_end: &str) -> bool {
        self.is_role
            || self
                .key
                .is_some_and(|own| Span::new(key, range_end).contains(own))
    }

    /// Whether the slice knows all rights that the call needs.
    pub(super) fn knows_rights(&self, op: &Op) -> bool {
        !op.is_data() || (self.key.is_some() && key_of(op) == self.key)
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
            // It lists what other keys are about, too.
            Op::RoleGet { role } => self.is_role && self.roles.contains(role.as_str()),
            op => self.changes_with(op),
        }
    }

    /// Whether the slice knows who the caller is.
    pub(super) fn knows_caller(&self, call: &Call<'_>) -> bool {
        !self.is_role && (call.token.is_none() || call.user == self.user)
    }

    /// Whether the call has any place in the slice. `happened`: although its answer is lost, it is known to have taken
    /// effect.
    pub(super) fn concerns(&self, call: &Call<'_>, happened: bool) -> bool {
        match call.told {
            Told::Nothing => false,
            Told::Unknown if happened && call.op.is_data() => {
                self.knows_caller(call) && self.knows_rights(call.op)
            }
            // Somebody may present its token all the same.
            Told::Unknown => self.changes_with(call.op) || self.is_login(call.op),
            Told::Refused(Refusal::FutureRevision) => false,
            Told::Done(_) | Told::Refused(_) => match call.op {
                Op::Login { user, .. } => user == self.user,
                op if self.changes_with(op) || self.knows_conditions(op) => true,
                op => {
                    self.knows_caller(call)
                        && (self.key.is_none() || self.knows_rights(op) && op.is_data())
                }
            },
        }
    }
}

/// The one key that the rights to a data call hang on.
fn key_of(op: &Op) -> Option<&str> {
    match op {
        Op::Put { key, .. } => Some(key),
        Op::Get { key, range_end, .. } | Op::Delete { key, range_end, .. }
            if range_end.is_empty() =>
        {
            Some(key)
        }
        Op::Txn {
            compare,
            success,
            failure,
        } => {
            let compared = compare.iter().map(|compare| Some(compare.key.as_str()));
            let mut all = compared.chain(success.iter().chain(failure).map(key_of));
            let first = all.next()??;
            all.all(|key| key == Some(first)).then_some(first)
        }
        _ => None,
    }
}
