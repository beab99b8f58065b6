//! When nothing disturbed the cluster: no fault is in force, some member leads, none has just restarted or changed its
//! role. Only then do the rules promise anything about how soon something happens.

use crate::history::{Event, History, What};
use std::collections::{BTreeMap, BTreeSet};

/// The verbs with which a fault begins and ends (`sim/src/faults.rs`, `cluster.rs`); what follows names whom it hits. A
/// `restart` undoes a `kill`, and is a moment of disturbance even without one.
const PAIRS: [(&str, &str); 7] = [
    ("kill ", "restart "),
    ("pause ", "resume "),
    ("isolate ", "rejoin "),
    ("cut ", "join "),
    ("slow ", "as fast as before: "),
    ("latency ", "latency as before"),
    ("lose ", "loss as before"),
];

/// A clock that is turned stays within the drift that every bound allows for, and lifetimes do not ask the time of day.
const CLOCK: &str = "clock of ";

/// The fault that undoes others, except slow links: those go on by themselves.
const HEAL: &str = "heal";

/// The stretches of a run in which something was disturbed.
#[derive(Debug, Default)]
pub(super) struct Calm {
    /// Where each stretch begins and, of all stretches up to this one, the last end; microseconds.
    stretches: Vec<(u64, u64)>,
    /// When the history ends.
    end_us: u64,
}

impl Calm {
    /// Passes over the events.
    pub(super) fn of(history: &History) -> Calm {
        let mut calm = Calm::default();
        let mut state = State::default();
        // Nobody leads at the beginning.
        let mut disturbed_since = Some(0);
        for Event { at_us, what } in &history.events {
            calm.end_us = *at_us;
            if !state.take(what) {
                continue;
            }
            let since = disturbed_since.take().unwrap_or(*at_us);
            calm.add(since, *at_us);
            if !state.is_calm() {
                disturbed_since = Some(*at_us);
            }
        }
        if let Some(since) = disturbed_since {
            calm.add(since, u64::MAX);
        }
        calm
    }

    /// The last moment up to `at_us` at which something was disturbed, microseconds.
    pub(super) fn disturbed_before(&self, at_us: u64) -> u64 {
        let begun = self.stretches.partition_point(|(from, _)| *from <= at_us);
        let last = self.stretches[..begun].last();
        last.map_or(0, |(_, to)| (*to).min(at_us))
    }

    /// Whether the history tells what happened until `to_us`, and nothing was disturbed from `from_us` until then.
    pub(super) fn lasts(&self, from_us: u64, to_us: u64) -> bool {
        to_us <= self.end_us && self.disturbed_before(to_us) < from_us
    }

    fn add(&mut self, from: u64, to: u64) {
        let last = self.stretches.last().map_or(0, |(_, last)| *last);
        self.stretches.push((from, to.max(last)));
    }
}

/// What is the matter now.
#[derive(Debug, Default)]
struct State {
    leaders: BTreeSet<u64>,
    /// How often each fault is in force: the verb's number in [`PAIRS`], and whom it hits.
    faults: BTreeMap<(usize, String), u64>,
    /// A fault that this list does not know may last until the healing.
    unknown: bool,
}

impl State {
    fn is_calm(&self) -> bool {
        !self.leaders.is_empty() && self.faults.is_empty() && !self.unknown
    }

    /// Whether the event disturbs, or ends what disturbed.
    fn take(&mut self, what: &What) -> bool {
        match what {
            What::Role { member, leader, .. } => {
                if *leader {
                    self.leaders.insert(*member);
                } else {
                    self.leaders.remove(member);
                }
            }
            What::Started { member, .. } => {
                self.leaders.remove(member);
            }
            What::Fault { what } => self.fault(what),
            What::Healed => {
                self.faults.clear();
                self.unknown = false;
            }
            _ => return false,
        }
        true
    }

