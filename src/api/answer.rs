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

/// The answer to a transaction. Answers inside it carry a header with the revision alone, as in etcd.
pub(super) fn txn_response(header: pb::ResponseHeader, done: TxnResponse) -> pb::TxnResponse {
    let inner = pb::ResponseHeader {
        revision: header.revision,
        ..Default::default()
    };
    let answer = |response| pb::ResponseOp {
        response: Some(txn_op_response(inner, response)),
    };
    pb::TxnResponse {
        header: Some(header),
        succeeded: done.succeeded,
        responses: done.responses.into_iter().map(answer).collect(),
    }
}

fn txn_op_response(
    header: pb::ResponseHeader,
    response: TxnOpResponse,
) -> pb::response_op::Response {
    use pb::response_op::Response;
    match response {
        TxnOpResponse::Range(found) => Response::ResponseRange(range_response(header, found)),
        TxnOpResponse::Put(prev_kv) => Response::ResponsePut(put_response(header, prev_kv)),
        TxnOpResponse::DeleteRange(deleted) => {
            Response::ResponseDeleteRange(delete_range_response(header, deleted))
        }
        TxnOpResponse::Txn(done) => Response::ResponseTxn(txn_response(header, done)),
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
