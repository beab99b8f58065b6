//! The log entry: one byte for the format version, then a `gatehousepb.InternalRaftRequest`.
//!
//! Every member decodes every committed entry. One that cannot must stop instead of skipping it, because a skipped entry
//! forks the replicas; so nothing is appended to the log that has not been encoded here, or decoded here first.

use super::convert::{
    Malformed, delete_range_from_pb, delete_range_to_pb, permission_from_pb, permission_to_pb,
    put_from_pb, put_to_pb, txn_from_pb, txn_to_pb,
};
use crate::pb::authpb;
use crate::pb::etcdserverpb as rpc;
use crate::pb::gatehousepb as pb;
use crate::pb::gatehousepb::internal_raft_request::Op as PbOp;
use crate::pb::gatehousepb::request_header::Credential as PbCredential;
use crate::state::{
    Authenticate, Caller, Command, Credential, Identity, Op, PasswordHash, RawRange, RoleName,
    TokenKey, TokenKind, TokenLimits, UserAdd, UserName,
};
use bytes::{BufMut as _, Bytes, BytesMut};
use prost::Message as _;

/// The newest entry format, and the one that is written.
const VERSION: u8 = 1;

/// Why an entry cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// A later version wrote it.
    #[error(
        "the entry has format {found}; this version reads formats up to {VERSION}: upgrade this member"
    )]
    NewerVersion {
        /// The entry's format.
        found: u8,
    },
    /// It says nothing that this version understands.
    #[error("the entry is malformed: {what}")]
    Malformed {
        /// What is wrong with it; never its contents, which may be secret.
        what: String,
    },
}

fn malformed(what: &str) -> EntryError {
    EntryError::Malformed {
        what: what.to_owned(),
    }
}

impl From<Malformed> for EntryError {
    fn from(cause: Malformed) -> Self {
        malformed(&cause.to_string())
    }
}

/// The entry's bytes.
pub(crate) fn encode(command: &Command) -> Bytes {
    let request = pb::InternalRaftRequest {
        header: Some(header_to_pb(command.request_id, &command.caller)),
        op: Some(op_to_pb(&command.op)),
    };
    let mut bytes = BytesMut::with_capacity(1 + request.encoded_len());
    bytes.put_u8(VERSION);
    request
        .encode(&mut bytes)
        .expect("a BytesMut grows as needed");
    bytes.freeze()
}

/// The command that `entry` holds; values are slices of it.
///
/// # Errors
/// [`EntryError`].
pub(crate) fn decode(entry: &Bytes) -> Result<Command, EntryError> {
    match entry.first() {
        None => return Err(malformed("it is empty")),
        Some(&VERSION) => {}
        Some(0) => return Err(malformed("format 0 does not exist")),
        Some(&found) => return Err(EntryError::NewerVersion { found }),
    }
    let request = pb::InternalRaftRequest::decode(entry.slice(1..))
        .map_err(|cause| malformed(&cause.to_string()))?;
    let header = request
        .header
        .ok_or_else(|| malformed("it has no header"))?;
    let op = request
        .op
        .ok_or_else(|| malformed("it has no known operation"))?;
    Ok(Command {
        request_id: header.id,
        caller: caller_from_pb(header)?,
        op: op_from_pb(op)?,
    })
}

fn header_to_pb(request_id: u64, caller: &Caller) -> pb::RequestHeader {
    let (username, credential) = match &caller.identity {
        Identity::Anonymous => (String::new(), None),
        Identity::Internal => (String::new(), Some(PbCredential::Internal(true))),
        Identity::User(name, credential) => (name.0.clone(), Some(credential_to_pb(credential))),
    };
    pb::RequestHeader {
        id: request_id,
        username,
        auth_revision: caller.auth_revision,
        credential,
    }
}

fn credential_to_pb(credential: &Credential) -> PbCredential {
    match credential {
        Credential::SimpleToken(key, epoch) => PbCredential::SimpleToken(pb::SimpleToken {
            prefix_hash: Bytes::copy_from_slice(&key.prefix_hash),
            index: key.index,
            epoch: *epoch,
        }),
        Credential::Jwt(epoch) => PbCredential::JwtEpoch(*epoch),
        Credential::Certificate => PbCredential::Certificate(true),
    }
}

