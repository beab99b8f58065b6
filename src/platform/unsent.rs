//! Tells a call that certainly did not happen from one that may have.

use std::sync::Arc;
use tonic::Status;

/// How the message of a status begins whose request never left this process.
pub const UNSENT: &str = "not sent: ";

/// True when the request certainly reached no server, so that repeating it cannot execute it twice. False means that it
/// may have been executed, whatever the code says.
pub fn is_unsent(status: &Status) -> bool {
    // Decided by a mark that no server can put into its answer, not by the text.
    std::error::Error::source(status).is_some_and(|source| source.is::<Mark>())
}

/// The same status, marked as never sent.
pub(super) fn unsent(status: &Status) -> Status {
    let mut marked = Status::new(status.code(), format!("{UNSENT}{}", status.message()));
    marked.set_source(Arc::new(Mark));
    marked
}

#[derive(Debug, thiserror::Error)]
#[error("the request never left this process")]
struct Mark;
