//! Keeps histories in the report directory: of every failing run, and of the first run of each scenario.

use gatehouse_judge::history_file::{HistoryError, write_history};
use gatehouse_judge::verdict::VerdictKind;
use gatehouse_sim::run::Run;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;

/// The directory, and what it already holds of this batch.
pub(crate) struct Store {
    directory: PathBuf,
    seen: BTreeSet<(String, Option<&'static str>)>,
}

impl Store {
    /// A store in `directory`, which is made if it is not there. It is tried out at once: runs whose histories could not
    /// be kept would be made in vain.
    ///
    /// # Errors
    /// The file system's.
    pub(crate) fn new(directory: PathBuf) -> Result<Store, HistoryError> {
        let trial = directory.join(format!(".trial-{}", std::process::id()));
        std::fs::create_dir_all(&directory)
            .and_then(|()| File::create(&trial))
            .and_then(|_| std::fs::remove_file(&trial))
            .map_err(|cause| HistoryError::Io {
                file: directory.clone(),
                cause,
            })?;
        Ok(Store {
            directory,
            seen: BTreeSet::new(),
        })
    }

    /// Keeps the run's history if it is one to keep; gives the file.
    ///
    /// # Errors
    /// The file system's.
    pub(crate) fn offer(&mut self, run: &Run) -> Result<Option<PathBuf>, HistoryError> {
        let first = self.seen.insert((run.scenario.clone(), run.bug));
        if !first && run.verdict.kind == VerdictKind::Ok {
            return Ok(None);
        }
        let bug = run
            .bug
            .map(|slug| format!("-{}", slug.replace('/', "-")))
            .unwrap_or_default();
        let path = self
            .directory
            .join(format!("{}-{}{bug}.jsonl", run.scenario, run.seed));
        write_history(&path, &run.history)?;
        if !run.trace.is_empty() {
            let file = path.with_extension("trace");
            std::fs::write(&file, run.trace.join("\n"))
                .map_err(|cause| HistoryError::Io { file, cause })?;
        }
        Ok(Some(path))
    }
}
