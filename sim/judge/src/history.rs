//! The history of one run: every call with its virtual times, every applied entry on every member, every fault. It is
//! all that the judge reads, and what `check` takes from a file: JSON lines, a header first.
//!
//! Passwords are ids and tokens are the ids of the logins that gave them, so a history holds no secret.

use crate::text::Text;
use serde::{Deserialize, Serialize};

/// Version of the file format; a reader refuses a newer one.
pub const FORMAT_VERSION: u32 = 1;

/// A run, in the order in which things happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// What was run.
    pub header: Header,
    /// What happened, with times that never decrease.
    pub events: Vec<Event>,
}

/// What was run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Always `gatehouse-history`.
    pub format: String,
    /// [`FORMAT_VERSION`] of the writer.
    pub version: u32,
    /// The plan's name.
    pub scenario: String,
    /// The seed.
    pub seed: u64,
    /// The planted bug's slug, if one was on.
    pub bug: Option<String>,
    /// Members, numbered 1 to this.
    pub members: u64,
    /// How long simple tokens live, and how many there may be.
    #[serde(default)]
    pub tokens: TokenRules,
}

/// How long simple tokens live, and how many there may be: the same on every member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TokenRules {
    /// Lifetime after the last use, milliseconds of a member's own clock.
    pub ttl_ms: u64,
    /// Most live tokens of one user; a further login makes room by ending the one that was least recently refreshed.
    pub per_user_max: u64,
    /// Most live tokens of all users; a further login is refused.
    pub total_max: u64,
    /// How much faster or slower than true time a member's clock runs at most, millionths.
    pub drift_ppm: u64,
}

impl Default for TokenRules {
    fn default() -> TokenRules {
        TokenRules {
            ttl_ms: 300_000,
            per_user_max: 10_000,
            total_max: 200_000,
            drift_ppm: 0,
        }
    }
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Virtual time since the start of the run, microseconds.
    pub at_us: u64,
    /// What it was.
    #[serde(flatten)]
    pub what: What,
}

// Histories hold millions of events, so what is large or rare stands behind a pointer.
const _: () = assert!(size_of::<Event>() <= 56);
const _: () = assert!(size_of::<Applied>() <= 120);

/// Kinds of events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum What {
    /// A client sends a call.
    Invoke {
        /// Number of the call, unique in the run, from 1.
        call: u64,
        /// The client's name.
        client: Text,
        /// The member it is sent to, from 1.
        member: u64,
        /// The login (its call number) whose token goes with it, or none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<u64>,
        /// What is asked.
        op: Box<Op>,
    },
    /// The call ends for its client.
    Return {
        /// The call.
        call: u64,
        /// How.
        outcome: Outcome,
    },
    /// A member proposed the call. A login that starts over is proposed again, with another request id.
    Proposed {
        /// The member that took the call.
        member: u64,
        /// The call.
        call: u64,
        /// The id in the log entry.
        request_id: u64,
    },
    /// A member answered the call from its published view.
    Served {
        /// The member.
        member: u64,
        /// The call.
        call: u64,
        /// Applied index of the view.
        index: u64,
    },
    /// A member applied an entry.
    Applied(Box<Applied>),
    /// A member has loaded its store.
    Started {
        /// The member.
        member: u64,
        /// Applied index on disk.
        index: u64,
    },
    /// A member's log lost its beginning.
    Truncated {
        /// The member.
        member: u64,
        /// Index of its log's first entry now; all before it have been applied there.
        first_index: u64,
    },
    /// A member, as leader, has handed a snapshot to another one.
    SnapshotSent {
        /// The sender.
        member: u64,
        /// The receiver.
        to: u64,
        /// Applied index of the snapshot's state.
        index: u64,
    },
    /// A member has put the state of a snapshot in the place of its own, without applying what lies between.
    Installed(Box<Installed>),
    /// A member compared everything that it derives from the stored state with what a start would derive from it: after
    /// each start and install, and when a probe asks.
    Compared {
        /// The member.
        member: u64,
        /// Its applied index.
        index: u64,
        /// Whether they are the same.
        equal: bool,
    },
    /// A member became leader, or stopped being it.
    Role {
        /// The member.
        member: u64,
        /// The raft term.
        term: u64,
        /// Whether it leads.
        leader: bool,
    },
    /// The schedule did something to the cluster, or something rare came of it.
    Fault {
        /// In plain words, e.g. `kill n2`.
        what: String,
    },
    /// Faults are over and healed; from here on the cluster owes progress.
    Healed,
    /// A member's state, read at the end or at a checkpoint.
    Probe {
        /// The member.
        member: u64,
        /// Applied index that the hashes describe.
        index: u64,
        /// Hash over keys and values.
        kv_hash: u32,
        /// Hash over users, roles, tokens, flag and revisions.
        auth_hash: u64,
        /// Running hash over every applied entry.
        digest: u64,
    },
}

