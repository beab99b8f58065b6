//! `twice`: determinism. The same runs in two processes, one without a log and one run at a time, the other with the full
//! log, two at a time and from the last run to the first, compared hash by hash.

use super::{Exit, Failure};
use crate::args::{Format, Seeds};
use crate::output::json_line;
use crate::settings::Settings;
use gatehouse_sim::fuzz::Profile;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What one of the two processes is told beyond the common arguments. Everything that must not matter differs.
struct Side {
    name: &'static str,
    jobs: &'static str,
    /// Every crate's log: formatting it all is the harshest test that the log changes nothing. It is thrown away.
    log: &'static str,
    /// From the last run to the first: what a run leaves behind in its process must not matter to the next.
    backwards: bool,
}

const SIDES: [Side; 2] = [
    Side {
        name: "one job, no log",
        jobs: "1",
        log: "off",
        backwards: false,
    },
    Side {
        name: "two jobs, full log, backwards",
        jobs: "2",
        log: "gatehouse=trace,trace",
        backwards: true,
    },
];

/// What is compared, of one run's JSON line.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
struct Line {
    scenario: String,
    seed: u64,
    bug: Option<String>,
    verdict: String,
    trace_hash: String,
    ops: u64,
    virtual_ms: u64,
}

/// Runs everything twice and compares.
///
/// # Errors
/// Bad input, a process that cannot be started, or a stdout that is gone.
pub(crate) fn execute(
    files: &[PathBuf],
    profile: Option<Profile>,
    asked: &Seeds,
    settings: &Settings,
    out: &mut impl Write,
) -> Result<Exit, Failure> {
    let what: Vec<OsString> = if let Some(profile) = profile {
        ["fuzz", "--profile", profile.name()]
            .map(OsString::from)
            .into()
    } else {
        // Read here as well, so that bad input is reported once and in full.
        super::run::scenarios(files)?;
        let files = files.iter().map(|file| file.clone().into_os_string());
        [OsString::from("run")].into_iter().chain(files).collect()
    };
    let scratch = Scratch::new()?;
    let seeds = seed_arguments(asked);
    let [first, second] = both(&what, &seeds, settings, &scratch)?;
    for (one, other) in first.iter().zip(&second) {
        if one != other {
            differing(one, other, settings, out)?;
            if settings.format == Format::Text {
                explain(one, &what, settings, &scratch, out)?;
            }
            return Ok(Exit::Nondeterminism);
        }
        if settings.format == Format::Json {
            json_line(out, one)?;
        }
    }
    if first.len() != second.len() || first.is_empty() {
        let (one, other) = (first.len(), second.len());
        return Err(Failure::Usage(format!(
            "one process made {one} runs and the other {other}; see `run`"
        )));
    }
    if settings.format == Format::Text {
        writeln!(
            out,
            "{} runs, each with the same trace hash in both processes",
            first.len()
        )?;
    }
    Ok(Exit::Expected)
}

fn seed_arguments(asked: &Seeds) -> Vec<String> {
    match asked.given() {
        Some(range) => vec![
            "--seeds".to_owned(),
            format!("{}..{}", range.start(), range.end()),
        ],
        None => Vec::new(),
    }
}

