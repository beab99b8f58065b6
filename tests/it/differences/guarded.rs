//! What every row begins with: one server with auth on, an administrator, `alice` who may read and write `[a, c)`, and
//! nobody else.

use super::requests::{grant, role_add, user_add, user_grant};
use crate::client::Client;
use crate::differential::request::shown_refusal;
use gatehouse::pb::etcdserverpb as pb;
use tonic::Status;

/// One server, with auth on.
pub(super) struct Guarded {
    /// Without a token.
    pub(super) anyone: Client,
    /// An administrator.
    pub(super) root: Client,
    /// May read and write `[a, c)`.
    pub(super) alice: Client,
}

impl Guarded {
    /// Takes away what the row before left, and sets up anew.
    pub(super) async fn begin(address: &str) -> Guarded {
        let anyone = Client::anonymous(address);
        if let Ok(token) = anyone.login("root", "rootpw").await {
            let root = anyone.presenting("token", &token);
            root.auth_disable(pb::AuthDisableRequest {}).await.unwrap();
        }
        clear(&anyone).await;
        anyone.user_add(user_add("root", "rootpw")).await.unwrap();
        anyone.user_add(user_add("alice", "alicepw")).await.unwrap();
        anyone.role_add(role_add("root")).await.unwrap();
        anyone.role_add(role_add("app")).await.unwrap();
        anyone
            .role_grant_permission(grant("app", 2, "a", "c"))
            .await
            .unwrap();
        anyone
            .user_grant_role(user_grant("root", "root"))
            .await
            .unwrap();
        anyone
            .user_grant_role(user_grant("alice", "app"))
            .await
            .unwrap();
        anyone.auth_enable(pb::AuthEnableRequest {}).await.unwrap();
        Guarded {
            root: anyone.logged_in("root", "rootpw").await,
            alice: anyone.logged_in("alice", "alicepw").await,
            anyone,
        }
    }
}

/// Deletes all users, roles and keys.
async fn clear(anyone: &Client) {
    for name in anyone
        .user_list(pb::AuthUserListRequest {})
        .await
        .unwrap()
        .users
    {
        anyone
            .user_delete(pb::AuthUserDeleteRequest { name })
            .await
            .unwrap();
    }
    for role in anyone
        .role_list(pb::AuthRoleListRequest {})
        .await
        .unwrap()
        .roles
    {
        anyone
            .role_delete(pb::AuthRoleDeleteRequest { role })
            .await
            .unwrap();
    }
    let everything = pb::DeleteRangeRequest {
        key: "\0".into(),
        range_end: "\0".into(),
        prev_kv: false,
    };
    anyone.delete_range(everything).await.unwrap();
}

/// An answer in the table's words: `ok`, or the refusal.
pub(super) fn shown<T>(answer: Result<T, Status>) -> String {
    match answer {
        Ok(_) => "ok".to_owned(),
        Err(status) => shown_refusal(&status),
    }
}
