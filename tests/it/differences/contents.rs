//! What a request holds, for telling which row a difference belongs to.

use crate::differential::request::Request;
use bytes::Bytes;
use gatehouse::pb::etcdserverpb as pb;
use pb::request_op::Request as Op;

/// Whether the request names a range that can hold no key.
pub(super) fn names_empty_range(request: &Request) -> bool {
    match request {
        Request::Range(range) => is_empty(&range.key, &range.range_end),
        Request::DeleteRange(delete) => is_empty(&delete.key, &delete.range_end),
        Request::Txn(txn) => any_empty_range(txn),
        _ => false,
    }
}

/// Whether the request is a transaction with a transaction in it.
pub(super) fn nests(request: &Request) -> bool {
    let Request::Txn(txn) = request else {
        return false;
    };
    ops(txn).any(|op| matches!(op, Op::RequestTxn(_)))
}

/// Whether the request is a transaction with a put in it, at any depth, that asks for what it replaces.
pub(super) fn puts_and_asks(request: &Request) -> bool {
    matches!(request, Request::Txn(txn) if any_put_that_asks(txn))
}

/// Whether the request is a transaction that neither compares nor does anything.
pub(super) fn does_nothing(request: &Request) -> bool {
    matches!(request, Request::Txn(txn) if is_idle(txn))
}

/// Whether no key lies in a range.
pub(super) fn is_empty(key: &Bytes, range_end: &Bytes) -> bool {
    !range_end.is_empty() && range_end[..] != [0] && range_end <= key
}

fn any_empty_range(txn: &pb::TxnRequest) -> bool {
    let compared = |compare: &pb::Compare| is_empty(&compare.key, &compare.range_end);
    txn.compare.iter().any(compared)
        || ops(txn).any(|op| match op {
            Op::RequestRange(range) => is_empty(&range.key, &range.range_end),
            Op::RequestPut(_) => false,
            Op::RequestDeleteRange(delete) => is_empty(&delete.key, &delete.range_end),
            Op::RequestTxn(txn) => any_empty_range(txn),
        })
}

fn any_put_that_asks(txn: &pb::TxnRequest) -> bool {
    ops(txn).any(|op| match op {
        Op::RequestPut(put) => put.prev_kv,
        Op::RequestTxn(txn) => any_put_that_asks(txn),
        Op::RequestRange(_) | Op::RequestDeleteRange(_) => false,
    })
}

fn is_idle(txn: &pb::TxnRequest) -> bool {
    let mut ops = ops(txn);
    txn.compare.is_empty() && ops.all(|op| matches!(op, Op::RequestTxn(txn) if is_idle(txn)))
}

fn ops(txn: &pb::TxnRequest) -> impl Iterator<Item = &Op> {
    let both = txn.success.iter().chain(&txn.failure);
    both.filter_map(|op| op.request.as_ref())
}
