//! A client's way to one server: one HTTP/2 connection at a time, opened when a call needs it and again when it broke.
//!
//! Stands in for tonic's `Channel`, whose timers and buffers need a real reactor. It never repeats a request that a server
//! may have seen.

use super::dial::{Connection, dial};
use super::response_body::broken;
use super::unsent::unsent;
use super::{Keepalive, ResponseBody, grpc_timeout};
use hyper::client::conn::http2::SendRequest;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;
use tonic::Status;
use tonic::body::Body;

/// Connections tried for one call. A second is needed when the server said goodbye while the request was queued; a third
/// when the next server did so too.
const ATTEMPTS_MAX: usize = 3;

/// How a [`Channel`] connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelOptions {
    /// How long connecting may take. Default 1 s.
    pub connect_timeout: Duration,
    /// Pings to the server, also while idle; default one after 2 s of silence, with 2 s to answer. `None` sends none, and
    /// a call caught in a partition waits for its deadline.
    pub keepalive: Option<Keepalive>,
}

impl Default for ChannelOptions {
    fn default() -> Self {
        ChannelOptions {
            connect_timeout: Duration::from_secs(1),
            keepalive: Some(Keepalive {
                interval: Duration::from_secs(2),
                timeout: Duration::from_secs(2),
            }),
        }
    }
}

/// A reconnecting HTTP/2 client for one address; clones share the connection. Use it as `KvClient::new(channel)`.
///
/// A request's `grpc-timeout` is enforced here up to the answer's headers; [`super::with_deadline`] covers the whole call.
/// Every error is a [`Status`]; [`super::is_unsent`] tells whether the request may have been executed.
#[derive(Clone)]
pub struct Channel(Arc<Shared>);

struct Shared {
    address: String,
    options: ChannelOptions,
    /// Held while connecting, so that many waiting calls make one connection.
    dialing: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Option<Connection>,
    /// Connections tried so far, which numbers the current one.
    dials: u64,
    /// Why the last try failed.
    failure: Option<Status>,
}

impl State {
    fn sender(&self) -> Option<(u64, SendRequest<Body>)> {
        let connection = self.connection.as_ref()?;
        (!connection.sender.is_closed()).then(|| (self.dials, connection.sender.clone()))
    }
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Channel")
            .field("address", &self.0.address)
            .finish_non_exhaustive()
    }
}

impl Channel {
    /// A channel to `address` (`host:port`). Nothing is sent until the first call.
    pub fn new(address: impl Into<String>, options: ChannelOptions) -> Channel {
        Channel(Arc::new(Shared {
            address: address.into(),
            options,
            dialing: tokio::sync::Mutex::default(),
            state: Mutex::default(),
        }))
    }

    /// Breaks the connection. Calls in flight end as lost (perhaps executed); the next call connects anew.
    pub fn reset(&self) {
        let connection = self.0.state().connection.take();
        if let Some(connection) = connection {
            connection.knife.sever();
        }
    }

    async fn send(
        self,
        mut request: http::Request<Body>,
    ) -> Result<http::Response<ResponseBody>, Status> {
        // A deadline too far away for the clock is none.
        let deadline =
            grpc_timeout(request.headers()).and_then(|limit| Instant::now().checked_add(limit));
        *request.uri_mut() = self.0.absolute(request.uri())?;
        for _ in 0..ATTEMPTS_MAX {
            let (dial, mut sender) = until(deadline, self.0.connected())
                .await
                .unwrap_or_else(|| Err(Status::deadline_exceeded("no connection in time")))
                .map_err(|status| unsent(&status))?;
            let Some(answer) = until(deadline, sender.try_send_request(request)).await else {
                return Err(Status::deadline_exceeded("no answer in time"));
            };
            let mut error = match answer {
                Ok(response) => return Ok(response.map(ResponseBody::new)),
                Err(error) => error,
            };
            // hyper gives a request back if and only if it has not touched the connection.
            let Some(returned) = error.take_message() else {
                return Err(broken(error.error()));
            };
            request = returned;
            self.0.discard(dial);
        }
        let closing = Status::unavailable("every connection was closing");
        Err(unsent(&closing))
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // No code panics while holding the lock, and the state is whole between any two statements.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The open connection, or a new one; with its number for [`Shared::discard`].
    async fn connected(&self) -> Result<(u64, SendRequest<Body>), Status> {
        let dials = {
            let state = self.state();
            if let Some(sender) = state.sender() {
                return Ok(sender);
            }
            state.dials
        };
        let _dialing = self.dialing.lock().await;
        {
            let state = self.state();
            if let Some(sender) = state.sender() {
                return Ok(sender);
            }
            // Whoever held the lock failed meanwhile. Trying again for each waiting call would add up their timeouts.
            if state.dials != dials
                && let Some(failure) = &state.failure
            {
                return Err(failure.clone());
            }
        }
        let dialed = dial(&self.address, self.options).await;
        let mut state = self.state();
        state.dials += 1;
        match dialed {
            Ok(connection) => {
                let sender = connection.sender.clone();
                state.connection = Some(connection);
                state.failure = None;
                Ok((state.dials, sender))
            }
            Err(failure) => {
                state.connection = None;
                state.failure = Some(failure.clone());
                Err(failure)
            }
        }
    }

    /// Forgets connection number `dial`, which takes no more requests. Calls in flight on it go on.
    fn discard(&self, dial: u64) {
        let mut state = self.state();
        if state.dials == dial {
            state.connection = None;
        }
    }

    /// tonic names only the path; HTTP/2 wants scheme and authority too.
    fn absolute(&self, uri: &http::Uri) -> Result<http::Uri, Status> {
        let path = uri
            .path_and_query()
            .map_or("/", http::uri::PathAndQuery::as_str);
        http::Uri::builder()
            .scheme("http")
            .authority(self.address.as_str())
            .path_and_query(path)
            .build()
            .map_err(|error| {
                let reason = format!("bad address {:?}: {error}", self.address);
                unsent(&Status::invalid_argument(reason))
            })
    }
}

/// Awaits `future`, but not beyond `deadline`.
async fn until<T>(deadline: Option<Instant>, future: impl Future<Output = T>) -> Option<T> {
    match deadline {
        None => Some(future.await),
        Some(deadline) => {
            // The simulated tokio has no `timeout_at`.
            let left = deadline.saturating_duration_since(Instant::now());
            tokio::time::timeout(left, future).await.ok()
        }
    }
}

impl tower::Service<http::Request<Body>> for Channel {
    type Response = http::Response<ResponseBody>;
    type Error = Status;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Status>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(self.clone().send(request))
    }
}
