//! The forms in which results are printed: one JSON object a line, or a table. stdout is data; whatever is talk goes to
//! stderr.

use gatehouse_judge::marks::Marks;
use gatehouse_judge::verdict::{Verdict, VerdictKind};
use gatehouse_sim::run::Run;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// One run, as programs read it.
#[derive(Serialize)]
struct RunLine<'r> {
    scenario: &'r str,
    seed: u64,
    verdict: VerdictKind,
    property: Option<&'r str>,
    trace_hash: String,
    ops: u64,
    virtual_ms: u128,
    wall_ms: u128,
    bug: Option<&'r str>,
    marks: &'r Marks,
    staleness_ms: u64,
    staleness_entries: u64,
    sentence: &'r str,
    calls: &'r [u64],
    explanation: &'r [String],
    history: Option<String>,
}

/// A hash as it is printed everywhere.
pub(crate) fn hash(hash: u64) -> String {
    format!("{hash:016x}")
}

/// Prints one object as a line.
pub(crate) fn json_line(out: &mut impl Write, object: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, object)?;
    out.write_all(b"\n")
}

/// Prints one run as a JSON line.
pub(crate) fn json_run(out: &mut impl Write, run: &Run, history: Option<&Path>) -> io::Result<()> {
    json_line(
        out,
        &RunLine {
            scenario: &run.scenario,
            seed: run.seed,
            verdict: run.verdict.kind,
            property: run.verdict.property.as_deref(),
            trace_hash: hash(run.trace_hash),
            ops: run.ops,
            virtual_ms: run.virtual_time.as_millis(),
            wall_ms: run.wall_time.as_millis(),
            bug: run.bug,
            marks: &run.marks,
            staleness_ms: run.staleness.max_ms,
            staleness_entries: run.staleness.max_entries,
            sentence: &run.verdict.sentence,
            calls: &run.verdict.calls,
            explanation: &run.verdict.explanation,
            history: history.map(|path| path.display().to_string()),
        },
    )
}

/// A verdict kind as it is printed.
pub(crate) fn word(kind: VerdictKind) -> &'static str {
    match kind {
        VerdictKind::Ok => "ok",
        VerdictKind::Violation => "violation",
        VerdictKind::Stuck => "stuck",
        VerdictKind::Nondeterminism => "nondeterminism",
        VerdictKind::Undecided => "undecided",
    }
}

/// A verdict in a line: the word, the property, the sentence.
pub(crate) fn describe(verdict: &Verdict) -> String {
    let property = verdict
        .property
        .as_deref()
        .map(|property| format!(" {property}"))
        .unwrap_or_default();
    if verdict.sentence.is_empty() {
        format!("{}{property}", word(verdict.kind))
    } else {
        format!("{}{property}: {}", word(verdict.kind), verdict.sentence)
    }
}

/// Prints what explains a verdict, under its line.
pub(crate) fn explain(out: &mut impl Write, verdict: &Verdict) -> io::Result<()> {
    for line in &verdict.explanation {
        writeln!(out, "    {line}")?;
    }
    Ok(())
}

/// What one row of the table sums up.
#[derive(Default)]
struct Row {
    name: String,
    seeds: u64,
    verdicts: BTreeMap<&'static str, u64>,
    ops: u64,
    virtual_time: Duration,
    wall: Duration,
}

/// The table of a batch, a row for each scenario (and planted bug).
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
    marks: Marks,
}

impl Table {
    /// Adds a run, one of `jobs` at the same time: so its share of the real time is its own by their number.
    pub(crate) fn add(&mut self, run: &Run, jobs: u32) {
        let bug = run.bug.map(|bug| format!(" +{bug}")).unwrap_or_default();
        let name = format!("{}{bug}", run.scenario);
        if self.rows.last().is_none_or(|row| row.name != name) {
            self.rows.push(Row {
                name,
                ..Row::default()
            });
        }
        let row = self
            .rows
            .last_mut()
            .expect("pushed above if there was none");
        row.seeds += 1;
        *row.verdicts.entry(word(run.verdict.kind)).or_default() += 1;
        row.ops += run.ops;
        row.virtual_time += run.virtual_time;
        row.wall += run.wall_time / jobs;
        for (name, count) in &run.marks {
            *self.marks.entry(name.clone()).or_default() += count;
        }
    }

    /// Prints the table and, of runs that should have seen everything, the windows and marks that none hit.
    pub(crate) fn print(&self, out: &mut impl Write, whole: bool) -> io::Result<()> {
        let width = self
            .rows
            .iter()
            .map(|row| row.name.len())
            .chain([8])
            .max()
            .unwrap_or(8);
        let verdicts: Vec<String> = self.rows.iter().map(Row::verdicts).collect();
        let wide = verdicts
            .iter()
            .map(String::len)
            .chain([8])
            .max()
            .unwrap_or(8);
        writeln!(
            out,
            "{:width$}  {:>6}  {:wide$}  {:>8}  {:>10}  {:>8}  {:>9}",
            "scenario", "seeds", "verdicts", "calls", "virtual", "wall", "seeds/min"
        )?;
        for (row, verdicts) in self.rows.iter().zip(&verdicts) {
            writeln!(
                out,
                "{:width$}  {:>6}  {verdicts:wide$}  {:>8}  {:>8.1} s  {:>6.2} s  {:>9.0}",
                row.name,
                row.seeds,
                row.ops,
                row.virtual_time.as_secs_f64(),
                row.wall.as_secs_f64(),
                per_minute(row.seeds, row.wall),
            )?;
        }
        if !whole {
            return Ok(());
        }
        let missed: Vec<&str> = self
            .marks
            .iter()
            .filter(|(_, count)| **count == 0)
            .map(|(name, _)| name.as_str())
            .collect();
        if !missed.is_empty() {
            writeln!(out, "never seen: {}", missed.join(", "))?;
        }
        Ok(())
    }
}

impl Row {
    fn verdicts(&self) -> String {
        self.verdicts
            .iter()
            .map(|(word, count)| format!("{word} {count}"))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

fn per_minute(count: u64, wall: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let count = count as f64;
    if wall.is_zero() {
        0.0
    } else {
        count * 60.0 / wall.as_secs_f64()
    }
}
