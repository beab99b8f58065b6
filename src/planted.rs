//! The bugs that can be switched on, each one skipped or swapped step. Only simulation builds contain them: in a real
//! build [`planted`] is a constant `false` and the optimiser removes every trace.
//!
//! A switch is set for one thread, because one thread is one simulation. Names are stable: they appear on the command
//! line (`--bug authn-changepw-toctou/a`), in reports and in stored plans.

/// One switch. Its documentation says which step it skips or swaps, and which property must notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bug {
    /// Apply mints a token although the user's epoch moved since the password was compared. Noticed by P6.
    AuthnChangepwToctouA,
    /// Login compares the password with this member's own state, without a barrier. Noticed by the refusal half of P5.
    AuthnChangepwToctouB,
    /// Login reads the user's epoch after comparing the password instead of before. Noticed by P6.
    AuthnChangepwToctouC,
    /// A member waits for the entry before a token's own, so that the look-up comes one entry too early (etcd #18437).
    /// Noticed by P7.
    TokenActivationLag,
    /// A password change leaves the user's tokens alive. Noticed by P6.
    CredentialChangeKeepsTokensA,
    /// Deleting a user leaves its tokens, which then belong to whoever is created under that name. Noticed by P6.
    CredentialChangeKeepsTokensB,
    /// Switching auth off leaves the tokens, which are good again once it is switched on. Noticed by P6.
    DisableKeepsTokensA,
    /// A login gives a token while auth is off. Noticed by P5.
    DisableKeepsTokensB,
    /// A member starts with an empty token table. Noticed by P7, and by P9.
    TokenTableVolatile,
    /// A write is decided by the member that takes it, from its own state, and no more at apply. Noticed by P2 and P1.
    StaleMemberCheckA,
    /// A member that does not lead goes on believing what it read at its start: whether auth is on. Noticed by P2 and P1.
    StaleMemberCheckB,
    /// A linearizable read is decided on the member's own state, and only then passes the barrier. Noticed by P2 and P3.
    StaleMemberCheckC,
    /// A write is decided on fresh state before it is proposed, and no more at apply. Noticed by P1 and P2.
    CheckAtApiLayerA,
    /// The same for admin calls. Noticed by P1 and P2.
    CheckAtApiLayerB,
    /// Apply takes the user's name from the entry, and does not ask whether the credential that gave it still lives.
    /// Noticed by P6.
    AuthRevisionIgnoredA,
    /// Apply refuses data whose token was looked up before the newest auth change, whomever that is about, as etcd does.
    /// Noticed by P18.
    StaleStampRefused,
    /// A serializable range is decided on one view and read from a later one. Noticed by P4.
    SerializableNoRecheckA,
    /// The same for transactions that only read. Noticed by P4.
    SerializableNoRecheckB,
    /// Deleting a role leaves what it allowed in the derived rights of its holders. Noticed by P1 and P2.
    RoleDeleteKeepsCache,
    /// Deleting a role leaves its name with its holders, so that a new role of that name is theirs. Noticed by P15.
    RoleDeleteKeepsMembership,
    /// A transaction inside a transaction is not looked at. Noticed by P12 and P1.
    NestedTxnUncheckedA,
    /// Of a transaction inside a transaction only the success branch is looked at. Noticed by P12 and P1.
    NestedTxnUncheckedB,
    /// Of a transaction inside a transaction the comparisons are not looked at. Noticed by P12.
    NestedTxnUncheckedC,
    /// The end of a granted range counts as granted. Noticed by P14.
    RangeMergeEdgesA,
    /// A request across a gap is allowed because both of its ends are granted. Noticed by P14.
    RangeMergeEdgesB,
    /// The grant of a single key that touches a granted range is lost. Noticed by P14.
    RangeMergeEdgesC,
    /// A granted range without an end counts as empty. Noticed by P14.
    RangeMergeEdgesD,
    /// While auth is on, the user `root` may be deleted and may lose its role. Noticed by P16.
    RootUnprotected,
    /// An expiry ends a token although its use has been reported since it was proposed. Noticed by P7.
    TokenLifetimeA,
    /// Nobody proposes that tokens expire. Noticed by P17.
    TokenLifetimeB,
    /// A login beyond the limit ends the user's newest other token instead of the one that was longest unused. Noticed by
    /// P6 and P7.
    TokenLifetimeC,
    /// Answers leave before the disk has made durable what they promise. Noticed by P11 after a power cut.
    CommitSkipsSync,
    /// Where a later leader's log is shorter, the old entries behind it stay in the store. Noticed by P11 after a restart.
    ConflictingTailKept,
    /// The applied index is not stored with auth changes, which a member then applies again after a crash. Noticed by P9.
    AuthIndexNotAtomic,
    /// Installing a snapshot leaves what was derived from the users and roles of before. Noticed by P10.
    PermCacheStaleAfterSnapshotA,
    /// Installing a snapshot derives nothing, so that only admins may do anything there. Noticed by P10.
    PermCacheStaleAfterSnapshotB,
    /// A start does not read whether auth is on, and relies on the log to say so. Noticed by P10, P2 and P9.
    EnabledFlagLostOnBoot,
    /// Every start raises the stored auth revision. Noticed by P9.
    AuthRevBumpOnBoot,
    /// A start derives nothing from users and roles, so that only admins may do anything there. Noticed by P10.
    PermCacheEmptyAfterBoot,
    /// The applied index is not stored with entries that were all refused. Noticed by P11: the log of such a member is
    /// truncated behind what its store says is applied.
    DeniedEntrySkipsIndex,
}

