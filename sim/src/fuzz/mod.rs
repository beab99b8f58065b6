//! Plans from a seed number, for fuzzing. A profile says what the plans are after; the seed decides everything else. Each
//! seed leaves some kinds of calls and of faults out (swarm testing): a run that does few things, and those often, gets
//! to places where a run that does everything never is.
//!
//! What is drawn is a plan like any other: it can be written to a file, read, cut down and run without its seed. One
//! generator per part, so that a change of one part does not shift the others.

mod admin;
mod cast;
mod data;
mod faults;
mod menu;
mod shape;
mod workload;

#[cfg(test)]
mod tests;

use crate::plan::{Liveness, Plan, VERSION};
use crate::rng::{Purpose, Rng};
use cast::Cast;

/// What plans are after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// Everything.
    Default,
    /// Auth changes against calls, with few faults.
    Auth,
    /// Crashes, disks, logs that are cut short and snapshots.
    Disk,
}

impl Profile {
    /// Every profile.
    pub const ALL: [Profile; 3] = [Profile::Default, Profile::Auth, Profile::Disk];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Default => "default",
            Profile::Auth => "auth",
            Profile::Disk => "disk",
        }
    }

    /// The profile of this name.
    pub fn named(name: &str) -> Option<Profile> {
        Profile::ALL
            .into_iter()
            .find(|profile| profile.name() == name)
    }
}

/// The parts of a plan that draw on their own; the numbers are part of what a seed means.
#[derive(Clone, Copy)]
enum Part {
    Shape = 1,
    Cast = 2,
    Workload = 3,
    Faults = 4,
    Windows = 5,
}

fn generator(profile: Profile, seed: u64, part: Part) -> Rng {
    Rng::new(seed, Purpose::Plan(profile as u64 * 100 + part as u64))
}

/// The plan of `seed`; it passes [`Plan::check`].
pub fn plan(profile: Profile, seed: u64) -> Plan {
    let rng = |part| generator(profile, seed, part);
    let mut shape = rng(Part::Shape);
    let cluster = shape::cluster(profile, &mut shape);
    let tokens = shape::tokens(profile, &mut shape);
    let network = shape::network(&mut shape);
    let cast = Cast::draw(&mut rng(Part::Cast));
    let clients = workload::clients(&cast, &cluster, &mut rng(Part::Workload));
    let faults = faults::faults(profile, &cluster, &mut rng(Part::Faults));
    let windows = shape::windows(&cluster, &mut rng(Part::Windows));
    Plan {
        version: VERSION,
        name: format!("fuzz-{}", profile.name()),
        why: format!(
            "Drawn from seed {seed} of the profile \"{}\".",
            profile.name()
        ),
        seeds: vec![seed],
        bug: None,
        shows: Vec::new(),
        limit_ms: LIMIT_MS,
        setup: cast.setup(),
        cluster,
        tokens,
        network,
        liveness: Some(Liveness {
            user: "root".to_owned(),
            password: "root-1".to_owned(),
            key: "liveness".to_owned(),
        }),
        expect: workload::expect(&cast),
        clients,
        faults,
        windows,
    }
}

/// Virtual time after which a run counts as stuck: many times what the slowest plan takes.
const LIMIT_MS: u64 = 300_000;
