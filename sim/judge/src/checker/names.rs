//! Names that were used again (P15): a role or a user that is deleted and created anew starts with nothing. These are
//! the rights that a cluster would see that forgot to take away what the deletion takes.

use super::replay::{Change, Replay};
use crate::history::Op;
use crate::model::Accounts;
use crate::text::Text;
use std::collections::{BTreeMap, BTreeSet};

/// A role that a user lost because one of the two was deleted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loss {
    pub(super) deleted: Change,
    /// The creation that brought the deleted name back, if it has come.
    pub(super) again: Option<Change>,
}

/// Roles lost by deletion, by user and role.
type Losses = BTreeMap<(Text, Text), Loss>;

impl Replay<'_, '_> {
    /// What gives `user` the right to `op` at `index` if names bring their old rights with them; none if nothing does.
    pub(super) fn reused(&self, user: &str, op: &Op, index: u64) -> Option<Loss> {
        let (accounts, losses) = self.forgetful(index);
        if losses.is_empty() || !accounts.may(user, op) {
            return None;
        }
        let of_user = losses.into_iter().filter(|((name, _), _)| name == user);
        let back = of_user.filter(|(_, loss)| loss.again.is_some());
        back.map(|(_, loss)| loss).next_back()
    }

    /// How `user` lost `role`, if a deletion took it and nothing gave it back up to `index`.
    pub(super) fn lost(&self, user: &str, role: &str, index: u64) -> Option<Loss> {
        let (_, losses) = self.forgetful(index);
        losses.get(&(user.into(), role.into())).copied()
    }

    /// The accounts at `index` of a cluster in which a deleted name keeps its roles, or its holders, until it is back.
    fn forgetful(&self, index: u64) -> (Accounts, Losses) {
        let mut accounts = Accounts::default();
        let mut losses = Losses::new();
        let until = self.changes.iter().take_while(|c| c.index <= index);
        for change in until {
            let op = self.run.call(change.call).op;
            let taken = taken(&accounts, op);
            accounts.perform(op);
            for pair in taken {
                let deleted = *change;
                let again = None;
                losses.insert(pair, Loss { deleted, again });
            }
            match op {
                Op::GrantRole { user, role } | Op::RevokeRole { user, role } => {
                    losses.remove(&(user.clone(), role.clone()));
                }
                Op::UserAdd { .. } | Op::RoleAdd { .. } => {
                    give_back(&mut accounts, &mut losses, *change, op);
                }
                _ => {}
            }
        }
        (accounts, losses)
    }
}

/// Who loses which role when `op` is done.
fn taken(accounts: &Accounts, op: &Op) -> BTreeSet<(Text, Text)> {
    match op {
        Op::UserDelete { user } => {
            let roles = accounts.roles_of(user).into_iter();
            roles.map(|role| (user.clone(), role)).collect()
        }
        Op::RoleDelete { role } => {
            let users = accounts.holders_of(role).into_iter();
            users.map(|user| (user, role.clone())).collect()
        }
        _ => BTreeSet::new(),
    }
}

/// Gives back what a deletion took, as far as both names exist again.
fn give_back(accounts: &mut Accounts, losses: &mut Losses, again: Change, op: &Op) {
    for ((user, role), loss) in losses {
        let is_named = matches!(op, Op::UserAdd { user: name, .. } if name == user)
            || matches!(op, Op::RoleAdd { role: name } if name == role);
        let exist = accounts.user(user).is_some() && accounts.role_names().contains(role);
        if is_named && exist {
            loss.again = Some(again);
            accounts.perform(&Op::GrantRole {
                user: user.clone(),
                role: role.clone(),
            });
        }
    }
}
