//! Who asks: from the token that a call presents to the [`Caller`] that its log entry carries, or that its read is
//! decided for. What the caller may do is decided in `state`.
//!
//! A token's text ends with the log index of its login, so a member that has not applied that index yet knows that it
//! has to catch up first: it never calls a token invalid merely because it lags.

use super::Api;
use super::call::Call;
use super::error::ApiError;
use crate::credential::simple_token;
use crate::node::{NodeError, View};
use crate::observer::Observed;
use crate::planted::{Bug, planted};
use crate::state::{ApplyError, Caller, Credential, Identity};
use std::sync::Arc;
use tokio::time::Instant;

/// Calls that may wait at the same time for their tokens' logins. The index in a token is the client's word, so waiting
/// must be bounded; the number is far above what lagging members of a healthy cluster see.
pub(super) const TOKEN_WAITERS_MAX: usize = 1024;

/// A caller, with the view in which its credential was found good.
pub(super) struct Resolved {
    /// Who asks.
    pub(super) caller: Caller,
    /// Never older than the view that resolution started from.
    pub(super) view: Arc<View>,
}

impl Api {
    /// Finds out who asks, in `view` or a later one.
    ///
    /// # Errors
    /// [`ApplyError::InvalidAuthToken`] for a bad token while auth is on; [`NodeError`] when the member has to catch up
    /// and does not in time.
    pub(super) async fn resolve(&self, call: &Call, view: Arc<View>) -> Result<Resolved, ApiError> {
        let Some(text) = call.token() else {
            return Ok(Resolved {
                caller: Caller::ANONYMOUS,
                view,
            });
        };
        let Some(key) = simple_token::parse(text) else {
            return self.without_token(call, view);
        };
        let awaited = if planted(Bug::TokenActivationLag) {
            key.index.saturating_sub(1)
        } else {
            key.index
        };
        let view = if awaited <= view.state.meta().applied_index {
            view
        } else {
            // Also while auth is off here: it may be the enabling that this member has not applied yet.
            match self.catch_up(awaited, call.deadline()).await? {
                Some(newer) => newer,
                None => return self.without_token(call, view),
            }
        };
        let Some(record) = view.state.token(&key) else {
            return self.without_token(call, view);
        };
        call.acts_for(&record.user);
        self.node.token_used(key);
        let identity = Identity::User(
            record.user.clone(),
            Credential::SimpleToken(key, record.epoch),
        );
        let caller = Caller {
            identity,
            auth_revision: view.state.auth_revision(),
        };
        Ok(Resolved { caller, view })
    }

    /// What a token that names nobody means: nothing while auth is off, a refusal while it is on.
    fn without_token(&self, call: &Call, view: Arc<View>) -> Result<Resolved, ApiError> {
        if view.state.auth_enabled() {
            self.served(call, &view);
            return Err(ApplyError::InvalidAuthToken.into());
        }
        Ok(Resolved {
            caller: Caller::ANONYMOUS,
            view,
        })
    }

    /// A view that includes `index`, or `None` if the cluster has not come that far, so that nothing can have been
    /// issued there.
    async fn catch_up(
        &self,
        index: u64,
        deadline: Instant,
    ) -> Result<Option<Arc<View>>, NodeError> {
        let newest = self.node.view();
        if index <= newest.state.meta().applied_index {
            return Ok(Some(newest));
        }
        let _waiter = self
            .token_waiters
            .try_acquire()
            .map_err(|_| NodeError::TooManyRequests)?;
        if index > self.node.read_index(deadline).await? {
            return Ok(None);
        }
        self.node.wait_applied(index, deadline).await.map(Some)
    }

    /// Tells the observer that a call is decided in `view`.
    pub(super) fn served(&self, call: &Call, view: &View) {
        let index = view.state.meta().applied_index;
        self.node.observer().observe(Observed::Served {
            call: call.id(),
            index,
        });
    }
}
