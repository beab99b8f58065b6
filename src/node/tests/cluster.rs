//! A simulated cluster, its faults, and a witness that compares what the members apply.

use crate::config::{Config, Member as ConfigMember, TOKEN_TTL};
use crate::node::{Member, MemberError, Node, NodeError, Outcome};
use crate::observer::{Observed, Observer};
use crate::platform::{Clock, Disk, ServeOptions, SimDisk, bind, serve};
use crate::state::{Caller, Command, Op, Put, Range, RawRange};
use bytes::Bytes;
use madsim::net::NetSim;
use madsim::runtime::{Handle, NodeHandle, Runtime};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

pub(super) const HEARTBEAT: Duration = Duration::from_millis(100);
/// Few, so that members that were away for a moment get snapshots.
pub(super) const SNAPSHOT_COUNT: u64 = 40;
pub(super) const ELECTION: Duration = Duration::from_secs(1);

/// How long a healthy or healed cluster may take for anything.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);

/// Runs `story` in a simulation of its own: a fresh thread, since a thread's earlier seed would leave traces.
pub(super) fn simulate<F, Fut>(seed: u64, loss: f64, story: F)
where
    F: FnOnce() -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let mut config = madsim::Config::default();
    config.net.packet_loss_rate = loss;
    config.net.send_latency = Duration::from_millis(1)..Duration::from_millis(10);
    let simulation = std::thread::spawn(move || {
        let mut runtime = Runtime::with_seed_and_config(seed, config);
        runtime.set_time_limit(Duration::from_secs(3_600));
        runtime.block_on(story());
    });
    if let Err(panic) = simulation.join() {
        eprintln!("seed {seed} failed");
        std::panic::resume_unwind(panic);
    }
}

/// What all members have applied, compared as it happens.
#[derive(Default)]
pub(super) struct Witness(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    digests: BTreeMap<u64, u64>,
    indexes: BTreeMap<u64, u64>,
    installed: u64,
}

impl Witness {
    /// How many snapshots have been installed.
    pub(super) fn installed(&self) -> u64 {
        self.0.lock().unwrap().installed
    }

    /// At which index the entry of this request was applied.
    pub(super) fn applied_at(&self, request_id: u64) -> Option<u64> {
        self.0.lock().unwrap().indexes.get(&request_id).copied()
    }
}

impl Observer for Witness {
    fn observe(&self, event: Observed<'_>) {
        if let Observed::Compared { index, equal } = event {
            assert!(equal, "what is derived at index {index} is stale");
        }
        if let Observed::Installed { meta } = event {
            let mut seen = self.0.lock().unwrap();
            seen.installed += 1;
            let index = meta.applied_index;
            let digest = seen.digests.get(&index);
            assert_eq!(digest, Some(&meta.digest), "the snapshot of index {index}");
        }
        if let Observed::Applied {
            command,
            applied,
            meta,
            ..
        } = event
        {
            let mut seen = self.0.lock().unwrap();
            let index = applied.index;
            let digest = *seen.digests.entry(index).or_insert(meta.digest);
            assert_eq!(digest, meta.digest, "members disagree about entry {index}");
            if let Some(command) = command {
                let at = *seen.indexes.entry(command.request_id).or_insert(index);
                assert_eq!(
                    at, index,
                    "request {} was applied twice",
                    command.request_id
                );
            }
        }
    }
}

/// One life of a member, as far as the story can see it.
#[derive(Default)]
pub(super) struct Life {
    pub(super) node: Option<Node>,
    pub(super) failure: Option<MemberError>,
}

pub(super) struct TestMember {
    pub(super) disk: SimDisk,
    pub(super) machine: NodeHandle,
    life: Arc<Mutex<Life>>,
}

pub(super) struct Cluster {
    pub(super) members: Vec<TestMember>,
    pub(super) witness: Arc<Witness>,
}

