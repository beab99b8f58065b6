//! What keeps a panic inside redb from going further. redb asserts what a damaged page breaks, in reads and in drops as
//! well as in commits; for a member that is one more way of finding its store corrupt.

use super::StorageError;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// How the store is; clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Health(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// redb has panicked: what it holds in memory may contradict itself.
    given_up: AtomicBool,
    failure: Mutex<Option<StorageError>>,
    reported: Notify,
}

impl Health {
    /// Does `work` on the database. Once that has panicked, nothing is done any more: redb's locks may be poisoned and its
    /// one write transaction open for ever, and what it would still write is worth nothing.
    ///
    /// # Errors
    /// Those of `work`, and [`StorageError::Corrupt`] for a panic.
    pub(super) fn guard<T>(
        &self,
        work: impl FnOnce() -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        if self.has_given_up() {
            return Err(StorageError::corrupt("redb has given up on it before"));
        }
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
            self.0.given_up.store(true, Ordering::Release);
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            let what = format!("redb gave up on it: {}", text.unwrap_or("no reason given"));
            Err(StorageError::corrupt(what))
        })
    }

    /// Whether redb has panicked.
    pub(super) fn has_given_up(&self) -> bool {
        self.0.given_up.load(Ordering::Acquire)
    }

    /// Says that a reader met `failure`, for whoever can stop the member. The first one counts.
    pub(super) fn report(&self, failure: StorageError) {
        self.failure().get_or_insert(failure);
        self.0.reported.notify_one();
    }

    /// What a reader met since the last call.
    pub(super) fn take_failure(&self) -> Option<StorageError> {
        self.failure().take()
    }

    /// Resolves once a reader has met a failure.
    pub(super) async fn failed(&self) {
        self.0.reported.notified().await;
    }

    fn failure(&self) -> std::sync::MutexGuard<'_, Option<StorageError>> {
        self.0
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something of redb's whose drop may panic, and may not.
pub(super) struct Guarded<T>(Option<T>);

impl<T> Guarded<T> {
    pub(super) fn new(inner: T) -> Guarded<T> {
        Guarded(Some(inner))
    }

    /// Gives it out of the guard.
    pub(super) fn into_inner(mut self) -> T {
        self.0.take().expect("nobody else takes it")
    }
}

impl<T> Deref for Guarded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("only `into_inner` takes it")
    }
}

impl<T> DerefMut for Guarded<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("only `into_inner` takes it")
    }
}

impl<T> Drop for Guarded<T> {
    fn drop(&mut self) {
        let inner = self.0.take();
        // What it wanted to clean up is found again when the store is opened next.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(inner)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_panic_nothing_is_done_any_more() {
        let health = Health::default();
        assert_eq!(health.guard(|| Ok(1)).unwrap(), 1);
        let broken = health.guard::<()>(|| panic!("page {}", 7)).unwrap_err();
        assert_eq!(
            broken.to_string(),
            "the store is corrupt: redb gave up on it: page 7"
        );
        assert!(health.guard(|| Ok(1)).is_err());
    }

    #[test]
    fn a_drop_that_panics_goes_no_further() {
        struct Sore;
        impl Drop for Sore {
            fn drop(&mut self) {
                panic!("in a drop");
            }
        }
        drop(Guarded::new(Sore));
    }
}
