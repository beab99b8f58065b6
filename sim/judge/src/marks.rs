//! Coverage marks that a finished history holds: rare moments which a run must have had before its "ok" says anything about
//! them. They stand next to the passages of windows, which only the running server can count.
//!
//! A mark says that something happened, never whether it was right: that is the judge's business. So nothing here fails,
//! whatever a history holds. What comes after the healing does not count.

mod watch;

#[cfg(test)]
mod tests;

use crate::history::{History, What};
use std::collections::BTreeMap;
use watch::Watch;

/// How often each mark was hit, or each window was passed; all of them stand in it, so that a report shows those that were
/// not.
pub type Marks = BTreeMap<String, u64>;

/// One kind of rare moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// A login had to start over, because its user changed while the password was compared.
    LoginRepeated,
    /// A call for keys was carried out although auth had changed since its token was looked up.
    AuthChangedInFlight,
    /// A call succeeded with a token on another member than the one that gave it.
    TokenUsedOnOtherMember,
    /// A call succeeded with a token although, when it was sent, its member had not yet applied the login.
    TokenWaited,
    /// Such a call was given up by a member that had not applied the login until then.
    TokenWaitTimedOut,
    /// A right was taken from a user of whom eight calls or more were under way that needed it to change something.
    RevokeWithEightWritesInFlight,
    /// Auth was switched off while tokens lived.
    AuthOffWithLiveTokens,
    /// Auth was switched on while somebody read.
    EnableDuringRead,
    /// A login succeeded although a leader was elected since it had been sent.
    LoginOverLeaderChange,
    /// A member applied two auth changes, neighbours in the log, at one moment.
    TwoAuthChangesAtOnce,
    /// A user was deleted and created again between a change of auth that it asked for and the answer.
    AdminRecreatedInFlight,
    /// A login succeeded while less than half of the members were without power, all the time.
    MinorityDownWithLogins,
    /// A member removed log entries that were left over behind those of a later leader.
    ConflictingTailRemoved,
    /// A member's power failed inside a commit.
    PowerCutInCommit,
    /// A member stopped because its disk failed.
    StoppedForDisk,
    /// A member installed a snapshot.
    SnapshotInstalled,
}

impl Mark {
    /// Every mark, in the order of the coverage table.
    pub const ALL: [Mark; 16] = [
        Mark::LoginRepeated,
        Mark::AuthChangedInFlight,
        Mark::TokenUsedOnOtherMember,
        Mark::TokenWaited,
        Mark::TokenWaitTimedOut,
        Mark::RevokeWithEightWritesInFlight,
        Mark::AuthOffWithLiveTokens,
        Mark::EnableDuringRead,
        Mark::LoginOverLeaderChange,
        Mark::TwoAuthChangesAtOnce,
        Mark::AdminRecreatedInFlight,
        Mark::MinorityDownWithLogins,
        Mark::ConflictingTailRemoved,
        Mark::PowerCutInCommit,
        Mark::StoppedForDisk,
        Mark::SnapshotInstalled,
    ];

    /// The name in plans and reports.
    pub fn name(self) -> &'static str {
        match self {
            Mark::LoginRepeated => "login-repeated",
            Mark::AuthChangedInFlight => "auth-changed-in-flight",
            Mark::TokenUsedOnOtherMember => "token-used-on-other-member",
            Mark::TokenWaited => "token-waited",
            Mark::TokenWaitTimedOut => "token-wait-timed-out",
            Mark::RevokeWithEightWritesInFlight => "revoke-with-8-writes-in-flight",
            Mark::AuthOffWithLiveTokens => "auth-off-with-live-tokens",
            Mark::EnableDuringRead => "enable-during-read",
            Mark::LoginOverLeaderChange => "login-over-leader-change",
            Mark::TwoAuthChangesAtOnce => "two-auth-changes-at-once",
            Mark::AdminRecreatedInFlight => "admin-recreated-in-flight",
            Mark::MinorityDownWithLogins => "minority-down-with-logins",
            Mark::ConflictingTailRemoved => "conflicting-tail-removed",
            Mark::PowerCutInCommit => "power-cut-in-commit",
            Mark::StoppedForDisk => "stopped-for-disk",
            Mark::SnapshotInstalled => "snapshot-installed",
        }
    }
}

/// How often `history` holds each mark; every mark stands in the answer.
pub fn of_history(history: &History) -> Marks {
    let mut watch = Watch::new(history.header.members);
    let unhealed = history.events.iter();
    for event in unhealed.take_while(|event| event.what != What::Healed) {
        watch.see(event);
    }
    Mark::ALL
        .into_iter()
        .map(|mark| (mark.name().to_owned(), watch.count(mark)))
        .collect()
}