/// One entry as one member applied it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Applied {
    /// The member.
    pub member: u64,
    /// Log index.
    pub index: u64,
    /// The entry's term.
    pub term: u64,
    /// The entry's request id; 0 for raft's own entries.
    pub request_id: u64,
    /// Kind of the operation (`put`, `authenticate`, …), empty for raft's own entries.
    pub kind: Text,
    /// User in the entry's header, empty for none.
    pub user: Text,
    /// Auth revision in the entry's header.
    pub header_auth_revision: u64,
    /// `ok`, `again` (a login that must start over), or the refusal's text.
    pub decision: Text,
    /// Auth revision after the entry.
    pub auth_revision: u64,
    /// Whether auth is on after the entry.
    pub auth_enabled: bool,
    /// Key-value revision after the entry.
    pub kv_revision: i64,
    /// The member's running hash after the entry.
    pub digest: u64,
    /// For `token-refresh` and `token-expire`: the tokens that the entry names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<TokenNote>,
}

/// The state of a snapshot as one member installed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installed {
    /// The member.
    pub member: u64,
    /// Applied index of the state.
    pub index: u64,
    /// Term of the entry at that index.
    pub term: u64,
    /// Auth revision.
    pub auth_revision: u64,
    /// Whether auth is on.
    pub auth_enabled: bool,
    /// Key-value revision.
    pub kv_revision: i64,
    /// Running hash over every entry up to the index.
    pub digest: u64,
}

/// A token as an entry of the cluster's own names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenNote {
    /// Log index of the login's entry.
    pub login_index: u64,
    /// For an expiry: the reports of use that its proposer had seen. For a refresh: 0.
    #[serde(default, skip_serializing_if = "is_zero_count")]
    pub refresh_count: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero_count(number: &u64) -> bool {
    *number == 0
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// It was done.
    Ok(Box<Reply>),
    /// It was refused and definitely had no effect.
    Refused {
        /// gRPC code by name, e.g. `PermissionDenied`.
        code: Text,
        /// The message.
        message: Text,
    },
    /// The answer was lost or says nothing: the call may have taken effect, may yet, or may never.
    Unknown {
        /// gRPC code by name.
        code: Text,
        /// The message.
        message: Text,
    },
}

/// The content of an answer; what does not apply stays empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reply {
    /// Key-value revision of the header.
    #[serde(skip_serializing_if = "is_zero")]
    pub revision: i64,
    /// Pairs of a range, or the previous pairs of a write.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kvs: Vec<Pair>,
    /// Keys counted by a range, or deleted.
    #[serde(skip_serializing_if = "is_zero")]
    pub count: i64,
    /// Branch of a transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub succeeded: Option<bool>,
    /// Answers of a transaction's operations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub responses: Vec<Reply>,
    /// Names of a listing (users, roles, roles of a user).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<Text>,
    /// Permissions of a role.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<Grant>,
    /// For AuthStatus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<AuthStatus>,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// A key and its value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// The key.
    pub key: Text,
    /// The value.
    pub value: Text,
    /// Revision of the put that created the key.
    pub create_revision: i64,
    /// Revision of the last put.
    pub mod_revision: i64,
    /// Puts since creation.
    pub version: i64,
}

/// A permission.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// `read`, `write` or `readwrite`.
    pub kind: GrantKind,
    /// First key.
    pub key: Text,
    /// Empty: the key alone. `\u0000`: everything from the key on.
    #[serde(default, skip_serializing_if = "Text::is_empty")]
    pub range_end: Text,
}

/// What a permission allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GrantKind {
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Both.
    Readwrite,
}

/// Answer to AuthStatus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthStatus {
    /// Whether auth is on.
    pub enabled: bool,
    /// Etcd's auth revision.
    pub revision: u64,
}

