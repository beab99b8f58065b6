//! The real disk: one file, one process.

use redb::backends::FileBackend;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

/// Opens the file, making it and its missing directories; none but the owner may read them, as they hold password hashes.
pub(super) fn open(path: &Path) -> io::Result<FileBackend> {
    open_locked(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

fn open_locked(path: &Path) -> io::Result<FileBackend> {
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    private_directory().create(directory)?;
    let is_new = !path.exists();
    let file = private_file().open(path)?;
    // redb locks the file as well, but only once it reads it, and it does not name it.
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => {
            io::Error::new(io::ErrorKind::ResourceBusy, "in use by another process")
        }
        TryLockError::Error(error) => error,
    })?;
    if is_new {
        // The file's name must survive a power cut, not only its bytes.
        File::open(directory)?.sync_all()?;
    }
    FileBackend::new(file).map_err(io::Error::other)
}

fn private_directory() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
