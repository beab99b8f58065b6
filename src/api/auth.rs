//! The Auth service: seventeen calls. Changes become log entries; questions are answered from one view behind a barrier.
//! Passwords are hashed here, before anything is proposed: a plain one never reaches the log.

use super::Api;
use super::call::Call;
use super::error::ApiError;
use super::identity::Resolved;
use crate::credential::login::{Attempt, Login};
use crate::node::convert::{permission_from_pb, permission_to_pb};
use crate::pb::etcdserverpb as pb;
use crate::platform::passwords::Secret;
use crate::state::{
    ApplyError, Op, PasswordHash, Permission, RawRange, Response as Applied, RoleName, UserAdd,
    UserName,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// Answers etcd's auth calls.
#[derive(Clone)]
pub(super) struct AuthService(pub(super) Arc<Api>);

#[tonic::async_trait]
impl pb::auth_server::Auth for AuthService {
    async fn auth_enable(
        &self,
        request: Request<pb::AuthEnableRequest>,
    ) -> Result<Response<pb::AuthEnableResponse>, Status> {
        let (call, message) = self.0.begin("AuthEnable", request);
        self.0
            .finish(&call, self.0.auth_enable(&call, message).await)
    }

    async fn auth_disable(
        &self,
        request: Request<pb::AuthDisableRequest>,
    ) -> Result<Response<pb::AuthDisableResponse>, Status> {
        let (call, message) = self.0.begin("AuthDisable", request);
        self.0
            .finish(&call, self.0.auth_disable(&call, message).await)
    }

    async fn auth_status(
        &self,
        request: Request<pb::AuthStatusRequest>,
    ) -> Result<Response<pb::AuthStatusResponse>, Status> {
        let (call, message) = self.0.begin("AuthStatus", request);
        self.0
            .finish(&call, self.0.auth_status(&call, message).await)
    }

    async fn authenticate(
        &self,
        request: Request<pb::AuthenticateRequest>,
    ) -> Result<Response<pb::AuthenticateResponse>, Status> {
        let (call, message) = self.0.begin("Authenticate", request);
        self.0
            .finish(&call, self.0.authenticate(&call, message).await)
    }

    async fn user_add(
        &self,
        request: Request<pb::AuthUserAddRequest>,
    ) -> Result<Response<pb::AuthUserAddResponse>, Status> {
        let (call, message) = self.0.begin("UserAdd", request);
        self.0.finish(&call, self.0.user_add(&call, message).await)
    }

    async fn user_get(
        &self,
        request: Request<pb::AuthUserGetRequest>,
    ) -> Result<Response<pb::AuthUserGetResponse>, Status> {
        let (call, message) = self.0.begin("UserGet", request);
        self.0.finish(&call, self.0.user_get(&call, message).await)
    }

    async fn user_list(
        &self,
        request: Request<pb::AuthUserListRequest>,
    ) -> Result<Response<pb::AuthUserListResponse>, Status> {
        let (call, message) = self.0.begin("UserList", request);
        self.0.finish(&call, self.0.user_list(&call, message).await)
    }

    async fn user_delete(
        &self,
        request: Request<pb::AuthUserDeleteRequest>,
    ) -> Result<Response<pb::AuthUserDeleteResponse>, Status> {
        let (call, message) = self.0.begin("UserDelete", request);
        self.0
            .finish(&call, self.0.user_delete(&call, message).await)
    }

    async fn user_change_password(
        &self,
        request: Request<pb::AuthUserChangePasswordRequest>,
    ) -> Result<Response<pb::AuthUserChangePasswordResponse>, Status> {
        let (call, message) = self.0.begin("UserChangePassword", request);
        self.0
            .finish(&call, self.0.user_change_password(&call, message).await)
    }

    async fn user_grant_role(
        &self,
        request: Request<pb::AuthUserGrantRoleRequest>,
    ) -> Result<Response<pb::AuthUserGrantRoleResponse>, Status> {
        let (call, message) = self.0.begin("UserGrantRole", request);
        self.0
            .finish(&call, self.0.user_grant_role(&call, message).await)
    }

    async fn user_revoke_role(
        &self,
        request: Request<pb::AuthUserRevokeRoleRequest>,
    ) -> Result<Response<pb::AuthUserRevokeRoleResponse>, Status> {
        let (call, message) = self.0.begin("UserRevokeRole", request);
        self.0
            .finish(&call, self.0.user_revoke_role(&call, message).await)
    }

    async fn role_add(
        &self,
        request: Request<pb::AuthRoleAddRequest>,
    ) -> Result<Response<pb::AuthRoleAddResponse>, Status> {
        let (call, message) = self.0.begin("RoleAdd", request);
        self.0.finish(&call, self.0.role_add(&call, message).await)
    }

    async fn role_get(
        &self,
        request: Request<pb::AuthRoleGetRequest>,
    ) -> Result<Response<pb::AuthRoleGetResponse>, Status> {
        let (call, message) = self.0.begin("RoleGet", request);
        self.0.finish(&call, self.0.role_get(&call, message).await)
    }

    async fn role_list(
        &self,
        request: Request<pb::AuthRoleListRequest>,
    ) -> Result<Response<pb::AuthRoleListResponse>, Status> {
        let (call, message) = self.0.begin("RoleList", request);
        self.0.finish(&call, self.0.role_list(&call, message).await)
    }

    async fn role_delete(
        &self,
        request: Request<pb::AuthRoleDeleteRequest>,
    ) -> Result<Response<pb::AuthRoleDeleteResponse>, Status> {
        let (call, message) = self.0.begin("RoleDelete", request);
        self.0
            .finish(&call, self.0.role_delete(&call, message).await)
    }

    async fn role_grant_permission(
        &self,
        request: Request<pb::AuthRoleGrantPermissionRequest>,
    ) -> Result<Response<pb::AuthRoleGrantPermissionResponse>, Status> {
        let (call, message) = self.0.begin("RoleGrantPermission", request);
        self.0
            .finish(&call, self.0.role_grant_permission(&call, message).await)
    }

    async fn role_revoke_permission(
        &self,
        request: Request<pb::AuthRoleRevokePermissionRequest>,
    ) -> Result<Response<pb::AuthRoleRevokePermissionResponse>, Status> {
        let (call, message) = self.0.begin("RoleRevokePermission", request);
        self.0
            .finish(&call, self.0.role_revoke_permission(&call, message).await)
    }
}

impl Api {
    async fn auth_enable(
        &self,
        call: &Call,
        pb::AuthEnableRequest {}: pb::AuthEnableRequest,
    ) -> Result<pb::AuthEnableResponse, ApiError> {
        let op = Op::AuthEnable;
        Ok(pb::AuthEnableResponse {
            header: self.change(call, op).await?,
        })
    }

    async fn auth_disable(
        &self,
        call: &Call,
        pb::AuthDisableRequest {}: pb::AuthDisableRequest,
    ) -> Result<pb::AuthDisableResponse, ApiError> {
        let op = Op::AuthDisable;
        Ok(pb::AuthDisableResponse {
            header: self.change(call, op).await?,
        })
    }

    async fn user_delete(
        &self,
        call: &Call,
        message: pb::AuthUserDeleteRequest,
    ) -> Result<pb::AuthUserDeleteResponse, ApiError> {
        let op = Op::UserDelete(UserName(message.name));
        Ok(pb::AuthUserDeleteResponse {
            header: self.change(call, op).await?,
        })
    }

    async fn user_grant_role(
        &self,
        call: &Call,
        message: pb::AuthUserGrantRoleRequest,
    ) -> Result<pb::AuthUserGrantRoleResponse, ApiError> {
        let op = Op::UserGrantRole(UserName(message.user), RoleName(message.role));
        Ok(pb::AuthUserGrantRoleResponse {
            header: self.change(call, op).await?,
        })
    }

    async fn user_revoke_role(
        &self,
        call: &Call,
        message: pb::AuthUserRevokeRoleRequest,
    ) -> Result<pb::AuthUserRevokeRoleResponse, ApiError> {
        let op = Op::UserRevokeRole(UserName(message.name), RoleName(message.role));
        Ok(pb::AuthUserRevokeRoleResponse {
            header: self.change(call, op).await?,
        })
    }

    async fn role_add(
        &self,
        call: &Call,
        message: pb::AuthRoleAddRequest,
    ) -> Result<pb::AuthRoleAddResponse, ApiError> {
        let op = Op::RoleAdd(RoleName(message.name));
        Ok(pb::AuthRoleAddResponse {
            header: self.change(call, op).await?,
        })
    }

    async fn role_delete(
        &self,
        call: &Call,
        message: pb::AuthRoleDeleteRequest,
    ) -> Result<pb::AuthRoleDeleteResponse, ApiError> {
        let op = Op::RoleDelete(RoleName(message.role));
        Ok(pb::AuthRoleDeleteResponse {
            header: self.change(call, op).await?,
        })
    }

    async fn role_grant_permission(
        &self,
        call: &Call,
        message: pb::AuthRoleGrantPermissionRequest,
    ) -> Result<pb::AuthRoleGrantPermissionResponse, ApiError> {
        let op =
            Op::RoleGrantPermission(RoleName(message.name), message.perm.map(permission_from_pb));
        Ok(pb::AuthRoleGrantPermissionResponse {
            header: self.change(call, op).await?,
        })
    }

    async fn role_revoke_permission(
        &self,
        call: &Call,
        message: pb::AuthRoleRevokePermissionRequest,
    ) -> Result<pb::AuthRoleRevokePermissionResponse, ApiError> {
        let op = Op::RoleRevokePermission(
            RoleName(message.role),
            RawRange {
                key: message.key,
                range_end: message.range_end,
            },
        );
        Ok(pb::AuthRoleRevokePermissionResponse {
            header: self.change(call, op).await?,
        })
    }

    async fn user_add(
        &self,
        call: &Call,
        message: pb::AuthUserAddRequest,
    ) -> Result<pb::AuthUserAddResponse, ApiError> {
        let no_password = message.options.is_some_and(|options| options.no_password);
        // Hashed before the caller is known, as in etcd: what is refused later has cost the same. A hash that the client
        // sent is ignored here.
        let password = if no_password {
            PasswordHash::default()
        } else {
            self.hash(call, Secret::new(message.password)).await?
        };
        let op = Op::UserAdd(UserAdd {
            name: UserName(message.name),
            password,
            no_password,
        });
        Ok(pb::AuthUserAddResponse {
            header: self.change(call, op).await?,
        })
    }

    async fn user_change_password(
        &self,
        call: &Call,
        message: pb::AuthUserChangePasswordRequest,
    ) -> Result<pb::AuthUserChangePasswordResponse, ApiError> {
        let name = UserName(message.name);
        let password = Secret::new(message.password);
        // An empty password is none: then the client's own hash counts, and without one the user can no longer log in.
        let hash = if password.is_empty() {
            self.sent_hash(call, &name, &message.hashed_password)
                .await?
        } else {
            self.hash(call, password).await?
        };
        let op = Op::UserChangePassword(name, hash);
        Ok(pb::AuthUserChangePasswordResponse {
            header: self.change(call, op).await?,
        })
    }

    async fn authenticate(
        &self,
        call: &Call,
        message: pb::AuthenticateRequest,
    ) -> Result<pb::AuthenticateResponse, ApiError> {
        // A token in the metadata says nothing here: whoever logs in has none, or an old one.
        let user = UserName(message.name);
        call.acts_for(&user);
        let attempt = Attempt {
            node: &self.node,
            passwords: &self.passwords,
            user: &user,
            password: Secret::new(message.password),
            call: call.id(),
            deadline: call.deadline(),
        };
        let Login { token, outcome } = attempt.run().await?;
        Ok(pb::AuthenticateResponse {
            header: Some(self.header(outcome.revision, outcome.term)),
            token,
        })
    }

    /// Answers everybody, bad tokens included: who needs a new token has to learn the auth revision first.
    async fn auth_status(
        &self,
        call: &Call,
        pb::AuthStatusRequest {}: pb::AuthStatusRequest,
    ) -> Result<pb::AuthStatusResponse, ApiError> {
        let view = self.node.barrier(call.deadline()).await?;
        self.served(call, &view);
        Ok(pb::AuthStatusResponse {
            header: Some(self.view_header(&view)),
            enabled: view.state.auth_enabled(),
            auth_revision: view.state.auth_revision(),
        })
    }

    async fn user_get(
        &self,
        call: &Call,
        message: pb::AuthUserGetRequest,
    ) -> Result<pb::AuthUserGetResponse, ApiError> {
        let Resolved { caller, view } = self.question(call).await?;
        let roles = view.state.user_get(&caller, &UserName(message.name))?;
        let roles = roles.into_iter().map(|role| role.0).collect();
        Ok(pb::AuthUserGetResponse {
            header: Some(self.view_header(&view)),
            roles,
        })
    }

    async fn user_list(
        &self,
        call: &Call,
        pb::AuthUserListRequest {}: pb::AuthUserListRequest,
    ) -> Result<pb::AuthUserListResponse, ApiError> {
        let Resolved { caller, view } = self.question(call).await?;
        let users = view
            .state
            .user_list(&caller)?
            .into_iter()
            .map(|user| user.0)
            .collect();
        Ok(pb::AuthUserListResponse {
            header: Some(self.view_header(&view)),
            users,
        })
    }

    async fn role_get(
        &self,
        call: &Call,
        message: pb::AuthRoleGetRequest,
    ) -> Result<pb::AuthRoleGetResponse, ApiError> {
        let Resolved { caller, view } = self.question(call).await?;
        let permissions: Vec<Permission> = view.state.role_get(&caller, &RoleName(message.role))?;
        let perm = permissions
            .into_iter()
            .map(|permission| permission_to_pb(&permission))
            .collect();
        Ok(pb::AuthRoleGetResponse {
            header: Some(self.view_header(&view)),
            perm,
        })
    }

    async fn role_list(
        &self,
        call: &Call,
        pb::AuthRoleListRequest {}: pb::AuthRoleListRequest,
    ) -> Result<pb::AuthRoleListResponse, ApiError> {
        let Resolved { caller, view } = self.question(call).await?;
        let roles = view
            .state
            .role_list(&caller)?
            .into_iter()
            .map(|role| role.0)
            .collect();
        Ok(pb::AuthRoleListResponse {
            header: Some(self.view_header(&view)),
            roles,
        })
    }

    /// Proposes an auth change; the answer is a header.
    async fn change(&self, call: &Call, op: Op) -> Result<Option<pb::ResponseHeader>, ApiError> {
        match self.write(call, op).await? {
            (header, Applied::Done) => Ok(Some(header)),
            (_, other) => unreachable!("an auth change was answered with {other:?}"),
        }
    }

    /// The view that answers a question about users and roles, and who asks.
    async fn question(&self, call: &Call) -> Result<Resolved, ApiError> {
        let view = self.node.barrier(call.deadline()).await?;
        let resolved = self.resolve(call, view).await?;
        self.served(call, &resolved.view);
        Ok(resolved)
    }

    async fn hash(&self, call: &Call, password: Secret) -> Result<PasswordHash, ApiError> {
        Ok(self.passwords.hash(password, call.deadline()).await?)
    }

    /// The hash that a client sent in place of a password. One that cannot be decoded is refused with etcd's error, but
    /// only where etcd comes to look at it: behind the gate, for a user that exists and uses passwords.
    async fn sent_hash(
        &self,
        call: &Call,
        name: &UserName,
        encoded: &str,
    ) -> Result<PasswordHash, ApiError> {
        if let Ok(decoded) = BASE64.decode(encoded) {
            return Ok(PasswordHash(Bytes::from(decoded)));
        }
        let Resolved { caller, view } = self.question(call).await?;
        view.state.check_admin(&caller)?;
        let record = view
            .state
            .login_record(name)
            .ok_or(ApplyError::UserNotFound)?;
        if record.no_password {
            Ok(PasswordHash::default())
        } else {
            Err(ApplyError::NoPasswordUser.into())
        }
    }
}
