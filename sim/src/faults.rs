//! Strikes the faults of a plan, each at its time, and undoes those that last for a while. Whom a fault hits and when is
//! drawn from a generator of its own; what it did is part of the history.

mod disk;

use crate::cluster::Cluster;
use crate::plan::{Direction, Fault, FaultKind, Members, Span};
use crate::rng::{Purpose, Rng};
use crate::world::World;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// How often a fault that waits for an election looks whether there was one, milliseconds.
const LOOK_MS: u64 = 5;

/// Elections after which a cut-off member is joined again though its peers have no leader.
const ELECTIONS_MAX: u64 = 20;

/// How long a slow link is open between two bursts, milliseconds: long enough for what was held back to leave.
const OPEN_MS: Span = Span { low: 1, high: 10 };

/// Starts every fault's clock. Ends of faults that are still open are for the healing.
pub(crate) fn start(world: &Arc<World>) -> Vec<JoinHandle<()>> {
    let mut rng = Rng::new(world.seed, Purpose::Faults);
    // Each fault has a stream of its own, so that one fault more or less leaves the others where they were.
    let seeds: Vec<u64> = world.plan.faults.iter().map(|_| rng.draw()).collect();
    let faults = seeds.into_iter().enumerate();
    faults
        .map(|(number, seed)| tokio::spawn(fault(Arc::clone(world), number, seed)))
        .collect()
}

async fn fault(world: Arc<World>, number: usize, seed: u64) {
    let fault = &world.plan.faults[number];
    let mut rng = Rng::new(seed, Purpose::Faults);
    let (at, lasts) = (
        draw(&mut rng, fault.when.at_ms),
        fault.when.for_ms.map(|span| draw(&mut rng, span)),
    );
    if let Some(label) = &fault.when.wait_for_start {
        world.labels.wait_sent(label).await;
    }
    if let Some(label) = &fault.when.wait_for {
        world.labels.wait_returned(label).await;
    }
    sleep(at).await;
    strike(&world, fault, lasts, &mut rng).await;
}

fn draw(rng: &mut Rng, span: Span) -> Duration {
    Duration::from_millis(rng.between(span.low, span.high))
}

/// Strikes, waits, undoes. Without a duration the fault stays.
async fn strike(world: &World, fault: &Fault, lasts: Option<Duration>, rng: &mut Rng) {
    let cluster = &world.cluster;
    let mut who = |members: &Members| match members {
        // For a client a list is an order; a fault strikes once, and any of them.
        Members::Rotate(list) => *rng.pick(list).expect("a checked plan has no empty list"),
        members => world.choose(members, &mut 0, rng),
    };
    match &fault.kind {
        FaultKind::Kill { member } => {
            on_member(cluster, who(member), lasts, Cluster::kill, Cluster::restart).await;
        }
        FaultKind::Restart { member } => cluster.restart(who(member)),
        FaultKind::Pause { member } => {
            on_member(cluster, who(member), lasts, Cluster::pause, Cluster::resume).await;
        }
        FaultKind::Resume { member } => cluster.resume(who(member)),
        FaultKind::Isolate { member } => {
            on_member(
                cluster,
                who(member),
                lasts,
                Cluster::isolate,
                Cluster::rejoin,
            )
            .await;
        }
        FaultKind::CutOff { member, direction } => {
            let member = who(member);
            let peers = peers(cluster, member);
            partition(world, &peers, &[member], *direction, lasts).await;
        }
        FaultKind::CutPeers { member } => cut_peers(world, who(member), lasts).await,
        FaultKind::Partition { a, b, direction } => {
            partition(world, a, b, *direction, lasts).await;
        }
        FaultKind::SlowLink {
            a,
            b,
            ms,
            direction,
        } => {
            let links = links(a, b, *direction).collect();
            slow_link(world, links, *ms, lasts, describe(a, b, *direction)).await;
        }
        FaultKind::Latency { ms } => latency(world, *ms, lasts).await,
        FaultKind::Loss { rate } => loss(world, *rate, lasts).await,
        FaultKind::ClockDrift { member, ppm } => {
            let begin = |cluster: &Cluster, member| cluster.set_drift(member, Some(*ppm));
            let end = |cluster: &Cluster, member| cluster.set_drift(member, None);
            on_member(cluster, who(member), lasts, begin, end).await;
        }
        FaultKind::ClockJump { member, ms } => {
            let begin = |cluster: &Cluster, member| cluster.set_time_of_day(member, *ms);
            let end = |cluster: &Cluster, member| cluster.set_time_of_day(member, 0);
            on_member(cluster, who(member), lasts, begin, end).await;
        }
        FaultKind::PowerCut { member, .. }
        | FaultKind::DiskRot { member, .. }
        | FaultKind::DiskError { member, .. }
        | FaultKind::DiskFull { member, .. }
        | FaultKind::DiskStall { member }
        | FaultKind::DiskSlow { member, .. } => {
            let member = who(member);
            disk::strike(cluster, &fault.kind, member, lasts, rng).await;
        }
        FaultKind::Heal {} => {
            world.recorder.fault("heal");
            cluster.heal();
        }
    }
}

/// Does something to a member, and undoes it if it lasts for a while only.
async fn on_member(
    cluster: &Cluster,
    member: u64,
    lasts: Option<Duration>,
    begin: impl FnOnce(&Cluster, u64),
    end: impl FnOnce(&Cluster, u64),
) {
    begin(cluster, member);
    if waited(lasts).await {
        end(cluster, member);
    }
}

