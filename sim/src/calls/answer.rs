//! From the server's answers to what histories hold of them.

use gatehouse::pb::authpb::{Permission, permission};
use gatehouse::pb::etcdserverpb as pb;
use gatehouse::pb::mvccpb::KeyValue;
use gatehouse_judge::history::{Grant, GrantKind, Pair, Reply};
use gatehouse_judge::text::Text;
use pb::response_op::Response as TxnOp;

/// An answer of which only the header says anything.
pub(super) fn header(header: Option<&pb::ResponseHeader>) -> Reply {
    Reply {
        revision: header.map_or(0, |header| header.revision),
        ..Reply::default()
    }
}

/// Text of a plan comes back as it went; anything else would be a defect, which the replacement characters show.
fn text(bytes: &[u8]) -> Text {
    String::from_utf8_lossy(bytes).as_ref().into()
}

fn pair(kv: &KeyValue) -> Pair {
    Pair {
        key: text(&kv.key),
        value: text(&kv.value),
        create_revision: kv.create_revision,
        mod_revision: kv.mod_revision,
        version: kv.version,
    }
}

pub(super) fn put(answer: pb::PutResponse) -> Reply {
    Reply {
        kvs: answer.prev_kv.iter().map(pair).collect(),
        ..header(answer.header.as_ref())
    }
}

pub(super) fn range(answer: pb::RangeResponse) -> Reply {
    let kvs = answer.kvs.iter().map(pair).collect();
    Reply {
        kvs,
        count: answer.count,
        ..header(answer.header.as_ref())
    }
}

pub(super) fn delete(answer: pb::DeleteRangeResponse) -> Reply {
    let kvs = answer.prev_kvs.iter().map(pair).collect();
    Reply {
        kvs,
        count: answer.deleted,
        ..header(answer.header.as_ref())
    }
}

pub(super) fn txn(answer: pb::TxnResponse) -> Reply {
    let responses = answer
        .responses
        .into_iter()
        .map(|response| match response.response {
            Some(TxnOp::ResponseRange(answer)) => range(answer),
            Some(TxnOp::ResponsePut(answer)) => put(answer),
            Some(TxnOp::ResponseDeleteRange(answer)) => delete(answer),
            Some(TxnOp::ResponseTxn(answer)) => txn(answer),
            None => Reply::default(),
        });
    Reply {
        succeeded: Some(answer.succeeded),
        responses: responses.collect(),
        ..header(answer.header.as_ref())
    }
}

pub(super) fn grant(granted: &Permission) -> Grant {
    let kind = match granted.perm_type() {
        permission::Type::Read => GrantKind::Read,
        permission::Type::Write => GrantKind::Write,
        permission::Type::Readwrite => GrantKind::Readwrite,
    };
    Grant {
        kind,
        key: text(&granted.key),
        range_end: text(&granted.range_end),
    }
}
