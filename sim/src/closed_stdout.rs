//! Whether this program was started with its stdout closed (`>&-`). Rust's runtime opens `/dev/null` in place of a standard
//! stream that is closed, before `main`, so that afterwards every result can be "written". The only moment to look is
//! before that: in what the loader runs first.

#![expect(
    unsafe_code,
    reason = "the loader's list of functions and `fcntl` cannot be said in safe Rust"
)]

use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: the loader calls what stands in this section as functions of this type, and ignores its arguments to them.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: this takes no pointer and changes nothing.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    WAS_CLOSED.store(flags == -1, Ordering::Relaxed);
}

/// Whether it was.
pub(crate) fn was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}
