//! The register of a simulated disk: what a crash leaves of it.

use super::register::Slot;
use crate::platform::seeded::Seeded;

/// Both slots, and what is on its way to them.
#[derive(Debug)]
pub(super) struct SimRegister {
    durable: Option<[Slot; 2]>,
    next: usize,
    /// Written, and not synced yet.
    pending: Option<Slot>,
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

    pub(super) fn set(&mut self, content: Slot) {
        if self.pending.is_some() {
            self.waiting = Some(content);
        } else {
            self.pending = Some(content);
        }
    }

    /// Whether a sync is on its way.
    pub(super) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// The sync has finished.
    pub(super) fn settle(&mut self) {
        if let (Some(content), Some(slots)) = (self.pending.take(), &mut self.durable) {
            slots[self.next] = content;
            self.next ^= 1;
        }
        self.pending = self.waiting.take();
    }

    /// The power fails: what was on its way is lost, kept or torn.
    pub(super) fn crash(&mut self) {
        self.waiting = None;
        let (Some(content), Some(slots)) = (self.pending.take(), &mut self.durable) else {
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
