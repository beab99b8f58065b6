//! Hashes that tell members apart: over every entry and its outcome, over the auth store, over the keys. Each value is
//! written with its length or as a number of fixed size, so that no two different states are written alike.

use super::command::{Permission, PermissionKind, RawRange, TokenKey};
use super::name::{RoleName, UserName};
use super::outcome::{
    Applied, ApplyError, Deleted, Found, KeyValue, Response, TxnOpResponse, TxnResponse, Write,
};
use super::record::{KvRecord, KvRevision, Meta, TokenRecord, UserRecord};
use xxhash_rust::xxh3::Xxh3;

/// The digest after the entry that did `applied`, where `meta` is the state after it with the digest before it.
pub(super) fn of_entry(meta: &Meta, applied: &Applied) -> u64 {
    let mut fingerprint = Fingerprint::default();
    fingerprint.number(meta.digest);
    fingerprint.number(applied.index);
    fingerprint.auth_meta(meta);
    fingerprint.signed(meta.kv_revision);
    fingerprint.result(&applied.result);
    fingerprint.length(applied.writes.len());
    for write in &applied.writes {
        fingerprint.write(write);
    }
    fingerprint.finish()
}

/// The hash of the auth store: the auth part of `meta`, and the records in order of their names and keys.
pub(super) fn of_auth<'a>(
    meta: &Meta,
    users: impl ExactSizeIterator<Item = (&'a UserName, &'a UserRecord)>,
    roles: impl ExactSizeIterator<Item = (&'a RoleName, Vec<Permission>)>,
    tokens: impl ExactSizeIterator<Item = (&'a TokenKey, &'a TokenRecord)>,
) -> u64 {
    let mut fingerprint = Fingerprint::default();
    fingerprint.auth_meta(meta);
    fingerprint.length(users.len());
    for (name, user) in users {
        fingerprint.text(name.as_str());
        fingerprint.user(user);
    }
    fingerprint.length(roles.len());
    for (name, role) in roles {
        fingerprint.text(name.as_str());
        fingerprint.permissions(&role);
    }
    fingerprint.length(tokens.len());
    for (key, token) in tokens {
        fingerprint.token_key(key);
        fingerprint.token(token);
    }
    fingerprint.finish()
}

/// A hash that is being computed.
#[derive(Default)]
pub(super) struct Fingerprint(Xxh3);

impl Fingerprint {
    /// The hash of what was written.
    pub(super) fn finish(&self) -> u64 {
        self.0.digest()
    }

    /// Writes one version of a key.
    pub(super) fn kv(&mut self, at: KvRevision, record: &KvRecord) {
        let KvRecord {
            key,
            value,
            create_revision,
            version,
            lease,
            tombstone,
        } = record;
        self.signed(at.main);
        self.signed(at.sub);
        self.bytes(key);
        self.bytes(value);
        self.signed(*create_revision);
        self.signed(*version);
        self.signed(*lease);
        self.flag(*tombstone);
    }

    fn tag(&mut self, tag: u8) {
        self.0.update(&[tag]);
    }

    fn flag(&mut self, flag: bool) {
        self.tag(u8::from(flag));
    }

    fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    fn signed(&mut self, number: i64) {
        self.0.update(&number.to_le_bytes());
    }

