//! Words for calls and their times, as the verdict's sentence uses them.

use super::run::{Call, Moment};
use crate::history::Outcome;
use crate::words;

/// `call 41 (mallory put /app/x on n2 at 6.120 s)`.
pub(super) fn call(call: &Call<'_>) -> String {
    format!(
        "call {} ({} {} on n{} at {})",
        call.number,
        call.client,
        words::op(call.op),
        call.member,
        time(call.invoked)
    )
}

/// `call 33 (root change-password alice on n1 at 5.100 s, acknowledged at 5.310 s)`.
pub(super) fn call_with_end(ended: &Call<'_>) -> String {
    let end = match ended.returned {
        Some((at, Outcome::Ok(_))) => format!(", acknowledged at {}", time(at)),
        Some((at, Outcome::Refused { .. })) => format!(", refused at {}", time(at)),
        Some((at, Outcome::Unknown { .. })) => format!(", given up at {}", time(at)),
        None => ", never answered".to_owned(),
    };
    let text = call(ended);
    format!("{}{end})", text.trim_end_matches(')'))
}

/// `6.120 s`.
pub(super) fn time(moment: Moment) -> String {
    words::seconds(moment.at_us)
}
