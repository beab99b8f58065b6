//! Live simple tokens: by key, by user, and in the order in which they were last refreshed. It knows no time: what dies
//! does so by a log entry. But log order is the order of time on every member, so whoever knows when it applied an index
//! also knows how long the tokens before it have not been refreshed.

use super::super::command::TokenKey;
use super::super::name::UserName;
use super::super::record::TokenRecord;
use imbl::{OrdMap, OrdSet};
use std::collections::BTreeMap;

/// A token's place in the order of refreshing: the log index of its last report of use, or of its login.
type Place = (u64, TokenKey);

/// The tokens. Clones share structure.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TokenTable {
    by_key: OrdMap<TokenKey, TokenRecord>,
    /// Derived from `by_key`: the longest unused first.
    by_refresh: OrdSet<Place>,
    /// Derived from `by_key`: the longest unused first; no entry for a user without tokens.
    by_user: OrdMap<UserName, OrdSet<Place>>,
}

impl TokenTable {
    /// Builds the table from stored tokens.
    pub(super) fn restore(tokens: BTreeMap<TokenKey, TokenRecord>) -> TokenTable {
        let mut table = TokenTable::default();
        for (key, record) in tokens {
            table.insert(key, record);
        }
        table
    }

    /// Every token, in the order of logins.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (&TokenKey, &TokenRecord)> {
        self.by_key.iter()
    }

    /// Every token, the longest unused first.
    pub(super) fn by_refresh(&self) -> impl Iterator<Item = (&TokenKey, &TokenRecord)> {
        self.by_refresh.iter().map(|(_, key)| {
            let record = self.by_key.get(key);
            (key, record.expect("only live tokens have a place"))
        })
    }

    /// A live token.
    pub(super) fn get(&self, key: &TokenKey) -> Option<&TokenRecord> {
        self.by_key.get(key)
    }

    /// How many tokens live.
    pub(super) fn live(&self) -> u64 {
        self.by_key.len() as u64
    }

    /// How many of them are the user's.
    pub(super) fn held_by(&self, user: &UserName) -> u64 {
        self.by_user.get(user).map_or(0, |held| held.len() as u64)
    }

    /// The user's token that has been unused for longest.
    pub(super) fn longest_unused_of(&self, user: &UserName) -> Option<TokenKey> {
        Some(self.by_user.get(user)?.get_min()?.1)
    }

    /// The user's token that was refreshed last.
    pub(super) fn newest_of(&self, user: &UserName) -> Option<TokenKey> {
        Some(self.by_user.get(user)?.get_max()?.1)
    }

    /// Adds a token, whose key is new since it holds the login's log index.
    pub(super) fn insert(&mut self, key: TokenKey, record: TokenRecord) {
        let place = (record.refresh_index, key);
        self.by_refresh.insert(place);
        self.by_user
            .entry(record.user.clone())
            .or_default()
            .insert(place);
        let replaced = self.by_key.insert(key, record);
        assert!(replaced.is_none(), "one log entry makes one token");
    }

    /// Counts a use of a live token, reported at log index `index`; gives what is now known of it.
    pub(super) fn refresh(&mut self, key: &TokenKey, index: u64) -> Option<&TokenRecord> {
        let mut record = self.remove(key)?;
        record.refresh_count += 1;
        record.refresh_index = index;
        self.insert(*key, record);
        self.by_key.get(key)
    }

    /// Drops a token; gives what was known of it.
    pub(super) fn remove(&mut self, key: &TokenKey) -> Option<TokenRecord> {
        let record = self.by_key.remove(key)?;
        let place = (record.refresh_index, *key);
        self.by_refresh.remove(&place);
        let held = self
            .by_user
            .get_mut(&record.user)
            .expect("a token is known under its user's name");
        held.remove(&place);
        if held.is_empty() {
            self.by_user.remove(&record.user);
        }
        Some(record)
    }

    /// Drops the tokens of `user`; gives their keys, the longest unused first.
    pub(super) fn remove_user(&mut self, user: &UserName) -> Vec<TokenKey> {
        let places: Vec<Place> = self.by_user.remove(user).into_iter().flatten().collect();
        for place in &places {
            self.by_refresh.remove(place);
            self.by_key.remove(&place.1);
        }
        places.into_iter().map(|(_, key)| key).collect()
    }

    /// Moves the tokens of `user` to another epoch; gives them as they are now.
    pub(super) fn rebind(&mut self, user: &UserName, epoch: u64) -> Vec<(TokenKey, TokenRecord)> {
        let places = self.by_user.get(user).into_iter().flatten();
        let mut rebound = Vec::new();
        for (_, key) in places {
            if let Some(record) = self.by_key.get_mut(key) {
                record.epoch = epoch;
                rebound.push((*key, record.clone()));
            }
        }
        rebound
    }

    /// Drops every token; gives their keys, in the order of logins.
    pub(super) fn clear(&mut self) -> Vec<TokenKey> {
        self.by_user.clear();
        self.by_refresh.clear();
        std::mem::take(&mut self.by_key)
            .into_iter()
            .map(|(key, _)| key)
            .collect()
    }
}
