//! The replicated state machine: auth store, permissions, key index, transactions. Pure: same state and same entry give
//! the same result on every member, so nothing here knows a clock, randomness, I/O, threads or async.
//!
//! [`State::apply`] is the only transition and [`State::restore`] the only constructor. A clone is cheap (the maps share
//! structure), which is how a member publishes one consistent view to its readers.

#![deny(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::float_arithmetic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm
)]

mod apply;
mod auth;
mod command;
mod digest;
mod effects;
mod key_range;
mod kv;
mod name;
mod outcome;
mod range_set;
mod record;

#[cfg(test)]
mod folded_store;
#[cfg(test)]
mod random_log;
#[cfg(test)]
mod transcript;

pub use command::*;
pub use name::*;
pub use outcome::*;
pub use record::*;

use auth::AuthStore;
use bytes::Bytes;
use digest::Fingerprint;
use kv::KvIndex;

/// Where values are read from: the store, through the batch that is being applied.
pub trait Values {
    /// The value written at `at`.
    ///
    /// # Errors
    /// The store failed or lacks the record; the member must stop.
    fn value(&self, at: KvRevision) -> Result<Bytes, ValueError>;
}

/// A value that should be there could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("value of revision {}.{} cannot be read: {cause}", at.main, at.sub)]
pub struct ValueError {
    /// Which value.
    pub at: KvRevision,
    /// What the store said.
    pub cause: String,
}

/// Why a read gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The caller was refused.
    #[error(transparent)]
    Refused(#[from] ApplyError),
    /// The store failed.
    #[error(transparent)]
    Value(#[from] ValueError),
}

/// Replicated state at one log index.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    applied_index: u64,
    applied_term: u64,
    digest: u64,
    auth: AuthStore,
    kv: KvIndex,
}

/// What a login needs to know of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginRecord {
    /// What to compare the password with; empty: no password can match.
    pub password: PasswordHash,
    /// Whether the user can be named by certificates only.
    pub no_password: bool,
    /// The epoch to carry in the `Authenticate` entry.
    pub epoch: u64,
}

impl State {
    /// Builds the state from what is stored, with every derived structure.
    pub fn restore(image: Image) -> State {
        let Image {
            meta,
            users,
            roles,
            tokens,
            history,
        } = image;
        State {
            applied_index: meta.applied_index,
            applied_term: meta.applied_term,
            digest: meta.digest,
            auth: AuthStore::restore(&meta, users, roles, tokens),
            kv: KvIndex::restore(meta.kv_revision, meta.compact_revision, history),
        }
    }

    /// For a planted bug: whoever was known before keeps the rights of then.
    pub(crate) fn keep_rights_of(&mut self, before: &State) {
        self.auth.keep_rights_of(&before.auth);
    }

    /// For a planted bug: nobody has any right.
    pub(crate) fn forget_rights(&mut self) {
        self.auth.forget_rights();
    }

    /// The whole state as it would be stored: `restore(image()) == self`.
    pub fn image(&self) -> Image {
        Image {
            meta: self.meta(),
            users: self.auth.users(),
            roles: self.auth.roles(),
            tokens: self.auth.tokens(),
            history: self.kv.records(),
        }
    }

    /// Small things, to be stored with the writes of the same batch.
    pub fn meta(&self) -> Meta {
        let mut meta = Meta {
            applied_index: self.applied_index,
            applied_term: self.applied_term,
            kv_revision: self.kv.revision,
            compact_revision: self.kv.compact_revision,
            digest: self.digest,
            ..Meta::default()
        };
        self.auth.describe(&mut meta);
        meta
    }

    /// A range read with its permission check.
    ///
    /// # Errors
    /// The decision's, then [`ApplyError::FutureRevision`], [`ApplyError::Compacted`]; [`ReadError::Value`].
    pub fn range(
        &self,
        caller: &Caller,
        range: &Range,
        values: &dyn Values,
    ) -> Result<Found, ReadError> {
        self.permit_range(caller, range)?;
        kv::read_range(&self.kv, range, values)
    }

    /// A transaction that only reads (no put, no deletion, no nested transaction), with its permission check.
    ///
    /// # Errors
    /// As [`State::range`].
    ///
    /// # Panics
    /// When the transaction does not only read.
    pub fn read_txn(
        &self,
        caller: &Caller,
        txn: &Txn,
        values: &dyn Values,
    ) -> Result<TxnResponse, ReadError> {
        self.permit_txn(caller, txn)?;
        kv::read_txn(&self.kv, txn, values)
    }

