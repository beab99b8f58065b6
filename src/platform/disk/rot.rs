//! Bytes that change by themselves.

use super::space::{BLOCK, Space};
use crate::platform::seeded::Seeded;

/// A byte that changed: where, and which of its bits are others now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flip {
    pub(super) at: usize,
    pub(super) bits: u8,
}

/// Chooses `count` bytes of blocks in use on a disk of `len` bytes; none if nothing is in use.
pub(super) fn choose(space: &Space, len: usize, count: u64, chance: &mut Seeded) -> Vec<Flip> {
    let blocks = space.blocks();
    let blocks: Vec<usize> = blocks.into_iter().filter(|start| *start < len).collect();
    if blocks.is_empty() {
        return Vec::new();
    }
    let mut below = |limit: usize| {
        let drawn = chance.below(limit as u64);
        usize::try_from(drawn).expect("below a length in memory")
    };
    let flips = (0..count).map(|_| {
        let start = blocks[below(blocks.len())];
        Flip {
            at: start + below(BLOCK.min(len - start)),
            // Never 0, or nothing would change.
            bits: u8::try_from(below(255) + 1).expect("1 to 255"),
        }
    });
    flips.collect()
}

/// Changes the bytes; those behind the end are on no disk.
pub(super) fn apply(flips: &[Flip], disk: &mut [u8]) {
    for Flip { at, bits } in flips {
        if let Some(byte) = disk.get_mut(*at) {
            *byte ^= bits;
        }
    }
}
