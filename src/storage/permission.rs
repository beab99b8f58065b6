//! Permissions between protobuf and `state`: the same form on the wire, in log entries and in the store.

use crate::pb::authpb;
use crate::state::{Permission, PermissionKind, RawRange};

/// A permission as the state machine takes it. An unknown kind is kept, since etcd stores it.
pub(crate) fn permission_from_pb(permission: authpb::Permission) -> Permission {
    Permission {
        kind: match authpb::permission::Type::try_from(permission.perm_type) {
            Ok(authpb::permission::Type::Read) => PermissionKind::Read,
            Ok(authpb::permission::Type::Write) => PermissionKind::Write,
            Ok(authpb::permission::Type::Readwrite) => PermissionKind::ReadWrite,
            Err(_) => PermissionKind::Unknown(permission.perm_type),
        },
        range: RawRange {
            key: permission.key,
            range_end: permission.range_end,
        },
    }
}

/// The inverse of [`permission_from_pb`].
pub(crate) fn permission_to_pb(permission: &Permission) -> authpb::Permission {
    authpb::Permission {
        perm_type: match permission.kind {
            PermissionKind::Read => authpb::permission::Type::Read as i32,
            PermissionKind::Write => authpb::permission::Type::Write as i32,
            PermissionKind::ReadWrite => authpb::permission::Type::Readwrite as i32,
            PermissionKind::Unknown(number) => number,
        },
        key: permission.range.key.clone(),
        range_end: permission.range.range_end.clone(),
    }
}
