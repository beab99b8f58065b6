//! What clients see of an error: the only file that names a gRPC code. Etcd's clients recognise errors by their text, so
//! texts are part of the protocol (etcd's `api/v3rpc/rpctypes/error.go`; those without an entry there leave as Unknown,
//! with the bare text).

use super::error::{ApiError, RequestError};
use crate::node::NodeError;
use crate::platform::passwords::PasswordError;
use crate::state::ApplyError;
use tonic::{Code, Status};

/// A refusal: its code and its text.
type Refusal = (Code, &'static str);

/// The answer to a failed call. Of our own faults the client learns nothing but `request_id`, under which the log holds
/// the cause.
pub(super) fn status(error: &ApiError, request_id: &str) -> Status {
    match refusal(error) {
        Some((code, text)) => Status::new(code, text),
        None => Status::new(
            Code::Internal,
            format!("etcdserver: internal error, request {request_id}"),
        ),
    }
}

/// Whether the error is ours, and so belongs into the log with its cause.
pub(super) fn is_fault(error: &ApiError) -> bool {
    refusal(error).is_none()
}

/// The refusal that an error stands for, `None` for a fault of ours.
fn refusal(error: &ApiError) -> Option<Refusal> {
    match error {
        ApiError::Request(error) => Some(request(*error)),
        ApiError::Refused(error) => Some(refused(error)),
        ApiError::Node(error) => Some(node(error)),
        ApiError::Password(PasswordError::TooLong) => {
            Some((Code::Unknown, "bcrypt: password length exceeds 72 bytes"))
        }
        ApiError::Password(PasswordError::TooManyRequests) => Some(TOO_MANY_REQUESTS),
        // Retried by etcd's clients, and true: nothing was decided in the time there was.
        ApiError::LoginContended | ApiError::Password(PasswordError::Timeout) => {
            Some((Code::Unavailable, "etcdserver: request timed out"))
        }
        ApiError::Password(PasswordError::Worker(_)) | ApiError::Value(_) => None,
    }
}

/// Etcd has a code for it and does not use it: its error table names the client-side error here.
const TOO_MANY_REQUESTS: Refusal = (Code::Unknown, "etcdserver: too many requests");

fn request(error: RequestError) -> Refusal {
    let text = match error {
        RequestError::EmptyKey => "etcdserver: key is not provided",
        RequestError::ValueProvided => "etcdserver: value is provided",
        RequestError::LeaseProvided => "etcdserver: lease is provided",
        RequestError::InvalidSortOption => "etcdserver: invalid sort option",
        RequestError::InvalidCompareOption => "etcdserver: invalid compare option",
        RequestError::TooManyOps => "etcdserver: too many operations in txn request",
        RequestError::DuplicateKey => "etcdserver: duplicate key given in txn request",
        RequestError::EmptyOp => "etcdserver: key not found",
    };
    (Code::InvalidArgument, text)
}

fn node(error: &NodeError) -> Refusal {
    match error {
        NodeError::NoLeader => (Code::Unavailable, "etcdserver: no leader"),
        NodeError::Timeout => (Code::Unavailable, "etcdserver: request timed out"),
        NodeError::WaitTimeout => (
            Code::Unavailable,
            "etcdserver: request timed out, waiting for the applied index took too long",
        ),
        NodeError::Stopped => (Code::Unavailable, "etcdserver: server stopped"),
        NodeError::TooManyRequests => TOO_MANY_REQUESTS,
        NodeError::TooLarge => (Code::InvalidArgument, "etcdserver: request is too large"),
    }
}

fn refused(error: &ApplyError) -> Refusal {
    use Code::{
        FailedPrecondition, InvalidArgument, NotFound, OutOfRange, PermissionDenied,
        ResourceExhausted, Unauthenticated, Unknown,
    };
    match error {
        ApplyError::UserEmpty => (InvalidArgument, "etcdserver: user name is empty"),
        ApplyError::InvalidAuthToken => (Unauthenticated, "etcdserver: invalid auth token"),
        ApplyError::AuthOldRevision => {
            (InvalidArgument, "etcdserver: revision of auth store is old")
        }
        ApplyError::PermissionDenied => (PermissionDenied, "etcdserver: permission denied"),
        ApplyError::RootUserNotExist => {
            (FailedPrecondition, "etcdserver: root user does not exist")
        }
        ApplyError::RootRoleNotExist => (
            FailedPrecondition,
            "etcdserver: root user does not have root role",
        ),
        ApplyError::UserAlreadyExist => {
            (FailedPrecondition, "etcdserver: user name already exists")
        }
        ApplyError::UserNotFound => (FailedPrecondition, "etcdserver: user name not found"),
        ApplyError::RoleAlreadyExist => {
            (FailedPrecondition, "etcdserver: role name already exists")
        }
        ApplyError::RoleNotFound => (FailedPrecondition, "etcdserver: role name not found"),
        ApplyError::RoleEmpty => (InvalidArgument, "etcdserver: role name is empty"),
        ApplyError::AuthFailed => (
            InvalidArgument,
            "etcdserver: authentication failed, invalid user ID or password",
        ),
        ApplyError::NoPasswordUser => (
            Unknown,
            "auth: authentication failed, password was given for no password user",
        ),
        ApplyError::AuthNotEnabled => (
            FailedPrecondition,
            "etcdserver: authentication is not enabled",
        ),
        // Etcd has no such limit. This is its text for a server that has enough to do, with the code that its error table
        // has for it, which tells a definite refusal from a lost answer.
        ApplyError::TooManyTokens => (ResourceExhausted, "etcdserver: too many requests"),
        ApplyError::InvalidAuthMgmt => (InvalidArgument, "etcdserver: invalid auth management"),
        ApplyError::PermissionNotGiven => (InvalidArgument, "etcdserver: permission not given"),
        ApplyError::RoleNotGranted => (
            FailedPrecondition,
            "etcdserver: role is not granted to the user",
        ),
        ApplyError::PermissionNotGranted => (
            FailedPrecondition,
            "etcdserver: permission is not granted to the role",
        ),
        ApplyError::KeyNotFound => (InvalidArgument, "etcdserver: key not found"),
        ApplyError::LeaseNotFound => (NotFound, "etcdserver: requested lease not found"),
        ApplyError::Compacted => (
            OutOfRange,
            "etcdserver: mvcc: required revision has been compacted",
        ),
        ApplyError::FutureRevision => (
            OutOfRange,
            "etcdserver: mvcc: required revision is a future revision",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{KvRevision, ValueError};

    /// Every refusal with its code number and text. A new variant must be added to the match above, and here.
    const GOLDEN: &str = "
Request(EmptyKey) → 3 etcdserver: key is not provided
Request(ValueProvided) → 3 etcdserver: value is provided
Request(LeaseProvided) → 3 etcdserver: lease is provided
Request(InvalidSortOption) → 3 etcdserver: invalid sort option
Request(InvalidCompareOption) → 3 etcdserver: invalid compare option
Request(TooManyOps) → 3 etcdserver: too many operations in txn request
Request(DuplicateKey) → 3 etcdserver: duplicate key given in txn request
Request(EmptyOp) → 3 etcdserver: key not found
Refused(UserEmpty) → 3 etcdserver: user name is empty
Refused(InvalidAuthToken) → 16 etcdserver: invalid auth token
Refused(AuthOldRevision) → 3 etcdserver: revision of auth store is old
Refused(PermissionDenied) → 7 etcdserver: permission denied
Refused(RootUserNotExist) → 9 etcdserver: root user does not exist
Refused(RootRoleNotExist) → 9 etcdserver: root user does not have root role
Refused(UserAlreadyExist) → 9 etcdserver: user name already exists
Refused(UserNotFound) → 9 etcdserver: user name not found
Refused(RoleAlreadyExist) → 9 etcdserver: role name already exists
Refused(RoleNotFound) → 9 etcdserver: role name not found
Refused(RoleEmpty) → 3 etcdserver: role name is empty
Refused(AuthFailed) → 3 etcdserver: authentication failed, invalid user ID or password
Refused(NoPasswordUser) → 2 auth: authentication failed, password was given for no password user
Refused(AuthNotEnabled) → 9 etcdserver: authentication is not enabled
Refused(TooManyTokens) → 8 etcdserver: too many requests
Refused(InvalidAuthMgmt) → 3 etcdserver: invalid auth management
Refused(PermissionNotGiven) → 3 etcdserver: permission not given
Refused(RoleNotGranted) → 9 etcdserver: role is not granted to the user
Refused(PermissionNotGranted) → 9 etcdserver: permission is not granted to the role
Refused(KeyNotFound) → 3 etcdserver: key not found
Refused(LeaseNotFound) → 5 etcdserver: requested lease not found
Refused(Compacted) → 11 etcdserver: mvcc: required revision has been compacted
Refused(FutureRevision) → 11 etcdserver: mvcc: required revision is a future revision
Node(NoLeader) → 14 etcdserver: no leader
Node(Timeout) → 14 etcdserver: request timed out
Node(WaitTimeout) → 14 etcdserver: request timed out, waiting for the applied index took too long
Node(Stopped) → 14 etcdserver: server stopped
Node(TooManyRequests) → 2 etcdserver: too many requests
Node(TooLarge) → 3 etcdserver: request is too large
Password(TooLong) → 2 bcrypt: password length exceeds 72 bytes
Password(TooManyRequests) → 2 etcdserver: too many requests
Password(Timeout) → 14 etcdserver: request timed out
LoginContended → 14 etcdserver: request timed out
";

    fn every_refusal() -> Vec<ApiError> {
        use ApplyError as A;
        use NodeError as N;
        use PasswordError as P;
        use RequestError as R;
        let requests = [
            R::EmptyKey,
            R::ValueProvided,
            R::LeaseProvided,
            R::InvalidSortOption,
            R::InvalidCompareOption,
            R::TooManyOps,
            R::DuplicateKey,
            R::EmptyOp,
        ];
        let refused = [
            A::UserEmpty,
            A::InvalidAuthToken,
            A::AuthOldRevision,
            A::PermissionDenied,
            A::RootUserNotExist,
            A::RootRoleNotExist,
            A::UserAlreadyExist,
            A::UserNotFound,
            A::RoleAlreadyExist,
            A::RoleNotFound,
            A::RoleEmpty,
            A::AuthFailed,
            A::NoPasswordUser,
            A::AuthNotEnabled,
            A::TooManyTokens,
            A::InvalidAuthMgmt,
            A::PermissionNotGiven,
            A::RoleNotGranted,
            A::PermissionNotGranted,
            A::KeyNotFound,
            A::LeaseNotFound,
            A::Compacted,
            A::FutureRevision,
        ];
        let node = [
            N::NoLeader,
            N::Timeout,
            N::WaitTimeout,
            N::Stopped,
            N::TooManyRequests,
            N::TooLarge,
        ];
        let password = [P::TooLong, P::TooManyRequests, P::Timeout];
        let mut all: Vec<ApiError> = requests.map(ApiError::from).into();
        all.extend(refused.map(ApiError::from));
        all.extend(node.map(ApiError::from));
        all.extend(password.map(ApiError::from));
        all.push(ApiError::LoginContended);
        all
    }

    #[test]
    fn every_refusal_has_etcds_code_and_text() {
        let mut table = String::from("\n");
        for error in every_refusal() {
            assert!(!is_fault(&error), "{error:?}");
            let status = status(&error, "r1");
            let code = i32::from(status.code());
            table += &format!("{error:?} → {code} {}\n", status.message());
        }
        assert_eq!(table, GOLDEN);
    }

    #[test]
    fn a_fault_of_ours_tells_the_client_its_request_id_and_no_cause() {
        let at = KvRevision { main: 7, sub: 0 };
        let faults: [ApiError; 2] = [
            ValueError {
                at,
                cause: "torn page".to_owned(),
            }
            .into(),
            PasswordError::Worker("no entropy".to_owned()).into(),
        ];
        for error in faults {
            let status = status(&error, "r1");
            assert_eq!(
                (status.code() as i32, status.message()),
                (13, "etcdserver: internal error, request r1")
            );
            assert!(is_fault(&error));
        }
    }
}
