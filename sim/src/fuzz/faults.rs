//! What goes wrong, and when: kinds by the profile, times within what the clients need.

use super::shape::drift;
use super::{Profile, menu::Menu};
use crate::plan::{
    Cluster, Direction, DiskOperation, Fault, FaultKind, FaultTime, MemberName, Members, Span,
};
use crate::rng::Rng;

/// Last moment at which a fault strikes, milliseconds since the clients started.
const LAST_MS: u64 = 7_000;

/// Longest that a fault lasts, milliseconds.
const LONGEST_MS: [u64; 3] = [300, 1_500, 4_000];

/// Longest that nobody is up, milliseconds.
const ALL_DOWN_MS_MAX: u64 = 700;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Kill,
    KillAll,
    Pause,
    CutOff,
    CutPeers,
    Isolate,
    Partition,
    SlowLink,
    Latency,
    Loss,
    ClockDrift,
    ClockJump,
    PowerCut,
    DiskError,
    DiskFull,
    DiskStall,
    DiskSlow,
    DiskRot,
}

const CRASHES: [(u64, Kind); 3] = [(4, Kind::Kill), (1, Kind::KillAll), (4, Kind::PowerCut)];

const NETWORK: [(u64, Kind); 8] = [
    (2, Kind::Pause),
    (4, Kind::CutOff),
    (3, Kind::CutPeers),
    (2, Kind::Isolate),
    (3, Kind::Partition),
    (2, Kind::SlowLink),
    (1, Kind::Latency),
    (1, Kind::Loss),
];

const DISKS: [(u64, Kind); 5] = [
    (3, Kind::DiskError),
    (2, Kind::DiskFull),
    (2, Kind::DiskStall),
    (2, Kind::DiskSlow),
    (2, Kind::DiskRot),
];

const CLOCKS: [(u64, Kind); 2] = [(1, Kind::ClockDrift), (1, Kind::ClockJump)];

fn menu(profile: Profile, rng: &mut Rng) -> Menu<Kind> {
    let all = match profile {
        Profile::Default => [&CRASHES[..], &NETWORK, &DISKS, &CLOCKS].concat(),
        Profile::Auth => [&CRASHES[..1], &NETWORK, &CLOCKS].concat(),
        Profile::Disk => [&CRASHES[..], &NETWORK[1..3], &DISKS].concat(),
    };
    Menu::some_of(&all, rng)
}

pub(super) fn faults(profile: Profile, cluster: &Cluster, rng: &mut Rng) -> Vec<Fault> {
    let menu = menu(profile, rng);
    let least = u64::from(profile == Profile::Disk);
    let mut faults = Vec::new();
    // The others must be a quorum for good.
    let mut may_rot = (cluster.members - 1) / 2;
    for _ in 0..rng.between(least, 5) {
        let kind = menu.draw(rng);
        if kind == Kind::DiskRot {
            if may_rot == 0 {
                continue;
            }
            may_rot -= 1;
        }
        let mut when = time(rng);
        if kind == Kind::KillAll || cluster.members == 1 {
            // Nobody serves meanwhile; clients repeat calls for about a second, and then have nothing to go on with.
            when.for_ms = Some(exactly(rng.between(20, ALL_DOWN_MS_MAX)));
        }
        if kind == Kind::KillAll {
            faults.extend((1..=cluster.members).map(|member| Fault {
                kind: FaultKind::Kill {
                    member: Members::One(member),
                },
                when: when.clone(),
            }));
            continue;
        }
        let kind = one(kind, cluster, rng);
        if !kind.lasts() {
            when.for_ms = None;
        }
        faults.push(Fault { kind, when });
    }
    faults
}

fn time(rng: &mut Rng) -> FaultTime {
    let at = rng.between(0, LAST_MS);
    let longest = *rng.pick(&LONGEST_MS).expect("not empty");
    let lasts = rng.between(20, longest);
    FaultTime {
        at_ms: exactly(at),
        for_ms: Some(exactly(lasts)),
        ..FaultTime::default()
    }
}

