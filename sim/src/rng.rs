//! One seeded generator for each purpose, so that a change in one place (one more fault, one step less) does not shift
//! what the others draw. The schedule and the network's latency draw from the simulated runtime's own generator, which
//! is seeded with the run's seed; everything that the plan leaves open draws here.

/// What a generator is for. Each purpose has its own stream of the same seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// When faults strike, and whom.
    Faults,
    /// What clients do and when; mixed with the client's number.
    Workload(u64),
    /// How long named windows stay open.
    Windows,
    /// How long a slow link holds back what is sent.
    Links,
    /// What a crash leaves on a disk; mixed with the member's number.
    Disk(u64),
    /// What a plan of a fuzzing profile holds; mixed with the number of profile and part.
    Plan(u64),
}

impl Purpose {
    /// A constant that sets this stream apart from all others.
    fn salt(self) -> u64 {
        match self {
            Purpose::Faults => 0x6661_756c_7473,
            Purpose::Workload(client) => mix(0x0077_6f72_6b6c_6f61 ^ mix(client)),
            Purpose::Windows => 0x0077_696e_646f_7773,
            Purpose::Links => 0x006c_696e_6b73,
            Purpose::Disk(member) => mix(0x6469_736b ^ mix(member)),
            Purpose::Plan(part) => mix(0x706c_616e ^ mix(part)),
        }
    }
}

/// A small fixed generator (SplitMix64). Its algorithm is part of what a seed means: another one would give every
/// stored seed another run.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The stream of `seed` for `purpose`.
    pub fn new(seed: u64, purpose: Purpose) -> Rng {
        Rng(mix(seed) ^ mix(purpose.salt()))
    }

    /// The next 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number between `low` and `high`, both included; `low` if the two are the wrong way round.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        match high.checked_sub(low) {
            None | Some(0) => low,
            Some(u64::MAX) => self.draw(),
            // The bias of a plain remainder is below 2^-40 for every width that a plan can ask for.
            Some(width) => low + self.draw() % (width + 1),
        }
    }

    /// True with the given probability, 0 to 1.
    pub fn chance(&mut self, probability: f64) -> bool {
        #[expect(
            clippy::cast_precision_loss,
            reason = "53 random bits fit a double exactly"
        )]
        let unit = (self.draw() >> 11) as f64 / (1_u64 << 53) as f64;
        unit < probability
    }

    /// One of `choices`, none of an empty slice.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        let last = choices.len().checked_sub(1)? as u64;
        let at = self.between(0, last);
        choices.get(usize::try_from(at).expect("an index into a slice in memory"))
    }
}

/// SplitMix64's finaliser: every input bit reaches every output bit.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_one_seed_are_independent() {
        let first = |purpose| Rng::new(7, purpose).draw();
        let draws = [
            first(Purpose::Faults),
            first(Purpose::Windows),
            first(Purpose::Links),
            first(Purpose::Workload(1)),
            first(Purpose::Workload(2)),
            first(Purpose::Disk(1)),
            first(Purpose::Disk(2)),
            first(Purpose::Plan(1)),
            first(Purpose::Plan(2)),
        ];
        let distinct: std::collections::BTreeSet<u64> = draws.into_iter().collect();
        assert_eq!(distinct.len(), draws.len());
    }

    #[test]
    fn the_algorithm_is_fixed() {
        let mut rng = Rng::new(1, Purpose::Faults);
        let draws = [
            rng.draw(),
            rng.draw(),
            rng.between(10, 20),
            rng.between(5, 5),
        ];
        assert_eq!(
            draws,
            [1_916_409_566_651_768_003, 10_844_208_349_968_039_254, 20, 5]
        );
    }

    #[test]
    fn ranges_include_both_ends() {
        let mut rng = Rng::new(3, Purpose::Windows);
        let seen: std::collections::BTreeSet<u64> = (0..200).map(|_| rng.between(4, 6)).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [4, 5, 6]);
        assert_eq!((rng.between(9, 3), rng.pick::<u8>(&[])), (9, None));
        assert!(rng.chance(1.0));
        assert!(!rng.chance(0.0));
    }
}
