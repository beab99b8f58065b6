//! The service that the stories call.

use crate::pb::gatehousetest as pb;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

pub(super) use pb::Item;
pub(super) use pb::probe_client::ProbeClient;

/// What the server saw; clones share it.
#[derive(Clone, Default)]
pub(super) struct Probe(Arc<Counts>);

#[derive(Default)]
struct Counts {
    started: AtomicU64,
    finished: AtomicU64,
    abandoned: AtomicU64,
}

impl Probe {
    /// Echo and Exchange calls whose handler began.
    pub(super) fn started(&self) -> u64 {
        self.0.started.load(Relaxed)
    }

    /// Those that ran to their end.
    pub(super) fn finished(&self) -> u64 {
        self.0.finished.load(Relaxed)
    }

    /// Those dropped before.
    pub(super) fn abandoned(&self) -> u64 {
        self.0.abandoned.load(Relaxed)
    }

    pub(super) fn router(&self) -> axum::Router {
        let service = pb::probe_server::ProbeServer::new(self.clone());
        tonic::service::Routes::new(service)
            .into_axum_router()
            .layer(axum::middleware::from_fn(crate::platform::deadline))
    }

    fn begin(&self) -> Running {
        self.0.started.fetch_add(1, Relaxed);
        Running {
            counts: self.0.clone(),
            finished: false,
        }
    }
}

/// Notices when a handler is dropped half-way.
struct Running {
    counts: Arc<Counts>,
    finished: bool,
}

impl Running {
    fn finish(mut self) {
        self.finished = true;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let count = if self.finished {
            &self.counts.finished
        } else {
            &self.counts.abandoned
        };
        count.fetch_add(1, Relaxed);
    }
}

#[tonic::async_trait]
impl pb::probe_server::Probe for Probe {
    async fn echo(&self, request: Request<Item>) -> Result<Response<Item>, Status> {
        let running = self.begin();
        let item = request.into_inner();
        tokio::time::sleep(Duration::from_millis(item.delay_ms)).await;
        running.finish();
        Ok(Response::new(item))
    }

    type TailStream = ReceiverStream<Result<Item, Status>>;

    async fn tail(&self, request: Request<Item>) -> Result<Response<Self::TailStream>, Status> {
        let Item {
            number, delay_ms, ..
        } = request.into_inner();
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        let running = self.begin();
        tokio::spawn(async move {
            for number in 0..number {
                let item = Item {
                    number,
                    ..Item::default()
                };
                if sender.send(Ok(item)).await.is_err() {
                    return;
                }
                tokio::select! {
                    biased;
                    () = sender.closed() => return,
                    () = tokio::time::sleep(Duration::from_millis(delay_ms)) => {}
                }
            }
            running.finish();
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    type ExchangeStream = ReceiverStream<Result<Item, Status>>;

    async fn exchange(
        &self,
        request: Request<Streaming<Item>>,
    ) -> Result<Response<Self::ExchangeStream>, Status> {
        let mut items = request.into_inner();
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        let running = self.begin();
        tokio::spawn(async move {
            while let Ok(Some(item)) = items.message().await {
                if sender.send(Ok(item)).await.is_err() {
                    return;
                }
            }
            running.finish();
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}

/// A request numbered `number` that the server thinks about for `delay_ms`.
pub(super) fn item(number: u64, delay_ms: u64) -> Item {
    Item {
        number,
        delay_ms,
        ..Item::default()
    }
}
