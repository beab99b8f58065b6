//! Which tokens calls on this member have presented since the event loop last asked. Calls write, the event loop takes;
//! neither waits.

use crate::state::TokenKey;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Each token once, however often it was used; only tokens that were found alive come here, so there are never many more
/// than there are tokens.
#[derive(Debug, Default)]
pub(super) struct TokenUses(Mutex<BTreeSet<TokenKey>>);

impl TokenUses {
    /// A call has used the token.
    pub(super) fn note(&self, key: TokenKey) {
        self.used().insert(key);
    }

    /// The tokens used since the last time.
    pub(super) fn take(&self) -> BTreeSet<TokenKey> {
        std::mem::take(&mut self.used())
    }

    fn used(&self) -> MutexGuard<'_, BTreeSet<TokenKey>> {
        // An insertion that panicked has left the set as it was, or with the token in it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
