//! A whole member: the node, the listener for its peers and the one for its clients.

use crate::api;
use crate::config::Config;
use crate::node::{Member, MemberError, Node, NodeError, PEER_KEEPALIVE, PeerService};
use crate::observer::Observer;
use crate::platform::passwords::Passwords;
use crate::platform::{Clock, Disk, Keepalive, Listener, ServeOptions, bind, deadline, serve};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Pings to silent clients: one that vanished without a word gives its calls back within half a minute (etcd's server
/// pings as rarely, but waits for two hours before the first).
const CLIENT_KEEPALIVE: Keepalive = Keepalive {
    interval: Duration::from_secs(10),
    timeout: Duration::from_secs(20),
};

/// What a member gets from the world.
pub struct Parts {
    /// Where it keeps everything.
    pub disk: Disk,
    /// What time it is.
    pub clock: Clock,
    /// Who watches it.
    pub observer: Arc<dyn Observer>,
}

/// Why a member could not start, or stopped on its own.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// A listener could not be opened.
    #[error("cannot listen: {0}")]
    Listen(#[source] io::Error),
    /// The member failed.
    #[error(transparent)]
    Member(#[from] MemberError),
    /// The event loop panicked, which is a defect.
    #[error("the event loop panicked: {0}")]
    Panicked(String),
}

/// Runs one member until `stop` holds `true`, or its sender is gone; calls that are open then have a few seconds to end.
///
/// # Errors
/// [`ServerError::Listen`] before anything has been touched, else whatever the member failed with.
pub async fn run(
    config: Config,
    parts: Parts,
    mut stop: watch::Receiver<bool>,
) -> Result<(), ServerError> {
    // Ports first: a second server with the same flags must fail before it touches the disk.
    let peer_listeners = listen(&config.listen_peer).await?;
    let client_listeners = listen(&config.listen_client).await?;
    let Parts {
        disk,
        clock,
        observer,
    } = parts;
    let passwords = Passwords::new(config.bcrypt_cost, config.password_workers);
    let (stop_member, member_stopped) = watch::channel(false);
    let (stop_clients, clients_stopped) = watch::channel(false);
    let mut member = Member::start(config, disk, clock, observer, member_stopped).await?;
    let peers = spawn_all(peer_listeners, |listener| {
        serve_peers(listener, member.peers.clone())
    });
    let clients = spawn_all(client_listeners, |listener| {
        let router = api::router(member.node.clone(), passwords.clone());
        let options = ServeOptions {
            keepalive: Some(CLIENT_KEEPALIVE),
            ..ServeOptions::default()
        };
        serve(listener, router, options, clients_stopped.clone())
    });
    let announcement = tokio::spawn(announce(member.node));
    let ended = tokio::select! {
        biased;
        ended = &mut member.task => Some(ended),
        _ = stop.wait_for(|stop| *stop) => None,
    };
    // Open calls may still need the member, so it stops after them; the streams of peers have no end of their own.
    stop_clients.send_replace(true);
    for client in clients {
        // A panic in there has been reported where it happened, and closes one listener at most.
        let _ = client.await;
    }
    stop_member.send_replace(true);
    let ended = match ended {
        Some(ended) => ended,
        None => member.task.await,
    };
    announcement.abort();
    for peer in peers {
        peer.abort();
    }
    ended
        .map_err(|panic| ServerError::Panicked(panic.to_string()))?
        .map_err(ServerError::from)
}

fn spawn_all<F: Future<Output = ()> + Send + 'static>(
    listeners: Vec<Listener>,
    serve: impl Fn(Listener) -> F,
) -> Vec<JoinHandle<()>> {
    listeners
        .into_iter()
        .map(|listener| tokio::spawn(serve(listener)))
        .collect()
}

async fn listen(addresses: &[SocketAddr]) -> Result<Vec<Listener>, ServerError> {
    let mut listeners = Vec::with_capacity(addresses.len());
    for address in addresses {
        listeners.push(bind(*address).await.map_err(ServerError::Listen)?);
    }
    Ok(listeners)
}

/// Serves until it is aborted.
async fn serve_peers(listener: Listener, peers: PeerService) {
    let router = tonic::service::Routes::new(peers.into_server())
        .into_axum_router()
        .layer(axum::middleware::from_fn(deadline));
    let options = ServeOptions {
        keepalive: Some(PEER_KEEPALIVE),
        ..ServeOptions::default()
    };
    let (_never, stop) = watch::channel(false);
    serve(listener, router, options, stop).await;
}

/// Says so once clients can be served: a quorum exists and this member has caught up with it.
async fn announce(node: Node) {
    let patience = node.config().request_timeout();
    loop {
        match node.barrier(Instant::now() + patience).await {
            Ok(_) => {
                tracing::info!("ready to serve client requests");
                return;
            }
            Err(NodeError::Stopped) => return,
            // No quorum yet, or more callers than the member takes.
            Err(_) => tokio::time::sleep(node.config().heartbeat).await,
        }
    }
}
