//! The one transition: [`State::apply`]. Decides whether the entry is allowed at its log position, carries it out, and
//! folds what happened into the digest. A refused entry leaves no trace but the applied index and the digest.

use super::command::{Caller, Command, Identity, Op};
use super::effects::Effects;
use super::outcome::{Applied, ApplyError, Response};
use super::{ReadError, State, ValueError, Values, digest, kv};
use crate::planted::{Bug, planted};

impl State {
    /// Applies one committed entry (`None`: raft's own empty entry). `index` is exactly one above the last applied.
    ///
    /// # Errors
    /// [`ValueError`] when the store fails; the state is then unusable and the member must stop.
    ///
    /// # Panics
    /// When `index` does not follow the last applied.
    pub fn apply(
        &mut self,
        index: u64,
        term: u64,
        command: Option<Command>,
        values: &dyn Values,
    ) -> Result<Applied, ValueError> {
        assert_eq!(
            index,
            self.applied_index + 1,
            "entries arrive once and in order"
        );
        let auth_revision_before = self.auth.revision();
        let mut effects = Effects::default();
        let executed = match command {
            Some(command) => self.execute(index, command, values, &mut effects),
            None => Ok(Response::Done),
        };
        let result = match executed {
            Ok(response) => Ok(response),
            Err(ReadError::Value(error)) => return Err(error),
            Err(ReadError::Refused(refusal)) => {
                assert!(effects.is_empty(), "a refused entry does nothing");
                Err(refusal)
            }
        };
        assert!(
            self.auth.revision() >= auth_revision_before,
            "the auth revision never falls"
        );
        // Refused entries count too: skipping one would fork the replicas.
        self.applied_index = index;
        self.applied_term = term;
        let Effects { writes, events } = effects;
        let revision = self.kv.revision;
        let applied = Applied {
            index,
            revision,
            result,
            writes,
            events,
        };
        self.digest = digest::of_entry(&self.meta(), &applied);
        Ok(applied)
    }

    fn execute(
        &mut self,
        index: u64,
        command: Command,
        values: &dyn Values,
        effects: &mut Effects,
    ) -> Result<Response, ReadError> {
        let Command {
            request_id: _,
            caller,
            op,
        } = command;
        // The gate comes before the operation's own validation.
        if !decided_early(&op, &caller) {
            self.permit(&caller, &op)?;
        }
        let auth = &mut self.auth;
        match op {
            Op::Put(put) => {
                let previous = kv::put(&mut self.kv, put, values, effects)?;
                return Ok(Response::Put(previous));
            }
            Op::DeleteRange(delete) => {
                let deleted = kv::delete_range(&mut self.kv, &delete, values, effects)?;
                return Ok(Response::DeleteRange(deleted));
            }
            Op::Txn(txn) => {
                let done = kv::write_txn(&mut self.kv, txn, values, effects)?;
                return Ok(Response::Txn(done));
            }
            Op::Compact(revision) => kv::compact(&mut self.kv, revision, effects)?,
            Op::Authenticate(login) => return Ok(auth.authenticate(index, login, effects)?),
            Op::AuthEnable => auth.enable(effects)?,
            Op::AuthDisable => auth.disable(effects),
            Op::UserAdd(add) => auth.user_add(add, effects)?,
            Op::UserDelete(user) => auth.user_delete(user, effects)?,
            Op::UserChangePassword(user, password) => {
                auth.user_change_password(user, password, effects)?;
            }
            Op::UserGrantRole(user, role) => auth.user_grant_role(user, role, effects)?,
            Op::UserRevokeRole(user, role) => auth.user_revoke_role(user, &role, effects)?,
            Op::RoleAdd(role) => auth.role_add(role, effects)?,
            Op::RoleDelete(role) => auth.role_delete(role, effects)?,
            Op::RoleGrantPermission(role, permission) => {
                auth.role_grant_permission(role, permission, effects)?;
            }
            Op::RoleRevokePermission(role, range) => {
                auth.role_revoke_permission(role, &range, effects)?;
            }
            Op::TokenRefresh(tokens) => auth.token_refresh(index, &tokens, effects),
            Op::TokenExpire(tokens) => auth.token_expire(&tokens, effects),
        }
        Ok(Response::Done)
    }

