//! One boot's handle on a simulated disk.

use super::SimDisk;
use redb::StorageBackend;
use std::io;

/// Dies with the power: from then on every operation fails, whoever still holds it.
#[derive(Debug)]
pub(super) struct SimFile {
    disk: SimDisk,
    epoch: u64,
}

impl SimFile {
    pub(super) fn new(disk: SimDisk, epoch: u64) -> SimFile {
        SimFile { disk, epoch }
    }
}

impl StorageBackend for SimFile {
    fn len(&self) -> io::Result<u64> {
        self.disk.len(self.epoch)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.disk.read(self.epoch, offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.set_len(self.epoch, len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.sync(self.epoch)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.disk.write(self.epoch, offset, data)
    }
}
