//! The auth store: users, roles, tokens, the flag, and the revisions that say when they changed. Everything derived from
//! the records (who may read and write what, which tokens a user has) is built by the same functions at every change
//! and at [`AuthStore::restore`]. Who may ask for a change is decided in `authorize`, before anything here runs.

mod authorize;
mod login;
mod queries;
mod rights;
mod roles;
mod switch;
mod token_life;
mod token_table;
mod users;

use super::command::{Permission, PermissionKind, RawRange, TokenKey};
use super::digest;
use super::effects::Effects;
use super::name::{RoleName, UserName};
use super::outcome::{Event, Write};
use super::record::{Meta, TokenRecord, UserRecord};
use crate::planted::{Bug, planted};
use imbl::OrdMap;
use rights::Rights;
use std::collections::BTreeMap;
use token_table::TokenTable;

/// A role's permissions. A range stands once, whatever the number of grants, and they are sorted by key, then end.
type Role = OrdMap<RawRange, PermissionKind>;

/// The auth part of the replicated state. Clones share structure.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AuthStore {
    enabled: bool,
    /// Etcd's auth revision. Never falls.
    revision: u64,
    /// Counts every auth change, enables included.
    generation: u64,
    /// Lower bound of every user's epoch.
    epoch_floor: u64,
    users: OrdMap<UserName, UserRecord>,
    roles: OrdMap<RoleName, Role>,
    tokens: TokenTable,
    /// Derived from users and roles.
    rights: Rights,
}

impl AuthStore {
    /// Builds the store from what is stored, with every derived structure.
    pub(super) fn restore(
        meta: &Meta,
        users: BTreeMap<UserName, UserRecord>,
        roles: BTreeMap<RoleName, Vec<Permission>>,
        tokens: BTreeMap<TokenKey, TokenRecord>,
    ) -> AuthStore {
        let mut store = AuthStore {
            enabled: meta.auth_enabled,
            revision: meta.auth_revision,
            generation: meta.generation,
            epoch_floor: meta.epoch_floor,
            users: users.into_iter().collect(),
            roles: roles
                .into_iter()
                .map(|(name, permissions)| (name, role(permissions)))
                .collect(),
            tokens: TokenTable::restore(if planted(Bug::TokenTableVolatile) {
                BTreeMap::new()
            } else {
                tokens
            }),
            rights: Rights::default(),
        };
        for (name, user) in &store.users {
            store.rights.set_user(name, None, Some(user), &store.roles);
        }
        store
    }

    /// For a planted bug, see [`super::State::keep_rights_of`].
    pub(super) fn keep_rights_of(&mut self, before: &AuthStore) {
        self.rights.keep(&before.rights);
    }

    /// For a planted bug, see [`super::State::forget_rights`].
    pub(super) fn forget_rights(&mut self) {
        self.rights.forget();
    }

    /// The users as they are stored.
    pub(super) fn users(&self) -> BTreeMap<UserName, UserRecord> {
        self.users
            .iter()
            .map(|(name, user)| (name.clone(), user.clone()))
            .collect()
    }

    /// The roles as they are stored.
    pub(super) fn roles(&self) -> BTreeMap<RoleName, Vec<Permission>> {
        self.roles
            .iter()
            .map(|(name, role)| (name.clone(), permissions(role)))
            .collect()
    }

    /// The tokens as they are stored.
    pub(super) fn tokens(&self) -> BTreeMap<TokenKey, TokenRecord> {
        self.tokens
            .iter()
            .map(|(key, record)| (*key, record.clone()))
            .collect()
    }

    /// Fills in the auth part of `meta`.
    pub(super) fn describe(&self, meta: &mut Meta) {
        meta.auth_enabled = self.enabled;
        meta.auth_revision = self.revision;
        meta.generation = self.generation;
        meta.epoch_floor = self.epoch_floor;
    }

    /// The hash of everything here, `meta` being the description of the same state.
    pub(super) fn hash(&self, meta: &Meta) -> u64 {
        let roles = self
            .roles
            .iter()
            .map(|(name, role)| (name, permissions(role)));
        digest::of_auth(meta, self.users.iter(), roles, self.tokens.iter())
    }

    /// A live token.
    pub(super) fn token(&self, key: &TokenKey) -> Option<&TokenRecord> {
        self.tokens.get(key)
    }

    /// The auth revision from which on a credential of `user` counts.
    fn epoch(&self, user: &UserRecord) -> u64 {
        user.created_revision
            .max(user.password_revision)
            .max(self.epoch_floor)
    }

    /// Takes note of a change that clients can tell by the auth revision; gives the revision after it.
    fn revise(&mut self, effects: &mut Effects) -> u64 {
        self.revision += 1;
        self.change(effects);
        self.revision
    }

    /// Takes note of a change.
    fn change(&mut self, effects: &mut Effects) {
        self.generation += 1;
        effects.events.push(Event::AuthChanged);
    }

    /// Stores a user or its removal, with the rights that follow.
    fn set_user(&mut self, name: UserName, user: Option<UserRecord>, effects: &mut Effects) {
        let before = match &user {
            Some(user) => self.users.insert(name.clone(), user.clone()),
            None => self.users.remove(&name),
        };
        self.rights
            .set_user(&name, before.as_ref(), user.as_ref(), &self.roles);
        effects.writes.push(Write::User(name, user));
    }
}

fn role(permissions: Vec<Permission>) -> Role {
    permissions
        .into_iter()
        .map(|Permission { kind, range }| (range, kind))
        .collect()
}

fn permissions(role: &Role) -> Vec<Permission> {
    role.iter()
        .map(|(range, kind)| Permission {
            kind: *kind,
            range: range.clone(),
        })
        .collect()
}
