//! Which blocks of a simulated disk are in use, and how many may be.
//!
//! As with a file on Linux, a longer file alone takes no space: a block is in use once it has been written to. So it is a
//! write that finds no room, and never one that goes where something stood before.

use std::io;
use std::ops::Range;

/// What a file system hands out at a time, bytes.
pub(super) const BLOCK: usize = 4096;

/// What Linux calls a file system without a free block (`ENOSPC`).
const ENOSPC: i32 = 28;

/// The blocks in use.
#[derive(Debug, Default)]
pub(super) struct Space {
    used: Vec<bool>,
    count: usize,
    /// Most blocks that may be in use.
    limit: Option<usize>,
}

impl Space {
    /// Leaves so many more bytes, rounded down to blocks; any number with `None`.
    pub(super) fn set_room(&mut self, bytes: Option<usize>) {
        self.limit = bytes.map(|bytes| self.count.saturating_add(bytes / BLOCK));
    }

    /// Takes the blocks of `bytes` into use, all of them or none.
    ///
    /// # Errors
    /// `StorageFull`.
    pub(super) fn take(&mut self, bytes: Range<usize>) -> io::Result<()> {
        let blocks = bytes.start / BLOCK..bytes.end.div_ceil(BLOCK);
        if self.used.len() < blocks.end {
            self.used.resize(blocks.end, false);
        }
        let fresh = self.used[blocks.clone()].iter().filter(|used| !**used);
        let count = self.count + fresh.count();
        if count > self.count && self.limit.is_some_and(|limit| count > limit) {
            return Err(io::Error::from_raw_os_error(ENOSPC));
        }
        self.used[blocks].fill(true);
        self.count = count;
        Ok(())
    }

    /// Gives back what lies behind the new end.
    pub(super) fn truncate(&mut self, len: usize) {
        let kept = len.div_ceil(BLOCK).min(self.used.len());
        self.count -= self.used[kept..].iter().filter(|used| **used).count();
        self.used.truncate(kept);
    }

    /// Where the blocks in use begin, in order.
    pub(super) fn blocks(&self) -> Vec<usize> {
        let used = self.used.iter().enumerate().filter(|(_, used)| **used);
        used.map(|(block, _)| block * BLOCK).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_takes_what_needs_no_new_block() {
        let mut space = Space::default();
        space.take(0..BLOCK + 1).unwrap();
        space.set_room(Some(BLOCK));
        space.take(10..BLOCK * 2).unwrap();
        space.take(BLOCK * 7..BLOCK * 8).unwrap();
        let full = space.take(BLOCK * 2 - 1..BLOCK * 2 + 1).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        assert_eq!(space.blocks(), [0, BLOCK, BLOCK * 7]);
        space.truncate(BLOCK * 3);
        space.take(BLOCK * 2..BLOCK * 3).unwrap();
        space.set_room(None);
        space.take(0..BLOCK * 20).unwrap();
        assert_eq!(space.blocks().len(), 20);
    }
}
