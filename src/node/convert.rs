//! Requests between protobuf and `state`. The only place that knows both forms: the log entry codec uses it, and so does
//! `api` for what clients send. Nothing here decides whether a request is allowed.

use crate::pb::etcdserverpb as pb;
use crate::pb::etcdserverpb::compare::{CompareResult, CompareTarget, TargetUnion};
use crate::pb::etcdserverpb::range_request::{SortOrder as PbOrder, SortTarget as PbTarget};
use crate::pb::etcdserverpb::request_op::Request as PbOp;
use crate::state::{
    Compare, DeleteRange, Operand, Put, Range, RawRange, Relation, SortOrder, SortTarget, Txn,
    TxnOp,
};
use bytes::Bytes;

// Permissions are stored in the form in which they are sent, so the store has the conversion.
pub(crate) use crate::storage::{permission_from_pb, permission_to_pb};

/// A field holds a number that means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    /// An unknown sort order or target.
    #[error("unknown sort option")]
    SortOption,
    /// An unknown relation of a comparison.
    #[error("unknown relation {0} of a comparison")]
    CompareResult(i32),
    /// An unknown field to compare.
    #[error("unknown target {0} of a comparison")]
    CompareTarget(i32),
}

/// A put as the state machine takes it.
pub(crate) fn put_from_pb(put: pb::PutRequest) -> Put {
    Put {
        // The key index outlives the request. A slice would keep the whole message, and so the value, in memory.
        key: Bytes::copy_from_slice(&put.key),
        value: put.value,
        lease: put.lease,
        prev_kv: put.prev_kv,
        ignore_value: put.ignore_value,
        ignore_lease: put.ignore_lease,
    }
}

/// The inverse of [`put_from_pb`].
pub(crate) fn put_to_pb(put: &Put) -> pb::PutRequest {
    pb::PutRequest {
        key: put.key.clone(),
        value: put.value.clone(),
        lease: put.lease,
        prev_kv: put.prev_kv,
        ignore_value: put.ignore_value,
        ignore_lease: put.ignore_lease,
    }
}

/// A deletion as the state machine takes it.
pub(crate) fn delete_range_from_pb(delete: pb::DeleteRangeRequest) -> DeleteRange {
    DeleteRange {
        range: RawRange {
            key: delete.key,
            range_end: delete.range_end,
        },
        prev_kv: delete.prev_kv,
    }
}

/// The inverse of [`delete_range_from_pb`].
pub(crate) fn delete_range_to_pb(delete: &DeleteRange) -> pb::DeleteRangeRequest {
    pb::DeleteRangeRequest {
        key: delete.range.key.clone(),
        range_end: delete.range.range_end.clone(),
        prev_kv: delete.prev_kv,
    }
}

/// A read as the state machine takes it; whether it is serializable is not the state machine's concern.
///
/// # Errors
/// [`Malformed::SortOption`].
pub(crate) fn range_from_pb(range: pb::RangeRequest) -> Result<Range, Malformed> {
    Ok(Range {
        sort: sort_from_pb(range.sort_target, range.sort_order)?,
        range: RawRange {
            key: range.key,
            range_end: range.range_end,
        },
        limit: range.limit,
        revision: range.revision,
        keys_only: range.keys_only,
        count_only: range.count_only,
        mod_revision: (range.min_mod_revision, range.max_mod_revision),
        create_revision: (range.min_create_revision, range.max_create_revision),
    })
}

/// The inverse of [`range_from_pb`].
pub(crate) fn range_to_pb(range: &Range) -> pb::RangeRequest {
    let (sort_target, sort_order) = sort_to_pb(range.sort);
    pb::RangeRequest {
        key: range.range.key.clone(),
        range_end: range.range.range_end.clone(),
        limit: range.limit,
        revision: range.revision,
        sort_order: sort_order as i32,
        sort_target: sort_target as i32,
        serializable: false,
        keys_only: range.keys_only,
        count_only: range.count_only,
        min_mod_revision: range.mod_revision.0,
        max_mod_revision: range.mod_revision.1,
        min_create_revision: range.create_revision.0,
        max_create_revision: range.create_revision.1,
    }
}

/// Sorting by anything but the key without saying which way means upwards (etcd's `server/etcdserver/txn/range.go`).
fn sort_from_pb(target: i32, order: i32) -> Result<Option<(SortTarget, SortOrder)>, Malformed> {
    let target = PbTarget::try_from(target).map_err(|_| Malformed::SortOption)?;
    let order = PbOrder::try_from(order).map_err(|_| Malformed::SortOption)?;
    let target = match target {
        PbTarget::Key => SortTarget::Key,
        PbTarget::Version => SortTarget::Version,
        PbTarget::Create => SortTarget::Create,
        PbTarget::Mod => SortTarget::Mod,
        PbTarget::Value => SortTarget::Value,
    };
    Ok(match order {
        PbOrder::None if target == SortTarget::Key => None,
        PbOrder::None | PbOrder::Ascend => Some((target, SortOrder::Ascend)),
        PbOrder::Descend => Some((target, SortOrder::Descend)),
    })
}

fn sort_to_pb(sort: Option<(SortTarget, SortOrder)>) -> (PbTarget, PbOrder) {
    let Some((target, order)) = sort else {
        return (PbTarget::Key, PbOrder::None);
    };
    let target = match target {
        SortTarget::Key => PbTarget::Key,
        SortTarget::Version => PbTarget::Version,
        SortTarget::Create => PbTarget::Create,
        SortTarget::Mod => PbTarget::Mod,
        SortTarget::Value => PbTarget::Value,
    };
    let order = match order {
        SortOrder::Ascend => PbOrder::Ascend,
        SortOrder::Descend => PbOrder::Descend,
    };
    (target, order)
}

