//! A small generator for the simulated hardware, with a seed of its own: its draws shift nobody else's.

/// Splitmix64 (Steele, Lea, Flood 2014): one addition and three mixing steps a draw.
#[derive(Clone, Debug)]
pub(super) struct Seeded(u64);

impl Seeded {
    pub(super) fn new(seed: u64) -> Seeded {
        Seeded(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which is not 0. The bias of the remainder is far below what a simulation could notice.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub(super) fn coin(&mut self) -> bool {
        self.below(2) == 0
    }
}
