//! The writes between two syncs.

use crate::platform::seeded::Seeded;

/// What a disk writes whole or not at all, bytes.
const SECTOR: usize = 512;

/// Operations in the order they were made. Their bytes lie in one buffer, so that a batch that is used again costs no
/// allocation: a small commit makes seven writes of 25 kB together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    operations: Vec<Operation>,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    /// `len` bytes from `start` in the batch's buffer go to `offset` on the disk.
    Write {
        offset: usize,
        start: usize,
        len: usize,
    },
    SetLen(usize),
}

impl Batch {
    pub(super) fn write(&mut self, offset: usize, data: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(data);
        self.operations.push(Operation::Write {
            offset,
            start,
            len: data.len(),
        });
    }

    pub(super) fn set_len(&mut self, len: usize) {
        self.operations.push(Operation::SetLen(len));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Empties it, keeping its memory.
    pub(super) fn clear(&mut self) {
        self.operations.clear();
        self.bytes.clear();
    }

    pub(super) fn apply(&self, disk: &mut Vec<u8>) {
        for operation in &self.operations {
            match *operation {
                Operation::Write { offset, start, len } => {
                    write(disk, offset, &self.bytes[start..start + len]);
                }
                Operation::SetLen(len) => disk.resize(len, 0),
            }
        }
    }

    /// What a power cut in the middle leaves: each operation lost, done, or done in some of its sectors.
    pub(super) fn torn(&self, chance: &mut Seeded) -> Batch {
        let mut torn = Batch::default();
        for operation in &self.operations {
            match *operation {
                Operation::Write { offset, start, len } => {
                    let data = &self.bytes[start..start + len];
                    match chance.below(3) {
                        0 => {}
                        1 => torn.write(offset, data),
                        _ => {
                            for (index, sector) in data.chunks(SECTOR).enumerate() {
                                if chance.coin() {
                                    torn.write(offset + index * SECTOR, sector);
                                }
                            }
                        }
                    }
                }
                Operation::SetLen(len) => {
                    if chance.coin() {
                        torn.set_len(len);
                    }
                }
            }
        }
        torn
    }
}

/// Writes into `disk`, which grows as a file does.
pub(super) fn write(disk: &mut Vec<u8>, offset: usize, data: &[u8]) {
    let end = offset + data.len();
    if disk.len() < end {
        disk.resize(end, 0);
    }
    disk[offset..end].copy_from_slice(data);
}
