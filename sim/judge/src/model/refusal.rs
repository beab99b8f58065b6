//! The refusals that the rules know, with etcd's texts (`api/v3rpc/rpctypes/error.go`).

/// Why a call is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// No identity, or an empty name.
    UserEmpty,
    /// The token was never good, or has died.
    InvalidToken,
    /// An auth change came between the token's look-up and the decision. No reason to refuse anything, with a simple token.
    OldRevision,
    /// The caller lacks the right.
    PermissionDenied,
    /// AuthEnable without a user `root`.
    NoRootUser,
    /// AuthEnable while `root` lacks the role `root`.
    NoRootRole,
    /// UserAdd of a known name.
    UserExists,
    /// No such user.
    UserNotFound,
    /// RoleAdd of a known name.
    RoleExists,
    /// No such role.
    RoleNotFound,
    /// RoleAdd of an empty name.
    RoleEmpty,
    /// Unknown user or wrong password.
    AuthFailed,
    /// Login while auth is off.
    NotEnabled,
    /// A protected name, or a range that holds no key.
    InvalidManagement,
    /// RevokeRole of a role that the user does not hold.
    RoleNotGranted,
    /// RevokePermission of a permission that the role does not hold.
    PermissionNotGranted,
    /// A read at a revision that does not exist yet.
    FutureRevision,
    /// A login while there are as many tokens as there may be.
    TooManyTokens,
}

impl Refusal {
    /// Every refusal.
    pub const ALL: [Refusal; 18] = [
        Refusal::UserEmpty,
        Refusal::InvalidToken,
        Refusal::OldRevision,
        Refusal::PermissionDenied,
        Refusal::NoRootUser,
        Refusal::NoRootRole,
        Refusal::UserExists,
        Refusal::UserNotFound,
        Refusal::RoleExists,
        Refusal::RoleNotFound,
        Refusal::RoleEmpty,
        Refusal::AuthFailed,
        Refusal::NotEnabled,
        Refusal::InvalidManagement,
        Refusal::RoleNotGranted,
        Refusal::PermissionNotGranted,
        Refusal::FutureRevision,
        Refusal::TooManyTokens,
    ];

    /// The text, without etcd's prefix.
    pub fn text(self) -> &'static str {
        match self {
            Refusal::UserEmpty => "user name is empty",
            Refusal::InvalidToken => "invalid auth token",
            Refusal::OldRevision => "revision of auth store is old",
            Refusal::PermissionDenied => "permission denied",
            Refusal::NoRootUser => "root user does not exist",
            Refusal::NoRootRole => "root user does not have root role",
            Refusal::UserExists => "user name already exists",
            Refusal::UserNotFound => "user name not found",
            Refusal::RoleExists => "role name already exists",
            Refusal::RoleNotFound => "role name not found",
            Refusal::RoleEmpty => "role name is empty",
            Refusal::AuthFailed => "authentication failed, invalid user ID or password",
            Refusal::NotEnabled => "authentication is not enabled",
            Refusal::InvalidManagement => "invalid auth management",
            Refusal::RoleNotGranted => "role is not granted to the user",
            Refusal::PermissionNotGranted => "permission is not granted to the role",
            Refusal::FutureRevision => "required revision is a future revision",
            // Etcd has no such limit; its text for another one is what its clients know.
            Refusal::TooManyTokens => "too many requests",
        }
    }

    /// The refusal with this text.
    pub fn from_text(text: &str) -> Option<Refusal> {
        Refusal::ALL
            .into_iter()
            .find(|refusal| refusal.text() == text)
    }

    /// The refusal in a gRPC message, which carries etcd's prefix and, for the key-value store, a second one.
    pub fn from_message(message: &str) -> Option<Refusal> {
        let text = message.strip_prefix("etcdserver: ").unwrap_or(message);
        Refusal::from_text(text.strip_prefix("mvcc: ").unwrap_or(text))
    }
}

#[cfg(test)]
mod tests {
    use super::Refusal;

    #[test]
    fn every_refusal_is_known_by_its_text_and_by_its_message() {
        for refusal in Refusal::ALL {
            assert_eq!(Refusal::from_text(refusal.text()), Some(refusal));
            assert_eq!(
                Refusal::from_message(&format!("etcdserver: {}", refusal.text())),
                Some(refusal)
            );
        }
        let future = "etcdserver: mvcc: required revision is a future revision";
        assert_eq!(Refusal::from_message(future), Some(Refusal::FutureRevision));
        assert_eq!(Refusal::from_message("etcdserver: no leader"), None);
    }
}
