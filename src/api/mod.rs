//! What clients talk to: etcd's gRPC services. A call is validated, its identity resolved, then it is proposed or answered
//! from a view; errors become etcd's codes and texts. Nothing here decides who may do what.

mod answer;
mod auth;
mod call;
mod decided_early;
mod error;
mod identity;
mod kv;
mod maintenance;
mod status;
mod validate;

#[cfg(all(test, madsim))]
mod tests;

use crate::node::{Node, View};
use crate::observer::Observed;
use crate::pb::etcdserverpb as pb;
use crate::platform::deadline;
use crate::platform::passwords::Passwords;
use crate::state::{Command, Op, Response};
use crate::window::{self, Window};
use call::Call;
use error::ApiError;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// What a message may take on the wire beyond `max_request_bytes`, which bounds the log entry made of it: etcd's figure.
const WIRE_OVERHEAD_BYTES: usize = 512 * 1024;

/// What all calls of a member share.
struct Api {
    node: Node,
    passwords: Passwords,
    /// One permit for each call that waits until this member has caught up with its token.
    token_waiters: Semaphore,
    /// Whether auth was on when the member started.
    auth_at_start: bool,
}

/// The services of one member, with the client's own deadline (`grpc-timeout`) around each call.
pub fn router(node: Node, passwords: Passwords) -> axum::Router {
    let message_bytes_max = node
        .config()
        .max_request_bytes
        .saturating_add(WIRE_OVERHEAD_BYTES);
    let api = Arc::new(Api {
        auth_at_start: node.view().state.auth_enabled(),
        node,
        passwords,
        token_waiters: Semaphore::new(identity::TOKEN_WAITERS_MAX),
    });
    let kv = pb::kv_server::KvServer::new(kv::KvService(Arc::clone(&api)));
    let auth = pb::auth_server::AuthServer::new(auth::AuthService(Arc::clone(&api)));
    let maintenance =
        pb::maintenance_server::MaintenanceServer::new(maintenance::MaintenanceService(api));
    tonic::service::Routes::new(kv.max_decoding_message_size(message_bytes_max))
        .add_service(auth.max_decoding_message_size(message_bytes_max))
        .add_service(maintenance.max_decoding_message_size(message_bytes_max))
        .into_axum_router()
        .layer(axum::middleware::from_fn(deadline))
}

impl Api {
    /// Proposes `op` for whoever calls, and waits until this member has applied it.
    async fn write(&self, call: &Call, op: Op) -> Result<(pb::ResponseHeader, Response), ApiError> {
        let view = self.view_for_write(call, &op).await?;
        let caller = self.decide_write(self.resolve(call, view).await?, &op)?;
        window::pass(Window::TokenResolvedToProposed, self.node.member_id()).await;
        let request_id = self.node.next_request_id();
        self.node.observer().observe(Observed::Proposed {
            call: call.id(),
            request_id,
        });
        let outcome = self
            .node
            .propose(
                Command {
                    request_id,
                    caller,
                    op,
                },
                call.deadline(),
            )
            .await?;
        let header = self.header(outcome.revision, outcome.term);
        Ok((header, outcome.result?))
    }

    fn view_header(&self, view: &View) -> pb::ResponseHeader {
        self.header(view.state.meta().kv_revision, view.term)
    }

    fn header(&self, revision: i64, raft_term: u64) -> pb::ResponseHeader {
        let config = self.node.config();
        pb::ResponseHeader {
            cluster_id: config.cluster_id,
            member_id: config.member_id,
            revision,
            raft_term,
        }
    }
}