fn exactly(number: u64) -> Span {
    Span {
        low: number,
        high: number,
    }
}

fn whom(cluster: &Cluster, rng: &mut Rng) -> Members {
    match rng.between(1, 4) {
        1 => Members::Named(MemberName::Leader),
        2 => Members::Named(MemberName::Follower),
        _ => Members::One(rng.between(1, cluster.members)),
    }
}

fn direction(rng: &mut Rng) -> Direction {
    if rng.chance(0.3) {
        Direction::OneWay
    } else {
        Direction::Both
    }
}

/// Two sides of the members, neither of them empty; none of a single member.
fn sides(cluster: &Cluster, rng: &mut Rng) -> Option<(Vec<u64>, Vec<u64>)> {
    let alone = rng.between(1, cluster.members);
    let (a, b): (Vec<u64>, Vec<u64>) =
        (1..=cluster.members).partition(|member| *member == alone || rng.chance(0.3));
    (!b.is_empty()).then_some((a, b))
}

fn one(kind: Kind, cluster: &Cluster, rng: &mut Rng) -> FaultKind {
    let member = whom(cluster, rng);
    match kind {
        Kind::Kill | Kind::KillAll => FaultKind::Kill { member },
        Kind::Pause => FaultKind::Pause { member },
        Kind::CutOff => FaultKind::CutOff {
            member,
            direction: direction(rng),
        },
        Kind::CutPeers => FaultKind::CutPeers {
            member: Members::Named(MemberName::Leader),
        },
        Kind::Isolate => FaultKind::Isolate { member },
        Kind::Partition => match sides(cluster, rng) {
            Some((a, b)) => FaultKind::Partition {
                a,
                b,
                direction: direction(rng),
            },
            None => FaultKind::Isolate { member },
        },
        Kind::SlowLink => match sides(cluster, rng) {
            Some((a, b)) => FaultKind::SlowLink {
                a,
                b,
                ms: Span { low: 10, high: 200 },
                direction: direction(rng),
            },
            None => FaultKind::Pause { member },
        },
        Kind::Latency => FaultKind::Latency {
            ms: Span { low: 1, high: 150 },
        },
        Kind::Loss => FaultKind::Loss { rate: 0.2 },
        Kind::ClockDrift => FaultKind::ClockDrift {
            member,
            ppm: drift(rng),
        },
        Kind::ClockJump => {
            let ms = i64::try_from(rng.between(0, 7_200_000)).expect("small") - 3_600_000;
            FaultKind::ClockJump { member, ms }
        }
        Kind::PowerCut
        | Kind::DiskError
        | Kind::DiskFull
        | Kind::DiskStall
        | Kind::DiskSlow
        | Kind::DiskRot => of_disk(kind, member, rng),
    }
}

fn of_disk(kind: Kind, member: Members, rng: &mut Rng) -> FaultKind {
    match kind {
        Kind::DiskError => {
            let operation = if rng.chance(0.5) {
                DiskOperation::Write
            } else {
                DiskOperation::Sync
            };
            let few = rng.chance(0.5);
            FaultKind::DiskError {
                member,
                operation,
                next: few.then(|| rng.between(1, 5)),
            }
        }
        Kind::DiskFull => FaultKind::DiskFull {
            member,
            room: exactly(4_096 * rng.between(0, 16)),
        },
        Kind::DiskStall => FaultKind::DiskStall { member },
        Kind::DiskSlow => FaultKind::DiskSlow {
            member,
            ms: exactly(rng.between(5, 500)),
        },
        Kind::DiskRot => FaultKind::DiskRot {
            member,
            bytes: rng.between(1, 20),
            running: rng.chance(0.4),
        },
        _ => FaultKind::PowerCut {
            member,
            operations: exactly(rng.between(0, 60)),
        },
    }
}
