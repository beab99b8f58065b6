//! Opens a file that a person named. Only a file: whoever opens a FIFO waits until somebody else opens its other end,
//! perhaps for ever, and a device may have no end.

use std::fs::{File, FileType};
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// Opens the file at `path` for reading. What the shell has opened already (`/dev/stdin`, `/dev/fd/63` of `<(…)`) may be
/// of any kind: somebody stands at the other end.
///
/// # Errors
/// The system's, or that this is no file, and what it is.
pub fn open(path: &Path) -> io::Result<File> {
    let kind = std::fs::metadata(path)?.file_type();
    match other_than_a_file(kind) {
        Some(what) if !is_open_already(path) => {
            let what = format!("{what}, not a file");
            Err(io::Error::new(io::ErrorKind::InvalidInput, what))
        }
        _ => File::open(path),
    }
}

fn other_than_a_file(kind: FileType) -> Option<&'static str> {
    let kinds = [
        (kind.is_dir(), "a directory"),
        (kind.is_fifo(), "a FIFO"),
        (kind.is_socket(), "a socket"),
        (kind.is_char_device() || kind.is_block_device(), "a device"),
    ];
    kinds.into_iter().find_map(|(is, what)| is.then_some(what))
}

fn is_open_already(path: &Path) -> bool {
    let places = ["/dev/stdin", "/dev/fd", "/proc/self/fd"];
    places.iter().any(|place| path.starts_with(place))
}