    fn length(&mut self, length: usize) {
        self.number(u64::try_from(length).expect("lengths fit in 64 bits"));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.0.update(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn auth_meta(&mut self, meta: &Meta) {
        self.flag(meta.auth_enabled);
        self.number(meta.auth_revision);
        self.number(meta.generation);
        self.number(meta.epoch_floor);
    }

    fn user(&mut self, user: &UserRecord) {
        let UserRecord {
            password,
            no_password,
            roles,
            created_revision,
            password_revision,
        } = user;
        self.bytes(&password.0);
        self.flag(*no_password);
        self.length(roles.len());
        for role in roles {
            self.text(role.as_str());
        }
        self.number(*created_revision);
        self.number(*password_revision);
    }

    fn permissions(&mut self, permissions: &[Permission]) {
        self.length(permissions.len());
        for Permission {
            kind,
            range: RawRange { key, range_end },
        } in permissions
        {
            self.signed(match kind {
                PermissionKind::Read => 0,
                PermissionKind::Write => 1,
                PermissionKind::ReadWrite => 2,
                PermissionKind::Unknown(number) => i64::from(*number),
            });
            self.bytes(key);
            self.bytes(range_end);
        }
    }

    fn token_key(&mut self, key: &TokenKey) {
        self.number(key.index);
        self.0.update(&key.prefix_hash);
    }

    fn token(&mut self, token: &TokenRecord) {
        let TokenRecord {
            user,
            epoch,
            refresh_count,
            refresh_index,
        } = token;
        self.text(user.as_str());
        self.number(*epoch);
        self.number(*refresh_count);
        self.number(*refresh_index);
    }

    fn write(&mut self, write: &Write) {
        match write {
            Write::Kv(at, record) => {
                self.tag(0);
                self.kv(*at, record);
            }
            Write::KvGone(at) => {
                self.tag(4);
                self.signed(at.main);
                self.signed(at.sub);
            }
            Write::User(name, user) => {
                self.tag(1);
                self.text(name.as_str());
                self.optional(user.as_ref(), Self::user);
            }
            Write::Role(name, role) => {
                self.tag(2);
                self.text(name.as_str());
                self.optional(role.as_ref(), |fingerprint, role| {
                    fingerprint.permissions(role)
                });
            }
            Write::Token(key, token) => {
                self.tag(3);
                self.token_key(key);
                self.optional(token.as_ref(), Self::token);
            }
        }
    }

    fn optional<T>(&mut self, value: Option<&T>, write: impl FnOnce(&mut Self, &T)) {
        self.flag(value.is_some());
        if let Some(value) = value {
            write(self, value);
        }
    }

    fn result(&mut self, result: &Result<Response, ApplyError>) {
        match result {
            Ok(response) => {
                self.tag(0);
                self.response(response);
            }
            Err(refusal) => {
                self.tag(1);
                self.tag(refusal_number(refusal));
            }
        }
    }

    fn response(&mut self, response: &Response) {
        match response {
            Response::Put(previous) => {
                self.tag(0);
                self.optional(previous.as_ref(), Self::key_value);
            }
            Response::DeleteRange(deleted) => {
                self.tag(1);
                self.deleted(deleted);
            }
            Response::Txn(txn) => {
                self.tag(2);
                self.txn(txn);
            }
            Response::Authenticated(key) => {
                self.tag(3);
                self.token_key(key);
            }
            Response::AuthenticateAgain => self.tag(4),
            Response::Done => self.tag(5),
        }
    }

    fn txn(&mut self, txn: &TxnResponse) {
        self.flag(txn.succeeded);
        self.length(txn.responses.len());
        for response in &txn.responses {
            match response {
                TxnOpResponse::Range(Found { kvs, more, count }) => {
                    self.tag(0);
                    self.key_values(kvs);
                    self.flag(*more);
                    self.signed(*count);
                }
                TxnOpResponse::Put(previous) => {
                    self.tag(1);
                    self.optional(previous.as_ref(), Self::key_value);
                }
                TxnOpResponse::DeleteRange(deleted) => {
                    self.tag(2);
                    self.deleted(deleted);
                }
                TxnOpResponse::Txn(txn) => {
                    self.tag(3);
                    self.txn(txn);
                }
            }
        }
    }

    fn deleted(&mut self, deleted: &Deleted) {
        self.signed(deleted.deleted);
        self.key_values(&deleted.prev_kvs);
    }

    fn key_values(&mut self, kvs: &[KeyValue]) {
        self.length(kvs.len());
        for kv in kvs {
            self.key_value(kv);
        }
    }

    fn key_value(&mut self, kv: &KeyValue) {
        let KeyValue {
            key,
            value,
            create_revision,
            mod_revision,
            version,
            lease,
        } = kv;
        self.bytes(key);
        self.bytes(value);
        for number in [create_revision, mod_revision, version, lease] {
            self.signed(*number);
        }
    }
}

/// Numbers are part of the digest: append, never renumber.
fn refusal_number(refusal: &ApplyError) -> u8 {
    match refusal {
        ApplyError::UserEmpty => 0,
        ApplyError::InvalidAuthToken => 1,
        ApplyError::AuthOldRevision => 2,
        ApplyError::PermissionDenied => 3,
        ApplyError::RootUserNotExist => 4,
        ApplyError::RootRoleNotExist => 5,
        ApplyError::UserAlreadyExist => 6,
        ApplyError::UserNotFound => 7,
        ApplyError::RoleAlreadyExist => 8,
        ApplyError::RoleNotFound => 9,
        ApplyError::RoleEmpty => 10,
        ApplyError::AuthFailed => 11,
        ApplyError::NoPasswordUser => 12,
        ApplyError::AuthNotEnabled => 13,
        ApplyError::InvalidAuthMgmt => 14,
        ApplyError::PermissionNotGiven => 15,
        ApplyError::RoleNotGranted => 16,
        ApplyError::PermissionNotGranted => 17,
        ApplyError::KeyNotFound => 18,
        ApplyError::LeaseNotFound => 19,
        ApplyError::Compacted => 20,
        ApplyError::FutureRevision => 21,
        ApplyError::TooManyTokens => 22,
    }
}
