//! How long after a revocation had returned some member still allowed what it took, through a local read. Any lag of a
//! member may cause that, so it is a figure and no violation, until the faults are healed: then a member must catch up.

use super::blame::Accusation;
use super::bounds::place;
use super::describe;
use super::replay::Replay;
use crate::history::{Event, History, What};

/// How long a member may answer from before a revocation once the faults are healed, or once the revocation has returned
/// if that is later. Healing was measured to take 3 s at worst, most of it for connections that must be found dead
/// (`sim/src/liveness.rs`); an election and a few heartbeats come on top.
const AFTER_HEALING_MAX_US: u64 = 10_000_000;

/// How long revocations took to reach every member, as far as local reads showed it. A revocation here is whatever took
/// a right or ended a token: a password change, a deletion and an expiry count too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Staleness {
    /// The longest time between a revocation's return and a later call that was still allowed, milliseconds.
    pub max_ms: u64,
    /// The most entries that some member had applied since a revocation when such a call was sent.
    pub max_entries: u64,
    /// Calls that were still allowed.
    pub calls: u64,
}

/// A local read that was allowed although that had been taken before it was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stale {
    pub(super) call: u64,
    /// Index of the entry that took it.
    pub(super) since: u64,
}

/// Measures the stale reads, and reports those that come too late after the healing.
pub(super) fn measure(history: &History, replay: &mut Replay<'_, '_>) -> Staleness {
    let mut staleness = Staleness::default();
    let stale = replay.take_stale();
    if stale.is_empty() {
        return staleness;
    }
    let answered = answered(history, replay);
    let healed = history.events.iter().find(|e| e.what == What::Healed);
    for Stale { call, since } in stale {
        let call = replay.run.call(call);
        let Some(taken_us) = first_at(&answered, since) else {
            continue;
        };
        let sent_us = call.invoked.at_us;
        let entries = replay.reach.furthest(call.invoked.event);
        staleness.calls += 1;
        staleness.max_ms = staleness
            .max_ms
            .max(sent_us.saturating_sub(taken_us) / 1000);
        staleness.max_entries = staleness.max_entries.max(entries.saturating_sub(since));
        let Some(healed) = healed.filter(|healed| healed.at_us <= sent_us) else {
            continue;
        };
        let lasted_us = sent_us.saturating_sub(healed.at_us.max(taken_us));
        if let (true, Some((end, _))) = (lasted_us > AFTER_HEALING_MAX_US, call.answer()) {
            let sentence = format!(
                "{} was allowed from a view before index {since}, which had taken that, although the cluster had been \
                 whole for {} ms; within {} ms every member must have caught up",
                describe::call(call),
                lasted_us / 1000,
                AFTER_HEALING_MAX_US / 1000
            );
            let accusation = Accusation {
                event: end.event,
                property: "P17",
                sentence,
                calls: vec![call.number],
            };
            replay.report(accusation);
        }
    }
    staleness
}

/// When calls had been answered that stand up to which index: times, each with the greatest index so far.
fn answered(history: &History, replay: &Replay<'_, '_>) -> Vec<(u64, u64)> {
    let mut answered: Vec<(u64, u64)> = Vec::new();
    for Event { at_us, what } in &history.events {
        let What::Return { call, .. } = what else {
            continue;
        };
        let call = replay.run.call(*call);
        let place = call.answer().and_then(|_| place(call, replay.log));
        let index = place.map_or(0, |place| place.index);
        if answered.last().map_or(0, |(_, last)| *last) < index {
            answered.push((*at_us, index));
        }
    }
    answered
}

fn first_at(answered: &[(u64, u64)], index: u64) -> Option<u64> {
    let before = answered.partition_point(|(_, reached)| *reached < index);
    answered.get(before).map(|(at_us, _)| *at_us)
}
