//! Why the store cannot be used.

/// Why the store could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The store was written by an earlier version, before the first release.
    #[error(
        "the store has format {found}, which only versions before the first release wrote; this version reads format \
         {known}: remove the data directory and let this member start anew"
    )]
    OlderFormat {
        /// The store's format.
        found: u32,
        /// The format that this version reads.
        known: u32,
    },
    /// The store was written by a later version.
    #[error("the store has format {found}; this version reads formats up to {known}")]
    NewerFormat {
        /// The store's format.
        found: u32,
        /// The newest format that this version reads.
        known: u32,
    },
    /// The store belongs to another cluster.
    #[error(
        "the store belongs to cluster {found:016x}, not to {expected:016x}: --initial-cluster, the peer URLs or \
         --initial-cluster-token differ from those of its first start"
    )]
    ForeignCluster {
        /// The store's cluster.
        found: u64,
        /// The configured cluster.
        expected: u64,
    },
    /// The store belongs to another member.
    #[error("the store belongs to member {found:016x}, not to {expected:016x}")]
    ForeignMember {
        /// The store's member.
        found: u64,
        /// The configured member.
        expected: u64,
    },
    /// Commits that were durable are not there any more.
    #[error(
        "the store has lost {missing} commits: it holds {found}, and {noted} were durable. The file is damaged, or an \
         older copy of it. What this member has promised is gone, so it must not serve with it: restore the newest files, \
         or remove the data directory and let the member start anew"
    )]
    LostCommits {
        /// Number of the store's newest commit.
        found: u64,
        /// Number of the newest commit that was durable.
        noted: u64,
        /// How many are missing.
        missing: u64,
    },
    /// There is no store where one was.
    #[error(
        "the store is gone: {commits} commits of it were durable. What this member has promised is gone with it: restore \
         it, or remove the data directory and let the member start anew"
    )]
    LostStore {
        /// Number of the newest commit that was durable.
        commits: u64,
    },
    /// Nothing says whether the store is complete.
    #[error(
        "the file that counts the store's commits is {what}, so nobody knows whether the store has them all: restore it, or \
         remove the data directory and let this member start anew"
    )]
    Uncounted {
        /// How it is.
        what: &'static str,
    },
    /// The file that counts commits belongs to another store.
    #[error(
        "the file that counts commits is that of store {found:016x}, the store is {expected:016x}: restore both from the \
         same moment, or remove the data directory and let this member start anew"
    )]
    ForeignCounter {
        /// The store that it counts for.
        found: u64,
        /// The store.
        expected: u64,
    },
    /// The store contradicts itself, or holds what no version wrote.
    #[error("the store is corrupt: {what}")]
    Corrupt {
        /// What is wrong.
        what: String,
    },
    /// What was to be staged is no row of any table.
    #[error("what came with a snapshot is no row of any table")]
    NotARow,
    /// The disk, or the database on it, failed.
    #[error("the store failed: {0}")]
    Failed(#[source] Box<redb::Error>),
}

impl StorageError {
    pub(super) fn corrupt(what: impl Into<String>) -> StorageError {
        StorageError::Corrupt { what: what.into() }
    }
}

impl From<redb::Error> for StorageError {
    fn from(error: redb::Error) -> Self {
        match error {
            redb::Error::Corrupted(what) => StorageError::Corrupt { what },
            other => StorageError::Failed(Box::new(other)),
        }
    }
}

/// redb has one error type for each kind of call; here they are one.
macro_rules! from_redb {
    ($($error:ident),*) => {
        $(impl From<redb::$error> for StorageError {
            fn from(error: redb::$error) -> Self {
                redb::Error::from(error).into()
            }
        })*
    };
}

from_redb!(
    StorageError,
    TableError,
    TransactionError,
    CommitError,
    DatabaseError,
    SetDurabilityError
);
