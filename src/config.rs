//! What a member needs to know to run: validated, with units in the names and nothing of the command line in it.

use crate::state::{TokenKind, TokenLimits};
use sha2::{Digest, Sha256};
use std::net::SocketAddr;
use std::time::Duration;

/// How long simple tokens live after their last use: the default of etcd's `--auth-token-ttl`.
pub const TOKEN_TTL: Duration = Duration::from_secs(300);

/// Shortest lifetime of simple tokens, heartbeats: uses are reported from tick to tick, four times in a lifetime.
pub const TOKEN_TTL_HEARTBEATS_MIN: u32 = 10;

/// How many simple tokens may live: about 100 bytes each in memory, on every member.
pub const TOKEN_LIMITS: TokenLimits = TokenLimits {
    per_user: 10_000,
    total: 200_000,
};

/// Applied entries after which the log is truncated: the default of etcd's `--snapshot-count` since 3.6.
pub const SNAPSHOT_COUNT: u64 = 10_000;

/// Size at which a part of a snapshot ends, bytes: members hear from their leader in between.
pub const SNAPSHOT_PART_BYTES: usize = 1 << 20;

/// One member of the static cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Raft id: derived from the peer URLs and the cluster token, never 0.
    pub id: u64,
    /// Its `--name`.
    pub name: String,
    /// `host:port` of its peer listener.
    pub peer_address: String,
}

impl Member {
    /// The member that listens for its peers at `peer_address`. Whoever knows the address and the cluster's token derives
    /// the same id, so members agree on ids without asking each other; another token gives other ids, so a member of a
    /// former cluster is not taken for one of this.
    pub fn new(name: &str, peer_address: &str, cluster_token: &str) -> Member {
        let id = id_of(&["member", peer_address, cluster_token]);
        Member {
            id,
            name: name.to_owned(),
            peer_address: peer_address.to_owned(),
        }
    }
}

/// The id of the cluster of `members`, in whatever order they are given.
pub fn cluster_id(members: &[Member], cluster_token: &str) -> u64 {
    let mut addresses: Vec<&str> = members
        .iter()
        .map(|member| member.peer_address.as_str())
        .collect();
    addresses.sort_unstable();
    let mut parts = vec!["cluster", cluster_token];
    parts.extend(addresses);
    id_of(&parts)
}

/// A hash of `parts`, never 0, which raft reads as "nobody".
fn id_of(parts: &[&str]) -> u64 {
    let mut hash = Sha256::new();
    for part in parts {
        // With its length, or a part could lend letters to its neighbour.
        hash.update(
            u64::try_from(part.len())
                .expect("a length fits 64 bits")
                .to_be_bytes(),
        );
        hash.update(part.as_bytes());
    }
    let digest: [u8; 32] = hash.finalize().into();
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(first).max(1)
}

/// How one member runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Hash of all members and the cluster token.
    pub cluster_id: u64,
    /// This member's id; one of `members`.
    pub member_id: u64,
    /// Every member, this one included, ordered by id.
    pub members: Vec<Member>,
    /// Where clients connect.
    pub listen_client: Vec<SocketAddr>,
    /// Where peers connect.
    pub listen_peer: Vec<SocketAddr>,
    /// One raft tick.
    pub heartbeat: Duration,
    /// How long a follower waits for a leader; at least five heartbeats.
    pub election: Duration,
    /// bcrypt cost of new password hashes, 4 to 31.
    pub bcrypt_cost: u32,
    /// Passwords compared or hashed at the same time.
    pub password_workers: usize,
    /// Which tokens logins get.
    pub token_kind: TokenKind,
    /// How long simple tokens live after their last use; at least [`TOKEN_TTL_HEARTBEATS_MIN`] heartbeats. Members must
    /// agree on it, or a leader with a shorter one ends tokens whose uses others report too rarely.
    pub token_ttl: Duration,
    /// How many simple tokens there may be, for logins at this member.
    pub token_limits: TokenLimits,
    /// Most operations in one branch of a transaction.
    pub max_txn_ops: usize,
    /// Largest request, bytes.
    pub max_request_bytes: usize,
    /// Applied entries after which the log is truncated, at least 1. Members may differ.
    pub snapshot_count: u64,
    /// Size at which a part of a snapshot ends, bytes; a single row may be larger. Simulations make small ones.
    pub snapshot_part_bytes: usize,
}

impl Config {
    /// How long a proposal, or a wait for an index, may take: etcd's 5 s plus two elections.
    pub fn request_timeout(&self) -> Duration {
        Duration::from_secs(5) + 2 * self.election
    }
}

#[cfg(test)]
impl Config {
    /// How a member of a test runs, without listeners; a test says what is different about its own.
    pub(crate) fn of_test(member_id: u64, members: Vec<Member>) -> Config {
        Config {
            cluster_id: 5,
            member_id,
            members,
            listen_client: Vec::new(),
            listen_peer: Vec::new(),
            heartbeat: Duration::from_millis(100),
            election: Duration::from_secs(1),
            bcrypt_cost: 4,
            password_workers: 1,
            token_kind: TokenKind::Simple,
            token_ttl: TOKEN_TTL,
            token_limits: TOKEN_LIMITS,
            max_txn_ops: 128,
            max_request_bytes: 1 << 20,
            snapshot_count: SNAPSHOT_COUNT,
            snapshot_part_bytes: SNAPSHOT_PART_BYTES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_derived_from_addresses_and_the_cluster_token() {
        let one = Member::new("a", "10.0.0.1:2380", "token");
        assert_eq!(one.id, Member::new("renamed", "10.0.0.1:2380", "token").id);
        assert_ne!(one.id, Member::new("a", "10.0.0.2:2380", "token").id);
        assert_ne!(one.id, Member::new("a", "10.0.0.1:2380", "other").id);
        // Pinned: an id on disk must be found again by the next version.
        assert_eq!(one.id, 0xcc13_2885_bf81_4f25);
    }

    #[test]
    fn a_cluster_id_does_not_depend_on_the_order_of_members() {
        let one = Member::new("a", "10.0.0.1:2380", "token");
        let two = Member::new("b", "10.0.0.2:2380", "token");
        let both = cluster_id(&[one.clone(), two.clone()], "token");
        assert_eq!(both, cluster_id(&[two.clone(), one.clone()], "token"));
        assert_ne!(both, cluster_id(&[one, two], "other"));
        assert_eq!(both, 0x39e3_e72a_c167_1aa5);
    }
}
