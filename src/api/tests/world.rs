//! A simulated cluster of complete members, and a client on a machine of its own.

use crate::config::{
    Config, Member, SNAPSHOT_COUNT, SNAPSHOT_PART_BYTES, TOKEN_LIMITS, TOKEN_TTL, cluster_id,
};
use crate::observer::{Observed, Observer};
use crate::pb::etcdserverpb as pb;
use crate::planted::{Bug, plant};
use crate::platform::{Channel, ChannelOptions, Clock, Disk, SimDisk, with_deadline};
use crate::server::{self, Parts};
use crate::state::TokenKind;
use madsim::net::NetSim;
use madsim::runtime::{Handle, NodeHandle, Runtime};
use pb::auth_client::AuthClient;
use pb::kv_client::KvClient;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tonic::{Request, Status};

const TOKEN: &str = "cluster";

/// How long a call may take: longer than a member allows itself, so that it is the member that answers.
const LIMIT: Duration = Duration::from_secs(12);

/// Runs `story` against three members, with `bug` switched on, in a simulation of its own: a fresh thread, since a
/// thread's earlier seed would leave traces.
pub(super) fn simulate<T, F, Fut>(seed: u64, bug: Option<Bug>, story: F) -> T
where
    T: Send + 'static,
    F: FnOnce(World) -> Fut + Send + 'static,
    Fut: Future<Output = T> + Send + 'static,
{
    simulate_with(TOKEN_TTL, seed, bug, story)
}

/// The same with members whose tokens live for `token_ttl`.
pub(super) fn simulate_with<T, F, Fut>(
    token_ttl: Duration,
    seed: u64,
    bug: Option<Bug>,
    story: F,
) -> T
where
    T: Send + 'static,
    F: FnOnce(World) -> Fut + Send + 'static,
    Fut: Future<Output = T> + Send + 'static,
{
    let mut config = madsim::Config::default();
    config.net.send_latency = Duration::from_millis(1)..Duration::from_millis(5);
    let simulation = std::thread::spawn(move || {
        plant(bug);
        let mut runtime = Runtime::with_seed_and_config(seed, config);
        runtime.set_time_limit(Duration::from_secs(600));
        runtime.block_on(async move {
            let client = Handle::current()
                .create_node()
                .name("client")
                .ip("10.0.0.100".parse().unwrap())
                .build();
            let world = World::start(seed, token_ttl);
            client.spawn(story(world)).await.unwrap()
        })
    });
    simulation.join().unwrap_or_else(|panic| {
        eprintln!("seed {seed} failed");
        std::panic::resume_unwind(panic)
    })
}

/// Three members, numbered from 0.
pub(super) struct World {
    machines: Vec<NodeHandle>,
    /// What the members told: `proposed` or `served`, and the client's request id.
    pub(super) told: Arc<Told>,
}

