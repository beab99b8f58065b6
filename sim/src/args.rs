//! The command line as it is typed. What the program needs of it stands in [`crate::settings`].

use clap::{Parser, Subcommand, ValueEnum};
use gatehouse_sim::fuzz::Profile;
use gatehouse_sim::nearest::bug_names;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Exit codes, for the help text.
const EXIT_CODES: &str = "Exit codes: 0 as expected (with a planted bug: found); 1 safety violation (with a planted bug: \
                          not found); 2 usage, bad input or an output that is gone; 3 no progress; 4 nondeterminism; 5 undecided";

/// Runs the complete Gatehouse server in a deterministic simulation and judges every auth decision.
///
/// Without a command it runs every scenario on its pinned seeds.
#[derive(Debug, Parser)]
#[command(name = "gatehouse-sim", version, after_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// What every command takes.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Common {
    /// Switches a planted bug on: SLUG, or SLUG/x for one of its sub-switches
    #[arg(long, global = true, value_name = "SLUG[/x]")]
    pub(crate) bug: Option<String>,
    /// Leaves the scenarios' own expectations out, so that only the properties judge
    #[arg(long, global = true)]
    pub(crate) general: bool,
    /// Runs at the same time [default: number of processors]
    #[arg(long, global = true, value_name = "J", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Form of the results on stdout: a table, or one JSON object a line
    #[arg(long, global = true, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Directory for the histories of failing runs, and of each scenario's first run, for `run`, `fuzz` and `replay`
    /// [default: reports/latest]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) report: Option<PathBuf>,
    /// Writes the lines of the trace beside each history, for `twice`
    #[arg(long, global = true, hide = true)]
    pub(crate) keep_trace: bool,
    /// Makes the runs from the last to the first, for `twice`
    #[arg(long, global = true, hide = true)]
    pub(crate) backwards: bool,
    /// Logs to stderr, on virtual time: off, error, warn, info, debug, trace, or directives such as gatehouse=debug
    /// [default: RUST_LOG, else off]
    #[arg(long, global = true, value_name = "LEVEL")]
    pub(crate) log_level: Option<String>,
}

/// Form of the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs scenarios on their pinned or the given seeds
    Run {
        /// Scenario files; none means all of them
        files: Vec<PathBuf>,
        /// Runs every scenario
        #[arg(long, conflicts_with = "files")]
        all: bool,
        #[command(flatten)]
        seeds: Seeds,
    },
    /// Runs plans that are drawn from seed numbers
    Fuzz {
        #[command(flatten)]
        seeds: Seeds,
        /// What the plans are after: default, auth or disk
        #[arg(long, value_name = "P", value_parser = profile, default_value = "default")]
        profile: Profile,
    },
    /// Makes the same run again, if asked with the log on virtual time
    Replay {
        /// A plan file, or the seed of a drawn plan (or, with --scenario, of that scenario)
        #[arg(value_name = "SEED|PLAN.toml")]
        what: String,
        /// The scenario for a bare seed, by name
        #[arg(long, value_name = "NAME")]
        scenario: Option<String>,
        /// What the plan of a bare seed is after: default, auth or disk [default: default]
        #[arg(long, value_name = "P", value_parser = profile, conflicts_with = "scenario")]
        profile: Option<Profile>,
        /// The seed for a plan file [default: the plan's first]
        #[arg(long, value_name = "N")]
        seed: Option<u64>,
        /// Logs the run at debug level
        #[arg(long)]
        verbose: bool,
    },
    /// Checks determinism: the same runs in two processes, compared hash by hash
    Twice {
        /// Scenario files; none means all of them
        files: Vec<PathBuf>,
        /// Runs every scenario
        #[arg(long, conflicts_with = "files")]
        all: bool,
        #[command(flatten)]
        seeds: Seeds,
        /// Runs the plans drawn from the seeds instead of scenarios: default, auth or disk
        #[arg(long, value_name = "P", value_parser = profile, conflicts_with_all = ["files", "all"], requires = "seeds_given")]
        profile: Option<Profile>,
    },
    /// The kill table: whether and how fast each planted bug is found
    #[command(after_help = known_bugs())]
    Bugs {
        /// Planted bugs, by slug; none means all of them
        slugs: Vec<String>,
        #[command(flatten)]
        seeds: Seeds,
    },
    /// Judges a stored history
    Check {
        /// The file
        history: PathBuf,
    },
}

