//! Reads a plan from a file, with errors that name file, line, column and field.

use super::{Plan, PlanError};
use gatehouse_judge::input_file;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Largest plan file, bytes; far above any plan that [`Plan::check`] accepts.
pub(super) const FILE_BYTES_MAX: u64 = 4 << 20;

/// Why a file gave no plan.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be read.
    #[error("{path}: {cause}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The file is larger than any plan.
    #[error("{path}: {bytes} bytes are too many for a plan, the limit is {FILE_BYTES_MAX}")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// The file is not a plan; the cause names line, column and field.
    #[error("{path}: {cause}")]
    Toml {
        /// The file.
        path: PathBuf,
        /// What stands where.
        cause: Box<toml::de::Error>,
    },
    /// The file is a plan that no run can make sense of.
    #[error("{path}: {cause}")]
    Plan {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: PlanError,
    },
}

/// Reads and checks the plan in the file at `path`.
///
/// # Errors
/// One variant for each reason why there is no plan.
pub fn read(path: &Path) -> Result<Plan, ReadError> {
    let io = |cause| ReadError::Io {
        path: path.to_owned(),
        cause,
    };
    let file = input_file::open(path).map_err(io)?;
    let bytes = file.metadata().map_err(io)?.len();
    if bytes > FILE_BYTES_MAX {
        return Err(ReadError::TooLarge {
            path: path.to_owned(),
            bytes,
        });
    }
    // The size says nothing of what is no file, as /dev/stdin may be, so it is limited again here.
    let mut text = String::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    let bytes = read.map_err(io)? as u64;
    if bytes > FILE_BYTES_MAX {
        return Err(ReadError::TooLarge {
            path: path.to_owned(),
            bytes,
        });
    }
    let plan: Plan = toml::from_str(&text).map_err(|cause| ReadError::Toml {
        path: path.to_owned(),
        cause: Box::new(cause),
    })?;
    plan.check().map_err(|cause| ReadError::Plan {
        path: path.to_owned(),
        cause,
    })?;
    Ok(plan)
}
