//! Requests that make no sense are refused before anything is spent on them, with the checks and in the order of etcd's
//! `server/etcdserver/api/v3rpc/key.go`. Nothing here looks at state.

use super::error::RequestError;
use crate::pb::etcdserverpb as pb;
use bytes::Bytes;
use pb::request_op::Request;
use std::collections::{BTreeMap, BTreeSet};

/// Checks a read.
pub(super) fn range(request: &pb::RangeRequest) -> Result<(), RequestError> {
    non_empty(&request.key)?;
    let order = pb::range_request::SortOrder::try_from(request.sort_order);
    let target = pb::range_request::SortTarget::try_from(request.sort_target);
    if order.is_err() || target.is_err() {
        return Err(RequestError::InvalidSortOption);
    }
    Ok(())
}

/// Checks a write.
pub(super) fn put(request: &pb::PutRequest) -> Result<(), RequestError> {
    non_empty(&request.key)?;
    if request.ignore_value && !request.value.is_empty() {
        return Err(RequestError::ValueProvided);
    }
    if request.ignore_lease && request.lease != 0 {
        return Err(RequestError::LeaseProvided);
    }
    Ok(())
}

/// Checks a deletion.
pub(super) fn delete_range(request: &pb::DeleteRangeRequest) -> Result<(), RequestError> {
    non_empty(&request.key)
}

/// Checks a transaction with everything in it. `ops_max` bounds the longest of its three lists, together with those of
/// the transactions around it.
pub(super) fn txn(request: &pb::TxnRequest, ops_max: usize) -> Result<(), RequestError> {
    txn_ops(request, ops_max)?;
    branch_footprint(&request.success)?;
    branch_footprint(&request.failure)?;
    Ok(())
}

fn non_empty(key: &Bytes) -> Result<(), RequestError> {
    if key.is_empty() {
        Err(RequestError::EmptyKey)
    } else {
        Ok(())
    }
}

fn txn_ops(request: &pb::TxnRequest, ops_max: usize) -> Result<(), RequestError> {
    let ops = request
        .compare
        .len()
        .max(request.success.len())
        .max(request.failure.len());
    let left = ops_max.checked_sub(ops).ok_or(RequestError::TooManyOps)?;
    request.compare.iter().try_for_each(compare)?;
    request.success.iter().try_for_each(|op| txn_op(op, left))?;
    request.failure.iter().try_for_each(|op| txn_op(op, left))
}

fn compare(compare: &pb::Compare) -> Result<(), RequestError> {
    non_empty(&compare.key)?;
    let result = pb::compare::CompareResult::try_from(compare.result);
    let target = pb::compare::CompareTarget::try_from(compare.target);
    if result.is_err() || target.is_err() {
        return Err(RequestError::InvalidCompareOption);
    }
    Ok(())
}

fn txn_op(op: &pb::RequestOp, ops_max: usize) -> Result<(), RequestError> {
    match &op.request {
        Some(Request::RequestRange(request)) => range(request),
        Some(Request::RequestPut(request)) => put(request),
        Some(Request::RequestDeleteRange(request)) => delete_range(request),
        Some(Request::RequestTxn(request)) => txn_ops(request, ops_max),
        None => Err(RequestError::EmptyOp),
    }
}

/// The keys that a branch may change.
#[derive(Default)]
struct Footprint {
    puts: BTreeSet<Bytes>,
    deletes: Deletes,
}

/// Refuses a branch that would change one key twice: by two puts, or by a put and a deletion. The two branches of one
/// nested transaction exclude each other and may meet. As in etcd, a deletion in a nested transaction counts for the
/// nested ones after it and for the branch's own puts, not for the nested ones before.
fn branch_footprint(ops: &[pb::RequestOp]) -> Result<Footprint, RequestError> {
    let mut footprint = Footprint::default();
    for op in ops {
        if let Some(Request::RequestDeleteRange(request)) = &op.request {
            footprint.deletes.add(&request.key, &request.range_end);
        }
    }
    for op in ops {
        if let Some(Request::RequestTxn(request)) = &op.request {
            let success = branch_footprint(&request.success)?;
            let failure = branch_footprint(&request.failure)?;
            for key in &success.puts {
                footprint.put(key, None)?;
            }
            for key in &failure.puts {
                footprint.put(key, Some(&success.puts))?;
            }
            footprint.deletes.add_all(&success.deletes);
            footprint.deletes.add_all(&failure.deletes);
        }
    }
    for op in ops {
        if let Some(Request::RequestPut(request)) = &op.request {
            footprint.put(&request.key, None)?;
        }
    }
    Ok(footprint)
}

