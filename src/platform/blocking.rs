//! Work that holds its thread: disk commits, mostly. Password hashing has workers of its own.

/// Runs `work`, telling the runtime that this thread will be busy for a while.
///
/// In a real build the other tasks of this worker thread move elsewhere first. A simulation has one thread and no other
/// place to move to; there the work runs inline and takes no virtual time.
pub fn blocking<T>(work: impl FnOnce() -> T) -> T {
    #[cfg(not(madsim))]
    {
        use tokio::runtime::{Handle, RuntimeFlavor};
        // Only a multi-thread runtime can hand its tasks to another thread; `block_in_place` panics on any other.
        let many_threads = Handle::try_current()
            .is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
        if many_threads {
            return tokio::task::block_in_place(work);
        }
    }
    work()
}
