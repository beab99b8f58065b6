//! Why a call was not answered as asked. Every reason of the layers below arrives here as it is; `status.rs` turns it
//! into what the client sees.

use crate::credential::login::LoginError;
use crate::node::NodeError;
use crate::node::convert::Malformed;
use crate::platform::passwords::PasswordError;
use crate::state::{ApplyError, ReadError, ValueError};

/// A request that no member would accept, whoever sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RequestError {
    /// An empty key.
    #[error("key is not provided")]
    EmptyKey,
    /// `ignore_value` together with a value.
    #[error("value is provided")]
    ValueProvided,
    /// `ignore_lease` together with a lease.
    #[error("lease is provided")]
    LeaseProvided,
    /// An unknown sort order or target.
    #[error("invalid sort option")]
    InvalidSortOption,
    /// An unknown comparison. Etcd lets it succeed whatever is stored; a typing error must not open a transaction.
    #[error("invalid compare option")]
    InvalidCompareOption,
    /// More operations in one transaction than `--max-txn-ops`.
    #[error("too many operations in txn request")]
    TooManyOps,
    /// A key that one branch of a transaction changes twice.
    #[error("duplicate key given in txn request")]
    DuplicateKey,
    /// An operation of a transaction without content. Etcd calls that a key not found.
    #[error("key not found")]
    EmptyOp,
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ApiError {
    /// The request makes no sense.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The request was refused.
    #[error(transparent)]
    Refused(#[from] ApplyError),
    /// The cluster did not answer.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// A password was neither hashed nor compared.
    #[error(transparent)]
    Password(#[from] PasswordError),
    /// A login found its user changed each time it looked.
    #[error("the password changed during every comparison")]
    LoginContended,
    /// The store failed.
    #[error(transparent)]
    Value(#[from] ValueError),
}

impl From<ReadError> for ApiError {
    fn from(error: ReadError) -> ApiError {
        match error {
            ReadError::Refused(refused) => ApiError::Refused(refused),
            ReadError::Value(error) => ApiError::Value(error),
        }
    }
}

impl From<LoginError> for ApiError {
    fn from(error: LoginError) -> ApiError {
        match error {
            LoginError::Refused(refused) => ApiError::Refused(refused),
            LoginError::Node(error) => ApiError::Node(error),
            LoginError::Password(error) => ApiError::Password(error),
            LoginError::Contended => ApiError::LoginContended,
        }
    }
}

/// Validation refuses these first; should it miss one, the client still gets the right answer.
impl From<Malformed> for ApiError {
    fn from(error: Malformed) -> ApiError {
        ApiError::Request(match error {
            Malformed::SortOption => RequestError::InvalidSortOption,
            Malformed::CompareResult(_) | Malformed::CompareTarget(_) => {
                RequestError::InvalidCompareOption
            }
        })
    }
}
