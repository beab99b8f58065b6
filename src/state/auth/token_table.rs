//! Live simple tokens, by key and by user. It knows no time: what dies does so by a log entry.

use super::super::command::TokenKey;
use super::super::name::UserName;
use super::super::record::TokenRecord;
use imbl::{OrdMap, OrdSet};
use std::collections::BTreeMap;

/// The tokens. Clones share structure.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TokenTable {
    by_key: OrdMap<TokenKey, TokenRecord>,
    /// Derived from `by_key`; no entry for a user without tokens.
    by_user: OrdMap<UserName, OrdSet<TokenKey>>,
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

    /// A live token.
    pub(super) fn get(&self, key: &TokenKey) -> Option<&TokenRecord> {
        self.by_key.get(key)
    }

    /// Adds a token, whose key is new since it holds the login's log index.
    pub(super) fn insert(&mut self, key: TokenKey, record: TokenRecord) {
        self.by_user
            .entry(record.user.clone())
            .or_default()
            .insert(key);
        let replaced = self.by_key.insert(key, record);
        assert!(replaced.is_none(), "one log entry makes one token");
    }

    /// Drops the tokens of `user`; gives their keys, in order.
    pub(super) fn remove_user(&mut self, user: &UserName) -> Vec<TokenKey> {
        let keys: Vec<TokenKey> = self.by_user.remove(user).into_iter().flatten().collect();
        for key in &keys {
            self.by_key.remove(key);
        }
        keys
    }

    /// Moves the tokens of `user` to another epoch; gives them as they are now, in order.
    pub(super) fn rebind(&mut self, user: &UserName, epoch: u64) -> Vec<(TokenKey, TokenRecord)> {
        let keys = self.by_user.get(user).into_iter().flatten();
        let mut rebound = Vec::new();
        for key in keys {
            if let Some(record) = self.by_key.get_mut(key) {
                record.epoch = epoch;
                rebound.push((*key, record.clone()));
            }
        }
        rebound
    }

    /// Drops every token; gives their keys, in order.
    pub(super) fn clear(&mut self) -> Vec<TokenKey> {
        self.by_user.clear();
        std::mem::take(&mut self.by_key)
            .into_iter()
            .map(|(key, _)| key)
            .collect()
    }
}
