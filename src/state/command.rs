//! What a log entry says: who asks ([`Caller`]) and for what ([`Op`]). Protobuf stops before this module; a command that
//! exists is well-formed, but nothing here says that it is allowed.

use super::name::{RoleName, UserName};
use bytes::Bytes;

/// One committed request.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// Drawn by the member that took the request; finds the waiting call again, and marks it in traces.
    pub request_id: u64,
    /// Who asks, as it was known when the request was proposed.
    pub caller: Caller,
    /// What is asked.
    pub op: Op,
}

/// Who asks, and under which auth revision that was found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The identity that the request's credential gave.
    pub identity: Identity,
    /// Auth revision of the view in which the identity was resolved; 0 for an anonymous caller.
    pub auth_revision: u64,
}

impl Caller {
    /// A caller without a credential.
    pub const ANONYMOUS: Caller = Caller {
        identity: Identity::Anonymous,
        auth_revision: 0,
    };
}

/// Where a request's authority comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// No credential was presented, or auth was off where it was.
    Anonymous,
    /// A user, named by a credential that can die before the request is decided.
    User(UserName, Credential),
    /// The cluster itself (expiry and refresh of tokens and leases).
    Internal,
}

/// What named the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// A simple token and the user's epoch when it was resolved.
    SimpleToken(TokenKey, u64),
    /// A signed token and its `revision` claim.
    Jwt(u64),
    /// A client certificate's common name.
    Certificate,
}

/// A simple token as the store knows it: ordered by login, and no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenKey {
    /// Log index of the login that made the token.
    pub index: u64,
    /// SHA-256 of the token's random prefix.
    pub prefix_hash: [u8; 32],
}

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Writes one key.
    Put(Put),
    /// Deletes the keys of a range.
    DeleteRange(DeleteRange),
    /// Compares, then runs one of two branches.
    Txn(Txn),
    /// Forgets what was written before this revision, except what is still the state there.
    Compact(i64),
    /// Switches auth on.
    AuthEnable,
    /// Switches auth off and drops every token.
    AuthDisable,
    /// Issues a token for a password that has been compared.
    Authenticate(Authenticate),
    /// Creates a user without roles.
    UserAdd(UserAdd),
    /// Deletes a user and its tokens.
    UserDelete(UserName),
    /// Replaces a user's password and drops its tokens.
    UserChangePassword(UserName, PasswordHash),
    /// Gives a role to a user.
    UserGrantRole(UserName, RoleName),
    /// Takes a role from a user.
    UserRevokeRole(UserName, RoleName),
    /// Creates a role without permissions.
    RoleAdd(RoleName),
    /// Deletes a role and takes it from every user.
    RoleDelete(RoleName),
    /// Adds a permission to a role. `None`: the request carried none, which is refused only after the gate.
    RoleGrantPermission(RoleName, Option<Permission>),
    /// Takes the permissions with exactly this key and range end from a role.
    RoleRevokePermission(RoleName, RawRange),
    /// Says that tokens have been used. By the cluster only; tokens that are gone stay gone.
    TokenRefresh(Vec<TokenKey>),
    /// Ends tokens that nobody has used for long. By the cluster only; each with the number of uses reported when it was
    /// found to be due: if another has been reported since, the token lives on.
    TokenExpire(Vec<(TokenKey, u64)>),
}

/// A key and a range end as they came over the wire. Empty end: the key alone; one zero byte: everything from the key on.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RawRange {
    /// First key.
    pub key: Bytes,
    /// Where the range ends, exclusive.
    pub range_end: Bytes,
}

/// Writes one key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Put {
    /// The key, never empty.
    pub key: Bytes,
    /// The new value; empty with `ignore_value`.
    pub value: Bytes,
    /// Lease to attach, 0 for none.
    pub lease: i64,
    /// Answer with the previous key-value pair.
    pub prev_kv: bool,
    /// Keep the value and change the rest; the key must exist.
    pub ignore_value: bool,
    /// Keep the lease; the key must exist.
    pub ignore_lease: bool,
}

/// Deletes the keys of a range.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteRange {
    /// Which keys.
    pub range: RawRange,
    /// Answer with what was deleted.
    pub prev_kv: bool,
}

