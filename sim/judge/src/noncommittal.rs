//! Refusals that say nothing of any state.

use crate::history::Op;
use crate::model::Refusal;

/// Codes of answers that refuse nothing in particular: the cluster could not, now.
const CANNOT_NOW: [&str; 5] = [
    "Unavailable",
    "ResourceExhausted",
    "DeadlineExceeded",
    "Cancelled",
    "Aborted",
];

/// Refusals for the form of the request, which no state can explain or contradict.
const BAD_FORM: [&str; 5] = [
    "key is not provided",
    "value is provided",
    "duplicate key given in txn request",
    "too many operations in txn request",
    "request is too large",
];

/// Whether a refusal says nothing about any state: it is about the request's form, or the cluster could not, now.
pub(crate) fn tells_nothing(op: &Op, code: &str, message: &str) -> bool {
    let text = message.strip_prefix("etcdserver: ").unwrap_or(message);
    if text == Refusal::UserEmpty.text() {
        // The same text refuses an empty name in a request and a caller without one.
        return matches!(op, Op::UserAdd { user, .. } if user.is_empty());
    }
    BAD_FORM.contains(&text)
        // A full table refuses at an entry; without one, too much else was waiting.
        || text == Refusal::TooManyTokens.text()
        || (CANNOT_NOW.contains(&code) && Refusal::from_message(text).is_none())
}
