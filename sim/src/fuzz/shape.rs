//! The frame of a plan: cluster, tokens, network and windows.

use super::Profile;
use crate::plan::{Cluster, Network, Span, Tokens, Window};
use crate::rng::Rng;
use gatehouse::window;

/// Fastest and slowest clock, millionths.
const DRIFT_PPM_MAX: u64 = 50_000;

pub(super) fn cluster(profile: Profile, rng: &mut Rng) -> Cluster {
    let members = match rng.between(1, 20) {
        1 => 1,
        2..=4 => 5,
        _ => 3,
    };
    let (heartbeat_ms, election_ms) = *rng
        .pick(&[(30, 300), (50, 500), (100, 1_000)])
        .expect("not empty");
    let plain = Cluster::default();
    let short_log = profile == Profile::Disk || rng.chance(0.4);
    let drift_ppm = if rng.chance(0.3) {
        (0..members).map(|_| drift(rng)).collect()
    } else {
        Vec::new()
    };
    Cluster {
        members,
        heartbeat_ms,
        election_ms,
        drift_ppm,
        snapshot_count: if short_log {
            rng.between(3, 30)
        } else {
            plain.snapshot_count
        },
        snapshot_part_bytes: if short_log {
            usize::try_from(rng.between(100, 3_000)).expect("small")
        } else {
            plain.snapshot_part_bytes
        },
    }
}

/// A clock's drift, millionths.
pub(super) fn drift(rng: &mut Rng) -> i64 {
    let drift = i64::try_from(rng.between(0, 2 * DRIFT_PPM_MAX)).expect("small");
    drift - i64::try_from(DRIFT_PPM_MAX).expect("small")
}

pub(super) fn tokens(profile: Profile, rng: &mut Rng) -> Tokens {
    let plain = Tokens::default();
    let short_lived = rng.chance(if profile == Profile::Disk { 0.1 } else { 0.3 });
    let few = rng.chance(0.15);
    Tokens {
        ttl_ms: if short_lived {
            // At least ten heartbeats; and not so short that reading the hashes of all members outlasts reports of use.
            rng.between(2_000, 6_000)
        } else {
            plain.ttl_ms
        },
        per_user_max: if few {
            rng.between(1, 3)
        } else {
            plain.per_user_max
        },
        total_max: plain.total_max,
    }
}

pub(super) fn network(rng: &mut Rng) -> Network {
    let high = *rng.pick(&[5, 10, 10, 30, 80]).expect("not empty");
    let loss = *rng.pick(&[0.0, 0.0, 0.0, 0.01, 0.05]).expect("not empty");
    Network {
        latency_ms: Span { low: 1, high },
        loss,
    }
}

/// Some windows are held open in some seeds, each on all members or on one.
pub(super) fn windows(cluster: &Cluster, rng: &mut Rng) -> Vec<Window> {
    let mut windows = Vec::new();
    for window in window::Window::ALL {
        if rng.chance(0.75) {
            continue;
        }
        let high = *rng.pick(&[5, 30, 150, 400]).expect("not empty");
        let member = rng.chance(0.4);
        let member = member.then(|| rng.between(1, cluster.members));
        windows.push(Window {
            name: window.name().to_owned(),
            member,
            ms: Span { low: 0, high },
            chance: *rng.pick(&[0.05, 0.3, 1.0]).expect("not empty"),
        });
    }
    windows
}
