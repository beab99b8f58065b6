//! Logins: what the edge needs to compare a password, and what the log does with the outcome. No password and no token
//! text comes here.

use super::super::LoginRecord;
use super::super::command::{Authenticate, TokenKey, TokenKind};
use super::super::effects::Effects;
use super::super::name::UserName;
use super::super::outcome::{ApplyError, Response, Write};
use super::super::record::TokenRecord;
use super::AuthStore;
use crate::planted::{Bug, planted};

impl AuthStore {
    /// What a login needs to know of a user; `None` if there is none.
    pub(in crate::state) fn login_record(&self, user: &UserName) -> Option<LoginRecord> {
        self.users.get(user).map(|record| LoginRecord {
            password: record.password.clone(),
            no_password: record.no_password,
            epoch: self.epoch(record),
        })
    }

    /// Issues a token, if the password that was compared is still the user's. The epoch says so: it moves with every
    /// password change, and with the user's deletion and creation under the same name.
    ///
    /// # Errors
    /// [`ApplyError::AuthNotEnabled`], [`ApplyError::AuthFailed`], [`ApplyError::TooManyTokens`].
    pub(in crate::state) fn authenticate(
        &mut self,
        index: u64,
        login: Authenticate,
        effects: &mut Effects,
    ) -> Result<Response, ApplyError> {
        let Authenticate {
            user: name,
            epoch: compared_epoch,
            kind,
            prefix_hash,
            limits,
        } = login;
        if !self.enabled && !planted(Bug::DisableKeepsTokensB) {
            return Err(ApplyError::AuthNotEnabled);
        }
        let user = self.users.get(&name).ok_or(ApplyError::AuthFailed)?;
        if user.no_password || user.password.0.is_empty() {
            return Err(ApplyError::AuthFailed);
        }
        let epoch = self.epoch(user);
        if compared_epoch != epoch && !planted(Bug::AuthnChangepwToctouA) {
            return Ok(Response::AuthenticateAgain);
        }
        match kind {
            // Signed where it is asked for, from what the epoch just confirmed; nothing is kept.
            TokenKind::Jwt => Ok(Response::Done),
            TokenKind::Simple => {
                self.make_room(&name, limits, effects)?;
                let key = TokenKey { index, prefix_hash };
                let record = TokenRecord {
                    user: name,
                    epoch,
                    refresh_count: 0,
                    refresh_index: index,
                };
                self.tokens.insert(key, record.clone());
                effects.writes.push(Write::Token(key, Some(record)));
                Ok(Response::Authenticated(key))
            }
        }
    }
}

#[cfg(madsim)]
#[cfg(test)]
mod tests {
    use crate::planted::{Bug, plant};
    use crate::state::folded_store::{FoldedStore, apply_as_cluster};
    use crate::state::*;

    fn apply(state: &mut State, op: Op) -> Response {
        apply_as_cluster(state, op).unwrap()
    }

    /// A login whose password was compared before it was changed.
    fn late_login() -> (State, Response) {
        let hash = |text: &'static str| PasswordHash(text.into());
        let root = UserAdd {
            name: ROOT.into(),
            password: hash("old"),
            no_password: false,
        };
        let mut state = State::restore(Image::default());
        apply(&mut state, Op::UserAdd(root));
        apply(&mut state, Op::UserGrantRole(ROOT.into(), ROOT.into()));
        apply(&mut state, Op::AuthEnable);
        let compared = state.login_record(&ROOT.into()).unwrap();
        apply(&mut state, Op::UserChangePassword(ROOT.into(), hash("new")));
        let (user, epoch, kind) = (ROOT.into(), compared.epoch, TokenKind::Simple);
        let login = Authenticate {
            user,
            epoch,
            kind,
            prefix_hash: [1; 32],
            limits: TokenLimits::default(),
        };
        let response = apply(&mut state, Op::Authenticate(login));
        (state, response)
    }

    #[test]
    fn a_password_that_changed_after_the_comparison_gives_no_token() {
        let (state, response) = late_login();
        assert_eq!(response, Response::AuthenticateAgain);
        assert!(state.image().tokens.is_empty());
    }

    #[test]
    fn a_user_without_password_cannot_log_in_whatever_hash_is_stored() {
        let password = PasswordHash("left over".into());
        let user = UserRecord {
            password,
            no_password: true,
            ..UserRecord::default()
        };
        let mut state = State::restore(Image {
            meta: Meta {
                auth_enabled: true,
                ..Meta::default()
            },
            users: [("alice".into(), user)].into(),
            ..Image::default()
        });
        let (user, kind) = ("alice".into(), TokenKind::Simple);
        let login = Authenticate {
            user,
            epoch: 0,
            kind,
            prefix_hash: [1; 32],
            limits: TokenLimits::default(),
        };
        let op = Op::Authenticate(login);
        let command = Command {
            request_id: 1,
            caller: Caller::ANONYMOUS,
            op,
        };
        let applied = state
            .apply(1, 1, Some(command), &FoldedStore::default())
            .unwrap();
        assert_eq!(applied.result, Err(ApplyError::AuthFailed));
    }

    #[test]
    fn the_planted_bug_gives_one_that_works() {
        plant(Some(Bug::AuthnChangepwToctouA));
        let (state, response) = late_login();
        plant(None);
        let Response::Authenticated(key) = response else {
            panic!("no token in {response:?}")
        };
        let epoch = state.token(&key).unwrap().epoch;
        let credential = Credential::SimpleToken(key, epoch);
        let identity = Identity::User(ROOT.into(), credential);
        let caller = Caller {
            identity,
            auth_revision: state.auth_revision(),
        };
        assert_eq!(state.check_admin(&caller), Ok(()));
    }
}
