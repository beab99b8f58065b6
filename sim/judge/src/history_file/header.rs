//! The first line of a file.

use super::{Defect, FORMAT, MEMBERS_MAX, Objection};
use crate::history::{FORMAT_VERSION, Header};
use serde::Deserialize;

/// Drift of a clock that stands still, millionths.
const DRIFT_PPM_MAX: u64 = 1_000_000;

/// Reads the line. `object` says what a caller who knows more has against a header: the field, and why.
///
/// # Errors
/// The first value that cannot be, with its place.
pub(super) fn read(line: &str, object: Objection<'_>) -> Result<Header, Defect> {
    /// What every version's header has; a newer one may have more.
    #[derive(Deserialize)]
    struct Introduction {
        format: String,
        version: u64,
    }
    let Introduction { format, version } = serde_json::from_str(line)?;
    if format != FORMAT {
        let format = format.escape_default();
        let what = format!("the format is `{format}`, not `{FORMAT}`");
        return Err(Defect::at_start(what));
    }
    if version > u64::from(FORMAT_VERSION) {
        return Err(Defect::TooNew { version });
    }
    if version == 0 {
        return Err(Defect::at_start("version 0 has never existed"));
    }
    let header: Header = serde_json::from_str(line)?;
    match wrong(&header).or_else(|| object(&header)) {
        None => Ok(header),
        Some((field, what)) => Err(Defect::at_field(line, field, format!("{field}: {what}"))),
    }
}

/// A field that no run can have, and why.
fn wrong(header: &Header) -> Option<(&'static str, String)> {
    let members = header.members;
    if !(1..=MEMBERS_MAX).contains(&members) {
        return Some(("members", format!("1 to {MEMBERS_MAX}, not {members}")));
    }
    let tokens = &header.tokens;
    for (field, value) in [
        ("ttl_ms", tokens.ttl_ms),
        ("per_user_max", tokens.per_user_max),
        ("total_max", tokens.total_max),
    ] {
        if value == 0 {
            return Some((field, "1 at least, or nobody could log in".to_owned()));
        }
    }
    if tokens.drift_ppm >= DRIFT_PPM_MAX {
        let what = format!("below {DRIFT_PPM_MAX}, not {}", tokens.drift_ppm);
        return Some(("drift_ppm", what));
    }
    None
}
