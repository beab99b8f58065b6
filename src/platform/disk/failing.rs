//! Errors that a simulated disk gives instead of doing what it is asked.

use std::io;

/// What Linux calls a device that failed (`EIO`).
const EIO: i32 = 5;

/// An operation that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskOperation {
    /// Writes, and changes of the length.
    Write,
    /// Syncs.
    Sync,
}

/// How many more operations fail; `u64::MAX` are all of them.
#[derive(Debug, Default)]
pub(super) struct Failing {
    writes: u64,
    syncs: u64,
}

impl Failing {
    /// Lets so many more operations fail, all of them with `None`.
    pub(super) fn set(&mut self, operation: DiskOperation, times: Option<u64>) {
        *self.left(operation) = times.unwrap_or(u64::MAX);
    }

    /// Whether this operation fails.
    pub(super) fn strikes(&mut self, operation: DiskOperation) -> bool {
        let left = self.left(operation);
        let strikes = *left > 0;
        if strikes && *left < u64::MAX {
            *left -= 1;
        }
        strikes
    }

    fn left(&mut self, operation: DiskOperation) -> &mut u64 {
        match operation {
            DiskOperation::Write => &mut self.writes,
            DiskOperation::Sync => &mut self.syncs,
        }
    }
}

pub(super) fn io_error() -> io::Error {
    io::Error::from_raw_os_error(EIO)
}
