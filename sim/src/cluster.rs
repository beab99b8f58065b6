//! The servers of a run: one simulated machine for each member, with a disk and a clock that outlive its reboots, and one
//! machine for all clients. Everything that a fault can do to them is a method here.

mod disks;

use crate::calls::CLIENT_PORT;
use crate::plan::{Plan, Span};
use crate::recorder::Recorder;
use crate::rng::{Purpose, Rng};
use crate::stop::Stop;
use gatehouse::config::{Config, Member};
use gatehouse::platform::{Clock, Disk, SimClock, SimDisk};
use gatehouse::server::{Parts, ServerError, run};
use gatehouse::state::{TokenKind, TokenLimits};
use madsim::net::NetSim;
use madsim::runtime::{Handle, NodeHandle};
use madsim::task::NodeId;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// Where members listen for each other.
pub(crate) const PEER_PORT: u16 = 2380;

/// bcrypt's lowest cost: the race has its width from the virtual time that a comparison takes, not from the processor's.
const BCRYPT_COST: u32 = 4;

/// Passwords compared at the same time on one member, as on a machine with two free cores.
const PASSWORD_WORKERS: usize = 2;

/// etcd's default for `--max-txn-ops`.
const TXN_OPS_MAX: usize = 128;

/// etcd's default for `--max-request-bytes`.
const REQUEST_BYTES_MAX: usize = 1_572_864;

/// How a machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Up,
    Paused,
    Down,
}

impl Condition {
    const ALL: [Condition; 3] = [Condition::Up, Condition::Paused, Condition::Down];
}

/// One member's machine.
struct Machine {
    node: NodeId,
    disk: SimDisk,
    clock: SimClock,
    /// How the plan wants its clock to run, millionths.
    drift_ppm: i64,
    condition: AtomicU8,
    /// Whether a fuse has been set to its disk, and nobody has seen yet that it blew.
    fused: AtomicBool,
    /// Whether its store has rotted so that it cannot go on; see `disks.rs`.
    lost: Arc<AtomicBool>,
}

impl Machine {
    fn condition(&self) -> Condition {
        Condition::ALL[usize::from(self.condition.load(Ordering::Relaxed))]
    }

    fn set(&self, condition: Condition) {
        self.condition.store(condition as u8, Ordering::Relaxed);
    }
}

/// The servers, and the machine of the clients.
pub(crate) struct Cluster {
    handle: Handle,
    net: Arc<NetSim>,
    machines: Vec<Machine>,
    clients: NodeHandle,
    recorder: Recorder,
    latency: Span,
    loss: f64,
}

impl Cluster {
    /// Boots every member. Must be called inside the simulation.
    pub(crate) fn boot(plan: &Plan, seed: u64, recorder: &Recorder) -> Cluster {
        let handle = Handle::current();
        let machines = (1..=plan.cluster.members)
            .map(|member| boot(&handle, plan, seed, member, recorder))
            .collect();
        let clients = handle
            .create_node()
            .name("clients")
            .ip([10, 0, 1, 1].into())
            .build();
        Cluster {
            handle,
            net: NetSim::current(),
            machines,
            clients,
            recorder: recorder.clone(),
            latency: plan.network.latency_ms,
            loss: plan.network.loss,
        }
    }

    /// How many members there are.
    pub(crate) fn size(&self) -> u64 {
        self.machines.len() as u64
    }

    /// The machine on which clients run.
    pub(crate) fn clients(&self) -> &NodeHandle {
        &self.clients
    }

