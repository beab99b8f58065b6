//! Rows of the first table: where the server does not do what etcd does, on purpose.

use super::contents::{does_nothing, names_empty_range};
use super::guarded::shown;
use super::requests::{grant, put, range, txn};
use super::{Difference, Mend, Row};
use crate::differential::request::{Listed, Request};
use gatehouse::pb::authpb;
use gatehouse::pb::etcdserverpb as pb;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const DENIED: &str = "PermissionDenied: permission denied";
const USER_EMPTY: &str = "InvalidArgument: user name is empty";

pub(super) static ROWS: &[Row] = &[
    Row {
        id: "empty-txn",
        shows: |guarded| Box::pin(async { shown(guarded.anyone.txn(txn(vec![])).await) }),
        explains: Some(|difference| {
            let idle = does_nothing(&difference.step.request);
            (idle && difference.ours.refused_as(USER_EMPTY)).then_some(Mend::OursAsRoot)
        }),
    },
    Row {
        id: "user-get-nobody",
        shows: |guarded| {
            Box::pin(async {
                let request = pb::AuthUserGetRequest::default();
                shown(guarded.anyone.user_get(request).await)
            })
        },
        explains: Some(|difference| {
            let Request::UserGet(request) = &difference.step.request else {
                return None;
            };
            let refused = difference.ours.refused_as(USER_EMPTY);
            let not_found = "FailedPrecondition: user name not found";
            (request.name.is_empty() && refused && difference.etcd.refused_as(not_found))
                .then_some(Mend::Nothing)
        }),
    },
    Row {
        id: "empty-range",
        shows: |guarded| Box::pin(async { shown(guarded.alice.range(range("b", "a")).await) }),
        explains: Some(|difference| {
            let empty = names_empty_range(&difference.step.request);
            (empty && difference.ours.refused_as(DENIED)).then_some(Mend::OursAsRoot)
        }),
    },
    Row {
        id: "auth-status-bad-token",
        shows: |guarded| {
            Box::pin(async {
                let bearer = guarded.anyone.presenting("token", "garbage");
                shown(bearer.auth_status(pb::AuthStatusRequest {}).await)
            })
        },
        explains: Some(|difference| {
            let asked = matches!(difference.step.request, Request::AuthStatus(_));
            let refused = difference
                .etcd
                .refused_as("Unauthenticated: invalid auth token");
            (asked && refused && difference.ours.outcome.is_ok()).then_some(Mend::Nothing)
        }),
    },
    Row {
        id: "grant-again",
        shows: |guarded| {
            Box::pin(async {
                for (kind, end) in [(0, ""), (1, "c"), (0, "c")] {
                    let grant = grant("app", kind, "b", end);
                    guarded.root.role_grant_permission(grant).await.unwrap();
                }
                listed_at(&guarded.root.role_get(role("app")).await.unwrap(), b"b")
            })
        },
        explains: Some(granted_again),
    },
    Row {
        id: "grant-order",
        shows: |guarded| {
            Box::pin(async {
                for end in ["c", ""] {
                    let grant = grant("app", 0, "b", end);
                    guarded.root.role_grant_permission(grant).await.unwrap();
                }
                listed_at(&guarded.root.role_get(role("app")).await.unwrap(), b"b")
            })
        },
        explains: Some(|difference| {
            let (etcd, ours) = (difference.etcd.lists()?, difference.ours.lists()?);
            (etcd == ours).then_some(Mend::Nothing)
        }),
    },
    Row {
        id: "unknown-comparison",
        shows: |guarded| {
            Box::pin(async {
                let compare = pb::Compare {
                    result: 9,
                    key: "a".into(),
                    ..Default::default()
                };
                let request = pb::TxnRequest {
                    compare: vec![compare],
                    ..txn(vec![put("a", false)])
                };
                shown(guarded.root.txn(request).await)
            })
        },
        explains: None,
    },
    Row {
        id: "sort-without-order",
        shows: |guarded| {
            Box::pin(async {
                for key in ["bb", "b", "a"] {
                    guarded.root.set(key, "1").await.unwrap();
                }
                let request = pb::RangeRequest {
                    limit: 1,
                    sort_target: pb::range_request::SortTarget::Create.into(),
                    ..range("a", "c")
                };
                keys(&guarded.root.range(request).await.unwrap())
            })
        },
        explains: Some(|difference| {
            let Request::Range(request) = &difference.step.request else {
                return None;
            };
            let unsaid = request.sort_order == 0 && request.sort_target != 0 && request.limit > 0;
            let both = difference.etcd.outcome.is_ok() && difference.ours.outcome.is_ok();
            (unsaid && both).then_some(Mend::Nothing)
        }),
    },
    Row {
        id: "token-from-the-future",
        shows: |guarded| {
            Box::pin(async {
                let bearer = guarded
                    .anyone
                    .presenting("token", "aaaaaaaaaaaaaaaa.999999999");
                let call = bearer.range(range("a", ""));
                match tokio::time::timeout(Duration::from_secs(1), call).await {
                    Ok(answer) => shown(answer),
                    Err(_) => "no answer".to_owned(),
                }
            })
        },
        explains: None,
    },
    Row {
        id: "message-beyond-limits",
        shows: |guarded| {
            Box::pin(async {
                let request = pb::PutRequest {
                    key: "a".into(),
                    value: vec![b'x'; 3 << 20].into(),
                    ..Default::default()
                };
                let answer = shown(guarded.root.put(request).await);
                answer.split(':').next().unwrap().to_owned()
            })
        },
        explains: None,
    },
    Row {
        id: "hash-kv-fields",
        shows: |guarded| {
            Box::pin(async {
                let hash = guarded.root.hash_kv(pb::HashKvRequest::default()).await;
                match hash.unwrap().auth_hash {
                    0 => "no auth hash".to_owned(),
                    _ => "an auth hash".to_owned(),
                }
            })
        },
        explains: None,
    },
    Row {
        id: "other-services",
        shows: |guarded| {
            Box::pin(async {
                let answer = guarded.root.bare("/etcdserverpb.Lease/LeaseLeases").await;
                shown(answer).split(':').next().unwrap().to_owned()
            })
        },
        explains: None,
    },
];

