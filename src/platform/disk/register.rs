//! A small value beside the store, for what the store cannot say of itself.
//!
//! Two slots are written in turn, each only once the sync of the other has finished: whatever is torn by a crash, one of
//! them is whole. A slot's content, its checksum included, is the caller's.

use super::file_register::FileRegister;
#[cfg(madsim)]
use super::sim_disk::SimDisk;
use std::io;

/// Bytes of a slot that are read. Slots lie on pages of their own, so that no torn write touches both.
pub const REGISTER_BYTES: usize = 64;

/// What a slot holds.
pub type Slot = [u8; REGISTER_BYTES];

/// The open register of one boot.
#[derive(Debug)]
pub struct Register(pub(super) Medium);

#[derive(Debug)]
pub(super) enum Medium {
    File(FileRegister),
    #[cfg(madsim)]
    Simulated {
        disk: SimDisk,
        epoch: u64,
    },
}

impl Register {
    /// Both slots; `None` if there has never been a register. What is missing of a file that is too short is zero.
    ///
    /// # Errors
    /// Name the file.
    pub fn read(&self) -> io::Result<Option<[Slot; 2]>> {
        match &self.0 {
            Medium::File(file) => file.read(),
            #[cfg(madsim)]
            Medium::Simulated { disk, epoch } => disk.read_register(*epoch),
        }
    }

    /// Makes `content` what both slots hold, durably and at once, whatever there was before. To be called once in a boot,
    /// before the first [`Register::set`].
    ///
    /// # Errors
    /// Name the file.
    pub fn replace(&self, content: Slot) -> io::Result<()> {
        match &self.0 {
            Medium::File(file) => file.replace(content),
            #[cfg(madsim)]
            Medium::Simulated { disk, epoch } => disk.replace_register(*epoch, content),
        }
    }

    /// Writes `content` and leaves its sync to run behind. While an earlier sync runs, the newest content waits for its
    /// end; what it takes the place of is never written.
    ///
    /// # Errors
    /// This write failed, or the sync of an earlier one did.
    pub fn set(&self, content: Slot) -> io::Result<()> {
        match &self.0 {
            Medium::File(file) => file.set(content),
            #[cfg(madsim)]
            Medium::Simulated { disk, epoch } => disk.set_register(*epoch, content),
        }
    }
}
