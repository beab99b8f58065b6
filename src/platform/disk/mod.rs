//! Where the store's bytes live: a file, or a simulated disk.

mod backend;
#[cfg(madsim)]
mod batch;
#[cfg(madsim)]
mod failing;
mod file;
mod file_register;
mod register;
#[cfg(madsim)]
mod rot;
#[cfg(madsim)]
mod sim_disk;
#[cfg(madsim)]
mod sim_faults;
#[cfg(madsim)]
mod sim_file;
#[cfg(madsim)]
mod sim_register;
#[cfg(madsim)]
mod space;
#[cfg(madsim)]
mod unfinished;

pub use backend::Backend;
#[cfg(madsim)]
pub use failing::DiskOperation;
pub use register::{REGISTER_BYTES, Register, Slot};
#[cfg(madsim)]
pub use sim_disk::{DiskCounters, SimDisk};

use super::random_u64;
use file_register::FileRegister;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// The register's file has the database's name with this extension.
const REGISTER_EXTENSION: &str = "commits";

/// One member's disk; clones share it.
#[derive(Clone, Debug)]
pub struct Disk(Medium);

#[derive(Clone, Debug)]
enum Medium {
    File(PathBuf),
    #[cfg(madsim)]
    Simulated(SimDisk),
}

impl fmt::Display for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Medium::File(path) => path.display().fmt(f),
            #[cfg(madsim)]
            Medium::Simulated(_) => f.write_str("simulated disk"),
        }
    }
}

impl Disk {
    /// The database file at `path`, made with its missing directories when first opened.
    pub fn file(path: PathBuf) -> Disk {
        Disk(Medium::File(path))
    }

    /// A simulated disk.
    #[cfg(madsim)]
    pub fn simulated(disk: SimDisk) -> Disk {
        Disk(Medium::Simulated(disk))
    }

    /// Opens it for redb: `Database::builder().create_with_backend(disk.backend()?)`. What a power cut left of a database
    /// in the making is emptied, so that the member can start; redb alone would refuse it for ever.
    ///
    /// # Errors
    /// Name the file. Of kind `ResourceBusy` when another process has it open, `InvalidData` when it was complete once
    /// ([`Disk::keep`]) and is blank now.
    pub fn backend(&self) -> io::Result<Backend> {
        match &self.0 {
            Medium::File(path) => Ok(Backend::new(file::open(path)?)),
            #[cfg(madsim)]
            Medium::Simulated(disk) => {
                let backend = Backend::new(disk.open());
                unfinished::discard(&backend)?;
                Ok(backend)
            }
        }
    }

    /// The register beside the database. To be called once the database is open, since only that excludes other processes.
    pub fn register(&self) -> Register {
        Register(match &self.0 {
            Medium::File(path) => {
                register::Medium::File(FileRegister::new(path.with_extension(REGISTER_EXTENSION)))
            }
            #[cfg(madsim)]
            Medium::Simulated(disk) => register::Medium::Simulated {
                disk: disk.clone(),
                epoch: disk.opened(),
            },
        })
    }

    /// A number that tells a new store from all others.
    pub fn draw_id(&self) -> u64 {
        match &self.0 {
            Medium::File(_) => random_u64(),
            // From the disk's own seed: a member's random numbers stay as they are.
            #[cfg(madsim)]
            Medium::Simulated(disk) => disk.draw_id(),
        }
    }

    /// Says that the database on it has been created completely: from now on a blank disk is a damaged one.
    ///
    /// # Errors
    /// Name the file.
    pub fn keep(&self) -> io::Result<()> {
        match &self.0 {
            Medium::File(path) => file::keep(path),
            #[cfg(madsim)]
            Medium::Simulated(_) => Ok(()),
        }
    }

    /// Resolves when everything synced before the call survives a power cut. Nothing may be acknowledged before it.
    ///
    /// A real sync has waited already, so this is free. A simulated sync cannot wait, since redb calls it from plain code:
    /// the time it takes, and the chance to lose it, are here.
    ///
    /// # Errors
    /// The power was cut: what was synced may be lost.
    pub async fn barrier(&self) -> io::Result<()> {
        match &self.0 {
            Medium::File(_) => Ok(()),
            #[cfg(madsim)]
            Medium::Simulated(disk) => disk.barrier().await,
        }
    }
}
