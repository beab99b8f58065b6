//! Every decision about who may do what, in the order that clients see: auth off, no identity, dead credential, stale
//! auth revision (data under a signed token only), permission. Decides from replicated state and the entry alone.

use super::super::command::{
    Caller, Compare, Credential, DeleteRange, Identity, Put, Range, RawRange, Txn, TxnOp,
};
use super::super::name::{RoleName, UserName};
use super::super::outcome::ApplyError;
use super::super::range_set::RangeSet;
use super::AuthStore;
use super::rights::UserRights;
use crate::planted::{Bug, planted};

/// What a caller may do to keys.
#[derive(Clone, Copy, Debug)]
pub(in crate::state) enum Access<'a> {
    /// Everything.
    Unrestricted,
    /// What its roles allow.
    Limited(&'a UserRights),
    /// Nothing: its certificate names no user.
    Nothing,
}

/// Whose authority a request has.
enum Subject<'a> {
    /// Nobody's is needed.
    Unchecked,
    /// A user's, whose credential is alive.
    User(&'a UserName),
}

impl AuthStore {
    /// Lets any caller with a live credential pass.
    ///
    /// # Errors
    /// [`ApplyError::UserEmpty`], [`ApplyError::InvalidAuthToken`].
    pub(in crate::state) fn check_identity(&self, caller: &Caller) -> Result<(), ApplyError> {
        self.subject(caller).map(|_| ())
    }

    /// Lets callers pass whose user holds role `root`.
    ///
    /// # Errors
    /// [`ApplyError::UserEmpty`], [`ApplyError::InvalidAuthToken`], [`ApplyError::UserNotFound`],
    /// [`ApplyError::PermissionDenied`].
    pub(in crate::state) fn check_admin(&self, caller: &Caller) -> Result<(), ApplyError> {
        match self.subject(caller)? {
            Subject::Unchecked => Ok(()),
            Subject::User(user) => self.check_root(user),
        }
    }

    /// Lets admins pass, and the user `name` itself.
    ///
    /// # Errors
    /// As [`AuthStore::check_admin`].
    pub(super) fn check_admin_or_self(
        &self,
        caller: &Caller,
        name: &UserName,
    ) -> Result<(), ApplyError> {
        match self.subject(caller)? {
            Subject::User(user) if user != name => self.check_root(user),
            Subject::User(_) | Subject::Unchecked => Ok(()),
        }
    }

    /// Lets admins pass, and who holds `role`.
    ///
    /// # Errors
    /// As [`AuthStore::check_admin`].
    pub(super) fn check_admin_or_holder(
        &self,
        caller: &Caller,
        role: &RoleName,
    ) -> Result<(), ApplyError> {
        match self.subject(caller)? {
            Subject::User(user) if !self.rights.holds(user, role) => self.check_root(user),
            Subject::User(_) | Subject::Unchecked => Ok(()),
        }
    }

    /// What the caller of a data request may touch. A signed token's auth revision is compared before anything else is
    /// known of the user, and for `root` too, as etcd's `isOpPermitted` does for every caller.
    ///
    /// # Errors
    /// [`ApplyError::UserEmpty`], [`ApplyError::InvalidAuthToken`], [`ApplyError::AuthOldRevision`].
    pub(in crate::state) fn access(&self, caller: &Caller) -> Result<Access<'_>, ApplyError> {
        let Subject::User(user) = self.subject(caller)? else {
            return Ok(Access::Unrestricted);
        };
        if bound_revision(caller).is_some_and(|revision| revision < self.revision) {
            return Err(ApplyError::AuthOldRevision);
        }
        Ok(match self.rights.of(user) {
            Some(rights) if rights.root => Access::Unrestricted,
            Some(rights) => Access::Limited(rights),
            None => Access::Nothing,
        })
    }

    fn subject<'a>(&self, caller: &'a Caller) -> Result<Subject<'a>, ApplyError> {
        if !self.enabled {
            return Ok(Subject::Unchecked);
        }
        match &caller.identity {
            Identity::Internal => Ok(Subject::Unchecked),
            Identity::Anonymous => Err(ApplyError::UserEmpty),
            Identity::User(name, _) if name.as_str().is_empty() => Err(ApplyError::UserEmpty),
            Identity::User(name, credential) if self.is_alive(name, credential) => {
                Ok(Subject::User(name))
            }
            Identity::User(..) => Err(ApplyError::InvalidAuthToken),
        }
    }

    /// Whether the credential still speaks for the user. Certificates are ended by those who issue them, so here they
    /// live even without a user; what such a caller may do is another question.
    fn is_alive(&self, name: &UserName, credential: &Credential) -> bool {
        if planted(Bug::AuthRevisionIgnoredA) {
            return true;
        }
        let epoch = self.users.get(name).map(|user| self.epoch(user));
        match credential {
            Credential::SimpleToken(key, resolved_epoch) => {
                let issued = |token: &super::TokenRecord| {
                    token.user == *name && token.epoch == *resolved_epoch
                };
                epoch == Some(*resolved_epoch) && self.tokens.get(key).is_some_and(issued)
            }
            Credential::Jwt(claim) => epoch.is_some_and(|epoch| *claim >= epoch),
            Credential::Certificate => true,
        }
    }

    fn check_root(&self, user: &UserName) -> Result<(), ApplyError> {
        match self.rights.of(user) {
            Some(rights) if rights.root => Ok(()),
            Some(_) => Err(ApplyError::PermissionDenied),
            None => Err(ApplyError::UserNotFound),
        }
    }
}

