//! Password workers: bcrypt is slow on purpose, so only a few hashes are computed at a time and only so many callers may
//! wait. A real server computes on blocking threads at the configured cost. A simulation computes the real algorithm at
//! its lowest cost, inline, behind a virtual delay as long as a real comparison, so that races keep their true width.
//!
//! A password that enters here never comes out again: not in an error, not in a log line.

use crate::state::PasswordHash;
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

/// bcrypt uses the first 72 bytes of its input. A longer password is refused when it is set (etcd's bcrypt does the
/// same) and matches nothing when it is presented.
const PASSWORD_BYTES_MAX: usize = 72;

/// Callers that may wait for one worker. At the default cost a worker serves about a dozen callers a second, so whoever
/// stands further back would not be served within the seven seconds of a request anyway.
const WAITING_PER_WORKER_MAX: usize = 64;

/// A password as a client sent it. Its `Debug` form is a placeholder.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Takes a password out of a request.
    pub fn new(text: String) -> Secret {
        Secret(text)
    }

    /// Whether there is no text at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Whether part of the password would be ignored by bcrypt.
    fn is_too_long(&self) -> bool {
        self.0.len() > PASSWORD_BYTES_MAX
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(redacted)")
    }
}

/// Why a password was neither hashed nor compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    /// Longer than bcrypt takes.
    #[error("bcrypt: password length exceeds 72 bytes")]
    TooLong,
    /// Too many callers wait already.
    #[error("too many requests")]
    TooManyRequests,
    /// No worker was done in time.
    #[error("request timed out")]
    Timeout,
    /// The operating system gave no randomness for a salt, or a worker died.
    #[error("password worker failed: {0}")]
    Worker(String),
}

/// A member's password workers; clones share them.
#[derive(Clone)]
pub struct Passwords {
    shared: Arc<Shared>,
}

struct Shared {
    /// bcrypt cost of new hashes, and of comparisons that only keep up appearances.
    cost: u32,
    /// One permit for each worker.
    workers: Arc<Semaphore>,
    /// One permit for each caller, working or waiting.
    callers: Semaphore,
    /// What a password is compared with when there is nothing to compare it with: right form, configured cost, a digest
    /// that no known password has.
    decoy: String,
}

impl Passwords {
    /// `workers` hashes at a time (at least one), new ones at bcrypt's `cost` (4 to 31; a simulation uses 4 whatever is
    /// asked).
    pub fn new(cost: u32, workers: usize) -> Passwords {
        let cost = world::cost(cost);
        let workers = workers.max(1);
        let callers = workers
            .saturating_mul(1 + WAITING_PER_WORKER_MAX)
            .min(Semaphore::MAX_PERMITS);
        // 22 characters of salt and 31 of digest, in bcrypt's own alphabet.
        let decoy = format!("$2b${cost:02}$gatehousegatehousegatenosuchpasswordnosuchpasswordnoO");
        Passwords {
            shared: Arc::new(Shared {
                cost,
                workers: Arc::new(Semaphore::new(workers.min(Semaphore::MAX_PERMITS))),
                callers: Semaphore::new(callers),
                decoy,
            }),
        }
    }

    /// What to store for `password`.
    ///
    /// # Errors
    /// [`PasswordError::TooLong`] above 72 bytes, [`PasswordError::TooManyRequests`] when too many callers wait,
    /// [`PasswordError::Timeout`] when it is not done at `deadline`.
    pub async fn hash(
        &self,
        password: Secret,
        deadline: Instant,
    ) -> Result<PasswordHash, PasswordError> {
        if password.is_too_long() {
            return Err(PasswordError::TooLong);
        }
        let cost = self.shared.cost;
        let hash = self
            .work(deadline, move || bcrypt::hash(password.bytes(), cost))
            .await?;
        let hash = hash.map_err(|error| PasswordError::Worker(error.to_string()))?;
        Ok(PasswordHash(Bytes::from(hash.into_bytes())))
    }

