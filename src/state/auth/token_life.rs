//! How simple tokens go on living, expire, and make room. There is no time here: that a token was used, or has not been
//! for long, is what entries say.

use super::super::command::{TokenKey, TokenLimits};
use super::super::effects::Effects;
use super::super::name::UserName;
use super::super::outcome::{ApplyError, Write};
use super::AuthStore;
use crate::planted::{Bug, planted};

impl AuthStore {
    /// Takes note, at log index `index`, that tokens have been used. Those that are gone stay gone.
    pub(in crate::state) fn token_refresh(
        &mut self,
        index: u64,
        keys: &[TokenKey],
        effects: &mut Effects,
    ) {
        for key in keys {
            if let Some(record) = self.tokens.refresh(key, index) {
                let record = record.clone();
                effects.writes.push(Write::Token(*key, Some(record)));
            }
        }
    }

    /// Ends tokens, but not those of which a use has been reported since they were found to be due: the count says so.
    pub(in crate::state) fn token_expire(
        &mut self,
        due: &[(TokenKey, u64)],
        effects: &mut Effects,
    ) {
        for (key, seen) in due {
            let unused = self
                .tokens
                .get(key)
                .is_some_and(|token| token.refresh_count == *seen);
            if unused || planted(Bug::TokenLifetimeA) {
                self.drop_token(key, effects);
            }
        }
    }

    /// The tokens last refreshed at `index` or before it, with their counts of reported uses; the longest unused first.
    pub(in crate::state) fn tokens_refreshed_until(
        &self,
        index: u64,
    ) -> impl Iterator<Item = (TokenKey, u64)> + use<'_> {
        let oldest = self.tokens.by_refresh();
        oldest
            .take_while(move |(_, token)| token.refresh_index <= index)
            .map(|(key, token)| (*key, token.refresh_count))
    }

    /// Makes room for one more token of `user`. A user's tokens make room for each other; those of others never do, so
    /// that no user can log another one out.
    ///
    /// # Errors
    /// [`ApplyError::TooManyTokens`]; nothing has been done then.
    pub(super) fn make_room(
        &mut self,
        user: &UserName,
        limits: TokenLimits,
        effects: &mut Effects,
    ) -> Result<(), ApplyError> {
        let (held, live) = (self.tokens.held_by(user), self.tokens.live());
        let superfluous = match limits.per_user {
            0 => 0,
            // More than one if the limit has been lowered.
            limit => (held + 1).saturating_sub(limit).min(held),
        };
        if limits.total != 0 && live - superfluous >= limits.total {
            return Err(ApplyError::TooManyTokens);
        }
        for _ in 0..superfluous {
            let least = if planted(Bug::TokenLifetimeC) {
                self.tokens.newest_of(user)
            } else {
                self.tokens.longest_unused_of(user)
            };
            self.drop_token(
                &least.expect("no more is superfluous than is held"),
                effects,
            );
        }
        Ok(())
    }

    /// Ends one token, if it lives.
    fn drop_token(&mut self, key: &TokenKey, effects: &mut Effects) {
        if self.tokens.remove(key).is_some() {
            effects.writes.push(Write::Token(*key, None));
        }
    }
}

#[cfg(madsim)]
#[cfg(test)]
mod tests {
    use crate::planted::{Bug, plant};
    use crate::state::folded_store::apply_as_cluster as apply;
    use crate::state::*;

    /// A state with auth on and three tokens of one user, of log indices 1 to 3, under a limit of three for each user.
    fn three_tokens(bug: Option<Bug>) -> State {
        plant(bug);
        let user = UserRecord {
            password: PasswordHash("hash".into()),
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
        for _ in 0..3 {
            login(&mut state);
        }
        state
    }

    fn login(state: &mut State) {
        let login = Authenticate {
            user: "alice".into(),
            epoch: 0,
            kind: TokenKind::Simple,
            prefix_hash: [1; 32],
            limits: TokenLimits {
                per_user: 3,
                total: 0,
            },
        };
        let response = apply(state, Op::Authenticate(login));
        assert!(matches!(response, Ok(Response::Authenticated(_))));
    }

    fn key(index: u64) -> TokenKey {
        TokenKey {
            index,
            prefix_hash: [1; 32],
        }
    }

    /// Log indices of the live tokens' logins, after what `bug` made of a refreshed token's late expiry and of a login
    /// beyond the limit.
    fn living(bug: Option<Bug>) -> Vec<u64> {
        let mut state = three_tokens(bug);
        apply(&mut state, Op::TokenRefresh(vec![key(1)])).unwrap();
        apply(&mut state, Op::TokenExpire(vec![(key(1), 0)])).unwrap();
        login(&mut state);
        plant(None);
        state.image().tokens.keys().map(|key| key.index).collect()
    }

    #[test]
    fn a_reported_use_outlives_an_older_expiry_and_a_login_ends_the_longest_unused() {
        assert_eq!(living(None), [1, 3, 6]);
    }

    #[test]
    fn planted_an_older_expiry_ends_a_used_token() {
        assert_eq!(living(Some(Bug::TokenLifetimeA)), [2, 3, 6]);
    }

    #[test]
    fn planted_a_login_ends_the_newest_other_token() {
        // The refreshed token is the newest in the order of use.
        assert_eq!(living(Some(Bug::TokenLifetimeC)), [2, 3, 6]);
    }
}
