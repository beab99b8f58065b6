//! A value that one side sets and many wait for.
//!
//! Stands in for tokio's `watch`, which spreads its waiters over eight lists by a generator that is seeded from a counter of
//! the whole process: with two waiters, the order in which they wake, and so a whole simulation, would depend on what
//! other simulations the process has run. Here waiters wake in the order in which they began to wait.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The side that sets the value. When it is dropped, whoever waits is told that nothing will come.
#[derive(Debug)]
pub struct Setter<T>(Arc<Shared<T>>);

/// The side that reads the value and waits for it; clones watch the same value.
#[derive(Debug)]
pub struct Watched<T>(Arc<Shared<T>>);

#[derive(Debug)]
struct Shared<T> {
    value: Mutex<T>,
    closed: AtomicBool,
    changed: Notify,
}

/// A value to watch, and the side that sets it.
pub fn watched<T: Clone>(value: T) -> (Setter<T>, Watched<T>) {
    let shared = Arc::new(Shared {
        value: Mutex::new(value),
        closed: AtomicBool::new(false),
        changed: Notify::new(),
    });
    (Setter(Arc::clone(&shared)), Watched(shared))
}

impl<T> Setter<T> {
    /// Sets the value and wakes everyone who waits.
    pub fn set(&self, value: T) {
        // The old value is dropped after the lock is free: that may be a lot of work.
        let old = std::mem::replace(&mut *self.0.value(), value);
        self.0.changed.notify_waiters();
        drop(old);
    }
}

impl<T: Clone> Setter<T> {
    /// Another reader of the value.
    pub fn watched(&self) -> Watched<T> {
        Watched(Arc::clone(&self.0))
    }
}

impl<T> Drop for Setter<T> {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::Release);
        self.0.changed.notify_waiters();
    }
}

impl<T> Shared<T> {
    fn value(&self) -> MutexGuard<'_, T> {
        // Nothing panics while it holds the lock but a caller's clone, which leaves the value whole.
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for Watched<T> {
    fn clone(&self) -> Self {
        Watched(Arc::clone(&self.0))
    }
}

impl<T: Clone> Watched<T> {
    /// The value now.
    pub fn get(&self) -> T {
        self.0.value().clone()
    }

    /// The first value, from now on, of which `enough` says so; `None` if the setter is gone before.
    pub async fn wait_for(&self, mut enough: impl FnMut(&T) -> bool) -> Option<T> {
        loop {
            let mut changed = pin!(self.0.changed.notified());
            // In line before looking, so that a change between the look and the wait is not missed.
            changed.as_mut().enable();
            // Read before the value: a setter that set the last value and left must not seem to have left without it.
            let closed = self.0.closed.load(Ordering::Acquire);
            {
                let value = self.0.value();
                if enough(&value) {
                    return Some(value.clone());
                }
            }
            if closed {
                return None;
            }
            changed.await;
        }
    }
}

#[cfg(test)]
#[cfg(madsim)]
mod tests {

    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    #[madsim::test]
    async fn waiters_get_the_value_or_learn_that_none_will_come() {
        let (setter, value) = watched(1);
        assert_eq!(value.wait_for(|value| *value == 1).await, Some(1));
        let waiting = tokio::spawn({
            let value = value.clone();
            async move { value.wait_for(|value| *value >= 3).await }
        });
        tokio::time::sleep(Duration::from_millis(5)).await;
        setter.set(2);
        tokio::time::sleep(Duration::from_millis(5)).await;
        setter.set(3);
        assert_eq!(waiting.await.unwrap(), Some(3));
        drop(setter);
        assert_eq!(
            (value.get(), value.wait_for(|value| *value == 4).await),
            (3, None)
        );
    }

    /// The order in which ten waiters wake, in a simulation of its own.
    fn order() -> Vec<u64> {
        let simulate = || {
            let runtime =
                madsim::runtime::Runtime::with_seed_and_config(7, madsim::Config::default());
            runtime.block_on(async {
                let (setter, value) = watched(false);
                let (woken, order) = mpsc::channel();
                let waiters: Vec<_> = (0..10)
                    .map(|waiter| {
                        let (value, woken) = (value.clone(), woken.clone());
                        tokio::spawn(async move {
                            value.wait_for(|value| *value).await;
                            woken.send(waiter).unwrap();
                        })
                    })
                    .collect();
                tokio::time::sleep(Duration::from_millis(5)).await;
                setter.set(true);
                for waiter in waiters {
                    waiter.await.unwrap();
                }
                order.try_iter().collect()
            })
        };
        std::thread::spawn(simulate).join().unwrap()
    }

    #[test]
    fn the_order_of_waking_depends_on_the_seed_alone() {
        let first = order();
        assert_eq!(first.len(), 10);
        for _ in 0..5 {
            assert_eq!(order(), first);
        }
    }
}
