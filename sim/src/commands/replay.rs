//! `replay`: the same run again, if asked with the log on virtual time.

use super::{Exit, Failure, run};
use crate::args::Seeds;
use crate::settings::Settings;
use gatehouse_sim::scenarios::{self, Scenario};
use std::io::Write;
use std::path::PathBuf;

/// What the log of a verbose replay shows unless something else was asked for.
const VERBOSE: &str = "warn,gatehouse=debug,gatehouse_sim=debug";

/// What is to be replayed, as it was typed.
pub(crate) struct Replay {
    /// A seed, or the file of a plan.
    pub(crate) what: String,
    /// The scenario for a bare seed; all of them without it.
    pub(crate) scenario: Option<String>,
    /// The seed for a plan file; its first without it.
    pub(crate) seed: Option<u64>,
    /// Whether to log.
    pub(crate) verbose: bool,
}

/// Replays.
///
/// # Errors
/// Bad input, or a stdout that is gone.
pub(crate) fn execute(
    replay: Replay,
    mut settings: Settings,
    out: &mut impl Write,
) -> Result<Exit, Failure> {
    if replay.verbose && settings.log.is_none() {
        settings.log = Some(VERBOSE.to_owned());
    }
    settings.details = true;
    // Two logs on one stderr could not be read.
    settings.jobs = 1;
    let (scenarios, seed) = selected(&replay)?;
    let asked = Seeds { seed, seeds: None };
    run::execute_on(&scenarios, &asked, &settings, out)
}

fn first_seed(scenario: &Scenario) -> u64 {
    scenario.plan.seeds.first().copied().unwrap_or(1)
}

fn selected(replay: &Replay) -> Result<(Vec<Scenario>, Option<u64>), Failure> {
    match (replay.what.parse::<u64>(), &replay.scenario) {
        (Ok(_), _) if replay.seed.is_some() => Err(Failure::Usage(
            "--seed belongs to a plan file; a bare seed says it already".to_owned(),
        )),
        (Ok(seed), Some(name)) => Ok((vec![scenarios::named(name)?], Some(seed))),
        (Ok(seed), None) => Ok((scenarios::all()?, Some(seed))),
        (Err(_), Some(_)) => Err(Failure::Usage(
            "--scenario belongs to a bare seed; a plan file says it already".to_owned(),
        )),
        (Err(_), None) => {
            let scenarios = scenarios::from_files(&[PathBuf::from(&replay.what)])?;
            let seed = replay.seed.or_else(|| scenarios.first().map(first_seed));
            Ok((scenarios, seed))
        }
    }
}
