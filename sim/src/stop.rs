//! Why a member stopped by itself, as far as the verdict depends on it.

use gatehouse::node::MemberError;
use gatehouse::server::ServerError;
use gatehouse::storage::StorageError;

/// A member's reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Its disk gave an error.
    Disk,
    /// What its disk holds contradicts itself, or what the others know of it.
    Store,
    /// Anything else.
    Other,
}

impl Stop {
    /// The reason in an error.
    pub(crate) fn of(error: &ServerError) -> Stop {
        match error {
            ServerError::Member(MemberError::Disk(_)) => Stop::Disk,
            ServerError::Member(MemberError::Open { cause, .. } | MemberError::Storage(cause)) => {
                match cause {
                    StorageError::Failed(_) => Stop::Disk,
                    _ => Stop::Store,
                }
            }
            ServerError::Member(
                MemberError::LostEntries { .. }
                | MemberError::Forked { .. }
                | MemberError::Entry { .. }
                | MemberError::Value(_),
            ) => Stop::Store,
            _ => Stop::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_disk_is_told_from_a_damaged_store() {
        let disk = MemberError::Disk(std::io::Error::other("x"));
        let lost = MemberError::LostEntries {
            acknowledged: 2,
            last_index: 1,
        };
        let corrupt = MemberError::Storage(StorageError::Corrupt { what: "x".into() });
        let panic = ServerError::Panicked("x".into());
        assert_eq!(Stop::of(&panic), Stop::Other);
        let foreign = MemberError::Open {
            disk: "x".into(),
            cause: StorageError::ForeignCluster {
                found: 1,
                expected: 2,
            },
        };
        let reasons = [disk, lost, corrupt, foreign].map(|error| Stop::of(&error.into()));
        assert_eq!(reasons, [Stop::Disk, Stop::Store, Stop::Store, Stop::Store]);
    }
}
