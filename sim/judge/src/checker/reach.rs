//! How far each member had applied at each event.

use crate::history::{History, What};
use std::collections::BTreeMap;

/// Every member's applied index over time.
#[derive(Debug, Default)]
pub(super) struct Reach {
    /// By member: the number of an event, and the index from there on.
    members: BTreeMap<u64, Vec<(usize, u64)>>,
}

impl Reach {
    /// Passes over the events.
    pub(super) fn of(history: &History) -> Reach {
        let mut reach = Reach::default();
        for (event, happened) in history.events.iter().enumerate() {
            let (member, index) = match &happened.what {
                What::Applied(applied) => (applied.member, applied.index),
                What::Installed(installed) => (installed.member, installed.index),
                What::Started { member, index } => (*member, *index),
                _ => continue,
            };
            reach
                .members
                .entry(member)
                .or_default()
                .push((event, index));
        }
        reach
    }

    /// What the member had applied before the event.
    pub(super) fn of_member(&self, member: u64, event: usize) -> u64 {
        self.members
            .get(&member)
            .map_or(0, |steps| before(steps, event))
    }

    /// What the member that was furthest had applied before the event.
    pub(super) fn furthest(&self, event: usize) -> u64 {
        let members = self.members.values().map(|steps| before(steps, event));
        members.max().unwrap_or(0)
    }
}

fn before(steps: &[(usize, u64)], event: usize) -> u64 {
    let after = steps.partition_point(|(at, _)| *at < event);
    steps[..after].last().map_or(0, |(_, index)| *index)
}
