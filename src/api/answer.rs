//! The core's results as the wire's messages. Requests go the other way in `node::convert`, which the log needs too.

use crate::pb::etcdserverpb as pb;
use crate::pb::mvccpb;
use crate::state::{Deleted, Found, KeyValue, TxnOpResponse, TxnResponse};

/// The answer to a read.
pub(super) fn range_response(header: pb::ResponseHeader, found: Found) -> pb::RangeResponse {
    let Found { kvs, more, count } = found;
    pb::RangeResponse {
        header: Some(header),
        kvs: kvs.into_iter().map(key_value).collect(),
        more,
        count,
    }
}

/// The answer to a write.
pub(super) fn put_response(
    header: pb::ResponseHeader,
    prev_kv: Option<KeyValue>,
) -> pb::PutResponse {
    pb::PutResponse {
        header: Some(header),
        prev_kv: prev_kv.map(key_value),
    }
}

/// The answer to a deletion.
pub(super) fn delete_range_response(
    header: pb::ResponseHeader,
    deleted: Deleted,
) -> pb::DeleteRangeResponse {
    let Deleted { deleted, prev_kvs } = deleted;
    pb::DeleteRangeResponse {
        header: Some(header),
        deleted,
        prev_kvs: prev_kvs.into_iter().map(key_value).collect(),
    }
}

/// The answer to a transaction. Of the answers inside it, those to operations carry a header with nothing but the
/// revision that the operation saw or made, and those to nested transactions an empty one (etcd's
/// `server/etcdserver/txn/txn.go`).
pub(super) fn txn_response(header: pb::ResponseHeader, done: TxnResponse) -> pb::TxnResponse {
    let newest = header.revision;
    let now = newest - i64::from(done.responses.iter().any(changes));
    Progress { now, newest }.txn(header, done)
}

/// The revision in the middle of a transaction. It makes one at most, with its first change.
struct Progress {
    /// What the next operation finds.
    now: i64,
    /// What the transaction leaves.
    newest: i64,
}

impl Progress {
    fn txn(&mut self, header: pb::ResponseHeader, done: TxnResponse) -> pb::TxnResponse {
        let TxnResponse {
            succeeded,
            responses,
        } = done;
        let answer = |response| pb::ResponseOp {
            response: Some(self.op(response)),
        };
        pb::TxnResponse {
            header: Some(header),
            succeeded,
            responses: responses.into_iter().map(answer).collect(),
        }
    }

    fn op(&mut self, response: TxnOpResponse) -> pb::response_op::Response {
        use pb::response_op::Response;
        if let TxnOpResponse::Txn(done) = response {
            return Response::ResponseTxn(self.txn(pb::ResponseHeader::default(), done));
        }
        if changes(&response) {
            self.now = self.newest;
        }
        let header = pb::ResponseHeader {
            revision: self.now,
            ..Default::default()
        };
        match response {
            TxnOpResponse::Range(found) => Response::ResponseRange(range_response(header, found)),
            TxnOpResponse::Put(prev_kv) => Response::ResponsePut(put_response(header, prev_kv)),
            TxnOpResponse::DeleteRange(deleted) => {
                Response::ResponseDeleteRange(delete_range_response(header, deleted))
            }
            TxnOpResponse::Txn(_) => unreachable!("answered above"),
        }
    }
}

/// Whether what was answered has changed a key.
fn changes(response: &TxnOpResponse) -> bool {
    match response {
        TxnOpResponse::Range(_) => false,
        TxnOpResponse::Put(_) => true,
        TxnOpResponse::DeleteRange(deleted) => deleted.deleted > 0,
        TxnOpResponse::Txn(done) => done.responses.iter().any(changes),
    }
}

fn key_value(kv: KeyValue) -> mvccpb::KeyValue {
    let KeyValue {
        key,
        value,
        create_revision,
        mod_revision,
        version,
        lease,
    } = kv;
    mvccpb::KeyValue {
        key,
        create_revision,
        mod_revision,
        version,
        value,
        lease,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pb::response_op::Response;

    fn deleted(deleted: i64) -> TxnOpResponse {
        TxnOpResponse::DeleteRange(Deleted {
            deleted,
            prev_kvs: vec![],
        })
    }

    fn nested(responses: Vec<TxnOpResponse>) -> TxnOpResponse {
        TxnOpResponse::Txn(TxnResponse {
            succeeded: true,
            responses,
        })
    }

    /// The revisions inside a transaction that left revision 7, nested ones in the order in which they were answered;
    /// a nested transaction's own is the number in front of those of its operations.
    fn revisions(answer: pb::TxnResponse) -> Vec<i64> {
        let mut shown = Vec::new();
        for response in answer.responses {
            let (header, inner) = match response.response.unwrap() {
                Response::ResponseRange(answer) => (answer.header, None),
                Response::ResponsePut(answer) => (answer.header, None),
                Response::ResponseDeleteRange(answer) => (answer.header, None),
                Response::ResponseTxn(answer) => (answer.header, Some(answer)),
            };
            let header = header.unwrap();
            assert_eq!(
                (header.cluster_id, header.member_id, header.raft_term),
                (0, 0, 0)
            );
            shown.push(header.revision);
            shown.extend(inner.into_iter().flat_map(revisions));
        }
        shown
    }

    #[track_caller]
    fn check(responses: Vec<TxnOpResponse>, expected: &[i64]) {
        let header = pb::ResponseHeader {
            cluster_id: 1,
            member_id: 2,
            revision: 7,
            raft_term: 3,
        };
        let done = TxnResponse {
            succeeded: true,
            responses,
        };
        let answer = txn_response(header, done);
        assert_eq!(answer.header, Some(header));
        assert_eq!(revisions(answer), expected);
    }

    #[test]
    fn inside_a_transaction_the_revision_grows_with_the_first_change() {
        let read = || TxnOpResponse::Range(Found::default());
        let put = || TxnOpResponse::Put(None);
        check(vec![], &[]);
        check(vec![read(), deleted(0), read()], &[7, 7, 7]);
        check(vec![deleted(0), put(), read()], &[6, 7, 7]);
        check(vec![read(), deleted(2), deleted(0)], &[6, 7, 7]);
        check(
            vec![read(), nested(vec![read(), put()]), read()],
            &[6, 0, 6, 7, 7],
        );
        check(vec![nested(vec![]), nested(vec![read()])], &[0, 0, 7]);
    }
}