fn role(name: &str) -> pb::AuthRoleGetRequest {
    pb::AuthRoleGetRequest {
        role: name.to_owned(),
    }
}

/// The keys of an answer, in its order.
fn keys(answer: &pb::RangeResponse) -> String {
    let key = |kv: &gatehouse::pb::mvccpb::KeyValue| String::from_utf8(kv.key.to_vec()).unwrap();
    answer.kvs.iter().map(key).collect::<Vec<_>>().join(", ")
}

/// The permissions from `key` on, as `kind end`.
fn listed_at(answer: &pb::AuthRoleGetResponse, key: &[u8]) -> String {
    let at_key = answer.perm.iter().filter(|perm| perm.key == key);
    let one = |perm: &authpb::Permission| {
        let kind = perm.perm_type().as_str_name().to_lowercase();
        match std::str::from_utf8(&perm.range_end).unwrap() {
            "" => format!("{kind} b"),
            end => format!("{kind} b..{end}"),
        }
    };
    at_key.map(one).collect::<Vec<_>>().join(", ")
}

/// Etcd lists a permission twice where the last word won here: taken away there and granted again as it is here.
fn granted_again(difference: &Difference<'_>) -> Option<Mend> {
    let etcd = difference.etcd.permissions.as_ref()?;
    let ours = difference.ours.permissions.as_ref()?;
    let Request::RoleGet(pb::AuthRoleGetRequest { role }) = &difference.step.request else {
        return None;
    };
    let mut kinds = BTreeMap::new();
    let mut twice = Vec::new();
    for (kind, key, end) in etcd {
        let range = (key.clone(), end.clone());
        if kinds.insert(range.clone(), *kind).is_some() {
            twice.push(range);
        }
    }
    let last = kinds.into_iter().map(|((key, end), kind)| (kind, key, end));
    let last: BTreeSet<Listed> = last.collect();
    if twice.is_empty() || last != ours.iter().cloned().collect() {
        return None;
    }
    let mut requests = Vec::new();
    for (key, end) in twice {
        let (kind, ..) = ours.iter().find(|(_, k, e)| *k == key && *e == end)?;
        requests.push(Request::from(pb::AuthRoleRevokePermissionRequest {
            role: role.clone(),
            key: key.clone().into(),
            range_end: end.clone().into(),
        }));
        requests.push(Request::from(pb::AuthRoleGrantPermissionRequest {
            name: role.clone(),
            perm: Some(authpb::Permission {
                perm_type: *kind,
                key: key.into(),
                range_end: end.into(),
            }),
        }));
    }
    Some(Mend::EtcdAsRoot(requests))
}