    fn machine(&self, member: u64) -> &Machine {
        let at = member
            .checked_sub(1)
            .and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.machines.get(at))
            .expect("a checked plan names existing members only")
    }

    /// Cuts a member's power: what its disk had not made durable is lost or torn. Does nothing to a member that is down.
    pub(crate) fn kill(&self, member: u64) {
        let machine = self.machine(member);
        if machine.condition() == Condition::Down {
            return;
        }
        self.recorder.fault(format!("kill n{member}"));
        self.stop(machine);
    }

    fn stop(&self, machine: &Machine) {
        // First the power, so that nothing which is dropped by the kill can still write.
        machine.disk.cut_power();
        self.handle.kill(machine.node);
        machine.disk.crash();
        machine.set(Condition::Down);
    }

    /// Boots a member from what its disk holds, after a power cut if it was still up. Does nothing to one that is lost.
    pub(crate) fn restart(&self, member: u64) {
        let machine = self.machine(member);
        if self.is_lost(member) {
            return;
        }
        if machine.condition() != Condition::Down {
            self.stop(machine);
        }
        self.recorder.fault(format!("restart n{member}"));
        self.handle.restart(machine.node);
        machine.set(Condition::Up);
    }

    /// Freezes a member that is up.
    pub(crate) fn pause(&self, member: u64) {
        let machine = self.machine(member);
        if machine.condition() == Condition::Up {
            self.recorder.fault(format!("pause n{member}"));
            self.handle.pause(machine.node);
            machine.set(Condition::Paused);
        }
    }

    /// Lets a frozen member go on.
    pub(crate) fn resume(&self, member: u64) {
        let machine = self.machine(member);
        if machine.condition() == Condition::Paused {
            self.recorder.fault(format!("resume n{member}"));
            self.handle.resume(machine.node);
            machine.set(Condition::Up);
        }
    }

    /// Cuts a member off from everything.
    pub(crate) fn isolate(&self, member: u64) {
        self.recorder.fault(format!("isolate n{member}"));
        self.net.clog_node(self.machine(member).node);
    }

    /// Ends an isolation.
    pub(crate) fn rejoin(&self, member: u64) {
        self.recorder.fault(format!("rejoin n{member}"));
        self.net.unclog_node(self.machine(member).node);
    }

    /// Lets nothing pass from one member to another any more. Not recorded: a partition is many of these.
    pub(crate) fn cut(&self, from: u64, to: u64) {
        self.net
            .clog_link(self.machine(from).node, self.machine(to).node);
    }

    /// Lets messages pass from one member to another again.
    pub(crate) fn join(&self, from: u64, to: u64) {
        self.net
            .unclog_link(self.machine(from).node, self.machine(to).node);
    }

    /// How long every message travels from now on; the plan's own time with `None`.
    pub(crate) fn set_latency(&self, latency: Option<Span>) {
        let latency = latency.unwrap_or(self.latency);
        self.net
            .update_config(|config| config.send_latency = travel(latency));
    }

    /// Share of messages lost from now on; the plan's own with `None`.
    pub(crate) fn set_loss(&self, loss: Option<f64>) {
        let loss = loss.unwrap_or(self.loss);
        self.net
            .update_config(|config| config.packet_loss_rate = loss);
    }

    /// How fast a member's clock runs from now on; as planned with `None`.
    pub(crate) fn set_drift(&self, member: u64, drift_ppm: Option<i64>) {
        let machine = self.machine(member);
        let drift_ppm = drift_ppm.unwrap_or(machine.drift_ppm);
        self.recorder
            .fault(format!("clock of n{member} runs {drift_ppm} ppm fast"));
        machine.clock.set_drift_ppm(drift_ppm);
    }

    /// How far a member's time of day is off from now on.
    pub(crate) fn set_time_of_day(&self, member: u64, offset_ms: i64) {
        self.recorder
            .fault(format!("clock of n{member} is {offset_ms} ms ahead"));
        self.machine(member).clock.set_offset_ms(offset_ms);
    }

    /// Undoes whatever faults did: links, latency, clocks and disks as planned, every member running that is not lost.
    pub(crate) fn heal(&self) {
        let members = 1..=self.size();
        for member in members.clone() {
            self.net.unclog_node(self.machine(member).node);
            for other in members.clone() {
                self.join(member, other);
            }
        }
        self.set_latency(None);
        self.set_loss(None);
        for machine in &self.machines {
            machine.clock.set_drift_ppm(machine.drift_ppm);
            machine.clock.set_offset_ms(0);
        }
        for member in members {
            self.resume(member);
            self.boot_if_failed(member);
            self.machine(member).disk.heal();
            self.kill_if_fuse_blew(member);
            if self.machine(member).condition() == Condition::Down {
                self.restart(member);
            }
        }
    }

    /// Switches everything off for good, so that the tasks let go of what they hold: the simulator's runtime keeps
    /// machines alive that keep each other alive, and a night of runs would fill the memory.
    pub(crate) async fn switch_off(&self) {
        for machine in &self.machines {
            self.stop(machine);
        }
        self.handle.kill(self.clients.id());
        // Killed tasks are dropped when the executor comes by.
        tokio::time::sleep(Duration::from_millis(1)).await;
        for machine in &self.machines {
            machine.disk.wipe();
        }
    }

    /// What the machines did, for the trace hash. The disks' contents are left out: redb marks unused pages in builds with
    /// debug assertions, and both kinds of build must give the same hash. What a store holds is in the probes.
    pub(crate) fn facts(&self) -> Vec<u64> {
        let disks = self.machines.iter().flat_map(|machine| {
            let counters = machine.disk.counters();
            [counters.writes, counters.syncs, counters.bytes]
        });
        disks.chain([self.net.stat().msg_count]).collect()
    }
}

