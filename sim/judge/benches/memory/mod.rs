//! What a measuring program holds in memory.

use std::error::Error;

/// The most memory that this process has held so far, kibibytes, as Linux counts it.
///
/// # Errors
/// The system does not say.
pub(crate) fn peak_kib() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let words = line.ok_or("/proc/self/status names no VmHWM")?;
    let number = words.trim().trim_end_matches("kB").trim();
    Ok(number.parse()?)
}