/// Remembers what members say about calls.
#[derive(Default)]
pub(super) struct Told(Mutex<Vec<(&'static str, String)>>);

impl Told {
    pub(super) fn take(&self) -> Vec<(&'static str, String)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Observer for Told {
    fn observe(&self, event: Observed<'_>) {
        let told = match event {
            Observed::Proposed { call, .. } => ("proposed", call.to_owned()),
            Observed::Served { call, .. } => ("served", call.to_owned()),
            _ => return,
        };
        self.0.lock().unwrap().push(told);
    }
}

fn config(at: usize, members: &[Member], token_ttl: Duration) -> Config {
    Config {
        cluster_id: cluster_id(members, TOKEN),
        member_id: members[at].id,
        members: members.to_vec(),
        listen_client: vec![format!("10.0.0.{}:2379", at + 1).parse().unwrap()],
        listen_peer: vec![members[at].peer_address.parse().unwrap()],
        heartbeat: Duration::from_millis(100),
        election: Duration::from_secs(1),
        bcrypt_cost: 4,
        password_workers: 2,
        token_kind: TokenKind::Simple,
        token_ttl,
        token_limits: TOKEN_LIMITS,
        max_txn_ops: 128,
        max_request_bytes: 1 << 20,
        snapshot_count: SNAPSHOT_COUNT,
        snapshot_part_bytes: SNAPSHOT_PART_BYTES,
    }
}

impl World {
    fn start(seed: u64, token_ttl: Duration) -> World {
        let told = Arc::new(Told::default());
        let member =
            |at: usize| Member::new(&format!("m{at}"), &format!("10.0.0.{}:2380", at + 1), TOKEN);
        let members: Vec<Member> = (0..3).map(member).collect();
        let machine = |at: usize| {
            let config = config(at, &members, token_ttl);
            let (disk, told) = (SimDisk::new(seed * 10 + at as u64), Arc::clone(&told));
            Handle::current()
                .create_node()
                .name(format!("m{at}"))
                .ip(format!("10.0.0.{}", at + 1).parse().unwrap())
                .init(move || {
                    let (config, disk, told) = (config.clone(), disk.clone(), Arc::clone(&told));
                    async move {
                        let (_stop, stopped) = watch::channel(false);
                        let parts = Parts {
                            disk: Disk::simulated(disk),
                            clock: Clock::system(),
                            observer: told,
                        };
                        server::run(config, parts, stopped).await.unwrap();
                    }
                })
                .build()
        };
        World {
            machines: (0..3).map(machine).collect(),
            told,
        }
    }

    /// A new connection to one member, without credentials.
    pub(super) fn client(&self, at: usize) -> Client {
        let channel = Channel::new(format!("10.0.0.{}:2379", at + 1), ChannelOptions::default());
        Client {
            channel,
            metadata: Vec::new(),
        }
    }

    /// Cuts the member off from the others, not from clients.
    pub(super) fn isolate(&self, at: usize) {
        self.for_others(at, |one, other| NetSim::current().clog_link(one, other));
    }

    /// Undoes [`World::isolate`].
    pub(super) fn heal(&self, at: usize) {
        self.for_others(at, |one, other| NetSim::current().unclog_link(one, other));
    }

    fn for_others(&self, at: usize, act: impl Fn(madsim::task::NodeId, madsim::task::NodeId)) {
        let own = self.machines[at].id();
        for other in self
            .machines
            .iter()
            .map(NodeHandle::id)
            .filter(|id| *id != own)
        {
            act(own, other);
            act(other, own);
        }
    }

    /// Users `root` and `alice` (who may do everything with `foo`), auth on; gives root's client at member 0.
    pub(super) async fn guard(&self) -> Client {
        let client = self.client(0);
        let start = Instant::now();
        while let Err(status) = client.set("foo", "bar").await {
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "no leader: {status}"
            );
            sleep(Duration::from_millis(100)).await;
        }
        for name in ["root", "alice"] {
            let add = pb::AuthUserAddRequest {
                name: name.to_owned(),
                password: format!("{name}pw"),
                ..Default::default()
            };
            client.auth().user_add(client.signed(add)).await.unwrap();
            // Whoever holds role root may do everything; it need not exist.
            let grant = pb::AuthUserGrantRoleRequest {
                user: name.to_owned(),
                role: "root".to_owned(),
            };
            client
                .auth()
                .user_grant_role(client.signed(grant))
                .await
                .unwrap();
        }
        client
            .auth()
            .auth_enable(client.signed(pb::AuthEnableRequest {}))
            .await
            .unwrap();
        let token = client.login("root", "rootpw").await.unwrap();
        client.with("token", &token)
    }
}

/// One connection, and what is sent along with each call.
#[derive(Clone)]
pub(super) struct Client {
    channel: Channel,
    metadata: Vec<(&'static str, String)>,
}

impl Client {
    /// The same connection, with this metadata instead.
    pub(super) fn with(&self, key: &'static str, value: &str) -> Client {
        Client {
            channel: self.channel.clone(),
            metadata: vec![(key, value.to_owned())],
        }
    }

    /// The same connection, with this metadata as well.
    pub(super) fn and(mut self, key: &'static str, value: &str) -> Client {
        self.metadata.push((key, value.to_owned()));
        self
    }

    fn auth(&self) -> AuthClient<Channel> {
        AuthClient::new(self.channel.clone())
    }

    fn signed<M>(&self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        for (key, value) in &self.metadata {
            request.metadata_mut().insert(*key, value.parse().unwrap());
        }
        request.set_timeout(LIMIT);
        request
    }

    pub(super) async fn login(&self, name: &str, password: &str) -> Result<String, Status> {
        let request = pb::AuthenticateRequest {
            name: name.to_owned(),
            password: password.to_owned(),
        };
        let answer = self.auth().authenticate(self.signed(request)).await?;
        Ok(answer.into_inner().token)
    }

    pub(super) async fn change_password(&self, name: &str, password: &str) -> Result<(), Status> {
        let request = pb::AuthUserChangePasswordRequest {
            name: name.to_owned(),
            password: password.to_owned(),
            ..Default::default()
        };
        self.auth()
            .user_change_password(self.signed(request))
            .await
            .map(|_| ())
    }

    /// Sends a hash, which costs the member no time.
    pub(super) async fn change_hash(&self, name: &str, hash: &str) -> Result<(), Status> {
        use base64::Engine as _;
        let request = pb::AuthUserChangePasswordRequest {
            name: name.to_owned(),
            hashed_password: base64::engine::general_purpose::STANDARD.encode(hash),
            ..Default::default()
        };
        self.auth()
            .user_change_password(self.signed(request))
            .await
            .map(|_| ())
    }

    pub(super) async fn set(&self, key: &str, value: &str) -> Result<(), Status> {
        let (key, value) = (key.to_owned().into(), value.to_owned().into());
        let request = pb::PutRequest {
            key,
            value,
            ..Default::default()
        };
        let call = async |_: Request<()>| {
            KvClient::new(self.channel.clone())
                .put(self.signed(request))
                .await
        };
        with_deadline(LIMIT, (), call).await.map(|_| ())
    }

    pub(super) async fn get(&self, key: &str, serializable: bool) -> Result<(), Status> {
        let request = pb::RangeRequest {
            key: key.to_owned().into(),
            serializable,
            ..Default::default()
        };
        let call = async |_: Request<()>| {
            KvClient::new(self.channel.clone())
                .range(self.signed(request))
                .await
        };
        with_deadline(LIMIT, (), call).await.map(|_| ())
    }
}

/// Code number and text of a refusal.
pub(super) fn refusal<T>(answer: &Result<T, Status>) -> Option<(i32, &str)> {
    answer
        .as_ref()
        .err()
        .map(|status| (i32::from(status.code()), status.message()))
}
