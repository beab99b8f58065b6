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
    let members = node.config().members.len();
    loop {
        match node.barrier(Instant::now() + patience).await {
            Ok(_) => {
                tracing::info!("ready to serve client requests");
                return;
            }
            Err(NodeError::Stopped) => return,
            // No quorum yet, or more callers than the member takes.
            Err(reason) => {
                tracing::warn!(%reason, members, "not ready: waiting for a majority of the members");
                tokio::time::sleep(node.config().heartbeat).await;
            }
        }
    }
}

#[cfg(test)]
#[cfg(madsim)]
mod tests {
    use super::*;
    use crate::config::Member as ConfigMember;
    use crate::observer::Unobserved;
    use crate::pb::etcdserverpb::kv_client::KvClient;
    use crate::pb::etcdserverpb::maintenance_client::MaintenanceClient;
    use crate::pb::etcdserverpb::{PutRequest, RangeRequest, StatusRequest};
    use crate::platform::{Channel, ChannelOptions, SimDisk};
    use crate::storage::StorageError;
    use bytes::Bytes;
    use madsim::runtime::Runtime;
    use tokio::task::JoinHandle;

    const CLIENTS: &str = "10.0.0.1:2379";

    fn config() -> Config {
        let peer_address = "10.0.0.1:2380".to_owned();
        let listen_peer = vec![peer_address.parse().unwrap()];
        let member = ConfigMember {
            id: 1,
            name: "m1".to_owned(),
            peer_address,
        };
        Config {
            listen_client: vec![CLIENTS.parse().unwrap()],
            listen_peer,
            ..Config::of_test(1, vec![member])
        }
    }

    fn start(
        config: Config,
        disk: &SimDisk,
        stop: watch::Receiver<bool>,
    ) -> JoinHandle<Result<(), ServerError>> {
        let parts = Parts {
            disk: Disk::simulated(disk.clone()),
            clock: Clock::system(),
            observer: Arc::new(Unobserved),
        };
        tokio::spawn(run(config, parts, stop))
    }

    fn simulate<F: Future<Output = ()> + Send + 'static>(story: F) {
        let simulation = std::thread::spawn(move || {
            let mut runtime = Runtime::with_seed_and_config(1, madsim::Config::default());
            runtime.set_time_limit(Duration::from_secs(60));
            let machine = runtime
                .create_node()
                .name("m1")
                .ip("10.0.0.1".parse().unwrap())
                .build();
            runtime.block_on(machine.spawn(story)).unwrap();
        });
        if let Err(panic) = simulation.join() {
            std::panic::resume_unwind(panic);
        }
    }

    async fn answers(address: &str) -> bool {
        let channel = Channel::new(address, ChannelOptions::default());
        let mut client = MaintenanceClient::new(channel);
        client.status(StatusRequest {}).await.is_ok()
    }

    #[test]
    fn a_member_serves_until_it_is_told_to_stop() {
        simulate(async {
            let (stop, stopped) = watch::channel(false);
            let server = start(config(), &SimDisk::new(1), stopped);
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert!(answers(CLIENTS).await);
            stop.send_replace(true);
            assert!(server.await.unwrap().is_ok());
            assert!(!answers(CLIENTS).await);
        });
    }

    #[test]
    fn a_port_in_use_is_named_before_the_disk_is_touched() {
        simulate(async {
            let _taken = bind(CLIENTS.parse().unwrap()).await.unwrap();
            let (_stop, stopped) = watch::channel(false);
            let disk = SimDisk::new(1);
            let refused = start(config(), &disk, stopped).await.unwrap().unwrap_err();
            assert!(refused.to_string().contains(CLIENTS), "{refused}");
            assert_eq!(disk.counters().writes, 0);
        });
    }

    #[test]
    fn another_members_disk_is_refused() {
        simulate(async {
            let (stop, stopped) = watch::channel(false);
            let disk = SimDisk::new(1);
            let server = start(config(), &disk, stopped.clone());
            tokio::time::sleep(Duration::from_millis(100)).await;
            stop.send_replace(true);
            server.await.unwrap().unwrap();
            stop.send_replace(false);
            let foreign = Config {
                cluster_id: 6,
                ..config()
            };
            let refused = start(foreign, &disk, stopped).await.unwrap();
            assert!(matches!(
                refused,
                Err(ServerError::Member(MemberError::Open {
                    cause: StorageError::ForeignCluster { .. },
                    ..
                }))
            ));
        });
    }

    #[test]
    fn a_member_whose_disk_fails_ends_with_the_reason() {
        simulate(async {
            let (_stop, stopped) = watch::channel(false);
            let disk = SimDisk::new(1);
            let server = start(config(), &disk, stopped);
            tokio::time::sleep(Duration::from_millis(100)).await;
            disk.set_fuse(Some(0));
            let mut client = KvClient::new(Channel::new(CLIENTS, ChannelOptions::default()));
            let put = PutRequest {
                key: Bytes::from_static(b"k"),
                ..PutRequest::default()
            };
            assert!(client.put(put).await.is_err());
            let ended = server.await.unwrap();
            assert!(matches!(ended, Err(ServerError::Member(_))), "{ended:?}");
        });
    }

    #[test]
    fn a_read_that_the_disk_does_not_answer_ends_the_member() {
        simulate(async {
            let (_stop, stopped) = watch::channel(false);
            let disk = SimDisk::new(1);
            let server = start(config(), &disk, stopped);
            tokio::time::sleep(Duration::from_millis(100)).await;
            let mut client = KvClient::new(Channel::new(CLIENTS, ChannelOptions::default()));
            // More than the database keeps in memory.
            for key in 0..30 {
                let put = PutRequest {
                    key: vec![key].into(),
                    value: vec![7; 100_000].into(),
                    ..PutRequest::default()
                };
                client.put(put).await.unwrap();
            }
            disk.set_fuse(Some(0));
            let range = RangeRequest {
                key: vec![0].into(),
                serializable: true,
                ..RangeRequest::default()
            };
            assert!(client.range(range).await.is_err());
            let ended = server.await.unwrap();
            assert!(
                matches!(
                    ended,
                    Err(ServerError::Member(MemberError::Storage(
                        StorageError::Failed(_)
                    )))
                ),
                "{ended:?}"
            );
        });
    }
}