/// Waits for the end of a fault; false for one that stays.
async fn waited(lasts: Option<Duration>) -> bool {
    match lasts {
        Some(lasts) => {
            sleep(lasts).await;
            true
        }
        None => false,
    }
}

async fn latency(world: &World, ms: Span, lasts: Option<Duration>) {
    world
        .recorder
        .fault(format!("latency {} to {} ms", ms.low, ms.high));
    world.cluster.set_latency(Some(ms));
    if waited(lasts).await {
        world.recorder.fault("latency as before");
        world.cluster.set_latency(None);
    }
}

async fn loss(world: &World, rate: f64, lasts: Option<Duration>) {
    world.recorder.fault(format!("lose {rate} of all messages"));
    world.cluster.set_loss(Some(rate));
    if waited(lasts).await {
        world.recorder.fault("loss as before");
        world.cluster.set_loss(None);
    }
}

async fn partition(
    world: &World,
    a: &[u64],
    b: &[u64],
    direction: Direction,
    lasts: Option<Duration>,
) {
    world
        .recorder
        .fault(format!("cut {}", describe(a, b, direction)));
    links(a, b, direction).for_each(|(from, to)| world.cluster.cut(from, to));
    if waited(lasts).await {
        world
            .recorder
            .fault(format!("join {}", describe(a, b, direction)));
        links(a, b, direction).for_each(|(from, to)| world.cluster.join(from, to));
    }
}

fn peers(cluster: &Cluster, member: u64) -> Vec<u64> {
    let others = 1..=cluster.size();
    others.filter(|peer| *peer != member).collect()
}

/// Cuts a member off from its peers, and joins them again once the peers have a leader and `lasts` is over. A time alone
/// would not do: healed before the election nothing conflicts, and healed long after it the other side has written as many
/// entries as the cut-off member holds, so that none of them is left over behind the new ones. Other faults may keep the
/// peers from ever having a leader, so there is an end to the wait.
async fn cut_peers(world: &World, member: u64, lasts: Option<Duration>) {
    let peers = peers(&world.cluster, member);
    let what = describe(&[member], &peers, Direction::Both);
    world.recorder.fault(format!("cut {what}"));
    links(&[member], &peers, Direction::Both).for_each(|(from, to)| world.cluster.cut(from, to));
    let patience = Duration::from_millis(world.plan.cluster.election_ms * ELECTIONS_MAX);
    let start = tokio::time::Instant::now();
    let leads = |world: &World| world.recorder.leader();
    while leads(world).is_none_or(|leader| leader == member) && start.elapsed() < patience {
        sleep(Duration::from_millis(LOOK_MS)).await;
    }
    if waited(lasts).await {
        world.recorder.fault(format!("join {what}"));
        links(&[member], &peers, Direction::Both)
            .for_each(|(from, to)| world.cluster.join(from, to));
    }
}

/// Holds links back in bursts. The network simulator knows one latency for all links, so a slow one is a link that is cut
/// for the time of a burst and open for a moment, again and again; order is kept, as on one connection it must be.
async fn slow_link(
    world: &World,
    links: Vec<(u64, u64)>,
    ms: Span,
    lasts: Option<Duration>,
    what: String,
) {
    let mut rng = Rng::new(world.seed, Purpose::Links);
    world.recorder.fault(format!(
        "slow {what}, bursts of {} to {} ms",
        ms.low, ms.high
    ));
    let start = tokio::time::Instant::now();
    while lasts.is_none_or(|lasts| start.elapsed() < lasts) {
        links
            .iter()
            .for_each(|(from, to)| world.cluster.cut(*from, *to));
        sleep(draw(&mut rng, ms)).await;
        links
            .iter()
            .for_each(|(from, to)| world.cluster.join(*from, *to));
        sleep(draw(&mut rng, OPEN_MS)).await;
    }
    world.recorder.fault(format!("as fast as before: {what}"));
}

fn describe(a: &[u64], b: &[u64], direction: Direction) -> String {
    let names = |side: &[u64]| {
        side.iter()
            .map(|member| format!("n{member}"))
            .collect::<Vec<_>>()
            .join("+")
    };
    let arrow = match direction {
        Direction::Both => "<->",
        Direction::OneWay => "->",
    };
    format!("{} {arrow} {}", names(a), names(b))
}

/// The directed links between two groups.
fn links(a: &[u64], b: &[u64], direction: Direction) -> impl Iterator<Item = (u64, u64)> {
    let both = direction == Direction::Both;
    a.iter().flat_map(move |a| {
        b.iter()
            .flat_map(move |b| [(*a, *b)].into_iter().chain(both.then_some((*b, *a))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_cuts_the_links_it_says() {
        let both: Vec<_> = links(&[1], &[2, 3], Direction::Both).collect();
        assert_eq!(both, [(1, 2), (2, 1), (1, 3), (3, 1)]);
        let one_way: Vec<_> = links(&[1, 2], &[3], Direction::OneWay).collect();
        assert_eq!(one_way, [(1, 3), (2, 3)]);
        assert_eq!(describe(&[1, 2], &[3], Direction::OneWay), "n1+n2 -> n3");
    }
}