impl Bug {
    /// Every switch, in the order of the kill table.
    pub const ALL: [Bug; 40] = [
        Bug::AuthnChangepwToctouA,
        Bug::AuthnChangepwToctouB,
        Bug::AuthnChangepwToctouC,
        Bug::TokenActivationLag,
        Bug::CredentialChangeKeepsTokensA,
        Bug::CredentialChangeKeepsTokensB,
        Bug::DisableKeepsTokensA,
        Bug::DisableKeepsTokensB,
        Bug::TokenTableVolatile,
        Bug::StaleMemberCheckA,
        Bug::StaleMemberCheckB,
        Bug::StaleMemberCheckC,
        Bug::CheckAtApiLayerA,
        Bug::CheckAtApiLayerB,
        Bug::AuthRevisionIgnoredA,
        Bug::StaleStampRefused,
        Bug::SerializableNoRecheckA,
        Bug::SerializableNoRecheckB,
        Bug::RoleDeleteKeepsCache,
        Bug::RoleDeleteKeepsMembership,
        Bug::NestedTxnUncheckedA,
        Bug::NestedTxnUncheckedB,
        Bug::NestedTxnUncheckedC,
        Bug::RangeMergeEdgesA,
        Bug::RangeMergeEdgesB,
        Bug::RangeMergeEdgesC,
        Bug::RangeMergeEdgesD,
        Bug::RootUnprotected,
        Bug::TokenLifetimeA,
        Bug::TokenLifetimeB,
        Bug::TokenLifetimeC,
        Bug::CommitSkipsSync,
        Bug::ConflictingTailKept,
        Bug::AuthIndexNotAtomic,
        Bug::PermCacheStaleAfterSnapshotA,
        Bug::PermCacheStaleAfterSnapshotB,
        Bug::EnabledFlagLostOnBoot,
        Bug::AuthRevBumpOnBoot,
        Bug::PermCacheEmptyAfterBoot,
        Bug::DeniedEntrySkipsIndex,
    ];