/// Both processes at once; they share nothing but the processors.
fn both(
    what: &[OsString],
    seeds: &[String],
    settings: &Settings,
    scratch: &Scratch,
) -> Result<[Vec<Line>; 2], Failure> {
    let program = std::env::current_exe()?;
    let mut running = Vec::new();
    for (number, side) in SIDES.iter().enumerate() {
        let mut command = Command::new(&program);
        command.args(what).args(seeds);
        command.args([
            "--format",
            "json",
            "--jobs",
            side.jobs,
            "--log-level",
            side.log,
        ]);
        command.arg("--report").arg(scratch.side(number));
        if let Some(bug) = &settings.bug_name {
            command.args(["--bug", bug]);
        }
        if settings.general {
            command.arg("--general");
        }
        if side.backwards {
            command.arg("--backwards");
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        running.push((side, command.spawn()?));
    }
    let mut sides = Vec::new();
    for (side, child) in running {
        let output = child.wait_with_output()?;
        if output.status.code() == Some(Exit::Usage as i32) || output.status.code().is_none() {
            let problem = format!(
                "the process with {} ended with {}",
                side.name, output.status
            );
            return Err(Failure::Usage(problem));
        }
        let mut lines = parse(&output.stdout)?;
        if side.backwards {
            lines.reverse();
        }
        sides.push(lines);
    }
    let [first, second] = <[Vec<Line>; 2]>::try_from(sides).expect("there are two sides");
    Ok([first, second])
}

fn parse(stdout: &[u8]) -> Result<Vec<Line>, Failure> {
    let lines = stdout
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let parsed: Result<Vec<Line>, _> = lines.map(serde_json::from_slice).collect();
    parsed.map_err(|error| Failure::Io(io::Error::new(io::ErrorKind::InvalidData, error)))
}

/// A run that came out differently, as programs read it.
#[derive(Serialize)]
struct Differing<'d> {
    scenario: &'d str,
    seed: u64,
    verdict: &'static str,
    bug: Option<&'d str>,
    trace_hash: &'d str,
    other_trace_hash: &'d str,
}

fn differing(
    one: &Line,
    other: &Line,
    settings: &Settings,
    out: &mut impl Write,
) -> io::Result<()> {
    match settings.format {
        Format::Json => json_line(
            out,
            &Differing {
                scenario: &one.scenario,
                seed: one.seed,
                verdict: "nondeterminism",
                bug: one.bug.as_deref(),
                trace_hash: &one.trace_hash,
                other_trace_hash: &other.trace_hash,
            },
        ),
        Format::Text => {
            writeln!(out, "{} seed {}: nondeterminism", one.scenario, one.seed)?;
            for (side, line) in SIDES.iter().zip([one, other]) {
                writeln!(
                    out,
                    "    {}: trace hash {}, {} calls, {} ms of virtual time, {}",
                    side.name, line.trace_hash, line.ops, line.virtual_ms, line.verdict
                )?;
            }
            Ok(())
        }
    }
}

/// How many equal events are shown before the first that differs.
const CONTEXT: usize = 5;

/// Makes the run twice again, alone, and shows the first event that differs.
fn explain(
    line: &Line,
    what: &[OsString],
    settings: &Settings,
    scratch: &Scratch,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let seed = [
        "--seed".to_owned(),
        line.seed.to_string(),
        "--keep-trace".to_owned(),
    ];
    both(what, &seed, settings, scratch)?;
    let bug = line.bug.as_deref();
    let bug = bug
        .map(|slug| format!("-{}", slug.replace('/', "-")))
        .unwrap_or_default();
    let name = format!("{}-{}{bug}.trace", line.scenario, line.seed);
    let read = |side| std::fs::read_to_string(scratch.side(side).join(&name));
    let (one, other) = (read(0)?, read(1)?);
    let (one, other): (Vec<&str>, Vec<&str>) = (one.lines().collect(), other.lines().collect());
    let equal = one
        .iter()
        .zip(&other)
        .take_while(|(one, other)| one == other)
        .count();
    if equal == one.len() && equal == other.len() {
        writeln!(
            out,
            "    made once more, alone, the run is the same: what ran before or beside it matters"
        )?;
        return Ok(());
    }
    writeln!(
        out,
        "    made once more, alone, the traces part after {equal} lines:"
    )?;
    for line in &one[equal.saturating_sub(CONTEXT)..equal] {
        writeln!(out, "      both  {line}")?;
    }
    writeln!(out, "      one   {}", one.get(equal).unwrap_or(&"(end)"))?;
    writeln!(out, "      other {}", other.get(equal).unwrap_or(&"(end)"))?;
    Ok(())
}

/// A directory for the histories of both processes, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> io::Result<Scratch> {
        let path = std::env::temp_dir().join(format!("gatehouse-twice-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Scratch(path))
    }

    fn side(&self, number: usize) -> PathBuf {
        Path::new(&self.0).join(number.to_string())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left of it is in the system's own place for such things.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
