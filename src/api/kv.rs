//! The KV service. Writes are decided where their entry stands in the log; reads in one view, which linearizable ones
//! obtain through a barrier first.

use super::Api;
use super::answer;
use super::call::Call;
use super::decided_early::Reading;
use super::error::ApiError;
use super::identity::Resolved;
use super::validate;
use crate::node::convert;
use crate::pb::etcdserverpb as pb;
use crate::state::{Op, Response as Applied};
use crate::window::{self, Window};
use pb::request_op::Request as TxnOp;
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// Answers etcd's KV calls.
#[derive(Clone)]
pub(super) struct KvService(pub(super) Arc<Api>);

#[tonic::async_trait]
impl pb::kv_server::Kv for KvService {
    async fn range(
        &self,
        request: Request<pb::RangeRequest>,
    ) -> Result<Response<pb::RangeResponse>, Status> {
        let (call, message) = self.0.begin("Range", request);
        self.0.finish(&call, self.0.range(&call, message).await)
    }

    async fn put(
        &self,
        request: Request<pb::PutRequest>,
    ) -> Result<Response<pb::PutResponse>, Status> {
        let (call, message) = self.0.begin("Put", request);
        self.0.finish(&call, self.0.put(&call, message).await)
    }

    async fn delete_range(
        &self,
        request: Request<pb::DeleteRangeRequest>,
    ) -> Result<Response<pb::DeleteRangeResponse>, Status> {
        let (call, message) = self.0.begin("DeleteRange", request);
        self.0
            .finish(&call, self.0.delete_range(&call, message).await)
    }

    async fn compact(
        &self,
        request: Request<pb::CompactionRequest>,
    ) -> Result<Response<pb::CompactionResponse>, Status> {
        let (call, message) = self.0.begin("Compact", request);
        self.0.finish(&call, self.0.compact(&call, message).await)
    }

    async fn txn(
        &self,
        request: Request<pb::TxnRequest>,
    ) -> Result<Response<pb::TxnResponse>, Status> {
        let (call, message) = self.0.begin("Txn", request);
        self.0.finish(&call, self.0.txn(&call, message).await)
    }
}

impl Api {
    async fn range(
        &self,
        call: &Call,
        message: pb::RangeRequest,
    ) -> Result<pb::RangeResponse, ApiError> {
        validate::range(&message)?;
        let serializable = message.serializable;
        let range = convert::range_from_pb(message)?;
        let reading = Reading::Range(&range);
        let Resolved { caller, view } = self.resolve_read(call, serializable, reading).await?;
        self.served(call, &view);
        let found = view.state.range(&caller, &range, &view.values)?;
        Ok(answer::range_response(self.view_header(&view), found))
    }

    async fn put(&self, call: &Call, message: pb::PutRequest) -> Result<pb::PutResponse, ApiError> {
        validate::put(&message)?;
        let (header, applied) = self
            .write(call, Op::Put(convert::put_from_pb(message)))
            .await?;
        let Applied::Put(prev_kv) = applied else {
            unreachable!("a put was answered with {applied:?}")
        };
        Ok(answer::put_response(header, prev_kv))
    }

    async fn delete_range(
        &self,
        call: &Call,
        message: pb::DeleteRangeRequest,
    ) -> Result<pb::DeleteRangeResponse, ApiError> {
        validate::delete_range(&message)?;
        let (header, applied) = self
            .write(
                call,
                Op::DeleteRange(convert::delete_range_from_pb(message)),
            )
            .await?;
        let Applied::DeleteRange(deleted) = applied else {
            unreachable!("a deletion was answered with {applied:?}")
        };
        Ok(answer::delete_range_response(header, deleted))
    }

    async fn txn(&self, call: &Call, message: pb::TxnRequest) -> Result<pb::TxnResponse, ApiError> {
        validate::txn(&message, self.node.config().max_txn_ops)?;
        if let Some(serializable) = read_only(&message) {
            let txn = convert::txn_from_pb(message)?;
            let reading = Reading::Txn(&txn);
            let Resolved { caller, view } = self.resolve_read(call, serializable, reading).await?;
            self.served(call, &view);
            let done = view.state.read_txn(&caller, &txn, &view.values)?;
            return Ok(answer::txn_response(self.view_header(&view), done));
        }
        let (header, applied) = self
            .write(call, Op::Txn(convert::txn_from_pb(message)?))
            .await?;
        let Applied::Txn(done) = applied else {
            unreachable!("a transaction was answered with {applied:?}")
        };
        Ok(answer::txn_response(header, done))
    }

    /// `physical` asks to wait until the space is free again, which it always is: the store forgets with the entry.
    async fn compact(
        &self,
        call: &Call,
        message: pb::CompactionRequest,
    ) -> Result<pb::CompactionResponse, ApiError> {
        let pb::CompactionRequest {
            revision,
            physical: _,
        } = message;
        let (header, _) = self.write(call, Op::Compact(revision)).await?;
        let header = Some(header);
        Ok(pb::CompactionResponse { header })
    }

    /// The view to read from, and who reads.
    async fn resolve_read(
        &self,
        call: &Call,
        serializable: bool,
        reading: Reading<'_>,
    ) -> Result<Resolved, ApiError> {
        if serializable {
            let resolved = self.resolve(call, self.node.view()).await?;
            return self.part_from_decision(call, resolved, reading).await;
        }
        if let Some(decided) = self.decide_before_barrier(call, reading).await? {
            return Ok(decided);
        }
        let view = self.node.barrier(call.deadline()).await?;
        let resolved = self.resolve(call, view).await?;
        window::pass(Window::ReadIndexToCheck, self.node.member_id()).await;
        Ok(resolved)
    }
}

/// Whether a transaction only reads, and if so whether without a barrier. A nested transaction goes the way of writes
/// even if it only reads, and one that only compares needs no barrier (both as in etcd's `server/etcdserver/v3_server.go`).
fn read_only(message: &pb::TxnRequest) -> Option<bool> {
    let mut serializable = true;
    for op in message.success.iter().chain(&message.failure) {
        match &op.request {
            Some(TxnOp::RequestRange(range)) => serializable &= range.serializable,
            _ => return None,
        }
    }
    Some(serializable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(serializable: bool) -> pb::RequestOp {
        let range = pb::RangeRequest {
            key: "k".into(),
            serializable,
            ..Default::default()
        };
        pb::RequestOp {
            request: Some(TxnOp::RequestRange(range)),
        }
    }

    #[test]
    fn a_transaction_is_as_serializable_as_its_least_serializable_read() {
        let put = pb::RequestOp {
            request: Some(TxnOp::RequestPut(pb::PutRequest::default())),
        };
        let nested = pb::RequestOp {
            request: Some(TxnOp::RequestTxn(pb::TxnRequest::default())),
        };
        for (success, failure, expected) in [
            (vec![], vec![], Some(true)),
            (vec![range(true)], vec![range(true)], Some(true)),
            (vec![range(true)], vec![range(false)], Some(false)),
            (vec![range(true), put], vec![], None),
            (vec![], vec![nested], None),
        ] {
            let message = pb::TxnRequest {
                success,
                failure,
                ..Default::default()
            };
            assert_eq!(read_only(&message), expected, "{message:?}");
        }
    }
}
