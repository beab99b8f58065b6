//! A simulated world of one server and one client.

use super::probe::{Probe, ProbeClient};
use crate::platform::{Channel, ChannelOptions, Keepalive, ServeOptions, bind, serve};
use madsim::net::NetSim;
use madsim::runtime::{Handle, NodeHandle, Runtime};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::sync::watch;

/// Where the server listens.
pub(super) const ADDRESS: &str = "10.0.0.1:2379";

/// Pings of the stories that need them.
pub(super) const PINGS: Keepalive = Keepalive {
    interval: Duration::from_millis(500),
    timeout: Duration::from_millis(500),
};

/// By when pings must have noticed a broken connection: both halves and some latency.
pub(super) const NOTICED: Duration = Duration::from_millis(1_100);

/// Runs `story` on a world of its own: a fresh thread, since a thread's earlier seed would leave traces.
pub(super) fn simulate<T, F, Fut>(seed: u64, loss: f64, story: F) -> T
where
    T: Send + 'static,
    F: FnOnce() -> Fut + Send + 'static,
    Fut: Future<Output = T> + Send + 'static,
{
    let mut config = madsim::Config::default();
    config.net.packet_loss_rate = loss;
    config.net.send_latency = Duration::from_millis(1)..Duration::from_millis(10);
    let world = std::thread::spawn(move || {
        let mut runtime = Runtime::with_seed_and_config(seed, config);
        runtime.set_time_limit(Duration::from_secs(3_600));
        // The main node has no address, so the story lives on a node of its own, the client's.
        let client = runtime
            .create_node()
            .name("client")
            .ip("10.0.0.9".parse().unwrap())
            .build();
        runtime.block_on(client.spawn(story())).unwrap()
    });
    match world.join() {
        Ok(result) => result,
        Err(panic) => {
            eprintln!("seed {seed} failed");
            std::panic::resume_unwind(panic)
        }
    }
}

/// One server, whose faults the story controls, and what its probe saw.
pub(super) struct World {
    pub(super) probe: Probe,
    pub(super) server: NodeHandle,
    stop: watch::Sender<bool>,
    /// How often the server's accept loop has returned.
    stopped: watch::Receiver<u64>,
}

impl World {
    pub(super) async fn new(server_pings: Option<Keepalive>) -> World {
        let probe = Probe::default();
        let (stop, stop_signal) = watch::channel(false);
        let (stops, stopped) = watch::channel(0);
        let options = ServeOptions {
            keepalive: server_pings,
            ..ServeOptions::default()
        };
        let served = probe.clone();
        let server = Handle::current()
            .create_node()
            .name("server")
            .ip("10.0.0.1".parse().unwrap())
            .init(move || run_server(served.clone(), options, stop_signal.clone(), stops.clone()))
            .build();
        tokio::time::sleep(Duration::from_millis(1)).await;
        World {
            probe,
            server,
            stop,
            stopped,
        }
    }

    pub(super) fn kill(&self) {
        Handle::current().kill(self.server.id());
    }

    pub(super) async fn restart(&self) {
        Handle::current().restart(self.server.id());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    /// Stops the server gracefully, waits for it and lets it listen again. Returns how long it took to stop.
    pub(super) async fn stop_and_listen_again(&mut self) -> Duration {
        let start = tokio::time::Instant::now();
        self.stopped.mark_unchanged();
        self.stop.send_replace(true);
        self.stopped.changed().await.unwrap();
        let took = start.elapsed();
        self.stop.send_replace(false);
        tokio::time::sleep(Duration::from_millis(1)).await;
        took
    }

    pub(super) fn break_link(&self, fault: Fault) {
        let (net, id) = (NetSim::current(), self.server.id());
        match fault {
            Fault::Partition => net.clog_node(id),
            Fault::RequestsLost => net.clog_node_in(id),
            Fault::AnswersLost => net.clog_node_out(id),
            Fault::Pause => Handle::current().pause(id),
        }
    }

    pub(super) fn heal(&self, fault: Fault) {
        let (net, id) = (NetSim::current(), self.server.id());
        match fault {
            Fault::Partition => net.unclog_node(id),
            Fault::RequestsLost => net.unclog_node_in(id),
            Fault::AnswersLost => net.unclog_node_out(id),
            Fault::Pause => Handle::current().resume(id),
        }
    }
}

/// What silences the server without closing anything.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    Partition,
    RequestsLost,
    AnswersLost,
    Pause,
}

impl Fault {
    pub(super) const ALL: [Fault; 4] = [
        Fault::Partition,
        Fault::RequestsLost,
        Fault::AnswersLost,
        Fault::Pause,
    ];
}

async fn run_server(
    probe: Probe,
    options: ServeOptions,
    mut stop: watch::Receiver<bool>,
    stops: watch::Sender<u64>,
) {
    let address: SocketAddr = ADDRESS.parse().unwrap();
    loop {
        let listener = bind(address).await.unwrap();
        serve(listener, probe.router(), options, stop.clone()).await;
        stops.send_modify(|count| *count += 1);
        if stop.wait_for(|stop| !stop).await.is_err() {
            return;
        }
    }
}

/// A channel to the server.
pub(super) fn channel(keepalive: Option<Keepalive>) -> Channel {
    let options = ChannelOptions {
        keepalive,
        ..ChannelOptions::default()
    };
    Channel::new(ADDRESS, options)
}

/// A client with a channel of its own.
pub(super) fn client(keepalive: Option<Keepalive>) -> ProbeClient<Channel> {
    ProbeClient::new(channel(keepalive))
}

pub(super) async fn sleep_ms(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}