    /// The name on the command line and in reports: `slug` or `slug/x` for a sub-switch.
    pub fn slug(self) -> &'static str {
        match self {
            Bug::AuthnChangepwToctouA => "authn-changepw-toctou/a",
            Bug::AuthnChangepwToctouB => "authn-changepw-toctou/b",
            Bug::AuthnChangepwToctouC => "authn-changepw-toctou/c",
            Bug::TokenActivationLag => "token-activation-lag",
            Bug::CredentialChangeKeepsTokensA => "credential-change-keeps-tokens/a",
            Bug::CredentialChangeKeepsTokensB => "credential-change-keeps-tokens/b",
            Bug::DisableKeepsTokensA => "disable-keeps-tokens/a",
            Bug::DisableKeepsTokensB => "disable-keeps-tokens/b",
            Bug::TokenTableVolatile => "token-table-volatile",
            Bug::StaleMemberCheckA => "stale-member-check/a",
            Bug::StaleMemberCheckB => "stale-member-check/b",
            Bug::StaleMemberCheckC => "stale-member-check/c",
            Bug::CheckAtApiLayerA => "check-at-api-layer/a",
            Bug::CheckAtApiLayerB => "check-at-api-layer/b",
            Bug::AuthRevisionIgnoredA => "auth-revision-ignored/a",
            Bug::StaleStampRefused => "stale-stamp-refused",
            Bug::SerializableNoRecheckA => "serializable-no-recheck/a",
            Bug::SerializableNoRecheckB => "serializable-no-recheck/b",
            Bug::RoleDeleteKeepsCache => "role-delete-keeps-cache",
            Bug::RoleDeleteKeepsMembership => "role-delete-keeps-membership",
            Bug::NestedTxnUncheckedA => "nested-txn-unchecked/a",
            Bug::NestedTxnUncheckedB => "nested-txn-unchecked/b",
            Bug::NestedTxnUncheckedC => "nested-txn-unchecked/c",
            Bug::RangeMergeEdgesA => "range-merge-edges/a",
            Bug::RangeMergeEdgesB => "range-merge-edges/b",
            Bug::RangeMergeEdgesC => "range-merge-edges/c",
            Bug::RangeMergeEdgesD => "range-merge-edges/d",
            Bug::RootUnprotected => "root-unprotected",
            Bug::TokenLifetimeA => "token-lifetime/a",
            Bug::TokenLifetimeB => "token-lifetime/b",
            Bug::TokenLifetimeC => "token-lifetime/c",
            Bug::CommitSkipsSync => "commit-skips-sync",
            Bug::ConflictingTailKept => "conflicting-tail-kept",
            Bug::AuthIndexNotAtomic => "auth-index-not-atomic",
            Bug::PermCacheStaleAfterSnapshotA => "perm-cache-stale-after-snapshot/a",
            Bug::PermCacheStaleAfterSnapshotB => "perm-cache-stale-after-snapshot/b",
            Bug::EnabledFlagLostOnBoot => "enabled-flag-lost-on-boot",
            Bug::AuthRevBumpOnBoot => "auth-rev-bump-on-boot",
            Bug::PermCacheEmptyAfterBoot => "perm-cache-empty-after-boot",
            Bug::DeniedEntrySkipsIndex => "denied-entry-skips-index",
        }
    }

    /// The properties (as in `scenarios/README.md`) of which one must notice it.
    pub fn properties(self) -> &'static [&'static str] {
        match self {
            Bug::AuthnChangepwToctouA
            | Bug::AuthnChangepwToctouC
            | Bug::CredentialChangeKeepsTokensA
            | Bug::DisableKeepsTokensA => &["P6"],
            Bug::AuthnChangepwToctouB | Bug::DisableKeepsTokensB => &["P5"],
            Bug::TokenActivationLag | Bug::TokenLifetimeA => &["P7"],
            // The one that should have made room goes on, and the one that made it is called invalid.
            Bug::TokenLifetimeC => &["P6", "P7"],
            Bug::CredentialChangeKeepsTokensB => &["P6", "P15"],
            Bug::TokenTableVolatile => &["P7", "P9", "P10"],
            Bug::StaleMemberCheckA => &["P1", "P2", "P3"],
            Bug::StaleMemberCheckB | Bug::CheckAtApiLayerA | Bug::CheckAtApiLayerB => &["P1", "P2"],
            Bug::StaleMemberCheckC => &["P2", "P3", "P6"],
            Bug::AuthRevisionIgnoredA => &["P1", "P6"],
            Bug::StaleStampRefused => &["P18"],
            Bug::SerializableNoRecheckA | Bug::SerializableNoRecheckB => &["P4"],
            Bug::RoleDeleteKeepsCache => &["P1", "P2", "P10"],
            Bug::RoleDeleteKeepsMembership => &["P15"],
            Bug::NestedTxnUncheckedA | Bug::NestedTxnUncheckedB => &["P1", "P12"],
            Bug::NestedTxnUncheckedC => &["P12"],
            Bug::RangeMergeEdgesA
            | Bug::RangeMergeEdgesB
            | Bug::RangeMergeEdgesC
            | Bug::RangeMergeEdgesD => &["P14"],
            Bug::RootUnprotected => &["P16"],
            Bug::TokenLifetimeB => &["P17"],
            Bug::CommitSkipsSync | Bug::ConflictingTailKept => &["P11"],
            Bug::AuthIndexNotAtomic => &["P9", "P11"],
            Bug::PermCacheStaleAfterSnapshotA | Bug::PermCacheStaleAfterSnapshotB => &["P10"],
            Bug::EnabledFlagLostOnBoot => &["P1", "P2", "P4", "P9", "P10"],
            Bug::AuthRevBumpOnBoot => &["P9", "P10", "P11"],
            Bug::PermCacheEmptyAfterBoot => &["P3", "P4", "P9", "P10"],
            Bug::DeniedEntrySkipsIndex => &["P11"],
        }
    }

    /// The switches that a name selects: one for `slug/x`, all of a bug's for `slug`, none for an unknown name.
    pub fn named(name: &str) -> Vec<Bug> {
        let selects = |bug: &Bug| {
            bug.slug() == name
                || bug
                    .slug()
                    .split('/')
                    .next()
                    .is_some_and(|slug| slug == name)
        };
        Bug::ALL.into_iter().filter(selects).collect()
    }
}

/// Whether `bug` is switched on in this simulation. Constant `false` in a real build.
#[cfg(not(madsim))]
#[inline(always)]
pub(crate) const fn planted(_bug: Bug) -> bool {
    false
}

#[cfg(madsim)]
pub use simulated::plant;
#[cfg(madsim)]
pub(crate) use simulated::planted;

#[cfg(madsim)]
mod simulated {
    use super::Bug;
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    pub(crate) fn planted(bug: Bug) -> bool {
        PLANTED.get() == Some(bug)
    }

    /// Switches `bug` on (or all off) for the simulation that runs on this thread.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.set(bug);
    }
}