impl Footprint {
    /// Adds a put; `excluded` are the puts of a branch that cannot run together with this one's.
    fn put(&mut self, key: &Bytes, excluded: Option<&BTreeSet<Bytes>>) -> Result<(), RequestError> {
        let other_branch = excluded.is_some_and(|puts| puts.contains(key));
        if self.deletes.contains(key) || (self.puts.contains(key) && !other_branch) {
            return Err(RequestError::DuplicateKey);
        }
        self.puts.insert(key.clone());
        Ok(())
    }
}

/// A union of deleted ranges: disjoint intervals by their first key, each with the first key after it.
#[derive(Default)]
struct Deletes(BTreeMap<Bytes, Bytes>);

impl Deletes {
    /// Adds a range as the wire spells it. An end of one zero byte, which means everything from the key on, is taken
    /// literally as in etcd: it ends before the key, and the range counts for nothing. So `delete everything, then put`
    /// is one transaction.
    fn add(&mut self, key: &Bytes, range_end: &Bytes) {
        let end = if range_end.is_empty() {
            successor(key)
        } else {
            range_end.clone()
        };
        self.insert(key.clone(), end);
    }

    fn add_all(&mut self, other: &Deletes) {
        for (start, end) in &other.0 {
            self.insert(start.clone(), end.clone());
        }
    }

    fn insert(&mut self, mut start: Bytes, mut end: Bytes) {
        if end <= start {
            return; // Holds no key.
        }
        // Whatever overlaps the new interval starts before its end; the last of those reaches furthest.
        while let Some((known, known_end)) = self.0.range::<Bytes, _>(..&end).next_back() {
            if *known_end < start {
                break;
            }
            let known = known.clone();
            let known_end = self.0.remove(&known).expect("it was just found");
            start = start.min(known);
            end = end.max(known_end);
        }
        self.0.insert(start, end);
    }

    fn contains(&self, key: &Bytes) -> bool {
        let before = self.0.range::<Bytes, _>(..=key).next_back();
        before.is_some_and(|(_, end)| key < end)
    }
}

