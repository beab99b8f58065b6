//! The login: a password is compared outside the log, so the log decides whether the comparison still counts.
//!
//! 1. A barrier, so that what is compared with is not older than the call.
//! 2. The user's epoch is remembered together with the hash; then the slow comparison runs.
//! 3. `Authenticate` is proposed with that epoch. Apply issues a token only if the epoch is still the same; else it
//!    answers "again" and leaves nothing behind, and the login starts over.
//! 4. A wrong password is final only if, after another barrier, the epoch has not moved.
//!
//! An unknown user and a wrong password give the same answer at the same cost.

use super::simple_token::Prefix;
use crate::node::{Node, NodeError, Outcome, View};
use crate::observer::Observed;
use crate::planted::{Bug, planted};
use crate::platform::passwords::{PasswordError, Passwords, Secret};
use crate::state::{
    ApplyError, Authenticate, Caller, Command, LoginRecord, Op, Response, UserName,
};
use crate::window::{self, Window};
use std::sync::Arc;
use tokio::time::Instant;

/// Comparisons before a login gives up. Each further one means that this very user's password changed during the one
/// before, so nobody with a settled password ever comes near.
const ROUNDS_MAX: usize = 8;

/// A login that succeeded.
pub(crate) struct Login {
    /// The whole token, for the client alone.
    pub(crate) token: String,
    /// What became of the entry that issued it.
    pub(crate) outcome: Outcome,
}

/// Why a login gave no token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LoginError {
    /// The login was refused.
    #[error(transparent)]
    Refused(#[from] ApplyError),
    /// The cluster did not answer.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The password could not be compared.
    #[error(transparent)]
    Password(#[from] PasswordError),
    /// The user's password changed during every one of [`ROUNDS_MAX`] comparisons.
    #[error("the password changed during every comparison")]
    Contended,
}

/// One call of Authenticate.
pub(crate) struct Attempt<'a> {
    /// The member that took it.
    pub(crate) node: &'a Node,
    /// Its workers.
    pub(crate) passwords: &'a Passwords,
    /// Who logs in.
    pub(crate) user: &'a UserName,
    /// With what.
    pub(crate) password: Secret,
    /// The client's request id, for the observer.
    pub(crate) call: &'a str,
    /// When the client is told that it took too long.
    pub(crate) deadline: Instant,
}

impl Attempt<'_> {
    /// Compares and proposes until one of the two is final.
    ///
    /// # Errors
    /// [`LoginError`]: see its variants.
    pub(crate) async fn run(self) -> Result<Login, LoginError> {
        for _ in 0..ROUNDS_MAX {
            if let Some(login) = self.round().await? {
                return Ok(login);
            }
        }
        Err(LoginError::Contended)
    }

    /// One comparison; `None` when the user changed meanwhile and nothing was decided.
    async fn round(&self) -> Result<Option<Login>, LoginError> {
        let view = self.current_view().await?;
        let record = self.record(&view)?;
        if record.as_ref().is_some_and(|record| record.no_password) {
            return Err(self.refuse(&view, ApplyError::NoPasswordUser));
        }
        let hash = record
            .as_ref()
            .map(|record| &record.password)
            .filter(|hash| !hash.0.is_empty());
        let compared = self
            .passwords
            .matches(self.password.clone(), hash, self.deadline);
        let matches = compared.await?;
        let epoch = if planted(Bug::AuthnChangepwToctouC) {
            self.node
                .view()
                .state
                .login_record(self.user)
                .map(|record| record.epoch)
        } else {
            record.map(|record| record.epoch)
        };
        if let (true, Some(epoch)) = (matches, epoch) {
            return self.issue(epoch).await;
        }
        let view = self.current_view().await?;
        if self.record(&view)?.map(|record| record.epoch) == epoch {
            return Err(self.refuse(&view, ApplyError::AuthFailed));
        }
        Ok(None)
    }

    /// Lets the log decide whether a matching password gives a token.
    async fn issue(&self, epoch: u64) -> Result<Option<Login>, LoginError> {
        window::pass(Window::PasswordCheckedToProposed, self.node.member_id()).await;
        let prefix = Prefix::draw();
        let request_id = self.node.next_request_id();
        let op = Op::Authenticate(Authenticate {
            user: self.user.clone(),
            epoch,
            kind: self.node.config().token_kind,
            prefix_hash: prefix.hash(),
            limits: self.node.config().token_limits,
        });
        let command = Command {
            request_id,
            caller: Caller::ANONYMOUS,
            op,
        };
        self.node.observer().observe(Observed::Proposed {
            call: self.call,
            request_id,
        });
        let outcome = self.node.propose(command, self.deadline).await?;
        match &outcome.result {
            Ok(Response::AuthenticateAgain) => Ok(None),
            Ok(Response::Authenticated(key)) => {
                assert_eq!(
                    key.prefix_hash,
                    prefix.hash(),
                    "an entry issues the token it asked for"
                );
                let token = prefix.token(key.index);
                Ok(Some(Login { token, outcome }))
            }
            Ok(other) => unreachable!("a login was answered with {other:?}"),
            Err(refused) => Err(refused.clone().into()),
        }
    }

    /// A view that is not older than this call.
    async fn current_view(&self) -> Result<Arc<View>, NodeError> {
        if planted(Bug::AuthnChangepwToctouB) {
            return Ok(self.node.view());
        }
        self.node.barrier(self.deadline).await
    }

    /// What the view knows of the user; `None` for an unknown one.
    fn record(&self, view: &View) -> Result<Option<LoginRecord>, LoginError> {
        if !view.state.auth_enabled() && !planted(Bug::DisableKeepsTokensB) {
            return Err(self.refuse(view, ApplyError::AuthNotEnabled));
        }
        Ok(view.state.login_record(self.user))
    }

    /// A refusal that `view` decides.
    fn refuse(&self, view: &View, refusal: ApplyError) -> LoginError {
        let index = view.state.meta().applied_index;
        self.node.observer().observe(Observed::Served {
            call: self.call,
            index,
        });
        LoginError::Refused(refusal)
    }
}