    /// Whether `password` is the one behind `hash`. Without a usable hash the answer is no, at the cost of a comparison:
    /// how long it takes must not tell whether a user exists or has a password.
    ///
    /// # Errors
    /// [`PasswordError::TooManyRequests`] when too many callers wait, [`PasswordError::Timeout`] when it is not
    /// done at `deadline`.
    pub async fn matches(
        &self,
        password: Secret,
        hash: Option<&PasswordHash>,
        deadline: Instant,
    ) -> Result<bool, PasswordError> {
        let stored = hash.and_then(usable);
        let possible = stored.is_some() && !password.is_too_long();
        let against = stored.unwrap_or_else(|| self.shared.decoy.clone());
        let equal = self
            .work(deadline, move || bcrypt::verify(password.bytes(), &against))
            .await?;
        let equal = equal.map_err(|error| PasswordError::Worker(error.to_string()))?;
        Ok(equal && possible)
    }

    /// Runs `job` on a worker.
    async fn work<T: Send + 'static>(
        &self,
        deadline: Instant,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PasswordError> {
        let _caller = self
            .shared
            .callers
            .try_acquire()
            .map_err(|_| PasswordError::TooManyRequests)?;
        let workers = Arc::clone(&self.shared.workers);
        let done = async {
            let worker = workers.acquire_owned().await;
            world::run(
                worker.map_err(|error| PasswordError::Worker(error.to_string()))?,
                job,
            )
            .await
        };
        let left = deadline.saturating_duration_since(Instant::now());
        timeout(left, done)
            .await
            .map_err(|_| PasswordError::Timeout)?
    }
}

/// The text of a stored hash if bcrypt can compare with it. An administrator may have sent anything as a hash.
fn usable(hash: &PasswordHash) -> Option<String> {
    let text = std::str::from_utf8(&hash.0).ok()?;
    let parts: bcrypt::HashParts = text.parse().ok()?;
    (4..=31)
        .contains(&parts.get_cost())
        .then(|| text.to_owned())
}

#[cfg(not(madsim))]
mod world {
    use super::{OwnedSemaphorePermit, PasswordError};

    pub(super) fn cost(configured: u32) -> u32 {
        configured
    }

    /// The permit travels with the job: a caller that goes away cannot stop a running hash, so its worker is not free.
    pub(super) async fn run<T: Send + 'static>(
        worker: OwnedSemaphorePermit,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PasswordError> {
        let task = tokio::task::spawn_blocking(move || {
            let done = job();
            drop(worker);
            done
        });
        task.await
            .map_err(|error| PasswordError::Worker(error.to_string()))
    }
}

#[cfg(madsim)]
mod world {
    use super::{OwnedSemaphorePermit, PasswordError};
    use crate::platform::random_bytes;
    use std::time::Duration;

    /// bcrypt's lowest cost: still the real algorithm and a real salt, in about a millisecond.
    pub(super) fn cost(_configured: u32) -> u32 {
        4
    }

