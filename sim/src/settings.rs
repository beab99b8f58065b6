//! What the program needs of its arguments and its environment, checked: no clap types, and the only place that reads an
//! environment variable.

use crate::args::{Common, Format};
use gatehouse::planted::Bug;
use gatehouse_sim::log;
use gatehouse_sim::nearest::no_such_bug;
use gatehouse_sim::run::Options;
use std::path::PathBuf;

/// Where histories go unless something else was asked for.
const REPORT: &str = "reports/latest";

/// What every command needs.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The planted bugs that `--bug` selects; empty for none.
    pub(crate) bugs: Vec<Bug>,
    /// What was typed for it, to repeat a run.
    pub(crate) bug_name: Option<String>,
    /// Leaves the scenarios' own expectations out.
    pub(crate) general: bool,
    /// Runs at the same time.
    pub(crate) jobs: usize,
    /// Form of the results.
    pub(crate) format: Format,
    /// Directory for histories.
    pub(crate) report: PathBuf,
    /// What the log shows, if there is one.
    pub(crate) log: Option<String>,
    /// Writes the lines of the trace beside each history.
    pub(crate) keep_trace: bool,
    /// Makes the runs from the last to the first.
    pub(crate) backwards: bool,
    /// Describes every run, not only those that are not "ok".
    pub(crate) details: bool,
}

impl Settings {
    /// Checks the common arguments.
    ///
    /// # Errors
    /// What is wrong, for the user.
    pub(crate) fn new(common: &Common) -> Result<Settings, String> {
        let bugs = match &common.bug {
            None => Vec::new(),
            Some(slug) => planted(slug)?,
        };
        let level = common
            .log_level
            .clone()
            .or_else(|| std::env::var("RUST_LOG").ok());
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Settings {
            bugs,
            bug_name: common.bug.clone(),
            general: common.general,
            jobs: common.jobs.map_or_else(cores, usize::from),
            format: common.format,
            report: common
                .report
                .clone()
                .unwrap_or_else(|| PathBuf::from(REPORT)),
            log: level.as_deref().map_or(Ok(None), directives)?,
            keep_trace: common.keep_trace,
            backwards: common.backwards,
            details: false,
        })
    }

    /// The bugs to run with: each that was asked for on its own, or none.
    pub(crate) fn bug_runs(&self) -> Vec<Option<Bug>> {
        if self.bugs.is_empty() {
            vec![None]
        } else {
            self.bugs.iter().copied().map(Some).collect()
        }
    }

    /// How a run with `bug` goes.
    pub(crate) fn options(&self, bug: Option<Bug>) -> Options {
        Options {
            bug,
            general: self.general,
            keep_trace: self.keep_trace,
            log: self.log.as_deref().map(log::to_stderr),
        }
    }
}

/// The planted bugs of this name.
pub(crate) fn planted(slug: &str) -> Result<Vec<Bug>, String> {
    let bugs = Bug::named(slug);
    if bugs.is_empty() {
        return Err(no_such_bug(slug));
    }
    Ok(bugs)
}

/// What the log shows at a level. A bare level is for this project's own code: libraries are held to warnings, because
/// some trace every byte that passes through them.
fn directives(level: &str) -> Result<Option<String>, String> {
    let own = |level: &str| Some(format!("warn,gatehouse={level},gatehouse_sim={level}"));
    let all = match level {
        "off" | "" => None,
        "error" => Some("error".to_owned()),
        "warn" | "info" | "debug" | "trace" => own(level),
        other => Some(other.to_owned()),
    };
    if let Some(all) = &all {
        log::check(all).map_err(|error| format!("log level \"{level}\": {error}"))?;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_level_is_for_our_own_code() {
        assert_eq!(directives("off"), Ok(None));
        assert_eq!(
            directives("debug"),
            Ok(Some("warn,gatehouse=debug,gatehouse_sim=debug".to_owned()))
        );
        assert_eq!(directives("raft=info"), Ok(Some("raft=info".to_owned())));
        assert!(
            directives("gatehouse=loud")
                .unwrap_err()
                .starts_with("log level \"gatehouse=loud\"")
        );
    }

    #[test]
    fn a_slug_selects_its_sub_switches() {
        assert_eq!(planted("authn-changepw-toctou").unwrap().len(), 3);
        assert_eq!(
            planted("authn-changepw-toctou/b").unwrap(),
            [Bug::AuthnChangepwToctouB]
        );
        assert!(
            planted("none")
                .unwrap_err()
                .starts_with("there is no planted bug \"none\"; did you mean \"")
        );
    }
}
