//! The real disk: one file, one process.

use redb::StorageBackend as _;
use redb::backends::FileBackend;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// How much of a file is looked at to see whether it is blank: redb's magic number and more.
const BEGINNING_BYTES: usize = 64;

/// Opens the file. One that is not there yet is made under another name, with its missing directories, and gets its own
/// name from [`keep`]: so a file of that name that holds nothing has been damaged, and is refused instead of being taken
/// for a new one. None but the owner may read what is made, as it holds password hashes.
pub(super) fn open(path: &Path) -> io::Result<FileBackend> {
    named(path, || {
        if path.try_exists()? {
            let backend = open_locked(path)?;
            refuse_blank(&backend)?;
            return Ok(backend);
        }
        let unfinished = unfinished(path);
        private_directory().create(directory(path))?;
        let backend = open_locked(&unfinished)?;
        // Left by a start that was cut short; nothing in it was ever acknowledged.
        backend.set_len(0)?;
        Ok(backend)
    })
}

/// Gives a file that [`open`] made its name, now that the database in it is complete; does nothing to one that has it.
pub(super) fn keep(path: &Path) -> io::Result<()> {
    named(path, || {
        if path.try_exists()? {
            return Ok(());
        }
        std::fs::rename(unfinished(path), path)?;
        // The file's name must survive a power cut, not only its bytes.
        File::open(directory(path))?.sync_all()
    })
}

pub(super) fn named<T>(path: &Path, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    act().map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

pub(super) fn directory(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

fn open_locked(path: &Path) -> io::Result<FileBackend> {
    let file = private_file().open(path)?;
    // redb locks the file as well, but only once it reads it, and it does not name it.
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => {
            io::Error::new(io::ErrorKind::ResourceBusy, "in use by another process")
        }
        TryLockError::Error(error) => error,
    })?;
    FileBackend::new(file).map_err(io::Error::other)
}

fn refuse_blank(backend: &FileBackend) -> io::Result<()> {
    let mut beginning = [0; BEGINNING_BYTES];
    let len = backend.len()?;
    let read = beginning
        .len()
        .min(usize::try_from(len).unwrap_or(usize::MAX));
    backend.read(0, &mut beginning[..read])?;
    if beginning.iter().any(|byte| *byte != 0) {
        return Ok(());
    }
    let what = format!(
        "the file has {len} bytes and begins with zeros, so it has lost what it held; restore it, or remove it and let \
         this member start anew"
    );
    Err(io::Error::new(io::ErrorKind::InvalidData, what))
}

fn private_directory() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

pub(super) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