    /// The permission check of [`State::range`] alone.
    ///
    /// # Errors
    /// The decision's.
    pub fn permit_range(&self, caller: &Caller, range: &Range) -> Result<(), ApplyError> {
        self.auth.access(caller)?.read(&range.range)
    }

    /// The permission check of [`State::read_txn`] alone.
    ///
    /// # Errors
    /// The decision's.
    pub fn permit_txn(&self, caller: &Caller, txn: &Txn) -> Result<(), ApplyError> {
        self.auth.access(caller)?.txn(txn)
    }

    /// Auth off, or a live credential whose user holds role `root`.
    ///
    /// # Errors
    /// [`ApplyError::UserEmpty`], [`ApplyError::InvalidAuthToken`], [`ApplyError::UserNotFound`],
    /// [`ApplyError::PermissionDenied`].
    pub fn check_admin(&self, caller: &Caller) -> Result<(), ApplyError> {
        self.auth.check_admin(caller)
    }

    /// Auth off, or a live credential.
    ///
    /// # Errors
    /// [`ApplyError::UserEmpty`], [`ApplyError::InvalidAuthToken`].
    pub fn check_identity(&self, caller: &Caller) -> Result<(), ApplyError> {
        self.auth.check_identity(caller)
    }

    /// The roles of a user, for an admin or the user itself.
    ///
    /// # Errors
    /// As [`State::check_admin`], then [`ApplyError::UserNotFound`].
    pub fn user_get(&self, caller: &Caller, user: &UserName) -> Result<Vec<RoleName>, ApplyError> {
        self.auth.user_get(caller, user)
    }

    /// Every user's name, for an admin.
    ///
    /// # Errors
    /// As [`State::check_admin`].
    pub fn user_list(&self, caller: &Caller) -> Result<Vec<UserName>, ApplyError> {
        self.auth.user_list(caller)
    }

    /// A role's permissions, for an admin or a holder.
    ///
    /// # Errors
    /// As [`State::check_admin`], then [`ApplyError::RoleNotFound`].
    pub fn role_get(
        &self,
        caller: &Caller,
        role: &RoleName,
    ) -> Result<Vec<Permission>, ApplyError> {
        self.auth.role_get(caller, role)
    }

    /// Every role's name, for an admin.
    ///
    /// # Errors
    /// As [`State::check_admin`].
    pub fn role_list(&self, caller: &Caller) -> Result<Vec<RoleName>, ApplyError> {
        self.auth.role_list(caller)
    }

    /// Whether auth is on.
    pub fn auth_enabled(&self) -> bool {
        self.auth.enabled()
    }

    /// Etcd's auth revision.
    pub fn auth_revision(&self) -> u64 {
        self.auth.revision()
    }

    /// What a login needs; `None` for an unknown user.
    pub fn login_record(&self, user: &UserName) -> Option<LoginRecord> {
        self.auth.login_record(user)
    }

    /// A live token.
    pub fn token(&self, key: &TokenKey) -> Option<&TokenRecord> {
        self.auth.token(key)
    }

    /// The tokens whose last report of use, or login, stands at `index` of the log or before it, each with the number of
    /// uses reported; those that were reported longest ago come first.
    pub fn tokens_refreshed_until(
        &self,
        index: u64,
    ) -> impl Iterator<Item = (TokenKey, u64)> + use<'_> {
        self.auth.tokens_refreshed_until(index)
    }

    /// Hash over users, roles, tokens, flag and revisions. Linear in what it hashes.
    pub fn auth_hash(&self) -> u64 {
        self.auth.hash(&self.meta())
    }

    /// Hash over every version of every key up to `revision` (0: the newest), values included.
    ///
    /// # Errors
    /// [`ApplyError::FutureRevision`], [`ApplyError::Compacted`]; [`ReadError::Value`].
    pub fn kv_hash(&self, revision: i64, values: &dyn Values) -> Result<u32, ReadError> {
        if revision > self.kv.revision {
            return Err(ApplyError::FutureRevision.into());
        }
        if revision > 0 && revision < self.kv.compact_revision {
            return Err(ApplyError::Compacted.into());
        }
        let last = if revision > 0 {
            revision
        } else {
            self.kv.revision
        };
        let mut fingerprint = Fingerprint::default();
        for (at, mut record) in self.kv.records() {
            if at.main > last {
                break;
            }
            if !record.tombstone {
                record.value = values.value(at)?;
            }
            fingerprint.kv(at, &record);
        }
        let folded = fingerprint.finish() & u64::from(u32::MAX);
        Ok(u32::try_from(folded).expect("the upper half was cut off"))
    }
}
