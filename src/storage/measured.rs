//! A backend that knows how large it is without asking the disk, so that a status call never waits for one; and that writes
//! nothing any more once redb has given up on what it holds, its last words when it is dropped included.

use super::guarded::Health;
use redb::{BackendError, StorageBackend};
use std::io;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug)]
pub(super) struct Measured<B> {
    inner: B,
    size: Arc<AtomicU64>,
    health: Health,
}

impl<B: StorageBackend> Measured<B> {
    /// Wraps `inner`; the second value is its size in bytes, kept up to date.
    pub(super) fn new(inner: B, health: Health) -> io::Result<(Self, Arc<AtomicU64>)> {
        let size = Arc::new(AtomicU64::new(inner.len()?));
        Ok((
            Measured {
                inner,
                size: Arc::clone(&size),
                health,
            },
            size,
        ))
    }

    fn writable(&self) -> io::Result<&B> {
        if self.health.has_given_up() {
            return Err(io::Error::other("the store is corrupt"));
        }
        Ok(&self.inner)
    }
}

impl<B: StorageBackend> StorageBackend for Measured<B> {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.inner.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.writable()?.set_len(len)?;
        self.size.store(len, Ordering::Relaxed);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.writable()?.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.writable()?.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.inner.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.try_lock_range(start, end)
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.inner.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.query_lock_range(start, end)
    }
}