pub(super) fn config(id: u64, size: u64) -> Config {
    let members = (1..=size).map(|id| ConfigMember {
        id,
        name: format!("m{id}"),
        peer_address: format!("10.0.0.{id}:2380"),
    });
    Config {
        cluster_id: 77,
        listen_peer: vec![format!("10.0.0.{id}:2380").parse().unwrap()],
        heartbeat: HEARTBEAT,
        election: ELECTION,
        snapshot_count: SNAPSHOT_COUNT,
        snapshot_part_bytes: 256,
        ..Config::of_test(id, members.collect())
    }
}

impl Cluster {
    pub(super) fn start(size: u64, seed: u64) -> Cluster {
        Cluster::start_with(size, seed, TOKEN_TTL, SNAPSHOT_COUNT)
    }

    /// Members whose tokens live for `token_ttl`, and which truncate their logs after `snapshot_count` entries.
    pub(super) fn start_with(
        size: u64,
        seed: u64,
        token_ttl: Duration,
        snapshot_count: u64,
    ) -> Cluster {
        let witness = Arc::new(Witness::default());
        let members = (1..=size).map(|id| {
            let disk = SimDisk::new(seed * 100 + id);
            let life = Arc::new(Mutex::new(Life::default()));
            let machine = {
                let (disk, life, witness) = (disk.clone(), Arc::clone(&life), Arc::clone(&witness));
                let config = Config {
                    token_ttl,
                    snapshot_count,
                    ..config(id, size)
                };
                Handle::current()
                    .create_node()
                    .name(format!("m{id}"))
                    .ip(format!("10.0.0.{id}").parse().unwrap())
                    .init(move || {
                        live(
                            config.clone(),
                            disk.clone(),
                            Arc::clone(&life),
                            Arc::clone(&witness),
                        )
                    })
                    .build()
            };
            TestMember {
                disk,
                machine,
                life,
            }
        });
        Cluster {
            members: members.collect(),
            witness,
        }
    }

    fn member(&self, id: u64) -> &TestMember {
        &self.members[usize::try_from(id).unwrap() - 1]
    }

    pub(super) fn ids(&self) -> std::ops::RangeInclusive<u64> {
        1..=self.members.len() as u64
    }

    /// The member's handle, of its present life.
    pub(super) async fn node(&self, id: u64) -> Node {
        let patience = Instant::now() + PATIENCE;
        loop {
            assert!(
                Instant::now() < patience,
                "member {id} is down: {:?}",
                self.failure(id)
            );
            if let Some(node) = self.member(id).life.lock().unwrap().node.clone() {
                return node;
            }
            sleep(Duration::from_millis(1)).await;
        }
    }

    /// Why the member stopped, if it did.
    pub(super) fn failure(&self, id: u64) -> Option<String> {
        self.member(id)
            .life
            .lock()
            .unwrap()
            .failure
            .as_ref()
            .map(ToString::to_string)
    }

    /// The member that leads, once every member among `of` agrees on it.
    pub(super) async fn leader_among(&self, of: &[u64]) -> u64 {
        let patience = Instant::now() + PATIENCE;
        loop {
            let mut leaders = Vec::new();
            for id in of {
                leaders.push(self.node(*id).await.status().leader);
            }
            if leaders[0] != 0
                && of.contains(&leaders[0])
                && leaders.iter().all(|l| *l == leaders[0])
            {
                return leaders[0];
            }
            assert!(Instant::now() < patience, "no leader among {of:?}");
            sleep(Duration::from_millis(20)).await;
        }
    }

    pub(super) async fn leader(&self) -> u64 {
        self.leader_among(&self.ids().collect::<Vec<_>>()).await
    }

    /// Power cut: loses what the disk may lose.
    pub(super) fn crash(&self, id: u64) {
        let member = self.member(id);
        member.disk.crash();
        *member.life.lock().unwrap() = Life::default();
        Handle::current().kill(member.machine.id());
    }

