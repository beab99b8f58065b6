//! Every scenario on its pinned seeds, every planted bug on the first of them, and the same run twice: each a test with a
//! name of its own, so that a failure says which.

#![expect(
    clippy::unwrap_used,
    reason = "a test stops at what it does not expect"
)]

use gatehouse::planted::Bug;
use gatehouse_judge::history::What;
use gatehouse_judge::history_file::write_history;
use gatehouse_judge::verdict::VerdictKind;
use gatehouse_sim::PASSWORD_MARKER;
use gatehouse_sim::log;
use gatehouse_sim::plan::Shown;
use gatehouse_sim::run::{Options, Run, run};
use gatehouse_sim::scenarios::{self, Scenario};
use libtest_mimic::{Arguments, Failed, Trial};
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

fn main() -> ExitCode {
    log::report_panics();
    let arguments = Arguments::from_args();
    let scenarios = match scenarios::all() {
        Ok(scenarios) => scenarios,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let mut trials: Vec<Trial> = Vec::new();
    for scenario in &scenarios {
        trials.extend(verdicts(scenario));
        trials.extend(planted(scenario));
        trials.push(determinism(scenario));
        trials.push(secrets(scenario));
    }
    trials.push(every_bug_is_shown(&scenarios));
    match scenarios::found() {
        Ok(found) => trials.extend(found.iter().flat_map(verdicts)),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn name(kind: &str, scenario: &Scenario, rest: &str) -> String {
    format!("{kind}::{}::{rest}", scenario.plan.name)
}

fn first_seed(scenario: &Scenario) -> Result<u64, Failed> {
    Ok(*scenario
        .plan
        .seeds
        .first()
        .ok_or("the scenario pins no seed")?)
}

fn described(run: &Run) -> String {
    format!(
        "{:?} {:?}: {}",
        run.verdict.kind, run.verdict.property, run.verdict.sentence
    )
}

/// The correct server passes on every pinned seed.
fn verdicts(scenario: &Scenario) -> impl Iterator<Item = Trial> {
    scenario.plan.seeds.clone().into_iter().map(|seed| {
        let plan = Arc::clone(&scenario.plan);
        Trial::test(
            name("passes", scenario, &format!("seed_{seed}")),
            move || {
                let run = run(&plan, seed, &Options::default());
                match run.verdict.kind {
                    VerdictKind::Ok => Ok(()),
                    _ => Err(described(&run).into()),
                }
            },
        )
    })
}

/// The judge objects to each planted bug on the first pinned seed, with the scenario's expectations and without.
fn planted(scenario: &Scenario) -> impl Iterator<Item = Trial> {
    let named = |shown: &Shown| {
        let by = shown.by.clone();
        Bug::named(&shown.bug)
            .into_iter()
            .map(move |bug| (bug, by.clone()))
    };
    let bugs = scenario.plan.shows.iter().flat_map(named);
    bugs.flat_map(|(bug, by)| [(bug, by.clone(), false), (bug, by, true)])
        .map(|(bug, by, general)| {
            let scenario = scenario.clone();
            let how = if general { "general" } else { "scenario" };
            let name = name("finds", &scenario, &format!("{}::{how}", bug.slug()));
            Trial::test(name, move || {
                let seed = first_seed(&scenario)?;
                let run = run(
                    &scenario.plan,
                    seed,
                    &Options {
                        bug: Some(bug),
                        general,
                        ..Options::default()
                    },
                );
                let property = run.verdict.property.as_deref().unwrap_or_default();
                let by_whom = run
                    .verdict
                    .calls
                    .first()
                    .and_then(|call| caller(&run, *call));
                let is_right_call =
                    by.is_empty() || by_whom.is_some_and(|name| by.iter().any(|by| by == name));
                if run.found_bug() && bug.properties().contains(&property) && is_right_call {
                    Ok(())
                } else {
                    let wanted = bug.properties().join(" or ");
                    Err(format!("wanted {wanted} by {by:?}, got {}", described(&run)).into())
                }
            })
        })
}

/// The client that made a call.
fn caller(run: &Run, number: u64) -> Option<&str> {
    run.history
        .events
        .iter()
        .find_map(|event| match &event.what {
            What::Invoke { call, client, .. } if *call == number => Some(&**client),
            _ => None,
        })
}

/// The same seed gives the same trace hash, with a log and without, whatever the process has run before; another seed
/// gives another.
fn determinism(scenario: &Scenario) -> Trial {
    let scenario = scenario.clone();
    Trial::test(name("repeats", &scenario, "same_hash"), move || {
        let seed = first_seed(&scenario)?;
        let hash = |seed, options: &Options| run(&scenario.plan, seed, options).trace_hash;
        let quiet = Options::default();
        let logged = Options {
            log: Some(log::to("trace", io::sink)),
            ..Options::default()
        };
        let first = hash(seed, &quiet);
        let other = hash(seed + 1, &quiet);
        if hash(seed, &quiet) != first {
            return Err("the same seed gave another run".into());
        }
        if hash(seed, &logged) != first {
            return Err("the log changed the run".into());
        }
        if other == first {
            return Err("two seeds gave the same run".into());
        }
        Ok(())
    })
}

/// Neither the log of our own code at its most talkative nor the history holds a password.
fn secrets(scenario: &Scenario) -> Trial {
    let scenario = scenario.clone();
    Trial::test(
        name("keeps_secrets", &scenario, "log_and_history"),
        move || {
            let lines = Lines::default();
            let written = lines.clone();
            let log = log::to("warn,gatehouse=trace,gatehouse_sim=trace", move || {
                written.clone()
            });
            let options = Options {
                log: Some(log),
                ..Options::default()
            };
            let run = run(&scenario.plan, first_seed(&scenario)?, &options);
            let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
            let file = directory.path().join("history.jsonl");
            write_history(&file, &run.history).map_err(|error| error.to_string())?;
            let history = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
            let log = lines.text();
            if log.is_empty() || history.is_empty() {
                return Err("there was nothing to search".into());
            }
            if log.contains(PASSWORD_MARKER) {
                return Err("a password stands in the log".into());
            }
            if history.contains(PASSWORD_MARKER) {
                return Err("a password stands in the history".into());
            }
            Ok(())
        },
    )
}

/// No switch without a scenario that was written to show it.
fn every_bug_is_shown(scenarios: &[Scenario]) -> Trial {
    let shown: Vec<Bug> = scenarios
        .iter()
        .flat_map(|scenario| &scenario.plan.shows)
        .flat_map(|shown| Bug::named(&shown.bug))
        .collect();
    Trial::test("finds::every_bug_has_a_scenario", move || {
        let hidden: Vec<&str> = Bug::ALL
            .into_iter()
            .filter(|bug| !shown.contains(bug))
            .map(Bug::slug)
            .collect();
        if hidden.is_empty() {
            Ok(())
        } else {
            Err(format!("no scenario shows {}", hidden.join(", ")).into())
        }
    })
}

/// A log in memory.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
