//! The register in a real file.

use super::file::{directory, named, private_file};
use super::register::{REGISTER_BYTES, Slot};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where the second slot begins: on the next page, and the next sector of any disk.
const SLOT_STEP: u64 = 4096;

#[derive(Debug)]
pub(super) struct FileRegister(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Since [`FileRegister::replace`].
    file: Option<Arc<File>>,
    /// Which slot is written next.
    next: u64,
    syncing: bool,
    waiting: Option<Slot>,
    failure: Option<io::Error>,
}

impl FileRegister {
    pub(super) fn new(path: PathBuf) -> FileRegister {
        FileRegister(Arc::new(Shared {
            path,
            state: Mutex::default(),
        }))
    }

    pub(super) fn read(&self) -> io::Result<Option<[Slot; 2]>> {
        let path = &self.0.path;
        named(path, || {
            let mut file = match File::open(path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            };
            let mut slots = [[0; REGISTER_BYTES]; 2];
            for (at, slot) in (0..).zip(&mut slots) {
                file.seek(SeekFrom::Start(at * SLOT_STEP))?;
                read_up_to(&mut file, slot)?;
            }
            Ok(Some(slots))
        })
    }

    pub(super) fn replace(&self, content: Slot) -> io::Result<()> {
        let file = named(&self.0.path, || replace(&self.0.path, content))?;
        *self.0.state() = State {
            file: Some(Arc::new(file)),
            ..State::default()
        };
        Ok(())
    }

    pub(super) fn set(&self, content: Slot) -> io::Result<()> {
        {
            let mut state = self.0.state();
            if let Some(failure) = state.failure.take() {
                return named(&self.0.path, || Err(failure));
            }
            if state.syncing {
                state.waiting = Some(content);
                return Ok(());
            }
            named(&self.0.path, || state.write(content))?;
            state.syncing = true;
        }
        behind(Arc::clone(&self.0));
        Ok(())
    }
}

/// A thread of the runtime's awaits the disk. Without a runtime there is none, and nobody who is in a hurry.
fn behind(shared: Arc<Shared>) {
    #[cfg(not(madsim))]
    if let Ok(handle) = tokio::runtime::Handle::try_current() {
        handle.spawn_blocking(move || shared.sync());
        return;
    }
    shared.sync();
}

impl Shared {
    /// Syncs what has been written, and what was waiting for that, until nothing waits.
    fn sync(&self) {
        loop {
            let file = self.state().file.clone();
            let synced = file.map_or(Ok(()), |file| file.sync_data());
            let mut state = self.state();
            let written = synced.and_then(|()| {
                state.next ^= 1;
                let waiting = state.waiting.take();
                waiting.map(|content| state.write(content)).transpose()
            });
            match written {
                Ok(Some(())) => {}
                Ok(None) => {
                    state.syncing = false;
                    return;
                }
                Err(failure) => {
                    state.failure = Some(failure);
                    state.syncing = false;
                    return;
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn write(&self, content: Slot) -> io::Result<()> {
        let file = self.file.as_deref();
        let mut file = file.ok_or_else(|| io::Error::other("not created yet"))?;
        file.seek(SeekFrom::Start(self.next * SLOT_STEP))?;
        file.write_all(&content)
    }
}

/// Written under another name and renamed, so that a crash leaves the old file or the new one.
fn replace(path: &Path, content: Slot) -> io::Result<File> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let mut file = private_file().open(&name)?;
    file.set_len(0)?;
    // Its full length from the beginning: a later sync has only bytes to make durable.
    file.set_len(2 * SLOT_STEP)?;
    for at in 0..2 {
        file.seek(SeekFrom::Start(at * SLOT_STEP))?;
        let mut page = content.to_vec();
        page.resize(usize::try_from(SLOT_STEP).expect("a page is small"), 0);
        file.write_all(&page)?;
    }
    file.sync_all()?;
    std::fs::rename(&name, path)?;
    File::open(directory(path))?.sync_all()?;
    Ok(file)
}

fn read_up_to(file: &mut File, slot: &mut Slot) -> io::Result<()> {
    let mut read = Vec::with_capacity(slot.len());
    file.take(slot.len() as u64).read_to_end(&mut read)?;
    slot[..read.len()].copy_from_slice(&read);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(register: &FileRegister) -> [u8; 2] {
        register.read().unwrap().unwrap().map(|slot| slot[0])
    }

    #[test]
    fn slots_are_written_in_turn() {
        let directory = tempfile::tempdir().unwrap();
        let register = FileRegister::new(directory.path().join("register"));
        assert_eq!(register.read().unwrap(), None);
        register.replace([1; REGISTER_BYTES]).unwrap();
        assert_eq!(slots(&register), [1, 1]);
        for (content, expected) in [(2, [2, 1]), (3, [2, 3]), (4, [4, 3])] {
            register.set([content; REGISTER_BYTES]).unwrap();
            assert_eq!(slots(&register), expected);
        }
    }

    #[test]
    fn while_a_sync_runs_only_the_newest_content_waits() {
        let directory = tempfile::tempdir().unwrap();
        let register = FileRegister::new(directory.path().join("register"));
        register.replace([1; REGISTER_BYTES]).unwrap();
        // As after a write whose sync has not finished.
        register.0.state().write([2; REGISTER_BYTES]).unwrap();
        register.0.state().syncing = true;
        for content in [3, 4] {
            register.set([content; REGISTER_BYTES]).unwrap();
            assert_eq!(slots(&register), [2, 1], "one slot stays whole");
        }
        register.0.sync();
        assert_eq!(slots(&register), [2, 4]);
    }

    #[test]
    fn a_short_file_reads_as_zeros_and_an_unusable_one_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("register");
        std::fs::write(&path, [7; 10]).unwrap();
        let [first, second] = FileRegister::new(path.clone()).read().unwrap().unwrap();
        assert_eq!(
            (&first[..11], second),
            (&[7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0][..], [0; 64])
        );
        let below = path.join("below");
        let error = FileRegister::new(below.clone()).replace(first).unwrap_err();
        assert!(
            error.to_string().contains(&below.display().to_string()),
            "{error}"
        );
    }
}
