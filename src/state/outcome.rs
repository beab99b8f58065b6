//! What applying an entry gives: a result for the caller, writes for the store, events for watchers.

use super::command::{Permission, TokenKey};
use super::name::{RoleName, UserName};
use super::record::{KvRecord, KvRevision, TokenRecord, UserRecord};
use bytes::Bytes;

/// Everything that one applied entry did.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The entry's log index.
    pub index: u64,
    /// Key-value revision after the entry, for the response header.
    pub revision: i64,
    /// The answer. A refusal is a result, not a failure to apply.
    pub result: Result<Response, ApplyError>,
    /// What the store must write, in order.
    pub writes: Vec<Write>,
    /// What watchers see, in order; auth changes stand among the key events at their position.
    pub events: Vec<Event>,
}

/// The answer to an accepted request.
#[derive(Clone, Debug, PartialEq)]
pub enum Response {
    /// To [`super::command::Put`]: the previous pair, if asked for and present.
    Put(Option<KeyValue>),
    /// To [`super::command::DeleteRange`].
    DeleteRange(Deleted),
    /// To [`super::command::Txn`].
    Txn(TxnResponse),
    /// To a login: the key under which the token is now known.
    Authenticated(TokenKey),
    /// The user's epoch moved since the password was compared: nothing was issued, compare again.
    AuthenticateAgain,
    /// To every other auth change.
    Done,
}

/// What a deletion removed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Deleted {
    /// How many keys.
    pub deleted: i64,
    /// Which, if asked for.
    pub prev_kvs: Vec<KeyValue>,
}

/// What a range read found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The pairs, sorted and limited as asked.
    pub kvs: Vec<KeyValue>,
    /// Whether the limit cut the answer.
    pub more: bool,
    /// Keys in the range, whatever the limit.
    pub count: i64,
}

/// What a transaction did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TxnResponse {
    /// Which branch ran.
    pub succeeded: bool,
    /// One answer for each operation of the branch.
    pub responses: Vec<TxnOpResponse>,
}

/// The answer to one operation of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum TxnOpResponse {
    /// To a read.
    Range(Found),
    /// To a write.
    Put(Option<KeyValue>),
    /// To a deletion.
    DeleteRange(Deleted),
    /// To a nested transaction.
    Txn(TxnResponse),
}

/// A key and its value as clients see them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyValue {
    /// The key.
    pub key: Bytes,
    /// The value; empty if values were left out.
    pub value: Bytes,
    /// Revision of the put that created the key.
    pub create_revision: i64,
    /// Revision of the last put.
    pub mod_revision: i64,
    /// Puts since creation.
    pub version: i64,
    /// Attached lease, 0 for none.
    pub lease: i64,
}

/// One change of what the store holds. The store applies them in order, in the transaction that also holds the
/// applied index.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// A new version of a key, or its tombstone.
    Kv(KvRevision, KvRecord),
    /// A version of a key that a compaction takes away.
    KvGone(KvRevision),
    /// A user, or its removal.
    User(UserName, Option<UserRecord>),
    /// A role's permissions, or its removal.
    Role(RoleName, Option<Vec<Permission>>),
    /// A token, or its removal.
    Token(TokenKey, Option<TokenRecord>),
}

/// One thing that a watcher may have to know.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A key was written.
    Put(KeyValue),
    /// A key was deleted, at this revision.
    Delete(Bytes, i64),
    /// Something about auth changed; the state after the change is the one to check open watches against.
    AuthChanged,
}

/// Why an entry was refused, or a read. One variant for each reason that a caller can act on; `api/status.rs` gives
/// each etcd's code and text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// No identity, or an empty name.
    #[error("user name is empty")]
    UserEmpty,
    /// The credential has died since the request was resolved.
    #[error("invalid auth token")]
    InvalidAuthToken,
    /// An auth change was applied since the caller was resolved.
    #[error("revision of auth store is old")]
    AuthOldRevision,
    /// The caller lacks the right.
    #[error("permission denied")]
    PermissionDenied,
    /// AuthEnable without a user `root`.
    #[error("root user does not exist")]
    RootUserNotExist,
    /// AuthEnable while `root` lacks the role.
    #[error("root user does not have root role")]
    RootRoleNotExist,
    /// UserAdd of a known name.
    #[error("user name already exists")]
    UserAlreadyExist,
    /// No such user.
    #[error("user name not found")]
    UserNotFound,
    /// RoleAdd of a known name.
    #[error("role name already exists")]
    RoleAlreadyExist,
    /// No such role.
    #[error("role name not found")]
    RoleNotFound,
    /// RoleAdd of an empty name.
    #[error("role name is empty")]
    RoleEmpty,
    /// Unknown user or wrong password, indistinguishably.
    #[error("authentication failed, invalid user ID or password")]
    AuthFailed,
    /// Login of a user that has no password.
    #[error("authentication failed, password was given for no password user")]
    NoPasswordUser,
    /// Login while auth is off.
    #[error("authentication is not enabled")]
    AuthNotEnabled,
    /// Login while as many tokens live as there may be.
    #[error("too many requests")]
    TooManyTokens,
    /// A protected name, or a range that holds no key.
    #[error("invalid auth management")]
    InvalidAuthMgmt,
    /// RoleGrantPermission without a permission.
    #[error("permission not given")]
    PermissionNotGiven,
    /// UserRevokeRole of a role that the user does not hold.
    #[error("role is not granted to the user")]
    RoleNotGranted,
    /// RoleRevokePermission of a permission that the role does not hold.
    #[error("permission is not granted to the role")]
    PermissionNotGranted,
    /// `ignore_value` or `ignore_lease` on a key that does not exist.
    #[error("key not found")]
    KeyNotFound,
    /// A lease that does not exist.
    #[error("requested lease not found")]
    LeaseNotFound,
    /// A read at a revision that has been compacted away.
    #[error("required revision has been compacted")]
    Compacted,
    /// A read at a revision that does not exist yet.
    #[error("required revision is a future revision")]
    FutureRevision,
}