/// How long messages travel, as the network simulator takes it: its range leaves out the end.
pub(crate) fn travel(span: Span) -> std::ops::Range<Duration> {
    Duration::from_millis(span.low)..Duration::from_millis(span.high) + Duration::from_micros(1)
}

fn boot(handle: &Handle, plan: &Plan, seed: u64, member: u64, recorder: &Recorder) -> Machine {
    let disk = SimDisk::new(Rng::new(seed, Purpose::Disk(member)).draw());
    let clock = SimClock::new();
    let drifts = plan.cluster.drift_ppm.iter().copied();
    let drift_ppm = (1..).zip(drifts).find(|(named, _)| *named == member);
    let drift_ppm = drift_ppm.map_or(0, |(_, drift)| drift);
    clock.set_drift_ppm(drift_ppm);
    let config = config(plan, member);
    let recorder = recorder.clone();
    let boots = disk.clone();
    let lost = Arc::new(AtomicBool::new(false));
    let loses = Arc::clone(&lost);
    // Runs at each boot. The clock's handle survives, the member's own view of it starts anew.
    let boot_clock = clock.clone();
    let init = move || {
        let parts = Parts {
            disk: Disk::simulated(boots.clone()),
            clock: Clock::simulated(boot_clock.clone()),
            observer: recorder.observer(member),
        };
        let (config, recorder) = (config.clone(), recorder.clone());
        let (disk, lost) = (boots.clone(), Arc::clone(&loses));
        async move {
            // Nobody stops a member gently; the sender stays alive as long as the member runs.
            let (_stop, stopped) = watch::channel(false);
            let ended = run(config, parts, stopped).await;
            report(member, ended, &disk, &lost, &recorder);
        }
    };
    let node = handle
        .create_node()
        .name(format!("n{member}"))
        .ip(address(member))
        .init(init)
        .build();
    Machine {
        node: node.id(),
        disk,
        clock,
        drift_ppm,
        condition: AtomicU8::new(Condition::Up as u8),
        fused: AtomicBool::new(false),
        lost,
    }
}

/// Takes note of a member that stopped though nobody stopped it. With a disk that a fault has made fail, it should have.
fn report(
    member: u64,
    ended: Result<(), ServerError>,
    disk: &SimDisk,
    lost: &AtomicBool,
    recorder: &Recorder,
) {
    let (stop, cause) = match ended {
        Ok(()) => (Stop::Other, "it ended without being asked".to_owned()),
        Err(error) => (Stop::of(&error), error.to_string()),
    };
    if disk.has_no_power() {
        // In truth it ended with the power, without a word; whoever cut the power is about to say so.
    } else if disk.is_rotten() && stop != Stop::Other {
        lost.store(true, Ordering::Relaxed);
        recorder.fault(format!("n{member} is lost, its store has rotted: {cause}"));
    } else if disk.has_failed() && stop == Stop::Disk {
        recorder.fault(format!("n{member} stopped for its disk: {cause}"));
    } else {
        recorder.stopped(member, stop, cause);
    }
}

fn address(member: u64) -> std::net::IpAddr {
    let last = u8::try_from(member).expect("a checked plan has at most seven members");
    [10, 0, 0, last].into()
}

fn config(plan: &Plan, member: u64) -> Config {
    let listen = |port| SocketAddr::new(address(member), port);
    // Numbers serve as ids, so that logs, histories and reports need no table.
    let members = (1..=plan.cluster.members).map(|id| Member {
        id,
        name: format!("n{id}"),
        peer_address: SocketAddr::new(address(id), PEER_PORT).to_string(),
    });
    Config {
        cluster_id: 1,
        member_id: member,
        members: members.collect(),
        listen_client: vec![listen(CLIENT_PORT)],
        listen_peer: vec![listen(PEER_PORT)],
        heartbeat: Duration::from_millis(plan.cluster.heartbeat_ms),
        election: Duration::from_millis(plan.cluster.election_ms),
        bcrypt_cost: BCRYPT_COST,
        password_workers: PASSWORD_WORKERS,
        token_kind: TokenKind::Simple,
        token_ttl: Duration::from_millis(plan.tokens.ttl_ms),
        token_limits: TokenLimits {
            per_user: plan.tokens.per_user_max,
            total: plan.tokens.total_max,
        },
        max_txn_ops: TXN_OPS_MAX,
        max_request_bytes: REQUEST_BYTES_MAX,
        snapshot_count: plan.cluster.snapshot_count,
        snapshot_part_bytes: plan.cluster.snapshot_part_bytes,
    }
}
