//! Rows of the second table: where older releases let pass what newer ones and the server refuse.

use super::contents::{is_empty, nests, puts_and_asks};
use super::guarded::shown;
use super::requests::{grant, put, txn};
use super::{Difference, Mend, Row};
use crate::differential::request::Request;
use gatehouse::pb::etcdserverpb as pb;
use pb::request_op::Request as Op;

const DENIED: &str = "PermissionDenied: permission denied";
const USER_EMPTY: &str = "InvalidArgument: user name is empty";

pub(super) static ROWS: &[Row] = &[
    Row {
        id: "compact-by-anybody",
        shows: |guarded| {
            Box::pin(async {
                let revision = guarded
                    .root
                    .set("z", "1")
                    .await
                    .unwrap()
                    .header
                    .unwrap()
                    .revision;
                let request = pb::CompactionRequest {
                    revision,
                    physical: false,
                };
                shown(guarded.alice.compact(request).await)
            })
        },
        explains: Some(|difference| {
            let asked = matches!(difference.step.request, Request::Compact(_));
            (asked && is_denied_here(difference) && difference.is_before("3.4.42/3.5.28/3.6.9"))
                .then_some(Mend::OursAsRoot)
        }),
    },
    Row {
        id: "nested-txn",
        shows: |guarded| {
            Box::pin(async {
                let inner = Op::RequestTxn(txn(vec![put("z", false)]));
                shown(guarded.alice.txn(txn(vec![inner])).await)
            })
        },
        explains: Some(|difference| {
            let nests = nests(&difference.step.request);
            (nests && is_denied_here(difference) && difference.is_before("3.4.42/3.5.28/3.6.9"))
                .then_some(Mend::OursAsRoot)
        }),
    },
    Row {
        id: "prev-kv-in-txn",
        shows: |guarded| {
            Box::pin(async {
                let role = grant("app", 1, "w", "");
                guarded.root.role_grant_permission(role).await.unwrap();
                shown(guarded.alice.txn(txn(vec![put("w", true)])).await)
            })
        },
        explains: Some(|difference| {
            let asks = puts_and_asks(&difference.step.request);
            (asks && is_denied_here(difference) && difference.is_before("3.4.44/3.5.30/3.6.11"))
                .then_some(Mend::OursAsRoot)
        }),
    },
    Row {
        id: "grant-without-keys",
        shows: |guarded| {
            Box::pin(async {
                shown(
                    guarded
                        .root
                        .role_grant_permission(grant("app", 2, "b", "a"))
                        .await,
                )
            })
        },
        explains: Some(granted_without_keys),
    },
    Row {
        id: "status-anonymous",
        shows: |guarded| {
            Box::pin(async { shown(guarded.anyone.status(pb::StatusRequest {}).await) })
        },
        explains: None,
    },
];

/// Whether only the server refused the caller as such.
fn is_denied_here(difference: &Difference<'_>) -> bool {
    let denied =
        |refusal| difference.ours.refused_as(refusal) && !difference.etcd.refused_as(refusal);
    denied(DENIED) || denied(USER_EMPTY)
}

/// Etcd has stored a grant that holds no key: taken away there. Of a role that does not exist it says so.
fn granted_without_keys(difference: &Difference<'_>) -> Option<Mend> {
    let Request::RoleGrantPermission(grant) = &difference.step.request else {
        return None;
    };
    let perm = grant.perm.as_ref()?;
    let holds_none = perm.key.is_empty() || is_empty(&perm.key, &perm.range_end);
    let refused = difference
        .ours
        .refused_as("InvalidArgument: invalid auth management");
    if !holds_none || !refused || !difference.is_before("3.4.25/3.5.8/3.6.0") {
        return None;
    }
    if difference.etcd.outcome.is_err() {
        let unknown = difference
            .etcd
            .refused_as("FailedPrecondition: role name not found");
        return unknown.then_some(Mend::Nothing);
    }
    Some(Mend::EtcdAsRoot(vec![Request::from(
        pb::AuthRoleRevokePermissionRequest {
            role: grant.name.clone(),
            key: perm.key.clone(),
            range_end: perm.range_end.clone(),
        },
    )]))
}
