//! Names, keys and values of the tables.
//!
//! | table | key | value |
//! |---|---|---|
//! | `meta` | one of the names below | numbers big-endian, messages as protobuf |
//! | `log` | log index | raft's `eraftpb.Entry` |
//! | `users` | name | `gatehousepb.UserRecord` |
//! | `roles` | name | `gatehousepb.RoleRecord` |
//! | `tokens` | login index big-endian, then the prefix hash | `gatehousepb.TokenRecord` |
//! | `kv` | revision, number of the change within it | `gatehousepb.KvRecord` |
//!
//! Every value is followed by its checksum, see `sealed.rs`.
//!
//! Invariants: `log` has no gap from `first_index` on; `applied_index` of `state` ≤ `commit` of `hard_state` ≤ last index
//! of `log`; every row of the other tables is what the entries up to `applied_index` left there.

use super::sealed::SealedTable;
use redb::TableDefinition;

pub(super) const META: SealedTable<&'static str> = TableDefinition::new("meta");
pub(super) const LOG: SealedTable<u64> = TableDefinition::new("log");
pub(super) const USERS: SealedTable<&'static str> = TableDefinition::new("users");
pub(super) const ROLES: SealedTable<&'static str> = TableDefinition::new("roles");
pub(super) const TOKENS: SealedTable<&'static [u8]> = TableDefinition::new("tokens");
pub(super) const KV: SealedTable<(i64, i64)> = TableDefinition::new("kv");

/// Format of the store, 4 bytes. Its presence says that the store has been created completely. Whatever else a later format
/// changes, this row stays as it is, so that every version can say what it has found.
pub(super) const FORMAT_KEY: &str = "format";
/// The cluster, 8 bytes.
pub(super) const CLUSTER_KEY: &str = "cluster_id";
/// The member, 8 bytes.
pub(super) const MEMBER_KEY: &str = "member_id";
/// Which store it is, 8 bytes: drawn when it was created, to tell it from all others of this member.
pub(super) const STORE_ID_KEY: &str = "store_id";
/// Number of the newest transaction, 8 bytes: 1 for the one that created the store, and one more for each.
pub(super) const COMMIT_KEY: &str = "commit";
/// `eraftpb.HardState`: term, vote, commit index.
pub(super) const HARD_STATE_KEY: &str = "hard_state";
/// `eraftpb.ConfState`: the voters.
pub(super) const CONF_STATE_KEY: &str = "conf_state";
/// Index of the log's first entry, 8 bytes; 1 until the log has been truncated.
pub(super) const FIRST_INDEX_KEY: &str = "first_index";
/// Term of the entry before the first, 8 bytes; absent until the log has been truncated.
pub(super) const PREVIOUS_TERM_KEY: &str = "previous_term";
/// `gatehousepb.Meta`.
pub(super) const STATE_KEY: &str = "state";