/// A transaction as the state machine takes it. An operation without a body is skipped, as etcd does.
///
/// # Errors
/// [`Malformed`], for the first field that means nothing, at any depth.
pub(crate) fn txn_from_pb(txn: pb::TxnRequest) -> Result<Txn, Malformed> {
    Ok(Txn {
        compares: txn
            .compare
            .into_iter()
            .map(compare_from_pb)
            .collect::<Result<_, _>>()?,
        success: ops_from_pb(txn.success)?,
        failure: ops_from_pb(txn.failure)?,
    })
}

/// The inverse of [`txn_from_pb`].
pub(crate) fn txn_to_pb(txn: &Txn) -> pb::TxnRequest {
    pb::TxnRequest {
        compare: txn.compares.iter().map(compare_to_pb).collect(),
        success: txn.success.iter().map(op_to_pb).collect(),
        failure: txn.failure.iter().map(op_to_pb).collect(),
    }
}

fn ops_from_pb(ops: Vec<pb::RequestOp>) -> Result<Vec<TxnOp>, Malformed> {
    ops.into_iter()
        .filter_map(|op| op.request)
        .map(op_from_pb)
        .collect()
}

fn op_from_pb(op: PbOp) -> Result<TxnOp, Malformed> {
    Ok(match op {
        PbOp::RequestRange(range) => TxnOp::Range(range_from_pb(range)?),
        PbOp::RequestPut(put) => TxnOp::Put(put_from_pb(put)),
        PbOp::RequestDeleteRange(delete) => TxnOp::DeleteRange(delete_range_from_pb(delete)),
        PbOp::RequestTxn(txn) => TxnOp::Txn(txn_from_pb(txn)?),
    })
}

fn op_to_pb(op: &TxnOp) -> pb::RequestOp {
    let request = match op {
        TxnOp::Range(range) => PbOp::RequestRange(range_to_pb(range)),
        TxnOp::Put(put) => PbOp::RequestPut(put_to_pb(put)),
        TxnOp::DeleteRange(delete) => PbOp::RequestDeleteRange(delete_range_to_pb(delete)),
        TxnOp::Txn(txn) => PbOp::RequestTxn(txn_to_pb(txn)),
    };
    pb::RequestOp {
        request: Some(request),
    }
}

/// The target says which field is compared; an operand that is absent, or of another field, counts as zero or empty
/// (etcd's `server/etcdserver/txn/txn.go`, `applyCompare`).
fn compare_from_pb(compare: pb::Compare) -> Result<Compare, Malformed> {
    let target = CompareTarget::try_from(compare.target)
        .map_err(|_| Malformed::CompareTarget(compare.target))?;
    let relation = CompareResult::try_from(compare.result)
        .map_err(|_| Malformed::CompareResult(compare.result))?;
    let operand = match (target, compare.target_union) {
        (CompareTarget::Version, Some(TargetUnion::Version(version))) => Operand::Version(version),
        (CompareTarget::Version, _) => Operand::Version(0),
        (CompareTarget::Create, Some(TargetUnion::CreateRevision(create))) => {
            Operand::Create(create)
        }
        (CompareTarget::Create, _) => Operand::Create(0),
        (CompareTarget::Mod, Some(TargetUnion::ModRevision(modified))) => Operand::Mod(modified),
        (CompareTarget::Mod, _) => Operand::Mod(0),
        (CompareTarget::Value, Some(TargetUnion::Value(value))) => Operand::Value(value),
        (CompareTarget::Value, _) => Operand::Value(Bytes::new()),
        (CompareTarget::Lease, Some(TargetUnion::Lease(lease))) => Operand::Lease(lease),
        (CompareTarget::Lease, _) => Operand::Lease(0),
    };
    Ok(Compare {
        range: RawRange {
            key: compare.key,
            range_end: compare.range_end,
        },
        relation: match relation {
            CompareResult::Equal => Relation::Equal,
            CompareResult::Greater => Relation::Greater,
            CompareResult::Less => Relation::Less,
            CompareResult::NotEqual => Relation::NotEqual,
        },
        operand,
    })
}

fn compare_to_pb(compare: &Compare) -> pb::Compare {
    let result = match compare.relation {
        Relation::Equal => CompareResult::Equal,
        Relation::Greater => CompareResult::Greater,
        Relation::Less => CompareResult::Less,
        Relation::NotEqual => CompareResult::NotEqual,
    };
    let (target, operand) = match &compare.operand {
        Operand::Version(version) => (CompareTarget::Version, TargetUnion::Version(*version)),
        Operand::Create(create) => (CompareTarget::Create, TargetUnion::CreateRevision(*create)),
        Operand::Mod(modified) => (CompareTarget::Mod, TargetUnion::ModRevision(*modified)),
        Operand::Value(value) => (CompareTarget::Value, TargetUnion::Value(value.clone())),
        Operand::Lease(lease) => (CompareTarget::Lease, TargetUnion::Lease(*lease)),
    };
    pb::Compare {
        result: result as i32,
        target: target as i32,
        key: compare.range.key.clone(),
        range_end: compare.range.range_end.clone(),
        target_union: Some(operand),
    }
}
