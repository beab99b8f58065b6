//! Whether an answer has anything behind it: an entry, or a view. What was done needs one of them.

use super::describe;
use super::findings::Findings;
use super::log::Log;
use super::run::{Call, Run};

/// Checks every call that the client was told is done.
pub(super) fn check(run: &Run<'_>, log: &Log<'_>, findings: &mut Findings) {
    for call in run.calls.values().filter(|call| call.is_ok()) {
        check_call(call, log, findings);
    }
}

fn check_call(call: &Call<'_>, log: &Log<'_>, findings: &mut Findings) {
    let Some((end, _)) = call.returned else {
        return;
    };
    let calls = vec![call.number];
    match log.decisive(call.number) {
        Some(entry) if entry.seen > end => {
            let sentence = format!(
                "{} was answered at {}, before any member had applied it",
                describe::call(call),
                describe::time(end)
            );
            findings.violation(end.event, "LIN", &sentence, calls);
        }
        Some(_) => {} // The replay compares what it says.
        None if call.is_read() && call.served.is_some() => {}
        None if call.proposed => {
            let sentence = format!(
                "{} was acknowledged at {}, but no member ever applied it",
                describe::call(call),
                describe::time(end)
            );
            findings.violation(end.event, "P11", &sentence, calls);
        }
        None => {
            let sentence = format!(
                "nothing in the history says where {} was decided",
                describe::call(call)
            );
            findings.doubt(end.event, sentence, calls);
        }
    }
}