    pub(super) fn restart(&self, id: u64) {
        Handle::current().restart(self.member(id).machine.id());
    }

    pub(super) fn cut_off(&self, id: u64) {
        NetSim::current().clog_node(self.member(id).machine.id());
    }

    pub(super) fn heal(&self, id: u64) {
        NetSim::current().unclog_node(self.member(id).machine.id());
    }

    /// Lets nothing reach a member any more; what it sends arrives.
    pub(super) fn deafen(&self, id: u64) {
        for other in self.ids().filter(|other| *other != id) {
            NetSim::current().clog_link(
                self.member(other).machine.id(),
                self.member(id).machine.id(),
            );
        }
    }

    pub(super) fn hear(&self, id: u64) {
        for other in self.ids().filter(|other| *other != id) {
            NetSim::current().unclog_link(
                self.member(other).machine.id(),
                self.member(id).machine.id(),
            );
        }
    }

    pub(super) fn pause(&self, id: u64) {
        Handle::current().pause(self.member(id).machine.id());
    }

    pub(super) fn resume(&self, id: u64) {
        Handle::current().resume(self.member(id).machine.id());
    }

    /// Waits until every member has applied what any has, and their states are the same.
    pub(super) async fn converge(&self) -> u64 {
        let patience = Instant::now() + PATIENCE;
        loop {
            let mut metas = Vec::new();
            let mut caught_up = true;
            for id in self.ids() {
                let node = self.node(id).await;
                metas.push(node.view().state.meta());
                caught_up &= node.status().last_index == node.status().applied_index;
            }
            if caught_up && metas.iter().all(|meta| *meta == metas[0]) {
                return metas[0].applied_index;
            }
            assert!(
                Instant::now() < patience,
                "the members do not converge: {metas:?}"
            );
            sleep(Duration::from_millis(20)).await;
        }
    }
}

async fn live(config: Config, disk: SimDisk, life: Arc<Mutex<Life>>, witness: Arc<Witness>) {
    let listener = bind(config.listen_peer[0]).await.unwrap();
    let (_stop, stopped) = watch::channel(false);
    let disk = Disk::simulated(disk);
    let failure = match Member::start(config, disk, Clock::system(), witness, stopped.clone()).await
    {
        Ok(member) => {
            let router = tonic::service::Routes::new(member.peers.into_server()).into_axum_router();
            let options = ServeOptions {
                keepalive: Some(crate::node::PEER_KEEPALIVE),
                ..ServeOptions::default()
            };
            tokio::spawn(serve(listener, router, options, stopped));
            life.lock().unwrap().node = Some(member.node);
            member.task.await.unwrap().err()
        }
        Err(failure) => Some(failure),
    };
    life.lock().unwrap().failure = failure;
    // The machine stays up without its member until the story restarts it.
    std::future::pending::<()>().await;
}

pub(super) fn put(node: &Node, key: &str, value: &str) -> Command {
    Command {
        request_id: node.next_request_id(),
        caller: Caller::ANONYMOUS,
        op: Op::Put(Put {
            key: Bytes::copy_from_slice(key.as_bytes()),
            value: Bytes::copy_from_slice(value.as_bytes()),
            ..Put::default()
        }),
    }
}

pub(super) async fn write(node: &Node, key: &str, value: &str) -> Result<Outcome, NodeError> {
    node.propose(
        put(node, key, value),
        Instant::now() + Duration::from_secs(7),
    )
    .await
}

/// The value of `key` in the node's present view.
pub(super) fn read(node: &Node, key: &str) -> Option<Bytes> {
    let view = node.view();
    let range = Range {
        range: RawRange {
            key: Bytes::copy_from_slice(key.as_bytes()),
            range_end: Bytes::new(),
        },
        ..Range::default()
    };
    let found = view
        .state
        .range(&Caller::ANONYMOUS, &range, &view.values)
        .unwrap();
    found.kvs.into_iter().next().map(|kv| kv.value)
}
