//! Rows of the second table: what older releases do not know yet, or answer otherwise.

use super::guarded::shown;
use super::requests::{range, user_add};
use super::{Mend, Row};
use crate::differential::request::Request;
use crate::differential::step::Caller;
use base64::Engine as _;
use gatehouse::pb::etcdserverpb as pb;

pub(super) static ROWS: &[Row] = &[
    Row {
        id: "bearer",
        shows: |guarded| {
            Box::pin(async {
                let token = guarded.anyone.login("alice", "alicepw").await.unwrap();
                let bearer = guarded
                    .anyone
                    .presenting("authorization", &format!("Bearer {token}"));
                shown(bearer.range(range("a", "")).await)
            })
        },
        explains: None,
    },
    Row {
        id: "bad-token-while-off",
        shows: |guarded| {
            Box::pin(async {
                guarded
                    .root
                    .auth_disable(pb::AuthDisableRequest {})
                    .await
                    .unwrap();
                let bearer = guarded.anyone.presenting("token", "garbage");
                shown(bearer.role_list(pb::AuthRoleListRequest {}).await)
            })
        },
        explains: Some(|difference| {
            let refused = difference
                .etcd
                .refused_as("Unauthenticated: invalid auth token");
            let presented = difference.step.caller != Caller::Anonymous;
            (refused
                && presented
                && !difference.auth_on
                && difference.is_before("3.4.28/3.5.10/3.6.0"))
            .then_some(Mend::EtcdAsOurs)
        }),
    },
    Row {
        id: "login-with-bad-token",
        shows: |guarded| {
            Box::pin(async {
                let bearer = guarded.anyone.presenting("token", "garbage");
                shown(bearer.login("alice", "alicepw").await)
            })
        },
        explains: Some(|difference| {
            let logs_in = matches!(difference.step.request, Request::Authenticate(_));
            let refused = difference
                .etcd
                .refused_as("Unauthenticated: invalid auth token");
            (logs_in && refused && difference.is_before("3.5.0")).then_some(Mend::EtcdAsOurs)
        }),
    },
    Row {
        id: "sort-order",
        shows: |guarded| {
            Box::pin(async {
                let request = pb::RangeRequest {
                    sort_order: 9,
                    ..range("a", "c")
                };
                shown(guarded.root.range(request).await)
            })
        },
        explains: Some(|difference| {
            let Request::Range(request) = &difference.step.request else {
                return None;
            };
            let refused = difference
                .ours
                .refused_as("InvalidArgument: invalid sort option");
            (request.sort_order == 9 && refused && difference.is_before("3.6.0"))
                .then_some(Mend::Nothing)
        }),
    },
    Row {
        id: "role-get-root",
        shows: |guarded| {
            Box::pin(async {
                let role = "root".to_owned();
                let listed = guarded.root.role_get(pb::AuthRoleGetRequest { role }).await;
                match &listed.unwrap().perm[..] {
                    [] => "no permission".to_owned(),
                    [perm] if perm.key.is_empty() && perm.range_end[..] == [0] => {
                        "everything".to_owned()
                    }
                    others => format!("{others:?}"),
                }
            })
        },
        explains: Some(|difference| {
            let Request::RoleGet(request) = &difference.step.request else {
                return None;
            };
            (request.role == "root" && difference.is_before("3.6.0")).then_some(Mend::Nothing)
        }),
    },
    Row {
        id: "auth-status",
        shows: |guarded| {
            Box::pin(async {
                let answer = shown(guarded.root.auth_status(pb::AuthStatusRequest {}).await);
                answer.split(':').next().unwrap().to_owned()
            })
        },
        explains: Some(|difference| {
            let asked = matches!(difference.step.request, Request::AuthStatus(_));
            (asked && difference.is_before("3.5.0")).then_some(Mend::Nothing)
        }),
    },
    Row {
        id: "auth-status-anonymous",
        shows: |guarded| {
            Box::pin(async { shown(guarded.anyone.auth_status(pb::AuthStatusRequest {}).await) })
        },
        explains: Some(|difference| {
            let asked = matches!(difference.step.request, Request::AuthStatus(_));
            (asked && difference.ours.outcome.is_ok() && difference.is_before("3.7.0"))
                .then_some(Mend::Nothing)
        }),
    },
    Row {
        id: "long-password",
        shows: |guarded| {
            Box::pin(async {
                shown(
                    guarded
                        .root
                        .user_add(user_add("long", &"x".repeat(73)))
                        .await,
                )
            })
        },
        explains: None,
    },
    Row {
        id: "sent-hash",
        shows: |guarded| {
            Box::pin(async {
                let hash = bcrypt::hash("sent", 4).unwrap();
                let change = pb::AuthUserChangePasswordRequest {
                    name: "alice".to_owned(),
                    hashed_password: base64::engine::general_purpose::STANDARD.encode(hash),
                    ..Default::default()
                };
                guarded.root.user_change_password(change).await.unwrap();
                shown(guarded.anyone.login("alice", "sent").await)
            })
        },
        explains: None,
    },
    Row {
        id: "password-changed-to-none",
        shows: |guarded| {
            Box::pin(async {
                let change = pb::AuthUserChangePasswordRequest {
                    name: "alice".to_owned(),
                    ..Default::default()
                };
                guarded.root.user_change_password(change).await.unwrap();
                shown(guarded.anyone.login("alice", "").await)
            })
        },
        explains: None,
    },
];
