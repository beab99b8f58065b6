//! The accept loop: every connection of a listener, until told to stop.
//!
//! HTTP/2 only, so far; what the first bytes mean is decided in [`serve_connection`] alone.

use super::first_bytes::FirstBytes;
use super::{Executor, Io, Keepalive, Listener, Timer, Watched, watched};
use hyper::server::conn::http2;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use std::io::ErrorKind;
use std::pin::pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};

/// Calls one connection may have open; more wait at the client. hyper's default of 200 is too few for watchers that
/// share a connection, and each open call costs memory before anyone has authenticated.
pub const MAX_CONCURRENT_STREAMS: u32 = 1_000;

/// How long open calls may take to end after a stop, before their connections are closed.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// How long a client may take to send HTTP/2's preface.
const FIRST_BYTES_LIMIT: Duration = Duration::from_secs(5);

/// Pause after a failed accept. Out of file descriptors, the next accept fails at once too, and would for ever.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How connections are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServeOptions {
    /// Pings to clients; `None` sends none, and a client that vanished silently is never noticed.
    pub keepalive: Option<Keepalive>,
    /// Largest HTTP/2 frame accepted, 16 384 (default) to 16 777 215 bytes.
    pub max_frame_bytes: u32,
}

impl Default for ServeOptions {
    fn default() -> Self {
        ServeOptions {
            keepalive: None,
            max_frame_bytes: 16_384,
        }
    }
}

/// Serves `app` on every connection of `listener` until `stop` holds `true`; then accepts no more, lets open calls end
/// for [`SHUTDOWN_GRACE`], closes what is left and returns. A dropped `stop` sender means that no stop will come.
///
/// Dropping the future closes every connection at once.
pub async fn serve(
    listener: Listener,
    app: axum::Router,
    options: ServeOptions,
    mut stop: watch::Receiver<bool>,
) {
    // The value tells connections to drain, and that its setter is gone, to close.
    let (drain, draining) = watched(false);
    // Each connection holds a sender, so that the end of all of them can be awaited.
    let (open, mut all_closed) = mpsc::channel::<()>(1);
    loop {
        tokio::select! {
            biased;
            () = stopped(&mut stop) => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let io = FirstBytes::new(Io::new(stream), FIRST_BYTES_LIMIT);
                    let connection = serve_connection(io, app.clone(), options, draining.clone());
                    let open = open.clone();
                    tokio::spawn(async move {
                        let _open = open;
                        if let Err(error) = connection.await {
                            tracing::debug!(%peer, %error, "connection ended");
                        }
                    });
                }
                // The client left while it waited in the queue.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    tracing::warn!(address = %listener.local_addr(), %error, "accept failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    drop(open);
    drain.set(true);
    if tokio::time::timeout(SHUTDOWN_GRACE, all_closed.recv())
        .await
        .is_err()
    {
        let connections = all_closed.sender_strong_count();
        tracing::info!(connections, "closing connections with open calls");
    }
}

/// Resolves when the stop signal holds `true`, now or later.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending().await
    }
}

async fn serve_connection(
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    app: axum::Router,
    options: ServeOptions,
    drain: Watched<bool>,
) -> hyper::Result<()> {
    let mut builder = http2::Builder::new(Executor);
    builder
        .timer(Timer)
        .max_concurrent_streams(MAX_CONCURRENT_STREAMS)
        .max_frame_size(options.max_frame_bytes);
    if let Some(Keepalive { interval, timeout }) = options.keepalive {
        builder
            .keep_alive_interval(interval)
            .keep_alive_timeout(timeout);
    }
    let service = TowerToHyperService::new(app);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(io), service));
    tokio::select! {
        biased;
        ended = connection.as_mut() => return ended,
        drained = drain.wait_for(|drain| *drain) => match drained {
            Some(_) => connection.as_mut().graceful_shutdown(),
            None => return Ok(()),
        },
    }
    tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        // Only the setter's end ends this.
        _ = drain.wait_for(|_| false) => Ok(()),
    }
}
