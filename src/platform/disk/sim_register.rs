//! The register of a simulated disk: what a crash leaves of it.

use super::register::Slot;
use crate::platform::seeded::Seeded;
use tokio::time::Instant;

/// Both slots, and what is on its way to them.
#[derive(Debug)]
pub(super) struct SimRegister {
    durable: Option<[Slot; 2]>,
    next: usize,
    /// Written, and not synced yet; with the moment at which its own sync ends.
    pending: Option<(Slot, Instant)>,
    waiting: Option<Slot>,
    chance: Seeded,
}

impl SimRegister {
    pub(super) fn new(seed: u64) -> SimRegister {
        SimRegister {
            durable: None,
            next: 0,
            pending: None,
            waiting: None,
            chance: Seeded::new(seed),
        }
    }

    /// A number that no other store of this disk has.
    pub(super) fn draw(&mut self) -> u64 {
        self.chance.next()
    }

    /// What the next boot finds; a real one reads what is not synced either.
    pub(super) fn read(&mut self) -> Option<[Slot; 2]> {
        self.waiting = None;
        self.settle();
        self.durable
    }

    pub(super) fn replace(&mut self, content: Slot) {
        self.durable = Some([content; 2]);
        (self.next, self.pending, self.waiting) = (0, None, None);
    }

    /// Writes `content`, whose sync ends at `synced` unless another one is under way.
    pub(super) fn set(&mut self, content: Slot, synced: Instant) {
        if self.pending.is_some() {
            self.waiting = Some(content);
        } else {
            self.pending = Some((content, synced));
        }
    }

    /// Finishes the syncs that have had their time by `now`.
    pub(super) fn settle_until(&mut self, now: Instant) {
        while self.pending.is_some_and(|(_, synced)| synced <= now) {
            self.settle();
        }
    }

    /// Finishes every sync.
    pub(super) fn settle_all(&mut self) {
        while self.is_pending() {
            self.settle();
        }
    }

    /// Whether a sync is on its way.
    pub(super) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// The sync has finished.
    pub(super) fn settle(&mut self) {
        let Some((content, synced)) = self.pending.take() else {
            return;
        };
        if let Some(slots) = &mut self.durable {
            slots[self.next] = content;
            self.next ^= 1;
        }
        // It takes no longer than the one before, which it waited for.
        self.pending = self.waiting.take().map(|content| (content, synced));
    }

    /// The power fails: what was on its way is lost, kept or torn.
    pub(super) fn crash(&mut self) {
        self.waiting = None;
        let (Some((content, _)), Some(slots)) = (self.pending.take(), &mut self.durable) else {
            return;
        };
        let slot = &mut slots[self.next];
        match self.chance.below(3) {
            0 => {}
            1 => *slot = content,
            _ => {
                let half = content.len() / 2;
                slot[half..].copy_from_slice(&content[half..]);
            }
        }
    }

    pub(super) fn wipe(&mut self) {
        (self.durable, self.next, self.pending, self.waiting) = (None, 0, None, None);
    }
}

#[cfg(test)]
mod tests {
    use super::super::register::REGISTER_BYTES;
    use super::*;
    use std::collections::BTreeSet;
    use std::time::Duration;

    /// The moment at which everything is said to be synced; outside of a simulation, time is the system's.
    fn later() -> Instant {
        Instant::now() + Duration::from_secs(1)
    }

    #[test]
    fn a_crash_leaves_one_slot_whole_and_never_what_was_not_written() {
        let mut outcomes = BTreeSet::new();
        for seed in 0..100 {
            let mut register = SimRegister::new(seed);
            register.replace([1; REGISTER_BYTES]);
            register.set([2; REGISTER_BYTES], later());
            register.settle();
            register.set([3; REGISTER_BYTES], later());
            register.set([4; REGISTER_BYTES], later());
            register.crash();
            let [first, second] = register.read().unwrap();
            assert_eq!(first, [2; REGISTER_BYTES], "synced");
            outcomes.insert((second[0], second[REGISTER_BYTES - 1]));
        }
        assert_eq!(outcomes, [(1, 1), (3, 3), (1, 3)].into());
    }

    #[test]
    fn a_killed_process_leaves_what_it_wrote() {
        let mut register = SimRegister::new(1);
        assert_eq!(register.read(), None);
        register.replace([1; REGISTER_BYTES]);
        register.set([2; REGISTER_BYTES], later());
        assert!(register.is_pending());
        assert_eq!(register.read().unwrap()[0], [2; REGISTER_BYTES]);
    }

    #[test]
    fn a_sync_that_has_had_its_time_is_not_lost() {
        let mut register = SimRegister::new(1);
        register.replace([1; REGISTER_BYTES]);
        let synced = later();
        register.set([2; REGISTER_BYTES], synced);
        register.settle_until(synced - Duration::from_nanos(1));
        assert!(register.is_pending());
        register.settle_until(synced);
        register.crash();
        assert_eq!(register.read().unwrap()[0], [2; REGISTER_BYTES]);
    }
}