/// The auth revision that must still be the newest one for the caller's data requests. Only a signed token has one: it
/// says it itself, wherever it is verified. Whether a simple token still speaks for its user is known here, and so is what
/// that user may do, so that what others have changed since the token was looked up is no reason to refuse anything.
fn bound_revision(caller: &Caller) -> Option<u64> {
    match caller.identity {
        Identity::User(_, Credential::Jwt(claim)) => Some(claim.min(caller.auth_revision)),
        Identity::User(..) if planted(Bug::StaleStampRefused) => Some(caller.auth_revision),
        Identity::User(..) | Identity::Anonymous | Identity::Internal => None,
    }
}

/// [`ApplyError::PermissionDenied`] is the only refusal here.
impl Access<'_> {
    /// May read `range`.
    pub(in crate::state) fn read(&self, range: &RawRange) -> Result<(), ApplyError> {
        self.covers(range, |rights| &rights.read)
    }

    /// May write `range`.
    fn write(&self, range: &RawRange) -> Result<(), ApplyError> {
        self.covers(range, |rights| &rights.write)
    }

    /// May carry out `put`: write the key, and read it if its previous value is asked for.
    pub(in crate::state) fn put(&self, put: &Put) -> Result<(), ApplyError> {
        let key = RawRange {
            key: put.key.clone(),
            ..RawRange::default()
        };
        self.write(&key)?;
        if put.prev_kv { self.read(&key) } else { Ok(()) }
    }

    /// May carry out `delete`: write the range, and read it if what was deleted is asked for.
    pub(in crate::state) fn delete_range(&self, delete: &DeleteRange) -> Result<(), ApplyError> {
        self.write(&delete.range)?;
        if delete.prev_kv {
            self.read(&delete.range)
        } else {
            Ok(())
        }
    }

    /// May carry out `txn`: all that it compares and all that *either* branch does, nested transactions included. Which
    /// branch runs tells something about the keys, so it is not even decided before.
    pub(in crate::state) fn txn(&self, txn: &Txn) -> Result<(), ApplyError> {
        self.compares(&txn.compares)?;
        self.branch(&txn.success)?;
        self.branch(&txn.failure)
    }

    fn compares(&self, compares: &[Compare]) -> Result<(), ApplyError> {
        compares
            .iter()
            .try_for_each(|compare| self.read(&compare.range))
    }

    fn branch(&self, ops: &[TxnOp]) -> Result<(), ApplyError> {
        ops.iter().try_for_each(|op| match op {
            TxnOp::Range(Range { range, .. }) => self.read(range),
            TxnOp::Put(put) => self.put(put),
            TxnOp::DeleteRange(delete) => self.delete_range(delete),
            TxnOp::Txn(txn) => self.nested(txn),
        })
    }

    fn nested(&self, txn: &Txn) -> Result<(), ApplyError> {
        if planted(Bug::NestedTxnUncheckedA) {
            Ok(())
        } else if planted(Bug::NestedTxnUncheckedB) {
            self.compares(&txn.compares)?;
            self.branch(&txn.success)
        } else if planted(Bug::NestedTxnUncheckedC) {
            self.branch(&txn.success)?;
            self.branch(&txn.failure)
        } else {
            self.txn(txn)
        }
    }

    fn covers(
        &self,
        range: &RawRange,
        set: impl Fn(&UserRights) -> &RangeSet,
    ) -> Result<(), ApplyError> {
        match self {
            Access::Unrestricted => Ok(()),
            Access::Limited(rights) if set(rights).covers(&range.interval()) => Ok(()),
            Access::Limited(_) | Access::Nothing => Err(ApplyError::PermissionDenied),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::state::*;
    use std::collections::BTreeMap;

    const KEY: TokenKey = TokenKey {
        index: 1,
        prefix_hash: [1; 32],
    };

    /// A state in which `alice`, of epoch 5, has a token that says it was issued under `epoch`. Entries drop tokens
    /// when the epoch moves, so the two differ only in an image that something went wrong with.
    fn with_token_of(epoch: u64) -> State {
        let alice = UserRecord {
            created_revision: 3,
            password_revision: 5,
            ..UserRecord::default()
        };
        let user = UserName::from("alice");
        let token = TokenRecord {
            user: user.clone(),
            epoch,
            refresh_count: 0,
            refresh_index: 1,
        };
        State::restore(Image {
            meta: Meta {
                auth_enabled: true,
                auth_revision: 5,
                ..Meta::default()
            },
            users: BTreeMap::from([(user, alice)]),
            tokens: BTreeMap::from([(KEY, token)]),
            ..Image::default()
        })
    }

    #[track_caller]
    fn check(issued_epoch: u64, resolved_epoch: u64, alive: Result<(), ApplyError>) {
        let credential = Credential::SimpleToken(KEY, resolved_epoch);
        let identity = Identity::User("alice".into(), credential);
        let caller = Caller {
            identity,
            auth_revision: 5,
        };
        assert_eq!(with_token_of(issued_epoch).check_identity(&caller), alive);
    }

    #[test]
    fn a_token_needs_the_epoch_of_its_issue_its_use_and_its_user_to_agree() {
        check(5, 5, Ok(()));
        check(3, 3, Err(ApplyError::InvalidAuthToken));
        check(3, 5, Err(ApplyError::InvalidAuthToken));
        check(5, 3, Err(ApplyError::InvalidAuthToken));
    }
}
