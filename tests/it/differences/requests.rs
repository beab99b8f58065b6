//! Short forms of requests that rows need.

use gatehouse::pb::authpb;
use gatehouse::pb::etcdserverpb as pb;
use pb::request_op::Request as Op;

pub(super) fn user_add(name: &str, password: &str) -> pb::AuthUserAddRequest {
    pb::AuthUserAddRequest {
        name: name.to_owned(),
        password: password.to_owned(),
        ..Default::default()
    }
}

pub(super) fn role_add(name: &str) -> pb::AuthRoleAddRequest {
    pb::AuthRoleAddRequest {
        name: name.to_owned(),
    }
}

pub(super) fn user_grant(user: &str, role: &str) -> pb::AuthUserGrantRoleRequest {
    pb::AuthUserGrantRoleRequest {
        user: user.to_owned(),
        role: role.to_owned(),
    }
}

/// `kind` is 0 to read, 1 to write, 2 for both.
pub(super) fn grant(
    role: &str,
    kind: i32,
    key: &'static str,
    range_end: &'static str,
) -> pb::AuthRoleGrantPermissionRequest {
    pb::AuthRoleGrantPermissionRequest {
        name: role.to_owned(),
        perm: Some(authpb::Permission {
            perm_type: kind,
            key: key.into(),
            range_end: range_end.into(),
        }),
    }
}

pub(super) fn range(key: &'static str, range_end: &'static str) -> pb::RangeRequest {
    pb::RangeRequest {
        key: key.into(),
        range_end: range_end.into(),
        ..Default::default()
    }
}

/// A transaction that does nothing but `ops`.
pub(super) fn txn(ops: Vec<Op>) -> pb::TxnRequest {
    let op = |request| pb::RequestOp {
        request: Some(request),
    };
    pb::TxnRequest {
        success: ops.into_iter().map(op).collect(),
        ..Default::default()
    }
}

pub(super) fn put(key: &'static str, prev_kv: bool) -> Op {
    Op::RequestPut(pb::PutRequest {
        key: key.into(),
        value: "new".into(),
        prev_kv,
        ..Default::default()
    })
}
