//! Records as the store holds them, and the whole of them: [`Image`].

use super::command::{PasswordHash, Permission, TokenKey};
use super::name::{RoleName, UserName};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// A position in the key-value history: the revision, and the number of the change within it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct KvRevision {
    /// The transaction's revision.
    pub main: i64,
    /// 0 for its first change.
    pub sub: i64,
}

/// One version of one key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KvRecord {
    /// The key.
    pub key: Bytes,
    /// The value; empty for a tombstone.
    pub value: Bytes,
    /// Revision of the put that created the key.
    pub create_revision: i64,
    /// Puts since creation; 0 for a tombstone.
    pub version: i64,
    /// Attached lease, 0 for none.
    pub lease: i64,
    /// Whether this version says that the key is gone.
    pub tombstone: bool,
}

/// A user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserRecord {
    /// What the password is compared with; empty: the user cannot log in by password.
    pub password: PasswordHash,
    /// Whether the user can be named by certificates only.
    pub no_password: bool,
    /// Roles held, in order.
    pub roles: BTreeSet<RoleName>,
    /// Auth revision after the user's creation.
    pub created_revision: u64,
    /// Auth revision after the last password change.
    pub password_revision: u64,
}

/// A live simple token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRecord {
    /// Whom it names.
    pub user: UserName,
    /// The user's epoch at issue.
    pub epoch: u64,
    /// Uses reported through the log so far.
    pub refresh_count: u64,
    /// Log index of the last report, or of the login.
    pub refresh_index: u64,
}

/// What is small and changes with every entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Last applied log index.
    pub applied_index: u64,
    /// Its term.
    pub applied_term: u64,
    /// Newest key-value revision; 1 for an empty store.
    pub kv_revision: i64,
    /// Revisions below this one are gone; -1 as long as nothing was compacted, as in etcd.
    pub compact_revision: i64,
    /// Whether auth is on.
    pub auth_enabled: bool,
    /// Etcd's auth revision; 1 for a new store.
    pub auth_revision: u64,
    /// Counts every auth change, enables included. Never leaves the cluster.
    pub generation: u64,
    /// Lower bound of every user's epoch: auth revision after the last AuthDisable, or the restore floor.
    pub epoch_floor: u64,
    /// Running hash over every applied entry and its outcome; equal on all members at equal index.
    pub digest: u64,
}

impl Default for Meta {
    fn default() -> Self {
        Meta {
            applied_index: 0,
            applied_term: 0,
            kv_revision: 1,
            compact_revision: -1,
            auth_enabled: false,
            auth_revision: 1,
            generation: 0,
            epoch_floor: 0,
            digest: 0,
        }
    }
}

/// The whole replicated state as it is stored, without values. `State::restore` builds everything else from it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Image {
    /// Small things.
    pub meta: Meta,
    /// Users by name.
    pub users: BTreeMap<UserName, UserRecord>,
    /// Permissions of each role, in stored order.
    pub roles: BTreeMap<RoleName, Vec<Permission>>,
    /// Live tokens.
    pub tokens: BTreeMap<TokenKey, TokenRecord>,
    /// Every version of every key since the last compaction; values are left empty.
    pub history: BTreeMap<KvRevision, KvRecord>,
}