/// Reads the keys of a range.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Range {
    /// Which keys.
    pub range: RawRange,
    /// Most keys to answer with, 0 for all.
    pub limit: i64,
    /// Key-value revision to read at, 0 or less for the newest.
    pub revision: i64,
    /// Order of the answer; `None` leaves key order.
    pub sort: Option<(SortTarget, SortOrder)>,
    /// Leave values out.
    pub keys_only: bool,
    /// Answer with the count alone.
    pub count_only: bool,
    /// Lowest and highest mod revision to answer with, 0 for no bound.
    pub mod_revision: (i64, i64),
    /// Lowest and highest create revision to answer with, 0 for no bound.
    pub create_revision: (i64, i64),
}

/// What a range's answer is sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortTarget {
    /// The key.
    Key,
    /// Puts since creation.
    Version,
    /// Creation.
    Create,
    /// Last change.
    Mod,
    /// The value, bytewise.
    Value,
}

/// Direction of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortOrder {
    /// Lowest first.
    Ascend,
    /// Highest first.
    Descend,
}

/// Compares, then runs one of two branches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Txn {
    /// All must hold for `success` to run.
    pub compares: Vec<Compare>,
    /// Runs when every comparison holds.
    pub success: Vec<TxnOp>,
    /// Runs otherwise.
    pub failure: Vec<TxnOp>,
}

/// One operation of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum TxnOp {
    /// A read.
    Range(Range),
    /// A write.
    Put(Put),
    /// A deletion.
    DeleteRange(DeleteRange),
    /// A transaction inside the transaction.
    Txn(Txn),
}

/// One comparison; with a range it must hold for every key in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Compare {
    /// Which keys; an absent single key counts as one with all-zero fields (but fails every value comparison).
    pub range: RawRange,
    /// How the key's field must relate to the operand.
    pub relation: Relation,
    /// The field and the operand.
    pub operand: Operand,
}

/// How a comparison relates the stored field to its operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Stored = operand.
    Equal,
    /// Stored > operand.
    Greater,
    /// Stored < operand.
    Less,
    /// Stored ≠ operand.
    NotEqual,
}

/// The field that a comparison looks at, with what it is compared to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Puts since creation.
    Version(i64),
    /// Revision of creation.
    Create(i64),
    /// Revision of the last change.
    Mod(i64),
    /// The value.
    Value(Bytes),
    /// The attached lease.
    Lease(i64),
}

/// A login whose password has been compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authenticate {
    /// Who logs in.
    pub user: UserName,
    /// The user's epoch when its hash was read for comparison.
    pub epoch: u64,
    /// Which kind of token to issue.
    pub kind: TokenKind,
    /// SHA-256 of the token's random prefix.
    pub prefix_hash: [u8; 32],
    /// How many tokens there may be, as the member that took the login was told: flags differ, the entry must not.
    pub limits: TokenLimits,
}

/// How many simple tokens may live at the same time. The default is none: entries of versions without limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenLimits {
    /// Of one user: a further login ends the one that was least recently refreshed, in the log's order. 0: no limit.
    pub per_user: u64,
    /// Of all users: a further login is refused, unless it makes room by itself. 0: no limit.
    pub total: u64,
}

/// Kinds of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Random text, kept in replicated state.
    Simple,
    /// Signed text, kept nowhere.
    Jwt,
}

/// A new user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserAdd {
    /// Its name; empty is refused, after the gate.
    pub name: UserName,
    /// What its password is compared with; empty for a `no_password` user.
    pub password: PasswordHash,
    /// Whether the user can be named by certificates only.
    pub no_password: bool,
}

/// A bcrypt string. Never shown: its `Debug` form is a placeholder.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PasswordHash(pub Bytes);

impl std::fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_empty() {
            "PasswordHash(none)"
        } else {
            "PasswordHash(redacted)"
        })
    }
}

/// A right on a range of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission {
    /// What may be done. An unknown kind is stored and gives no right (etcd's `range_perm_cache.go`).
    pub kind: PermissionKind,
    /// On which keys.
    pub range: RawRange,
}

/// What a permission allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermissionKind {
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Both.
    ReadWrite,
    /// A number that this version does not know.
    Unknown(i32),
}
