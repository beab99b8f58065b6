//! Finds scenario files: those that are named, or all in `scenarios/`.

use crate::nearest::nearest;
use crate::plan::{Plan, ReadError, read};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A plan and where it came from.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its file.
    pub file: PathBuf,
    /// The plan.
    pub plan: Arc<Plan>,
}

/// Why there are no scenarios to run.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// A file gave no plan.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The directory cannot be listed.
    #[error("{}: {cause}", path.display())]
    Directory {
        /// Which.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// The directory holds no scenario.
    #[error("{}: no *.toml in it", path.display())]
    Empty {
        /// Which.
        path: PathBuf,
    },
    /// No scenario has this name.
    #[error(
        "there is no scenario \"{name}\"; did you mean \"{near}\"? The files in {} are the scenarios",
        directory.display()
    )]
    Unknown {
        /// The name.
        name: String,
        /// The nearest name that exists.
        near: String,
        /// Where they all are.
        directory: PathBuf,
    },
    /// No file is where a plan was said to be.
    #[error("{cause}; did you mean {}?", near.display())]
    Missing {
        /// What was said to be read.
        cause: ReadError,
        /// The scenario whose file has the nearest name.
        near: PathBuf,
    },
}

/// The directory with the scenarios: `scenarios` here, or, when run from elsewhere, that of the source tree which this
/// program was built from.
pub fn directory() -> PathBuf {
    let here = PathBuf::from("scenarios");
    if here.is_dir() {
        return here;
    }
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).join("scenarios")
}

/// Every scenario in the directory, by file name.
///
/// # Errors
/// The directory, or the first file that gave no plan.
pub fn all() -> Result<Vec<Scenario>, ScenarioError> {
    within(directory())
}

/// The plans of real finds, by file name.
///
/// # Errors
/// As [`all`].
pub fn found() -> Result<Vec<Scenario>, ScenarioError> {
    within(directory().join("found"))
}

fn within(path: PathBuf) -> Result<Vec<Scenario>, ScenarioError> {
    let files = listed(&path)?;
    if files.is_empty() {
        return Err(ScenarioError::Empty { path });
    }
    from_files(&files)
}

/// The scenario files in the directory `path`, by name.
fn listed(path: &Path) -> Result<Vec<PathBuf>, ScenarioError> {
    let failed = |cause| ScenarioError::Directory {
        path: path.to_owned(),
        cause,
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        if file
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

/// The plans in these files, in this order.
///
/// # Errors
/// The first file that gave no plan.
pub fn from_files(files: &[PathBuf]) -> Result<Vec<Scenario>, ScenarioError> {
    files
        .iter()
        .map(|file| {
            Ok(Scenario {
                file: file.clone(),
                plan: Arc::new(read(file).map_err(|cause| explained(file, cause))?),
            })
        })
        .collect()
}

/// Adds to "no such file" which scenario may have been meant: its name alone is no file.
fn explained(file: &Path, cause: ReadError) -> ScenarioError {
    let is_missing =
        matches!(&cause, ReadError::Io { cause, .. } if cause.kind() == io::ErrorKind::NotFound);
    let known = if is_missing {
        listed(&directory()).unwrap_or_default()
    } else {
        Vec::new()
    };
    let stem = |file: &Path| Some(file.file_stem()?.to_str()?.to_owned());
    let names: Vec<String> = known.iter().filter_map(|file| stem(file)).collect();
    let typed = stem(file).unwrap_or_default();
    match nearest(&typed, names.iter().map(String::as_str)) {
        Some(near) => ScenarioError::Missing {
            cause,
            near: directory().join(format!("{near}.toml")),
        },
        None => ScenarioError::Read(cause),
    }
}

/// The scenario of this name.
///
/// # Errors
/// As [`all`], or that there is none, with the nearest name that exists.
pub fn named(name: &str) -> Result<Scenario, ScenarioError> {
    let scenarios = all()?;
    let names = scenarios.iter().map(|scenario| scenario.plan.name.as_str());
    match scenarios.iter().find(|scenario| scenario.plan.name == name) {
        Some(scenario) => Ok(scenario.clone()),
        None => Err(ScenarioError::Unknown {
            name: name.to_owned(),
            near: nearest(name, names).unwrap_or_default().to_owned(),
            directory: directory(),
        }),
    }
}
