//! From an operation of a plan to its message, through the real client, to the answer.

use super::{Wire, answer, password};
use bytes::Bytes;
use gatehouse::pb::authpb::{Permission, permission};
use gatehouse::pb::etcdserverpb as pb;
use gatehouse_judge::history::{self, Grant, GrantKind, Op, Operand, Reply};
use gatehouse_judge::words;
use pb::compare::{CompareResult, CompareTarget, TargetUnion};
use pb::request_op::Request as TxnOp;
use tonic::Status;
use tonic::metadata::AsciiMetadataValue;

/// An answer, and the token if the operation was a login.
type Answer = Result<(Reply, Option<AsciiMetadataValue>), Status>;

impl Wire<'_> {
    /// Sends `op` and waits for the answer.
    pub(super) async fn send(self, op: &Op, seed: u64) -> Answer {
        match op {
            Op::Login { user, password: id } => self.login(user, password(seed, id)).await,
            Op::Put { .. } | Op::Get { .. } | Op::Delete { .. } | Op::Txn { .. } => {
                self.key_value(op).await.map(|reply| (reply, None))
            }
            Op::UserAdd { .. }
            | Op::UserDelete { .. }
            | Op::UserGet { .. }
            | Op::UserList {}
            | Op::ChangePassword { .. }
            | Op::GrantRole { .. }
            | Op::RevokeRole { .. } => self.user(op, seed).await.map(|reply| (reply, None)),
            Op::AuthEnable {}
            | Op::AuthDisable {}
            | Op::AuthStatus {}
            | Op::RoleAdd { .. }
            | Op::RoleDelete { .. }
            | Op::RoleGet { .. }
            | Op::RoleList {}
            | Op::GrantPermission { .. }
            | Op::RevokePermission { .. } => self.role(op).await.map(|reply| (reply, None)),
        }
    }

    async fn login(&self, user: &str, password: String) -> Answer {
        let message = pb::AuthenticateRequest {
            name: user.to_owned(),
            password,
        };
        let mut auth = self.auth.clone();
        let response = self
            .finish(auth.authenticate(self.request(message)))
            .await?;
        let text = AsciiMetadataValue::try_from(response.token)
            .map_err(|_| Status::internal("the token is no header value"))?;
        Ok((answer::header(response.header.as_ref()), Some(text)))
    }

    async fn key_value(&self, op: &Op) -> Result<Reply, Status> {
        let mut kv = self.kv.clone();
        match txn_op(op)? {
            TxnOp::RequestPut(message) => self
                .finish(kv.put(self.request(message)))
                .await
                .map(answer::put),
            TxnOp::RequestRange(message) => self
                .finish(kv.range(self.request(message)))
                .await
                .map(answer::range),
            TxnOp::RequestDeleteRange(message) => self
                .finish(kv.delete_range(self.request(message)))
                .await
                .map(answer::delete),
            TxnOp::RequestTxn(message) => self
                .finish(kv.txn(self.request(message)))
                .await
                .map(answer::txn),
        }
    }

    async fn user(&self, op: &Op, seed: u64) -> Result<Reply, Status> {
        let mut auth = self.auth.clone();
        match op {
            Op::UserAdd { user, password: id } => {
                let message = pb::AuthUserAddRequest {
                    name: user.into(),
                    password: password(seed, id),
                    ..Default::default()
                };
                let answer = self.finish(auth.user_add(self.request(message))).await?;
                Ok(answer::header(answer.header.as_ref()))
            }
            Op::UserDelete { user } => {
                let message = pb::AuthUserDeleteRequest { name: user.into() };
                let answer = self.finish(auth.user_delete(self.request(message))).await?;
                Ok(answer::header(answer.header.as_ref()))
            }
            Op::UserGet { user } => {
                let message = pb::AuthUserGetRequest { name: user.into() };
                let answer = self.finish(auth.user_get(self.request(message))).await?;
                Ok(Reply {
                    names: answer.roles.into_iter().map(Into::into).collect(),
                    ..answer::header(answer.header.as_ref())
                })
            }
            Op::UserList {} => {
                let message = pb::AuthUserListRequest {};
                let answer = self.finish(auth.user_list(self.request(message))).await?;
                Ok(Reply {
                    names: answer.users.into_iter().map(Into::into).collect(),
                    ..answer::header(answer.header.as_ref())
                })
            }
            Op::ChangePassword { user, password: id } => {
                let message = pb::AuthUserChangePasswordRequest {
                    name: user.into(),
                    password: password(seed, id),
                    ..Default::default()
                };
                let answer = self
                    .finish(auth.user_change_password(self.request(message)))
                    .await?;
                Ok(answer::header(answer.header.as_ref()))
            }
            Op::GrantRole { user, role } => {
                let message = pb::AuthUserGrantRoleRequest {
                    user: user.into(),
                    role: role.into(),
                };
                let answer = self
                    .finish(auth.user_grant_role(self.request(message)))
                    .await?;
                Ok(answer::header(answer.header.as_ref()))
            }
            Op::RevokeRole { user, role } => {
                let message = pb::AuthUserRevokeRoleRequest {
                    name: user.into(),
                    role: role.into(),
                };
                let answer = self
                    .finish(auth.user_revoke_role(self.request(message)))
                    .await?;
                Ok(answer::header(answer.header.as_ref()))
            }
            other => Err(unfit(other)),
        }
    }

    async fn role(&self, op: &Op) -> Result<Reply, Status> {
        let mut auth = self.auth.clone();
        match op {
            Op::RoleAdd { role } => {
                let message = pb::AuthRoleAddRequest { name: role.into() };
                let answer = self.finish(auth.role_add(self.request(message))).await?;
                Ok(answer::header(answer.header.as_ref()))
            }
            Op::RoleDelete { role } => {
                let message = pb::AuthRoleDeleteRequest { role: role.into() };
                let answer = self.finish(auth.role_delete(self.request(message))).await?;
                Ok(answer::header(answer.header.as_ref()))
            }
            Op::RoleGet { role } => {
                let message = pb::AuthRoleGetRequest { role: role.into() };
                let answer = self.finish(auth.role_get(self.request(message))).await?;
                let permissions = answer.perm.iter().map(answer::grant).collect();
                Ok(Reply {
                    permissions,
                    ..answer::header(answer.header.as_ref())
                })
            }
            Op::RoleList {} => {
                let message = pb::AuthRoleListRequest {};
                let answer = self.finish(auth.role_list(self.request(message))).await?;
                Ok(Reply {
                    names: answer.roles.into_iter().map(Into::into).collect(),
                    ..answer::header(answer.header.as_ref())
                })
            }
            Op::GrantPermission { role, grant } => {
                let message = pb::AuthRoleGrantPermissionRequest {
                    name: role.into(),
                    perm: Some(permission(grant)),
                };
                let answer = self
                    .finish(auth.role_grant_permission(self.request(message)))
                    .await?;
                Ok(answer::header(answer.header.as_ref()))
            }
            Op::RevokePermission {
                role,
                key,
                range_end,
            } => {
                let message = pb::AuthRoleRevokePermissionRequest {
                    role: role.into(),
                    key: bytes(key),
                    range_end: bytes(range_end),
                };
                let answer = self
                    .finish(auth.role_revoke_permission(self.request(message)))
                    .await?;
                Ok(answer::header(answer.header.as_ref()))
            }
            other => self.switch(other).await,
        }
    }

    async fn switch(&self, op: &Op) -> Result<Reply, Status> {
        let mut auth = self.auth.clone();
        match op {
            Op::AuthEnable {} => {
                let message = pb::AuthEnableRequest {};
                let answer = self.finish(auth.auth_enable(self.request(message))).await?;
                Ok(answer::header(answer.header.as_ref()))
            }
            Op::AuthDisable {} => {
                let message = pb::AuthDisableRequest {};
                let answer = self
                    .finish(auth.auth_disable(self.request(message)))
                    .await?;
                Ok(answer::header(answer.header.as_ref()))
            }
            Op::AuthStatus {} => {
                let message = pb::AuthStatusRequest {};
                let answer = self.finish(auth.auth_status(self.request(message))).await?;
                let status = history::AuthStatus {
                    enabled: answer.enabled,
                    revision: answer.auth_revision,
                };
                Ok(Reply {
                    auth: Some(status),
                    ..answer::header(answer.header.as_ref())
                })
            }
            other => Err(unfit(other)),
        }
    }
}

