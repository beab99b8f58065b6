//! How many transactions have become durable, said outside of the store: so that a member notices when its store has
//! gone back in time, be it that its newest commit has rotted and redb fell back to the one before, or that somebody
//! put an older copy of the file there.
//!
//! The register beside the store holds the number of a transaction, written once that is durable. So it never runs ahead
//! of what the store must have; and it is behind by no more than what was committed during the sync of its last two
//! contents.

use super::{Loaded, StorageError};
use crate::platform::{REGISTER_BYTES, Register, Slot};
use std::io;
use xxhash_rust::xxh3::xxh3_64;

/// What a slot begins with.
const MAGIC: [u8; 8] = *b"GHCOMMIT";

/// Format of a slot.
const FORMAT: u32 = 1;

/// Where a slot's checksum stands: behind magic, format, store id and number.
const CHECKSUM_AT: usize = 28;

/// The open counter.
#[derive(Debug)]
pub(crate) struct Commits {
    register: Register,
    store_id: u64,
}

/// What a slot says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Note {
    store_id: u64,
    number: u64,
}

/// What is known of the commits that were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Noted {
    /// There is no register.
    Nothing,
    Note(Note),
    /// Neither slot is whole.
    Damaged,
    /// By a later version.
    Newer(u32),
}

impl Commits {
    /// Compares the store with what the register knows of it, and brings the register up to date. To be called when what
    /// opening the store wrote is durable, and before a new store gets its name.
    ///
    /// # Errors
    /// [`StorageError::LostCommits`], [`StorageError::LostStore`], [`StorageError::Uncounted`],
    /// [`StorageError::ForeignCounter`], [`StorageError::NewerFormat`]: the member must not serve.
    /// [`StorageError::Failed`] when the disk fails.
    pub(crate) fn open(register: Register, loaded: &Loaded) -> Result<Commits, StorageError> {
        let noted = noted(register.read().map_err(redb::Error::Io)?);
        check(noted, loaded)?;
        let commits = Commits {
            register,
            store_id: loaded.store_id,
        };
        let content = commits.encode(loaded.commit);
        commits.register.replace(content).map_err(redb::Error::Io)?;
        Ok(commits)
    }

    /// Takes note that transaction `number` is durable, without waiting for the disk.
    ///
    /// # Errors
    /// This note, or an earlier one, could not be made durable.
    pub(crate) fn note(&self, number: u64) -> io::Result<()> {
        self.register.set(self.encode(number))
    }

    fn encode(&self, number: u64) -> Slot {
        Note {
            store_id: self.store_id,
            number,
        }
        .encode()
    }
}

impl Note {
    fn encode(self) -> Slot {
        let mut slot = [0; REGISTER_BYTES];
        slot[..8].copy_from_slice(&MAGIC);
        slot[8..12].copy_from_slice(&FORMAT.to_be_bytes());
        slot[12..20].copy_from_slice(&self.store_id.to_be_bytes());
        slot[20..CHECKSUM_AT].copy_from_slice(&self.number.to_be_bytes());
        let checksum = xxh3_64(&slot[..CHECKSUM_AT]);
        slot[CHECKSUM_AT..CHECKSUM_AT + 8].copy_from_slice(&checksum.to_be_bytes());
        slot
    }
}

fn decode(slot: &Slot) -> Noted {
    let number = |at: usize| {
        let bytes = slot[at..].first_chunk().expect("a slot is longer");
        u64::from_be_bytes(*bytes)
    };
    if slot[..8] != MAGIC || number(CHECKSUM_AT) != xxh3_64(&slot[..CHECKSUM_AT]) {
        return Noted::Damaged;
    }
    let format = u32::from_be_bytes(*slot[8..].first_chunk().expect("a slot is longer"));
    if format > FORMAT {
        return Noted::Newer(format);
    }
    Noted::Note(Note {
        store_id: number(12),
        number: number(20),
    })
}

/// The newer of two notes. A torn or rotten slot leaves the other.
fn noted(slots: Option<[Slot; 2]>) -> Noted {
    let Some([first, second]) = slots else {
        return Noted::Nothing;
    };
    match (decode(&first), decode(&second)) {
        (Noted::Note(one), Noted::Note(other)) => Noted::Note(if one.number > other.number {
            one
        } else {
            other
        }),
        (newer @ Noted::Newer(_), _) | (_, newer @ Noted::Newer(_)) => newer,
        (Noted::Damaged, other) => other,
        (one, _) => one,
    }
}

fn check(noted: Noted, loaded: &Loaded) -> Result<(), StorageError> {
    match noted {
        Noted::Newer(found) => Err(StorageError::NewerFormat {
            found,
            known: FORMAT,
        }),
        // A creation that was cut short may have got as far as its first note; nobody had been promised anything.
        Noted::Nothing | Noted::Note(Note { number: 1, .. }) if loaded.created => Ok(()),
        Noted::Note(Note { number, .. }) if loaded.created => {
            Err(StorageError::LostStore { commits: number })
        }
        Noted::Nothing => Err(StorageError::Uncounted { what: "missing" }),
        Noted::Damaged => Err(StorageError::Uncounted { what: "damaged" }),
        Noted::Note(Note { store_id, .. }) if store_id != loaded.store_id => {
            Err(StorageError::ForeignCounter {
                found: store_id,
                expected: loaded.store_id,
            })
        }
        Noted::Note(Note { number, .. }) if number > loaded.commit => {
            Err(StorageError::LostCommits {
                found: loaded.commit,
                noted: number,
                missing: number - loaded.commit,
            })
        }
        Noted::Note(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(number: u64) -> Note {
        Note {
            store_id: 7,
            number,
        }
    }

    #[test]
    fn the_newer_of_two_whole_slots_counts() {
        let (old, new) = (note(4).encode(), note(5).encode());
        for slots in [[old, new], [new, old], [new, new]] {
            assert_eq!(noted(Some(slots)), Noted::Note(note(5)));
        }
    }

    #[test]
    fn any_changed_bit_makes_a_slot_worthless() {
        let (old, new) = (note(4).encode(), note(5).encode());
        for bit in 0..(CHECKSUM_AT + 8) * 8 {
            let mut rotten = new;
            rotten[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(noted(Some([rotten, old])), Noted::Note(note(4)));
            assert_eq!(noted(Some([rotten, rotten])), Noted::Damaged);
        }
    }

    #[test]
    fn a_later_format_is_not_taken_for_damage() {
        let mut slot = note(5).encode();
        slot[8..12].copy_from_slice(&(FORMAT + 1).to_be_bytes());
        let checksum = xxh3_64(&slot[..CHECKSUM_AT]);
        slot[CHECKSUM_AT..CHECKSUM_AT + 8].copy_from_slice(&checksum.to_be_bytes());
        assert_eq!(noted(Some([slot, slot])), Noted::Newer(FORMAT + 1));
    }
}