/// The smallest key above `key`.
fn successor(key: &Bytes) -> Bytes {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    Bytes::from(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(request: Request) -> pb::RequestOp {
        pb::RequestOp {
            request: Some(request),
        }
    }

    fn put_op(key: &'static str) -> pb::RequestOp {
        op(Request::RequestPut(pb::PutRequest {
            key: key.into(),
            ..Default::default()
        }))
    }

    fn delete_op(key: &'static str, range_end: &'static str) -> pb::RequestOp {
        let request = pb::DeleteRangeRequest {
            key: key.into(),
            range_end: range_end.into(),
            ..Default::default()
        };
        op(Request::RequestDeleteRange(request))
    }

    fn nested(success: Vec<pb::RequestOp>, failure: Vec<pb::RequestOp>) -> pb::RequestOp {
        op(Request::RequestTxn(pb::TxnRequest {
            success,
            failure,
            ..Default::default()
        }))
    }

    fn check(success: Vec<pb::RequestOp>, expected: Result<(), RequestError>) {
        let shown = format!("{success:?}");
        let request = pb::TxnRequest {
            success: success.clone(),
            ..Default::default()
        };
        assert_eq!(txn(&request, 128), expected, "success: {shown}");
        let request = pb::TxnRequest {
            failure: success,
            ..Default::default()
        };
        assert_eq!(txn(&request, 128), expected, "failure: {shown}");
    }

    #[test]
    fn a_branch_changes_a_key_once() {
        let duplicate = Err(RequestError::DuplicateKey);
        check(vec![put_op("a"), put_op("b")], Ok(()));
        check(vec![put_op("a"), put_op("a")], duplicate);
        check(vec![put_op("a"), delete_op("a", "")], duplicate);
        check(vec![delete_op("a", ""), put_op("a")], duplicate);
        check(vec![delete_op("a", "c"), put_op("b")], duplicate);
        check(vec![delete_op("a", "c"), put_op("c")], Ok(()));
        check(vec![delete_op("b", "\0"), put_op("zz")], Ok(()));
        check(vec![delete_op("b", "\0"), put_op("b")], Ok(()));
        check(vec![delete_op("b", "\0"), put_op("a")], Ok(()));
        check(vec![delete_op("\0", "\0"), put_op("\0")], Ok(()));
        check(vec![delete_op("c", "a"), put_op("b")], Ok(()));
        check(
            vec![delete_op("a", "c"), delete_op("b", "e"), delete_op("x", "")],
            Ok(()),
        );
        check(
            vec![delete_op("a", "c"), delete_op("b", "e"), put_op("d")],
            duplicate,
        );
        check(
            vec![delete_op("a", "z"), delete_op("b", "c"), put_op("d")],
            duplicate,
        );
        check(
            vec![
                delete_op("b", "c"),
                delete_op("f", "g"),
                delete_op("a", "\0"),
                delete_op("a", "i"),
                put_op("h"),
            ],
            duplicate,
        );
    }

    #[test]
    fn nested_transactions_count_for_the_branch_around_them() {
        let duplicate = Err(RequestError::DuplicateKey);
        check(
            vec![put_op("a"), nested(vec![put_op("a")], vec![])],
            duplicate,
        );
        check(
            vec![delete_op("a", "b"), nested(vec![], vec![put_op("a")])],
            duplicate,
        );
        check(
            vec![put_op("a"), nested(vec![delete_op("a", "")], vec![])],
            duplicate,
        );
        check(
            vec![
                nested(vec![put_op("a")], vec![]),
                nested(vec![put_op("a")], vec![]),
            ],
            duplicate,
        );
        check(vec![nested(vec![put_op("a")], vec![put_op("a")])], Ok(()));
        let (put, delete) = (|| vec![put_op("b")], || vec![delete_op("a", "c")]);
        check(vec![nested(delete(), put())], Ok(()));
        check(vec![nested(put(), delete())], Ok(()));
        check(
            vec![nested(delete(), vec![]), nested(put(), vec![])],
            duplicate,
        );
        check(
            vec![nested(vec![], delete()), nested(put(), vec![])],
            duplicate,
        );
        check(
            vec![nested(put(), vec![]), nested(delete(), vec![])],
            Ok(()),
        );
        check(vec![nested(vec![], delete()), put_op("b")], duplicate);
        check(
            vec![nested(vec![put_op("a"), put_op("a")], vec![])],
            duplicate,
        );
    }

    #[test]
    fn the_two_branches_do_not_count_together() {
        let request = pb::TxnRequest {
            success: vec![put_op("a")],
            failure: vec![put_op("a")],
            ..Default::default()
        };
        assert_eq!(txn(&request, 128), Ok(()));
    }

    #[test]
    fn nesting_uses_up_the_limit() {
        let two = || vec![put_op("a"), put_op("b")];
        let request = |success| pb::TxnRequest {
            success,
            ..Default::default()
        };
        assert_eq!(txn(&request(two()), 2), Ok(()));
        assert_eq!(txn(&request(two()), 1), Err(RequestError::TooManyOps));
        assert_eq!(txn(&request(vec![nested(two(), vec![])]), 3), Ok(()));
        assert_eq!(
            txn(&request(vec![nested(two(), vec![])]), 2),
            Err(RequestError::TooManyOps)
        );
        let compares = vec![
            pb::Compare {
                key: "a".into(),
                ..Default::default()
            };
            3
        ];
        let request = pb::TxnRequest {
            compare: compares,
            ..Default::default()
        };
        assert_eq!(txn(&request, 2), Err(RequestError::TooManyOps));
    }

    #[test]
    fn single_requests_that_make_no_sense_are_refused() {
        let ok = pb::PutRequest {
            key: "k".into(),
            ..Default::default()
        };
        assert_eq!(put(&ok), Ok(()));
        assert_eq!(put(&pb::PutRequest::default()), Err(RequestError::EmptyKey));
        let with_value = pb::PutRequest {
            ignore_value: true,
            value: "v".into(),
            ..ok.clone()
        };
        assert_eq!(put(&with_value), Err(RequestError::ValueProvided));
        let with_lease = pb::PutRequest {
            ignore_lease: true,
            lease: 1,
            ..ok
        };
        assert_eq!(put(&with_lease), Err(RequestError::LeaseProvided));
        assert_eq!(
            delete_range(&pb::DeleteRangeRequest::default()),
            Err(RequestError::EmptyKey)
        );
        assert_eq!(
            range(&pb::RangeRequest::default()),
            Err(RequestError::EmptyKey)
        );
        for (sort_order, sort_target) in [(3, 0), (0, 5), (-1, 0)] {
            let request = pb::RangeRequest {
                key: "k".into(),
                sort_order,
                sort_target,
                ..Default::default()
            };
            assert_eq!(range(&request), Err(RequestError::InvalidSortOption));
        }
    }

    #[test]
    fn parts_of_a_transaction_that_make_no_sense_are_refused() {
        check(vec![put_op("")], Err(RequestError::EmptyKey));
        check(
            vec![pb::RequestOp { request: None }],
            Err(RequestError::EmptyOp),
        );
        check(
            vec![nested(vec![delete_op("", "")], vec![])],
            Err(RequestError::EmptyKey),
        );
        for (compare, expected) in [
            (pb::Compare::default(), RequestError::EmptyKey),
            (
                pb::Compare {
                    key: "k".into(),
                    result: 9,
                    ..Default::default()
                },
                RequestError::InvalidCompareOption,
            ),
            (
                pb::Compare {
                    key: "k".into(),
                    target: 9,
                    ..Default::default()
                },
                RequestError::InvalidCompareOption,
            ),
        ] {
            let request = pb::TxnRequest {
                compare: vec![compare],
                ..Default::default()
            };
            assert_eq!(txn(&request, 128), Err(expected));
        }
    }
}
