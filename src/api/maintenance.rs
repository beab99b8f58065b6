//! The Maintenance service: what operators, and those who compare members, ask.

use super::Api;
use super::call::Call;
use super::error::ApiError;
use super::identity::Resolved;
use crate::node::NodeError;
use crate::pb::etcdserverpb as pb;
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// The etcd release whose protocol the server speaks; clients ask for it to know what they may use.
const ETCD_VERSION: &str = "3.6.0";

/// Answers etcd's maintenance calls.
#[derive(Clone)]
pub(super) struct MaintenanceService(pub(super) Arc<Api>);

#[tonic::async_trait]
impl pb::maintenance_server::Maintenance for MaintenanceService {
    async fn status(
        &self,
        request: Request<pb::StatusRequest>,
    ) -> Result<Response<pb::StatusResponse>, Status> {
        let (call, pb::StatusRequest {}) = self.0.begin("Status", request);
        self.0.finish(&call, self.0.status(&call).await)
    }

    async fn hash_kv(
        &self,
        request: Request<pb::HashKvRequest>,
    ) -> Result<Response<pb::HashKvResponse>, Status> {
        let (call, message) = self.0.begin("HashKV", request);
        self.0.finish(&call, self.0.hash_kv(&call, message).await)
    }
}

impl Api {
    /// Takes no barrier: it must answer without a leader.
    async fn status(&self, call: &Call) -> Result<pb::StatusResponse, ApiError> {
        let Resolved { caller, view } = self.resolve(call, self.node.view()).await?;
        self.served(call, &view);
        view.state.check_identity(&caller)?;
        let status = self.node.status();
        let errors = if status.leader == 0 {
            vec![format!("etcdserver: {}", NodeError::NoLeader)]
        } else {
            vec![]
        };
        let db_size = i64::try_from(status.db_size).unwrap_or(i64::MAX);
        Ok(pb::StatusResponse {
            header: Some(self.view_header(&view)),
            version: ETCD_VERSION.to_owned(),
            db_size,
            leader: status.leader,
            raft_index: status.last_index,
            raft_term: status.term,
            raft_applied_index: status.applied_index,
            errors,
            db_size_in_use: db_size,
            is_learner: false,
        })
    }

    /// Everything that members must agree on, hashed at one index.
    async fn hash_kv(
        &self,
        call: &Call,
        message: pb::HashKvRequest,
    ) -> Result<pb::HashKvResponse, ApiError> {
        let view = self.node.barrier(call.deadline()).await?;
        let Resolved { caller, view } = self.resolve(call, view).await?;
        self.served(call, &view);
        view.state.check_admin(&caller)?;
        #[cfg(madsim)]
        self.node.compare_derived();
        let hash = view.state.kv_hash(message.revision, &view.values)?;
        let meta = view.state.meta();
        let hash_revision = if message.revision <= 0 {
            meta.kv_revision
        } else {
            message.revision
        };
        Ok(pb::HashKvResponse {
            header: Some(self.view_header(&view)),
            hash,
            compact_revision: meta.compact_revision,
            hash_revision,
            auth_hash: view.state.auth_hash(),
            applied_index: meta.applied_index,
            digest: meta.digest,
        })
    }
}
