//! Tells a definite no from an answer that says nothing. A call counts as refused only if it certainly had no effect;
//! the judge would otherwise accuse the server of effects that it was right to have.

use gatehouse::platform::is_unsent;
use gatehouse_judge::history::Outcome;
use tonic::{Code, Status};

/// How etcd's own messages begin. gRPC's own errors (an answer too large to decode, say) lack it, and come after the
/// effect.
const SERVER_PREFIX: &str = "etcdserver: ";

/// The outcome that an error stands for.
pub(super) fn classify(status: &Status) -> Outcome {
    let (code, message) = (code_name(status).into(), status.message().into());
    if is_definite(status) {
        Outcome::Refused { code, message }
    } else {
        Outcome::Unknown { code, message }
    }
}

/// The name of an error's gRPC code, `PermissionDenied`, which is its debug form.
pub(crate) fn code_name(status: &Status) -> String {
    format!("{:?}", status.code())
}

/// Whether the call certainly had no effect and never will.
fn is_definite(status: &Status) -> bool {
    if is_unsent(status) {
        return true;
    }
    match status.code() {
        Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::FailedPrecondition
        | Code::Unimplemented
        | Code::Unauthenticated => true,
        Code::ResourceExhausted | Code::OutOfRange => status.message().starts_with(SERVER_PREFIX),
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::DeadlineExceeded
        | Code::Aborted
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_certain_no_is_a_refusal() {
        let rows = [
            (
                Code::PermissionDenied,
                "etcdserver: permission denied",
                true,
            ),
            (
                Code::Unauthenticated,
                "etcdserver: invalid auth token",
                true,
            ),
            (
                Code::ResourceExhausted,
                "etcdserver: too many requests",
                true,
            ),
            (
                Code::OutOfRange,
                "etcdserver: mvcc: required revision is a future revision",
                true,
            ),
            (
                Code::OutOfRange,
                "Error, decoded message length too large",
                false,
            ),
            (Code::Unavailable, "etcdserver: request timed out", false),
            (Code::Unavailable, "connection reset", false),
            (Code::DeadlineExceeded, "the call's deadline passed", false),
            (Code::Unknown, "h2 protocol error", false),
            (Code::Internal, "internal", false),
        ];
        for (code, message, refused) in rows {
            let outcome = classify(&Status::new(code, message));
            assert_eq!(
                matches!(outcome, Outcome::Refused { .. }),
                refused,
                "{code:?} {message}"
            );
        }
        let Outcome::Refused { code, .. } =
            classify(&Status::permission_denied("etcdserver: permission denied"))
        else {
            panic!("a denial is a refusal");
        };
        assert_eq!(code, "PermissionDenied");
    }
}
