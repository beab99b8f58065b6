//! A bound port.

use std::io;
use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpStream};

/// A port that accepts connections; hand it to [`super::serve`].
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

/// Listens on `address`; port 0 takes a free one.
///
/// # Errors
/// Of the system's kind, with a text that names the address: `listen on 127.0.0.1:2379: address in use`.
pub async fn bind(address: SocketAddr) -> io::Result<Listener> {
    let failed = |error: io::Error| {
        let reason = match error.kind() {
            io::ErrorKind::AddrInUse => "address in use".to_owned(),
            io::ErrorKind::AddrNotAvailable => "no such address on this machine".to_owned(),
            _ => error.to_string(),
        };
        io::Error::new(error.kind(), format!("listen on {address}: {reason}"))
    };
    let socket = TcpListener::bind(address).await.map_err(failed)?;
    let address = socket.local_addr().map_err(failed)?;
    Ok(Listener { socket, address })
}

impl Listener {
    /// Where it listens: with the port that was chosen if 0 was asked for.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    pub(super) async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, peer) = self.socket.accept().await?;
        // Small frames go out at once: a request that waits for the next acknowledgement costs 40 ms. It fails only on a
        // stream that the client has already reset, which the first read will tell; the listener itself is well.
        let _ = stream.set_nodelay(true);
        Ok((stream, peer))
    }
}
