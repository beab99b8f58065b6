//! What may be drawn, with weights.

use crate::rng::Rng;

/// Share of the choices that a seed keeps.
const KEPT: f64 = 0.6;

/// Choices with weights, never none.
#[derive(Clone, Debug)]
pub(super) struct Menu<T>(Vec<(u64, T)>);

impl<T: Copy> Menu<T> {
    /// Some of `all`, each on its own with the same chance; at least one.
    pub(super) fn some_of(all: &[(u64, T)], rng: &mut Rng) -> Menu<T> {
        let mut kept = all.to_vec();
        kept.retain(|_| rng.chance(KEPT));
        if kept.is_empty() {
            kept.extend(rng.pick(all));
        }
        assert!(!kept.is_empty(), "a menu has a choice");
        Menu(kept)
    }

    /// One of them, by weight.
    pub(super) fn draw(&self, rng: &mut Rng) -> T {
        let total: u64 = self.0.iter().map(|(weight, _)| weight).sum();
        let mut at = rng.between(1, total.max(1));
        for (weight, choice) in &self.0 {
            if at <= *weight {
                return *choice;
            }
            at -= weight;
        }
        self.0[0].1
    }
}
