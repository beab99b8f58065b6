//! One call as a value, and its answer in a form in which two servers' can be compared.

use crate::client::Client;
use gatehouse::pb::etcdserverpb as pb;
use std::fmt::Debug;
use tonic::Status;

macro_rules! requests {
    ($($call:ident: $variant:ident($message:ident);)*) => {
        /// A call's message.
        #[derive(Clone, Debug)]
        pub(crate) enum Request {
            $($variant(pb::$message),)*
        }

        $(impl From<pb::$message> for Request {
            fn from(message: pb::$message) -> Request {
                Request::$variant(message)
            }
        })*

        impl Request {
            /// The call's name.
            pub(crate) fn name(&self) -> &'static str {
                match self {
                    $(Request::$variant(_) => stringify!($variant),)*
                }
            }

            /// Makes the call.
            pub(crate) async fn send(&self, client: &Client) -> Answer {
                match self {
                    $(Request::$variant(message) => Answer::new(client.$call(message.clone()).await),)*
                }
            }
        }
    };
}

requests! {
    range: Range(RangeRequest);
    put: Put(PutRequest);
    delete_range: DeleteRange(DeleteRangeRequest);
    txn: Txn(TxnRequest);
    compact: Compact(CompactionRequest);
    auth_enable: AuthEnable(AuthEnableRequest);
    auth_disable: AuthDisable(AuthDisableRequest);
    auth_status: AuthStatus(AuthStatusRequest);
    authenticate: Authenticate(AuthenticateRequest);
    user_add: UserAdd(AuthUserAddRequest);
    user_get: UserGet(AuthUserGetRequest);
    user_list: UserList(AuthUserListRequest);
    user_delete: UserDelete(AuthUserDeleteRequest);
    user_change_password: UserChangePassword(AuthUserChangePasswordRequest);
    user_grant_role: UserGrantRole(AuthUserGrantRoleRequest);
    user_revoke_role: UserRevokeRole(AuthUserRevokeRoleRequest);
    role_add: RoleAdd(AuthRoleAddRequest);
    role_get: RoleGet(AuthRoleGetRequest);
    role_list: RoleList(AuthRoleListRequest);
    role_delete: RoleDelete(AuthRoleDeleteRequest);
    role_grant_permission: RoleGrantPermission(AuthRoleGrantPermissionRequest);
    role_revoke_permission: RoleRevokePermission(AuthRoleRevokePermissionRequest);
}

/// What a call came to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    /// The message in full, without what two clusters cannot share; or the refusal's code and text.
    pub(crate) outcome: Result<String, String>,
    /// A login's token.
    pub(crate) token: Option<String>,
    /// What RoleGet lists: kind, key and range end.
    pub(crate) permissions: Option<Vec<Listed>>,
}

/// A permission of a role: its kind, key and range end.
pub(crate) type Listed = (i32, Vec<u8>, Vec<u8>);

/// What answers hold beyond what is compared as text.
trait Reply: Debug {
    fn token(&self) -> Option<String> {
        None
    }

    fn permissions(&self) -> Option<Vec<Listed>> {
        None
    }
}

impl Reply for pb::AuthenticateResponse {
    fn token(&self) -> Option<String> {
        Some(self.token.clone())
    }
}

impl Reply for pb::AuthRoleGetResponse {
    fn permissions(&self) -> Option<Vec<Listed>> {
        let listed = |perm: &gatehouse::pb::authpb::Permission| {
            (perm.perm_type, perm.key.to_vec(), perm.range_end.to_vec())
        };
        Some(self.perm.iter().map(listed).collect())
    }
}

macro_rules! plain_replies {
    ($($message:ident)*) => { $(impl Reply for pb::$message {})* };
}

plain_replies! {
    RangeResponse PutResponse DeleteRangeResponse TxnResponse CompactionResponse
    AuthEnableResponse AuthDisableResponse AuthStatusResponse
    AuthUserAddResponse AuthUserGetResponse AuthUserListResponse AuthUserDeleteResponse
    AuthUserChangePasswordResponse AuthUserGrantRoleResponse AuthUserRevokeRoleResponse
    AuthRoleAddResponse AuthRoleListResponse AuthRoleDeleteResponse
    AuthRoleGrantPermissionResponse AuthRoleRevokePermissionResponse
}

impl Answer {
    fn new<R: Reply>(answer: Result<R, Status>) -> Answer {
        match answer {
            Ok(message) => {
                let token = message.token();
                let mut text = format!("{message:?}");
                if let Some(token) = &token {
                    text = text.replace(token.as_str(), "_");
                }
                for name in ["cluster_id: ", "member_id: ", "raft_term: "] {
                    text = masked(&text, name);
                }
                Answer {
                    outcome: Ok(text),
                    token,
                    permissions: message.permissions(),
                }
            }
            Err(status) => Answer {
                outcome: Err(shown_refusal(&status)),
                token: None,
                permissions: None,
            },
        }
    }

    /// Whether the call was refused with this code and text.
    pub(crate) fn refused_as(&self, refusal: &str) -> bool {
        self.outcome.as_ref().is_err_and(|shown| shown == refusal)
    }

    /// What RoleGet lists, in an order of its own.
    pub(crate) fn lists(&self) -> Option<Vec<Listed>> {
        let mut listed = self.permissions.clone()?;
        listed.sort();
        Some(listed)
    }

    /// The revision in the answer's header.
    pub(crate) fn revision(&self) -> Option<i64> {
        let text = self.outcome.as_ref().ok()?;
        let (_, rest) = text.split_once("revision: ")?;
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        rest[..end].parse().ok()
    }

    /// Whether two servers gave the same answer.
    pub(crate) fn is_like(&self, other: &Answer) -> bool {
        self.outcome == other.outcome && self.token.is_some() == other.token.is_some()
    }
}

/// A refusal as people read it: `PermissionDenied: permission denied`.
pub(crate) fn shown_refusal(status: &Status) -> String {
    let message = status.message();
    let text = message.strip_prefix("etcdserver: ").unwrap_or(message);
    format!("{:?}: {text}", status.code())
}

/// Puts `_` in place of every number but zero that follows `name`: what a number is differs between clusters, whether
/// there is one does not.
fn masked(text: &str, name: &str) -> String {
    let mut parts = text.split(name);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        let number = &part[..part.len() - rest.len()];
        out += name;
        out += if number == "0" { "0" } else { "_" };
        out += rest;
    }
    out
}

#[test]
fn numbers_that_clusters_do_not_share_are_masked() {
    let text = "ResponseHeader { cluster_id: 12, member_id: 0, revision: 7, raft_term: 2 }";
    assert_eq!(
        masked(&masked(text, "cluster_id: "), "member_id: "),
        "ResponseHeader { cluster_id: _, member_id: 0, revision: 7, raft_term: 2 }"
    );
}
