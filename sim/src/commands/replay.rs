//! `replay`: the same run again, if asked with the log on virtual time.

use super::{Exit, Failure, fuzz, run};
use crate::args::Seeds;
use crate::settings::Settings;
use gatehouse_sim::fuzz::Profile;
use gatehouse_sim::scenarios::{self, Scenario};
use std::io::Write;
use std::path::PathBuf;

/// What the log of a verbose replay shows unless something else was asked for.
const VERBOSE: &str = "warn,gatehouse=debug,gatehouse_sim=debug";

/// What is to be replayed, as it was typed.
pub(crate) struct Replay {
    /// A seed, or the file of a plan.
    pub(crate) what: String,
    /// The scenario for a bare seed; a drawn plan without it.
    pub(crate) scenario: Option<String>,
    /// What the drawn plan of a bare seed is after.
    pub(crate) profile: Option<Profile>,
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
    match selected(&replay)? {
        Selected::Scenarios(scenarios, seed) => {
            let asked = Seeds { seed, seeds: None };
            run::execute_on(&scenarios, &asked, &settings, out)
        }
        Selected::Drawn(profile, seed) => {
            let asked = Seeds {
                seed: Some(seed),
                seeds: None,
            };
            fuzz::execute(profile, &asked, &settings, out)
        }
    }
}

enum Selected {
    Scenarios(Vec<Scenario>, Option<u64>),
    Drawn(Profile, u64),
}

fn first_seed(scenario: &Scenario) -> u64 {
    scenario.plan.seeds.first().copied().unwrap_or(1)
}

fn selected(replay: &Replay) -> Result<Selected, Failure> {
    let usage = |problem: &str| Err(Failure::Usage(problem.to_owned()));
    match (replay.what.parse::<u64>(), &replay.scenario) {
        (Ok(_), _) if replay.seed.is_some() => {
            usage("--seed belongs to a plan file; a bare seed says it already")
        }
        (Ok(seed), Some(name)) => Ok(Selected::Scenarios(
            vec![scenarios::named(name)?],
            Some(seed),
        )),
        (Ok(seed), None) => Ok(Selected::Drawn(
            replay.profile.unwrap_or(Profile::Default),
            seed,
        )),
        (Err(_), Some(_)) => {
            usage("--scenario belongs to a bare seed; a plan file says it already")
        }
        (Err(_), None) if replay.profile.is_some() => {
            usage("--profile belongs to a bare seed; a plan file says everything")
        }
        (Err(_), None) => {
            let scenarios = scenarios::from_files(&[PathBuf::from(&replay.what)])?;
            let seed = replay.seed.or_else(|| scenarios.first().map(first_seed));
            Ok(Selected::Scenarios(scenarios, seed))
        }
    }
}