    /// Holds the worker for 80 to 120 ms of virtual time, which is what a comparison at the default cost takes.
    pub(super) async fn run<T>(
        worker: OwnedSemaphorePermit,
        job: impl FnOnce() -> T,
    ) -> Result<T, PasswordError> {
        let drawn = u64::from(u16::from_le_bytes(random_bytes::<2>()));
        tokio::time::sleep(
            Duration::from_millis(80) + Duration::from_micros(drawn * 40_000 / 65_536),
        )
        .await;
        let done = job();
        drop(worker);
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Secret {
        Secret::new(text.to_owned())
    }

    fn stored(text: &str) -> PasswordHash {
        PasswordHash(Bytes::copy_from_slice(text.as_bytes()))
    }

    /// Long enough for any hash here.
    fn soon() -> Instant {
        Instant::now() + std::time::Duration::from_secs(60)
    }

    /// Runs `story` in the world of this build.
    fn block_on(story: impl Future<Output = ()> + 'static) {
        #[cfg(madsim)]
        madsim::runtime::Runtime::with_seed_and_config(1, madsim::Config::default())
            .block_on(story);
        #[cfg(not(madsim))]
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(story);
    }

    #[test]
    fn a_hash_matches_its_password_and_no_other() {
        block_on(async {
            let passwords = Passwords::new(4, 2);
            for (set, presented, expected) in [
                ("right", "right", true),
                ("right", "wrong", false),
                ("right", "", false),
                ("", "", true),
                ("with\0zero", "with", false),
            ] {
                let hash = passwords.hash(secret(set), soon()).await.unwrap();
                let answer = passwords
                    .matches(secret(presented), Some(&hash), soon())
                    .await;
                assert_eq!(answer, Ok(expected), "{set:?} presented as {presented:?}");
            }
        });
    }

    #[test]
    fn without_a_usable_hash_nothing_matches() {
        block_on(async {
            let passwords = Passwords::new(4, 2);
            assert_eq!(passwords.matches(secret(""), None, soon()).await, Ok(false));
            for text in [
                "",
                "plain",
                "$2b$99$gatehousegatehousegatenosuchpasswordnosuchpasswordnoO",
            ] {
                assert_eq!(
                    passwords
                        .matches(secret(text), Some(&stored(text)), soon())
                        .await,
                    Ok(false),
                    "{text:?}"
                );
            }
        });
    }

    #[test]
    fn the_decoy_is_a_comparison_at_the_configured_cost() {
        let passwords = Passwords::new(4, 1);
        let parts: bcrypt::HashParts = passwords.shared.decoy.parse().unwrap();
        assert_eq!(parts.get_cost(), 4);
    }

    #[test]
    fn hashes_of_other_programs_are_accepted() {
        block_on(async {
            let passwords = Passwords::new(4, 1);
            let own = passwords.hash(secret("pass"), soon()).await.unwrap();
            let own = String::from_utf8(own.0.to_vec()).unwrap();
            for version in ["$2a$", "$2b$", "$2y$"] {
                let theirs = own.replacen("$2b$", version, 1);
                assert_eq!(
                    passwords
                        .matches(secret("pass"), Some(&stored(&theirs)), soon())
                        .await,
                    Ok(true),
                    "{version}"
                );
            }
        });
    }

    #[test]
    fn what_bcrypt_would_ignore_is_refused() {
        block_on(async {
            let passwords = Passwords::new(4, 1);
            let longest = "x".repeat(72);
            let hash = passwords.hash(secret(&longest), soon()).await.unwrap();
            assert_eq!(
                passwords
                    .matches(secret(&longest), Some(&hash), soon())
                    .await,
                Ok(true)
            );
            let longer = "x".repeat(73);
            assert_eq!(
                passwords.hash(secret(&longer), soon()).await,
                Err(PasswordError::TooLong)
            );
            assert_eq!(
                passwords
                    .matches(secret(&longer), Some(&hash), soon())
                    .await,
                Ok(false)
            );
        });
    }

    #[test]
    fn callers_beyond_the_limit_are_refused_at_once() {
        block_on(async {
            let passwords = Passwords::new(4, 1);
            let all = u32::try_from(1 + WAITING_PER_WORKER_MAX).unwrap();
            let crowd = passwords.shared.callers.try_acquire_many(all).unwrap();
            let refused = passwords.matches(secret("x"), None, soon()).await;
            assert_eq!(refused, Err(PasswordError::TooManyRequests));
            drop(crowd);
            assert_eq!(
                passwords.matches(secret("x"), None, soon()).await,
                Ok(false)
            );
        });
    }

    #[test]
    fn no_caller_waits_longer_than_it_wants_to() {
        block_on(async {
            let passwords = Passwords::new(4, 1);
            let busy = Arc::clone(&passwords.shared.workers).acquire_owned().await;
            let deadline = Instant::now() + std::time::Duration::from_millis(20);
            let late = passwords.matches(secret("x"), None, deadline).await;
            assert_eq!(late, Err(PasswordError::Timeout));
            drop(busy);
        });
    }

    #[test]
    fn a_secret_does_not_show_in_debug_output() {
        assert_eq!(format!("{:?}", secret("hunter2")), "Secret(redacted)");
    }
}
