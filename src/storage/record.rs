//! Rows to records and back. A row that cannot be read is corruption: only this program writes them.

use super::StorageError;
use super::permission::{permission_from_pb, permission_to_pb};
use crate::pb::gatehousepb as pb;
use crate::state::{
    KvRecord, Meta, PasswordHash, Permission, RoleName, TokenKey, TokenRecord, UserName, UserRecord,
};
use bytes::Bytes;
use prost::Message as _;
use protobuf::Message as _;
use raft::eraftpb::Entry;

const TOKEN_KEY_BYTES: usize = 40;

pub(super) fn encode_meta(meta: &Meta) -> Vec<u8> {
    let Meta {
        applied_index,
        applied_term,
        kv_revision,
        compact_revision,
        auth_enabled,
        auth_revision,
        generation,
        epoch_floor,
        digest,
    } = *meta;
    pb::Meta {
        applied_index,
        applied_term,
        kv_revision,
        compact_revision,
        auth_enabled,
        auth_revision,
        generation,
        epoch_floor,
        digest,
    }
    .encode_to_vec()
}

pub(super) fn decode_meta(row: &[u8]) -> Result<Meta, StorageError> {
    let pb::Meta {
        applied_index,
        applied_term,
        kv_revision,
        compact_revision,
        auth_enabled,
        auth_revision,
        generation,
        epoch_floor,
        digest,
    } = pb::Meta::decode(row).map_err(|e| unreadable("the state row", &e))?;
    Ok(Meta {
        applied_index,
        applied_term,
        kv_revision,
        compact_revision,
        auth_enabled,
        auth_revision,
        generation,
        epoch_floor,
        digest,
    })
}

pub(super) fn encode_user(user: &UserRecord) -> Vec<u8> {
    pb::UserRecord {
        password_hash: user.password.0.clone(),
        no_password: user.no_password,
        roles: user.roles.iter().map(|role| role.0.clone()).collect(),
        created_revision: user.created_revision,
        password_revision: user.password_revision,
    }
    .encode_to_vec()
}

pub(super) fn decode_user(row: &[u8]) -> Result<UserRecord, StorageError> {
    let user = pb::UserRecord::decode(row).map_err(|e| unreadable("a user", &e))?;
    Ok(UserRecord {
        password: PasswordHash(user.password_hash),
        no_password: user.no_password,
        roles: user.roles.into_iter().map(RoleName).collect(),
        created_revision: user.created_revision,
        password_revision: user.password_revision,
    })
}

pub(super) fn encode_role(permissions: &[Permission]) -> Vec<u8> {
    let permissions = permissions.iter().map(permission_to_pb).collect();
    pb::RoleRecord { permissions }.encode_to_vec()
}

pub(super) fn decode_role(row: &[u8]) -> Result<Vec<Permission>, StorageError> {
    let role = pb::RoleRecord::decode(row).map_err(|e| unreadable("a role", &e))?;
    Ok(role
        .permissions
        .into_iter()
        .map(permission_from_pb)
        .collect())
}

pub(super) fn encode_token(token: &TokenRecord) -> Vec<u8> {
    pb::TokenRecord {
        user: token.user.0.clone(),
        epoch: token.epoch,
        refresh_count: token.refresh_count,
        refresh_index: token.refresh_index,
    }
    .encode_to_vec()
}

pub(super) fn decode_token(row: &[u8]) -> Result<TokenRecord, StorageError> {
    let token = pb::TokenRecord::decode(row).map_err(|e| unreadable("a token", &e))?;
    Ok(TokenRecord {
        user: UserName(token.user),
        epoch: token.epoch,
        refresh_count: token.refresh_count,
        refresh_index: token.refresh_index,
    })
}

/// Login index first, so that rows stand in the order of logins.
pub(super) fn encode_token_key(key: &TokenKey) -> [u8; TOKEN_KEY_BYTES] {
    let mut row = [0; TOKEN_KEY_BYTES];
    row[..8].copy_from_slice(&key.index.to_be_bytes());
    row[8..].copy_from_slice(&key.prefix_hash);
    row
}

pub(super) fn decode_token_key(row: &[u8]) -> Result<TokenKey, StorageError> {
    let parts = row.split_first_chunk::<8>().and_then(|(index, hash)| {
        Some((u64::from_be_bytes(*index), <[u8; 32]>::try_from(hash).ok()?))
    });
    let (index, prefix_hash) = parts
        .ok_or_else(|| StorageError::corrupt(format!("a token key of {} bytes", row.len())))?;
    Ok(TokenKey { index, prefix_hash })
}

pub(super) fn encode_kv(record: &KvRecord) -> Vec<u8> {
    pb::KvRecord {
        key: record.key.clone(),
        create_revision: record.create_revision,
        version: record.version,
        lease: record.lease,
        tombstone: record.tombstone,
        value: record.value.clone(),
    }
    .encode_to_vec()
}

pub(super) fn decode_kv(row: impl bytes::Buf) -> Result<KvRecord, StorageError> {
    let record = pb::KvRecord::decode(row).map_err(|e| unreadable("a version of a key", &e))?;
    Ok(KvRecord {
        key: record.key,
        value: record.value,
        create_revision: record.create_revision,
        version: record.version,
        lease: record.lease,
        tombstone: record.tombstone,
    })
}

pub(super) fn encode_entry(entry: &Entry) -> Vec<u8> {
    entry
        .write_to_bytes()
        .expect("an entry is smaller than protobuf's 2 GiB, and a Vec takes it all")
}

pub(super) fn decode_entry(index: u64, row: &[u8]) -> Result<Entry, StorageError> {
    let what = || format!("log entry {index}");
    let entry = Entry::parse_from_carllerche_bytes(&Bytes::copy_from_slice(row))
        .map_err(|e| unreadable(&what(), &e))?;
    if entry.index == index {
        Ok(entry)
    } else {
        Err(StorageError::corrupt(format!(
            "{} calls itself {}",
            what(),
            entry.index
        )))
    }
}

pub(super) fn unreadable(what: &str, cause: &dyn std::error::Error) -> StorageError {
    StorageError::corrupt(format!("{what} cannot be decoded: {cause}"))
}