/// What a call asks. The same language stands in plans (as steps) and in histories. Passwords are ids.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Op {
    /// Authenticate: the answer's token is called by this call's number.
    Login {
        /// Who.
        user: Text,
        /// Password id.
        password: Text,
    },
    /// AuthEnable.
    AuthEnable {},
    /// AuthDisable.
    AuthDisable {},
    /// AuthStatus.
    AuthStatus {},
    /// UserAdd.
    UserAdd {
        /// Who.
        user: Text,
        /// Password id.
        password: Text,
    },
    /// UserDelete.
    UserDelete {
        /// Who.
        user: Text,
    },
    /// UserGet.
    UserGet {
        /// Who.
        user: Text,
    },
    /// UserList.
    UserList {},
    /// UserChangePassword.
    ChangePassword {
        /// Whose.
        user: Text,
        /// Id of the new password.
        password: Text,
    },
    /// UserGrantRole.
    GrantRole {
        /// To whom.
        user: Text,
        /// Which.
        role: Text,
    },
    /// UserRevokeRole.
    RevokeRole {
        /// From whom.
        user: Text,
        /// Which.
        role: Text,
    },
    /// RoleAdd.
    RoleAdd {
        /// Which.
        role: Text,
    },
    /// RoleDelete.
    RoleDelete {
        /// Which.
        role: Text,
    },
    /// RoleGet.
    RoleGet {
        /// Which.
        role: Text,
    },
    /// RoleList.
    RoleList {},
    /// RoleGrantPermission.
    GrantPermission {
        /// To which.
        role: Text,
        /// What.
        grant: Grant,
    },
    /// RoleRevokePermission.
    RevokePermission {
        /// From which.
        role: Text,
        /// First key of the permission.
        key: Text,
        /// Its range end.
        #[serde(default, skip_serializing_if = "Text::is_empty")]
        range_end: Text,
    },
    /// Put.
    Put {
        /// The key.
        key: Text,
        /// The value.
        value: Text,
        /// Answer with the previous pair.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        prev_kv: bool,
    },
    /// Range.
    Get {
        /// First key.
        key: Text,
        /// Range end.
        #[serde(default, skip_serializing_if = "Text::is_empty")]
        range_end: Text,
        /// Read this member's own state, without a barrier.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        serializable: bool,
        /// Most pairs, 0 for all.
        #[serde(default, skip_serializing_if = "is_zero")]
        limit: i64,
        /// Key-value revision, 0 for the newest.
        #[serde(default, skip_serializing_if = "is_zero")]
        revision: i64,
        /// Count only.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        count_only: bool,
    },
    /// DeleteRange.
    Delete {
        /// First key.
        key: Text,
        /// Range end.
        #[serde(default, skip_serializing_if = "Text::is_empty")]
        range_end: Text,
        /// Answer with what was deleted.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        prev_kv: bool,
    },
    /// Txn.
    Txn {
        /// All must hold for `success` to run.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        compare: Vec<Compare>,
        /// `put`, `get`, `delete` and `txn` only.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        success: Vec<Op>,
        /// The same, for when a comparison fails.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        failure: Vec<Op>,
    },
}

impl Op {
    /// Whether it asks for keys, so that it may stand in a transaction.
    pub fn is_data(&self) -> bool {
        matches!(
            self,
            Op::Put { .. } | Op::Get { .. } | Op::Delete { .. } | Op::Txn { .. }
        )
    }

    /// Whether it asks for a member's own state, which may be old. A transaction that only compares needs no barrier either.
    pub fn is_local(&self) -> bool {
        let is_local_get = |op: &Op| {
            matches!(
                op,
                Op::Get {
                    serializable: true,
                    ..
                }
            )
        };
        match self {
            Op::Txn {
                success, failure, ..
            } => success.iter().chain(failure).all(is_local_get),
            op => is_local_get(op),
        }
    }
}

/// One comparison of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compare {
    /// The key.
    pub key: Text,
    /// What it must be equal to.
    pub equals: Operand,
}

/// The field that a comparison looks at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operand {
    /// The value.
    Value(Text),
    /// Puts since creation; 0 says that the key is absent.
    Version(i64),
    /// Revision of the last put.
    ModRevision(i64),
}