    fn fault(&mut self, what: &str) {
        if what == HEAL {
            self.faults.retain(|(kind, _), _| PAIRS[*kind].0 == "slow ");
            self.unknown = false;
            return;
        }
        if what.starts_with(CLOCK) {
            return;
        }
        for (kind, (begins, ends)) in PAIRS.iter().enumerate() {
            // The end first: it may begin like the beginning.
            if let Some(whom) = what.strip_prefix(ends) {
                let whom = (kind, target(whom));
                match self.faults.get_mut(&whom) {
                    Some(count) if *count > 1 => *count -= 1,
                    _ => {
                        self.faults.remove(&whom);
                    }
                }
                return;
            }
            if let Some(whom) = what.strip_prefix(begins) {
                // How late and how much is not told again at the end.
                let is_general = matches!(*begins, "latency " | "lose ");
                let whom = if is_general {
                    String::new()
                } else {
                    target(whom)
                };
                *self.faults.entry((kind, whom)).or_default() += 1;
                return;
            }
        }
        self.unknown = true;
    }
}

/// Whom a fault hits, without how hard.
fn target(whom: &str) -> String {
    whom.split(", bursts").next().unwrap_or(whom).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is disturbed where, for events a second apart; member 1 leads from the start.
    fn check(events: &[What], expected: &[bool]) {
        let leads = What::Role {
            member: 1,
            term: 1,
            leader: true,
        };
        let events = std::iter::once(&leads).chain(events);
        let events = (0..).zip(events).map(|(second, what)| Event {
            at_us: second * 1_000_000,
            what: what.clone(),
        });
        let history = History {
            header: crate::history::Header::default(),
            events: events.collect(),
        };
        let calm = Calm::of(&history);
        let seen: Vec<bool> = (1..)
            .zip(expected)
            .map(|(second, _)| {
                let just_after = second * 1_000_000 + 1;
                calm.disturbed_before(just_after) == just_after
            })
            .collect();
        assert_eq!(seen, expected);
    }

    fn fault(what: &str) -> What {
        What::Fault { what: what.into() }
    }

    #[test]
    fn a_fault_disturbs_until_it_is_undone() {
        for (begins, ends) in [
            ("kill n2", "restart n2"),
            ("pause n2", "resume n2"),
            ("isolate n2", "rejoin n2"),
            ("cut n1 <-> n2+n3", "join n1 <-> n2+n3"),
            ("latency 5 to 9 ms", "latency as before"),
            ("lose 0.5 of all messages", "loss as before"),
            (
                "slow n1 -> n2, bursts of 5 to 9 ms",
                "as fast as before: n1 -> n2",
            ),
        ] {
            check(&[fault(begins), fault(ends)], &[true, false]);
        }
    }

    #[test]
    fn only_its_own_end_undoes_a_fault_and_a_healing_all() {
        check(&[fault("clock of n2 runs 50 ppm fast")], &[false]);
        let events = [
            fault("kill n2"),
            fault("restart n3"),
            fault("heal"),
            fault("something new"),
            What::Healed,
        ];
        check(&events, &[true, true, false, true, false]);
        let slow = "slow n1 -> n2, bursts of 5 to 9 ms";
        check(
            &[fault(slow), fault("heal"), What::Healed],
            &[true, true, false],
        );
    }

    #[test]
    fn a_cluster_without_a_leader_is_not_calm() {
        let role = |member, leader| What::Role {
            member,
            term: 2,
            leader,
        };
        let started = What::Started {
            member: 2,
            index: 0,
        };
        check(
            &[role(1, false), role(2, true), started],
            &[true, false, true],
        );
    }

    #[test]
    fn what_the_history_does_not_tell_is_not_calm() {
        let leads = What::Role {
            member: 1,
            term: 1,
            leader: true,
        };
        let events = [(5, leads), (9, What::Healed), (20, fault("kill n1"))];
        let events = events.map(|(at_us, what)| Event { at_us, what });
        let calm = Calm::of(&History {
            header: crate::history::Header::default(),
            events: events.to_vec(),
        });
        assert!(calm.lasts(10, 19));
        assert!(!calm.lasts(9, 19), "disturbed at 9");
        assert!(!calm.lasts(10, 20));
        assert!(!calm.lasts(10, 21), "beyond the end");
        assert_eq!(calm.disturbed_before(12), 9);
    }
}
