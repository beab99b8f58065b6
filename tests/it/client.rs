//! A raw gRPC client: what it sends is what the test says, nothing is repeated and nothing is added.

use gatehouse::pb::etcdserverpb as pb;
use gatehouse::platform::{Channel, ChannelOptions, with_deadline};
use pb::auth_client::AuthClient;
use pb::kv_client::KvClient;
use pb::maintenance_client::MaintenanceClient;
use std::time::Duration;
use tonic::{Request, Status};

/// How long one call may take.
const LIMIT: Duration = Duration::from_secs(10);

/// One member, as one caller sees it.
#[derive(Clone)]
pub(crate) struct Client {
    channel: Channel,
    /// Metadata key and value of the credential.
    token: Option<(&'static str, String)>,
}

/// Runs a story on a runtime of its own.
pub(crate) fn block_on<T>(story: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(story)
}

/// A refusal as code number and text.
pub(crate) fn refusal<T>(answer: Result<T, Status>) -> Option<(i32, String)> {
    answer
        .err()
        .map(|status| (i32::from(status.code()), status.message().to_owned()))
}

macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident: $client:ident, $request:ident => $response:ident;)*) => {
        impl Client {
            $(
                $(#[$doc])*
                pub(crate) async fn $name(&self, message: pb::$request) -> Result<pb::$response, Status> {
                    let mut client = $client::new(self.channel.clone());
                    let call = async |mut request: Request<pb::$request>| {
                        self.sign(&mut request);
                        client.$name(request).await
                    };
                    Ok(with_deadline(LIMIT, message, call).await?.into_inner())
                }
            )*
        }
    };
}

calls! {
    range: KvClient, RangeRequest => RangeResponse;
    put: KvClient, PutRequest => PutResponse;
    delete_range: KvClient, DeleteRangeRequest => DeleteRangeResponse;
    txn: KvClient, TxnRequest => TxnResponse;
    compact: KvClient, CompactionRequest => CompactionResponse;
    auth_enable: AuthClient, AuthEnableRequest => AuthEnableResponse;
    auth_disable: AuthClient, AuthDisableRequest => AuthDisableResponse;
    auth_status: AuthClient, AuthStatusRequest => AuthStatusResponse;
    authenticate: AuthClient, AuthenticateRequest => AuthenticateResponse;
    user_add: AuthClient, AuthUserAddRequest => AuthUserAddResponse;
    user_get: AuthClient, AuthUserGetRequest => AuthUserGetResponse;
    user_list: AuthClient, AuthUserListRequest => AuthUserListResponse;
    user_delete: AuthClient, AuthUserDeleteRequest => AuthUserDeleteResponse;
    user_change_password: AuthClient, AuthUserChangePasswordRequest => AuthUserChangePasswordResponse;
    user_grant_role: AuthClient, AuthUserGrantRoleRequest => AuthUserGrantRoleResponse;
    user_revoke_role: AuthClient, AuthUserRevokeRoleRequest => AuthUserRevokeRoleResponse;
    role_add: AuthClient, AuthRoleAddRequest => AuthRoleAddResponse;
    role_get: AuthClient, AuthRoleGetRequest => AuthRoleGetResponse;
    role_list: AuthClient, AuthRoleListRequest => AuthRoleListResponse;
    role_delete: AuthClient, AuthRoleDeleteRequest => AuthRoleDeleteResponse;
    role_grant_permission: AuthClient, AuthRoleGrantPermissionRequest => AuthRoleGrantPermissionResponse;
    role_revoke_permission: AuthClient, AuthRoleRevokePermissionRequest => AuthRoleRevokePermissionResponse;
    status: MaintenanceClient, StatusRequest => StatusResponse;
    hash_kv: MaintenanceClient, HashKvRequest => HashKvResponse;
}

impl Client {
    /// Without a credential.
    pub(crate) fn anonymous(address: &str) -> Client {
        Client {
            channel: Channel::new(address, ChannelOptions::default()),
            token: None,
        }
    }

    /// The same connection, with `token` under `key`.
    pub(crate) fn presenting(&self, key: &'static str, token: &str) -> Client {
        Client {
            token: Some((key, token.to_owned())),
            ..self.clone()
        }
    }

    /// The same connection, with the token of a login.
    pub(crate) async fn logged_in(&self, name: &str, password: &str) -> Client {
        let token = self.login(name, password).await.unwrap();
        self.presenting("token", &token)
    }

    /// A login's token.
    pub(crate) async fn login(&self, name: &str, password: &str) -> Result<String, Status> {
        let request = pb::AuthenticateRequest {
            name: name.to_owned(),
            password: password.to_owned(),
        };
        Ok(self.authenticate(request).await?.token)
    }

    /// Writes one key.
    pub(crate) async fn set(&self, key: &str, value: &str) -> Result<pb::PutResponse, Status> {
        let (key, value) = (key.to_owned().into(), value.to_owned().into());
        self.put(pb::PutRequest {
            key,
            value,
            ..Default::default()
        })
        .await
    }

    /// Reads one key.
    pub(crate) async fn get(&self, key: &str) -> Result<Option<String>, Status> {
        let request = pb::RangeRequest {
            key: key.to_owned().into(),
            ..Default::default()
        };
        let found = self.range(request).await?.kvs.into_iter().next();
        Ok(found.map(|kv| String::from_utf8(kv.value.to_vec()).unwrap()))
    }

    /// A call of an empty message under any path, whose answer is not looked at.
    pub(crate) async fn bare(&self, path: &'static str) -> Result<(), Status> {
        let mut client = tonic::client::Grpc::new(self.channel.clone());
        let mut request = Request::new(pb::StatusRequest {});
        self.sign(&mut request);
        client
            .ready()
            .await
            .map_err(|error| Status::unavailable(error.to_string()))?;
        let codec = tonic_prost::ProstCodec::<pb::StatusRequest, pb::AuthStatusRequest>::default();
        let path = http::uri::PathAndQuery::from_static(path);
        client.unary(request, path, codec).await.map(|_| ())
    }

    fn sign<M>(&self, request: &mut Request<M>) {
        if let Some((key, token)) = &self.token {
            request.metadata_mut().insert(*key, token.parse().unwrap());
        }
    }
}
