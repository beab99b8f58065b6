//! The accept loop: every connection of a listener, until told to stop.
//!
//! HTTP/2 only, so far; what the first bytes mean is decided in [`serve_connection`] alone.

use super::first_bytes::FirstBytes;
use super::{Executor, Io, Keepalive, Listener, Timer};
use hyper::server::conn::http2;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use std::io::ErrorKind;
use std::pin::pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

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
    // Connections hold receivers: a change tells them to drain, and a dropped sender to close.
    let (drain, _) = watch::channel(());
    loop {
        tokio::select! {
            biased;
            () = stopped(&mut stop) => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let io = FirstBytes::new(Io::new(stream), FIRST_BYTES_LIMIT);
                    let connection = serve_connection(io, app.clone(), options, drain.subscribe());
                    tokio::spawn(async move {
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
    drain.send_replace(());
    if tokio::time::timeout(SHUTDOWN_GRACE, drain.closed())
        .await
        .is_err()
    {
        tracing::info!(
            connections = drain.receiver_count(),
            "closing connections with open calls"
        );
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
    mut drain: watch::Receiver<()>,
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
    loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => return ended,
            drained = drain.changed() => match drained {
                Ok(()) => connection.as_mut().graceful_shutdown(),
                Err(_) => return Ok(()),
            },
        }
    }
}
