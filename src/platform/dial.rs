//! Opens one HTTP/2 client connection.

use super::severable::{Knife, Severable};
use super::{ChannelOptions, Executor, Io, Keepalive, Timer};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tonic::Status;
use tonic::body::Body;

/// An open connection and the means to break it.
pub(super) struct Connection {
    pub(super) sender: SendRequest<Body>,
    pub(super) knife: Knife,
}

/// Connects to `address` (`host:port`) within the options' `connect_timeout`.
///
/// # Errors
/// `Unavailable`; nothing that could be executed has been sent.
pub(super) async fn dial(address: &str, options: ChannelOptions) -> Result<Connection, Status> {
    let connect = async {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok::<_, std::io::Error>(stream)
    };
    let connect = async {
        let stream = connect
            .await
            .map_err(|error| Status::unavailable(format!("connect to {address}: {error}")))?;
        let (io, knife) = Severable::new(Io::new(stream));
        let sender = handshake(io, options.keepalive).await?;
        Ok(Connection { sender, knife })
    };
    match tokio::time::timeout(options.connect_timeout, connect).await {
        Ok(connected) => connected,
        Err(_) => Err(Status::unavailable(format!(
            "connect to {address}: no answer in {:?}",
            options.connect_timeout
        ))),
    }
}

async fn handshake(
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    keepalive: Option<Keepalive>,
) -> Result<SendRequest<Body>, Status> {
    let mut builder = http2::Builder::new(Executor);
    builder.timer(Timer);
    if let Some(Keepalive { interval, timeout }) = keepalive {
        builder
            .keep_alive_interval(interval)
            .keep_alive_timeout(timeout)
            // An idle connection must be known to be dead before the next call is lost on it.
            .keep_alive_while_idle(true);
    }
    let (sender, connection) = builder
        .handshake(TokioIo::new(io))
        .await
        .map_err(|error| Status::unavailable(format!("HTTP/2 handshake: {error}")))?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "client connection ended");
        }
    });
    Ok(sender)
}
