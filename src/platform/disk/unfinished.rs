//! A database whose creation was cut short.

use redb::StorageBackend;
use std::io;

/// Length of the magic number redb's files begin with, and of the page around it (redb's `docs/design.md`).
const MAGIC_BYTES: u64 = 9;
const HEADER_PAGE_BYTES: u64 = 4096;

/// More than redb makes a new file. A longer one has held something.
const NEW_FILE_BYTES_MAX: u64 = 16 << 20;

/// Read at a time, bytes.
const CHUNK_BYTES: u64 = 64 << 10;

/// Empties a disk that holds something, but zeros where the magic number and the pages belong.
///
/// redb writes the number last, behind a sync of everything else (redb 4.6, `page_manager.rs`), so such a database never
/// took a commit and nothing in it was ever acknowledged. Any other content is left to redb to judge: it may be someone's,
/// or a database that has lost its first sector. Starting that one over would forget votes and acknowledged entries.
pub(super) fn discard(backend: &impl StorageBackend) -> io::Result<()> {
    let len = backend.len()?;
    let unfinished = len > 0
        && len <= NEW_FILE_BYTES_MAX
        && is_zero(backend, 0, MAGIC_BYTES.min(len))?
        && is_zero(backend, HEADER_PAGE_BYTES.min(len), len)?;
    if unfinished {
        backend.set_len(0)?;
    }
    Ok(())
}

fn is_zero(backend: &impl StorageBackend, from: u64, to: u64) -> io::Result<bool> {
    let mut chunk = Vec::new();
    let mut at = from;
    while at < to {
        let bytes = CHUNK_BYTES.min(to - at);
        chunk.resize(usize::try_from(bytes).expect("a chunk is small"), 0);
        backend.read(at, &mut chunk)?;
        if chunk.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        at += bytes;
    }
    Ok(true)
}