fn caller_from_pb(header: pb::RequestHeader) -> Result<Caller, EntryError> {
    let user = UserName(header.username);
    let identity = match header.credential {
        None => Identity::Anonymous,
        Some(PbCredential::Internal(_)) => Identity::Internal,
        Some(PbCredential::SimpleToken(token)) => {
            let prefix_hash = hash_from_pb(&token.prefix_hash)?;
            let key = TokenKey {
                index: token.index,
                prefix_hash,
            };
            Identity::User(user, Credential::SimpleToken(key, token.epoch))
        }
        Some(PbCredential::JwtEpoch(epoch)) => Identity::User(user, Credential::Jwt(epoch)),
        Some(PbCredential::Certificate(_)) => Identity::User(user, Credential::Certificate),
    };
    Ok(Caller {
        identity,
        auth_revision: header.auth_revision,
    })
}

fn hash_from_pb(hash: &[u8]) -> Result<[u8; 32], EntryError> {
    hash.try_into()
        .map_err(|_| malformed("a prefix hash does not have 32 bytes"))
}

fn op_to_pb(op: &Op) -> PbOp {
    match op {
        Op::Put(put) => PbOp::Put(put_to_pb(put)),
        Op::DeleteRange(delete) => PbOp::DeleteRange(delete_range_to_pb(delete)),
        Op::Txn(txn) => PbOp::Txn(txn_to_pb(txn)),
        Op::Compact(revision) => PbOp::Compaction(rpc::CompactionRequest {
            revision: *revision,
            physical: false,
        }),
        Op::AuthEnable => PbOp::AuthEnable(rpc::AuthEnableRequest {}),
        Op::AuthDisable => PbOp::AuthDisable(rpc::AuthDisableRequest {}),
        Op::Authenticate(login) => PbOp::Authenticate(authenticate_to_pb(login)),
        Op::UserAdd(add) => PbOp::AuthUserAdd(rpc::AuthUserAddRequest {
            name: add.name.0.clone(),
            password: String::new(),
            options: Some(authpb::UserAddOptions {
                no_password: add.no_password,
            }),
            hashed_password: hash_to_text(&add.password),
        }),
        Op::UserDelete(user) => PbOp::AuthUserDelete(rpc::AuthUserDeleteRequest {
            name: user.0.clone(),
        }),
        Op::UserChangePassword(user, password) => {
            PbOp::AuthUserChangePassword(rpc::AuthUserChangePasswordRequest {
                name: user.0.clone(),
                password: String::new(),
                hashed_password: hash_to_text(password),
            })
        }
        Op::UserGrantRole(user, role) => PbOp::AuthUserGrantRole(rpc::AuthUserGrantRoleRequest {
            user: user.0.clone(),
            role: role.0.clone(),
        }),
        Op::UserRevokeRole(user, role) => {
            PbOp::AuthUserRevokeRole(rpc::AuthUserRevokeRoleRequest {
                name: user.0.clone(),
                role: role.0.clone(),
            })
        }
        Op::RoleAdd(role) => PbOp::AuthRoleAdd(rpc::AuthRoleAddRequest {
            name: role.0.clone(),
        }),
        Op::RoleDelete(role) => PbOp::AuthRoleDelete(rpc::AuthRoleDeleteRequest {
            role: role.0.clone(),
        }),
        Op::RoleGrantPermission(role, permission) => {
            PbOp::AuthRoleGrantPermission(rpc::AuthRoleGrantPermissionRequest {
                name: role.0.clone(),
                perm: permission.as_ref().map(permission_to_pb),
            })
        }
        Op::RoleRevokePermission(role, range) => {
            PbOp::AuthRoleRevokePermission(rpc::AuthRoleRevokePermissionRequest {
                role: role.0.clone(),
                key: range.key.clone(),
                range_end: range.range_end.clone(),
            })
        }
        Op::TokenRefresh(tokens) => PbOp::TokenRefresh(pb::InternalTokenRefreshRequest {
            tokens: tokens.iter().map(token_key_to_pb).collect(),
        }),
        Op::TokenExpire(tokens) => PbOp::TokenExpire(pb::InternalTokenExpireRequest {
            tokens: tokens.iter().map(due_token_to_pb).collect(),
        }),
    }
}

