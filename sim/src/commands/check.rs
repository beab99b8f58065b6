//! `check`: judges a stored history.

use super::{Exit, Failure};
use crate::args::Format;
use crate::output::{describe, explain, json_line};
use crate::settings::Settings;
use gatehouse::planted::Bug;
use gatehouse_judge::history::{Header, What};
use gatehouse_judge::history_file::read_history_unless;
use gatehouse_judge::verdict::VerdictKind;
use gatehouse_judge::{Judgement, examine};
use gatehouse_sim::nearest::no_such_bug;
use serde::Serialize;
use std::io::Write;
use std::path::Path;

#[derive(Serialize)]
struct CheckLine<'c> {
    scenario: &'c str,
    seed: u64,
    verdict: VerdictKind,
    property: Option<&'c str>,
    ops: usize,
    bug: Option<&'c str>,
    staleness_ms: u64,
    staleness_entries: u64,
    sentence: &'c str,
    calls: &'c [u64],
    explanation: &'c [String],
}

/// What is wrong with a header that names a planted bug which does not exist.
fn unknown_bug(header: &Header) -> Option<(&'static str, String)> {
    let slug = header.bug.as_deref()?;
    Bug::named(slug)
        .is_empty()
        .then(|| ("bug", no_such_bug(slug)))
}

/// Judges the history in `file`.
///
/// # Errors
/// The file is no history, or stdout is gone.
pub(crate) fn execute(
    file: &Path,
    settings: &Settings,
    out: &mut impl Write,
) -> Result<Exit, Failure> {
    if !settings.bugs.is_empty() || settings.general {
        let what =
            "check judges what is in the file: --bug and --general belong to the run that made it";
        return Err(Failure::Usage(what.to_owned()));
    }
    let history = read_history_unless(file, &unknown_bug)?;
    let Judgement { verdict, staleness } = examine(&history);
    let ops = history
        .events
        .iter()
        .filter(|event| matches!(event.what, What::Invoke { .. }))
        .count();
    let header = &history.header;
    match settings.format {
        Format::Json => json_line(
            out,
            &CheckLine {
                scenario: &header.scenario,
                seed: header.seed,
                verdict: verdict.kind,
                property: verdict.property.as_deref(),
                ops,
                bug: header.bug.as_deref(),
                staleness_ms: staleness.max_ms,
                staleness_entries: staleness.max_entries,
                sentence: &verdict.sentence,
                calls: &verdict.calls,
                explanation: &verdict.explanation,
            },
        )?,
        Format::Text => {
            writeln!(
                out,
                "{} seed {}, {ops} calls: {}",
                header.scenario,
                header.seed,
                describe(&verdict)
            )?;
            explain(out, &verdict)?;
            if let (Some(bug), VerdictKind::Ok) = (&header.bug, verdict.kind) {
                writeln!(out, "planted, and not found in this history: {bug}")?;
            }
            if staleness.calls > 0 {
                writeln!(
                    out,
                    "{} local reads were allowed after what allowed them had been taken: up to {} ms and {} entries after",
                    staleness.calls, staleness.max_ms, staleness.max_entries
                )?;
            }
        }
    }
    // A history with a planted bug is as expected if the bug is found in it.
    Ok(match (&header.bug, verdict.kind) {
        (Some(_), VerdictKind::Violation) => Exit::Expected,
        (Some(_), VerdictKind::Ok) => Exit::Violation,
        (_, kind) => Exit::of(kind),
    })
}