impl Command {
    /// The name of a command that has no use for a report directory.
    pub(crate) fn without_histories(&self) -> Option<&'static str> {
        match self {
            Command::Run { .. } | Command::Fuzz { .. } | Command::Replay { .. } => None,
            Command::Twice { .. } => Some("twice"),
            Command::Bugs { .. } => Some("bugs"),
            Command::Check { .. } => Some("check"),
        }
    }
}

fn profile(name: &str) -> Result<Profile, String> {
    let names = Profile::ALL.map(Profile::name).join(", ");
    Profile::named(name).ok_or_else(|| format!("there is no such profile, only {names}"))
}

/// What `bugs --help` ends with.
fn known_bugs() -> String {
    format!("Planted bugs:\n  {}", bug_names().join("\n  "))
}

/// Which seeds.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(id = "seeds_given", multiple = true)]
pub(crate) struct Seeds {
    /// This seed alone
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    pub(crate) seed: Option<u64>,
    /// These seeds, both ends included: 1..500 are 500 seeds
    #[arg(long, value_name = "A..B", value_parser = seed_range)]
    pub(crate) seeds: Option<RangeInclusive<u64>>,
}

/// Most seeds of one command; a slip of the finger would otherwise run for years.
const SEEDS_MAX: u64 = 10_000_000;

fn seed_range(text: &str) -> Result<RangeInclusive<u64>, String> {
    let (first, last) = text
        .split_once("..")
        .ok_or("two numbers with .. between them, such as 1..500")?;
    let number = |text: &str| {
        text.parse::<u64>()
            .map_err(|error| format!("\"{text}\": {error}"))
    };
    let (first, last) = (
        number(first)?,
        number(last.strip_prefix('=').unwrap_or(last))?,
    );
    if first > last {
        return Err(format!("{first} is larger than {last}"));
    }
    if last - first >= SEEDS_MAX {
        return Err(format!("more than {SEEDS_MAX} seeds"));
    }
    Ok(first..=last)
}

impl Seeds {
    /// The seeds that were asked for; none if it was left to the scenarios.
    pub(crate) fn given(&self) -> Option<RangeInclusive<u64>> {
        self.seed
            .map(|seed| seed..=seed)
            .or_else(|| self.seeds.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn seed_ranges_include_both_ends() {
        assert_eq!(seed_range("1..500"), Ok(1..=500));
        assert_eq!(seed_range("7..=9"), Ok(7..=9));
        assert_eq!(seed_range("3..3"), Ok(3..=3));
        assert_eq!(seed_range("5..4"), Err("5 is larger than 4".to_owned()));
        assert_eq!(
            seed_range("5"),
            Err("two numbers with .. between them, such as 1..500".to_owned())
        );
        assert_eq!(
            seed_range("a..4"),
            Err("\"a\": invalid digit found in string".to_owned())
        );
        assert_eq!(
            seed_range("0..18446744073709551615"),
            Err("more than 10000000 seeds".to_owned())
        );
    }

    #[test]
    fn common_options_stand_before_or_after_the_command() {
        for line in [
            vec!["gatehouse-sim", "--jobs", "2", "run", "--seeds", "1..3"],
            vec!["gatehouse-sim", "run", "--seeds", "1..3", "--jobs", "2"],
        ] {
            let args = Args::try_parse_from(line).unwrap();
            assert_eq!(args.common.jobs, Some(2));
        }
        assert!(
            Args::try_parse_from(["gatehouse-sim", "run", "--seed", "1", "--seeds", "1..3"])
                .is_err()
        );
    }
}