    /// Decides whether the caller may ask for `op` in this state. Whoever logs in has no credential yet: its password was
    /// compared where the login arrived.
    ///
    /// # Errors
    /// [`ApplyError::UserEmpty`], [`ApplyError::InvalidAuthToken`], then for data under a signed token
    /// [`ApplyError::AuthOldRevision`], for changes of auth [`ApplyError::UserNotFound`], then [`ApplyError::PermissionDenied`].
    pub fn permit(&self, caller: &Caller, op: &Op) -> Result<(), ApplyError> {
        match op {
            Op::Put(put) => self.auth.access(caller)?.put(put),
            Op::DeleteRange(delete) => self.auth.access(caller)?.delete_range(delete),
            Op::Txn(txn) => self.auth.access(caller)?.txn(txn),
            Op::Authenticate(_) => Ok(()),
            Op::Compact(_)
            | Op::AuthEnable
            | Op::AuthDisable
            | Op::UserAdd(_)
            | Op::UserDelete(_)
            | Op::UserChangePassword(..)
            | Op::UserGrantRole(..)
            | Op::UserRevokeRole(..)
            | Op::RoleAdd(_)
            | Op::RoleDelete(_)
            | Op::RoleGrantPermission(..)
            | Op::RoleRevokePermission(..) => self.auth.check_admin(caller),
            // Also while auth is off: whether a token lives is nobody else's to say.
            Op::TokenRefresh(_) | Op::TokenExpire(_) => match caller.identity {
                Identity::Internal => Ok(()),
                Identity::Anonymous | Identity::User(..) => Err(ApplyError::PermissionDenied),
            },
        }
    }
}

/// Whether a planted bug lets the entry pass because the member that took it has decided already.
fn decided_early(op: &Op, caller: &Caller) -> bool {
    let is_data = matches!(op, Op::Put(_) | Op::DeleteRange(_) | Op::Txn(_));
    (is_data && (planted(Bug::StaleMemberCheckA) || planted(Bug::CheckAtApiLayerA)))
        || (!is_data && planted(Bug::CheckAtApiLayerB))
        || (caller.identity == Identity::Anonymous && planted(Bug::StaleMemberCheckB))
}

#[cfg(test)]
mod tests {
    use super::super::folded_store::FoldedStore;
    use super::super::*;

    fn put(key: &'static str, value: &'static str) -> Option<Command> {
        let put = Put {
            key: key.into(),
            value: value.into(),
            ..Put::default()
        };
        Some(Command {
            request_id: 1,
            caller: Caller::ANONYMOUS,
            op: Op::Put(put),
        })
    }

    fn digest_after(entries: Vec<Option<Command>>) -> u64 {
        let mut state = State::restore(Image::default());
        for (index, entry) in (1..).zip(entries) {
            state
                .apply(index, 1, entry, &FoldedStore::default())
                .unwrap();
        }
        state.meta().digest
    }

    #[test]
    fn the_digest_tells_logs_apart() {
        let enable = Command {
            request_id: 1,
            caller: Caller::ANONYMOUS,
            op: Op::AuthEnable,
        };
        let logs = [
            vec![],
            vec![None],
            vec![None, None],
            vec![put("a", "1")],
            vec![put("a", "2")],
            vec![put("a1", "")],
            vec![put("a", "1"), put("b", "1")],
            vec![put("b", "1"), put("a", "1")],
            // Refused: there is no user `root`.
            vec![Some(enable)],
        ];
        let mut digests: Vec<u64> = logs.iter().cloned().map(digest_after).collect();
        assert_eq!(
            digests,
            logs.map(digest_after),
            "the same log gives the same digest"
        );
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), 9, "different logs give different digests");
    }

    #[test]
    fn raft_entries_are_counted() {
        let mut state = State::restore(Image::default());
        let applied = state.apply(1, 3, None, &FoldedStore::default()).unwrap();
        assert_eq!((applied.index, applied.result), (1, Ok(Response::Done)));
        assert_eq!(
            (state.meta().applied_index, state.meta().applied_term),
            (1, 3)
        );
    }

    #[test]
    #[should_panic(expected = "entries arrive once and in order")]
    fn an_entry_is_not_applied_twice() {
        let mut state = State::restore(Image::default());
        for _ in 0..2 {
            let _ = state.apply(1, 1, None, &FoldedStore::default());
        }
    }
}
