//! One call of a client: what its metadata says, and the one line that the log gets of it. Messages themselves are never
//! logged, since some hold passwords.

use super::Api;
use super::error::ApiError;
use super::status::{is_fault, status};
use crate::state::UserName;
use std::sync::OnceLock;
use tokio::time::Instant;
use tonic::{Request, Response, Status};
use tracing::{debug, error};

/// Longest `x-request-id` that is taken over, bytes. Ids go into logs and histories; whoever needs more has a document.
const REQUEST_ID_BYTES_MAX: usize = 64;

/// Where a client may put its token, in this order: etcd's clients, then HTTP's.
const TOKEN_KEYS: [&str; 2] = ["token", "authorization"];

/// One call. Holds a token, hence no `Debug`.
pub(super) struct Call {
    /// The call's name in the protocol.
    rpc: &'static str,
    /// The client's `x-request-id`, empty if it sent none that can be used.
    id: String,
    /// What the client presented as its credential.
    token: Option<String>,
    /// When the client is told that it took too long.
    deadline: Instant,
    /// Whom the token named, once that is known.
    user: OnceLock<UserName>,
}

impl Call {
    /// The client's request id, empty if it sent none.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// The presented token's text, if any.
    pub(super) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// When the client is told that it took too long.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Notes whom the call acts for.
    pub(super) fn acts_for(&self, user: &UserName) {
        // A call is resolved once; were it resolved again, the first answer would do for the log.
        let _ = self.user.set(user.clone());
    }
}

impl Api {
    /// Starts a call: from here on its time runs.
    pub(super) fn begin<M>(&self, rpc: &'static str, request: Request<M>) -> (Call, M) {
        let metadata = request.metadata();
        let text = |key: &str| metadata.get(key).and_then(|value| value.to_str().ok());
        let id = text("x-request-id")
            .filter(|id| id.len() <= REQUEST_ID_BYTES_MAX)
            .unwrap_or_default()
            .to_owned();
        // Presence decides which key counts, so a value that is no text is a bad token, not a missing one.
        let token = TOKEN_KEYS
            .into_iter()
            .find(|key| metadata.contains_key(*key))
            .map(|key| {
                let value = text(key).unwrap_or_default();
                value.strip_prefix("Bearer ").unwrap_or(value).to_owned()
            });
        let deadline = Instant::now() + self.node.config().request_timeout();
        (
            Call {
                rpc,
                id,
                token,
                deadline,
                user: OnceLock::new(),
            },
            request.into_inner(),
        )
    }

    /// Ends a call: logs it and translates its error.
    pub(super) fn finish<R>(
        &self,
        call: &Call,
        answer: Result<R, ApiError>,
    ) -> Result<Response<R>, Status> {
        let user = call.user.get().map(UserName::as_str).unwrap_or_default();
        match answer {
            Ok(message) => {
                debug!(rpc = call.rpc, user, request_id = call.id, "answered");
                Ok(Response::new(message))
            }
            Err(error) if is_fault(&error) => {
                let id = if call.id.is_empty() {
                    self.node.next_request_id().to_string()
                } else {
                    call.id.clone()
                };
                error!(rpc = call.rpc, user, request_id = id, %error, "failed");
                Err(status(&error, &id))
            }
            Err(error) => {
                debug!(rpc = call.rpc, user, request_id = call.id, %error, "refused");
                Err(status(&error, &call.id))
            }
        }
    }
}