fn op_from_pb(op: PbOp) -> Result<Op, EntryError> {
    Ok(match op {
        PbOp::Put(put) => Op::Put(put_from_pb(put)),
        PbOp::DeleteRange(delete) => Op::DeleteRange(delete_range_from_pb(delete)),
        PbOp::Txn(txn) => Op::Txn(txn_from_pb(txn)?),
        PbOp::Compaction(compaction) => Op::Compact(compaction.revision),
        PbOp::AuthEnable(_) => Op::AuthEnable,
        PbOp::AuthDisable(_) => Op::AuthDisable,
        PbOp::Authenticate(login) => Op::Authenticate(authenticate_from_pb(login)?),
        PbOp::AuthUserAdd(add) => Op::UserAdd(UserAdd {
            name: UserName(add.name),
            password: text_to_hash(add.hashed_password),
            no_password: add.options.is_some_and(|options| options.no_password),
        }),
        PbOp::AuthUserDelete(delete) => Op::UserDelete(UserName(delete.name)),
        PbOp::AuthUserChangePassword(change) => {
            Op::UserChangePassword(UserName(change.name), text_to_hash(change.hashed_password))
        }
        PbOp::AuthUserGrantRole(grant) => {
            Op::UserGrantRole(UserName(grant.user), RoleName(grant.role))
        }
        PbOp::AuthUserRevokeRole(revoke) => {
            Op::UserRevokeRole(UserName(revoke.name), RoleName(revoke.role))
        }
        PbOp::AuthRoleAdd(add) => Op::RoleAdd(RoleName(add.name)),
        PbOp::AuthRoleDelete(delete) => Op::RoleDelete(RoleName(delete.role)),
        PbOp::AuthRoleGrantPermission(grant) => {
            Op::RoleGrantPermission(RoleName(grant.name), grant.perm.map(permission_from_pb))
        }
        PbOp::AuthRoleRevokePermission(revoke) => Op::RoleRevokePermission(
            RoleName(revoke.role),
            RawRange {
                key: revoke.key,
                range_end: revoke.range_end,
            },
        ),
        PbOp::TokenRefresh(refresh) => {
            let keys = refresh.tokens.into_iter().map(token_key_from_pb);
            Op::TokenRefresh(keys.collect::<Result<_, _>>()?)
        }
        PbOp::TokenExpire(expire) => {
            let due = expire.tokens.into_iter().map(due_token_from_pb);
            Op::TokenExpire(due.collect::<Result<_, _>>()?)
        }
    })
}

fn token_key_to_pb(key: &TokenKey) -> pb::TokenKey {
    pb::TokenKey {
        prefix_hash: Bytes::copy_from_slice(&key.prefix_hash),
        index: key.index,
    }
}

fn token_key_from_pb(key: pb::TokenKey) -> Result<TokenKey, EntryError> {
    Ok(TokenKey {
        index: key.index,
        prefix_hash: hash_from_pb(&key.prefix_hash)?,
    })
}

fn due_token_to_pb((key, refresh_count): &(TokenKey, u64)) -> pb::DueToken {
    pb::DueToken {
        key: Some(token_key_to_pb(key)),
        refresh_count: *refresh_count,
    }
}

fn due_token_from_pb(due: pb::DueToken) -> Result<(TokenKey, u64), EntryError> {
    let key = due
        .key
        .ok_or_else(|| malformed("a token to expire has no key"))?;
    Ok((token_key_from_pb(key)?, due.refresh_count))
}

fn authenticate_to_pb(login: &Authenticate) -> pb::InternalAuthenticateRequest {
    let kind = match login.kind {
        TokenKind::Simple => pb::TokenKind::Simple,
        TokenKind::Jwt => pb::TokenKind::Jwt,
    };
    pb::InternalAuthenticateRequest {
        name: login.user.0.clone(),
        prefix_hash: Bytes::copy_from_slice(&login.prefix_hash),
        epoch: login.epoch,
        kind: kind as i32,
        tokens_per_user_max: login.limits.per_user,
        tokens_total_max: login.limits.total,
    }
}

fn authenticate_from_pb(
    login: pb::InternalAuthenticateRequest,
) -> Result<Authenticate, EntryError> {
    let kind = match pb::TokenKind::try_from(login.kind) {
        Ok(pb::TokenKind::Simple) => TokenKind::Simple,
        Ok(pb::TokenKind::Jwt) => TokenKind::Jwt,
        Err(_) => return Err(malformed("an unknown kind of token")),
    };
    Ok(Authenticate {
        prefix_hash: hash_from_pb(&login.prefix_hash)?,
        user: UserName(login.name),
        epoch: login.epoch,
        kind,
        limits: TokenLimits {
            per_user: login.tokens_per_user_max,
            total: login.tokens_total_max,
        },
    })
}

fn hash_to_text(hash: &PasswordHash) -> String {
    String::from_utf8(hash.0.to_vec())
        .expect("a hash is bcrypt's ASCII text, or came as a protobuf string")
}

fn text_to_hash(text: String) -> PasswordHash {
    PasswordHash(Bytes::from(text))
}