/// For an operation that ended up where it cannot be sent; nothing has been sent, and the history says so.
fn unfit(op: &Op) -> Status {
    Status::unimplemented(format!(
        "the simulator cannot send \"{}\" here",
        words::op(op)
    ))
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn txn_op(op: &Op) -> Result<TxnOp, Status> {
    Ok(match op {
        Op::Put {
            key,
            value,
            prev_kv,
        } => TxnOp::RequestPut(pb::PutRequest {
            key: bytes(key),
            value: bytes(value),
            prev_kv: *prev_kv,
            ..Default::default()
        }),
        Op::Get {
            key,
            range_end,
            serializable,
            limit,
            revision,
            count_only,
        } => TxnOp::RequestRange(pb::RangeRequest {
            key: bytes(key),
            range_end: bytes(range_end),
            serializable: *serializable,
            limit: *limit,
            revision: *revision,
            count_only: *count_only,
            ..Default::default()
        }),
        Op::Delete {
            key,
            range_end,
            prev_kv,
        } => TxnOp::RequestDeleteRange(pb::DeleteRangeRequest {
            key: bytes(key),
            range_end: bytes(range_end),
            prev_kv: *prev_kv,
        }),
        Op::Txn {
            compare,
            success,
            failure,
        } => TxnOp::RequestTxn(pb::TxnRequest {
            compare: compare.iter().map(comparison).collect(),
            success: branch(success)?,
            failure: branch(failure)?,
        }),
        other => return Err(unfit(other)),
    })
}

fn branch(ops: &[Op]) -> Result<Vec<pb::RequestOp>, Status> {
    ops.iter()
        .map(|op| {
            Ok(pb::RequestOp {
                request: Some(txn_op(op)?),
            })
        })
        .collect()
}

fn comparison(compare: &history::Compare) -> pb::Compare {
    let (target, operand) = match &compare.equals {
        Operand::Value(value) => (CompareTarget::Value, TargetUnion::Value(bytes(value))),
        Operand::Version(version) => (CompareTarget::Version, TargetUnion::Version(*version)),
        Operand::ModRevision(revision) => (CompareTarget::Mod, TargetUnion::ModRevision(*revision)),
    };
    pb::Compare {
        result: CompareResult::Equal.into(),
        target: target.into(),
        key: bytes(&compare.key),
        target_union: Some(operand),
        range_end: Bytes::new(),
    }
}

fn permission(grant: &Grant) -> Permission {
    let kind = match grant.kind {
        GrantKind::Read => permission::Type::Read,
        GrantKind::Write => permission::Type::Write,
        GrantKind::Readwrite => permission::Type::Readwrite,
    };
    Permission {
        perm_type: kind.into(),
        key: bytes(&grant.key),
        range_end: bytes(&grant.range_end),
    }
}
