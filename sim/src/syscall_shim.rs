//! Catches the one way to the operating system's randomness that the simulated runtime does not: some crates (getrandom
//! 0.2, through which raft draws its election timeouts) make the system call themselves, by libc's `syscall`. This
//! definition stands before libc's and hands such a call to `getrandom`, which the simulated runtime does replace; any
//! other call goes on to libc. Tested on x86-64 Linux: it relies on a variadic function being callable with integers in
//! fixed places, which that platform's calling convention grants.

#![expect(
    unsafe_code,
    reason = "a symbol of libc is replaced, which cannot be said in safe Rust"
)]

use std::ffi::{c_int, c_long, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

unsafe extern "C" {
    fn getrandom(buffer: *mut c_void, length: usize, flags: u32) -> isize;
}

type Syscall =
    unsafe extern "C" fn(c_long, c_long, c_long, c_long, c_long, c_long, c_long) -> c_long;

/// libc's own `syscall`, once looked up.
static REAL: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Stands before libc's `syscall`.
///
/// # Safety
/// As for libc's: the arguments must be what the system call `number` expects.
#[unsafe(no_mangle)]
#[inline(never)]
unsafe extern "C" fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    if number == libc::SYS_getrandom {
        let (Ok(length), Ok(flags)) = (usize::try_from(b), u32::try_from(c)) else {
            return fail(libc::EINVAL);
        };
        // SAFETY: the caller gives a buffer of `length` bytes, as the system call demands.
        return unsafe { getrandom(a as *mut c_void, length, flags) } as c_long;
    }
    let mut real = REAL.load(Ordering::Relaxed);
    if real.is_null() {
        // SAFETY: the name is a terminated string; the next definition after this one is libc's.
        real = unsafe { libc::dlsym(libc::RTLD_NEXT, c"syscall".as_ptr()) };
        if real.is_null() {
            return fail(libc::ENOSYS);
        }
        REAL.store(real, Ordering::Relaxed);
    }
    // SAFETY: `real` is libc's `syscall`, which takes its arguments in these places (see the module's header).
    unsafe { std::mem::transmute::<*mut c_void, Syscall>(real)(number, a, b, c, d, e, f) }
}

fn fail(error: c_int) -> c_long {
    // SAFETY: the location of `errno` is valid for the thread that asks.
    unsafe { *libc::__errno_location() = error };
    -1
}

/// Makes sure that the definition above is part of the program. Call it before the first simulation.
pub fn install() {
    std::hint::black_box(syscall as *const ());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direct_system_call_draws_from_the_simulation() {
        let draw = |seed| {
            let run = move || {
                let runtime =
                    madsim::runtime::Runtime::with_seed_and_config(seed, madsim::Config::default());
                runtime.block_on(async {
                    let mut bytes = [0_u8; 8];
                    // SAFETY: the buffer is as long as said.
                    let got = unsafe {
                        libc::syscall(
                            libc::SYS_getrandom,
                            bytes.as_mut_ptr(),
                            bytes.len() as c_long,
                            0 as c_long,
                        )
                    };
                    (got, bytes)
                })
            };
            std::thread::spawn(run).join().unwrap()
        };
        install();
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert_eq!(draw(1).0, 8);
    }
}
