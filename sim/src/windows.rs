//! Holds named windows of the server open, as the plan asks, and counts every passage: the coverage marks of a run.

use crate::plan::Plan;
use crate::rng::{Purpose, Rng};
use gatehouse::window::{Window, stretch};
use gatehouse_judge::marks::Marks;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Counts passages; clones share the count.
#[derive(Clone)]
pub(crate) struct Passages(Arc<Mutex<[u64; Window::ALL.len()]>>);

impl Passages {
    /// Installs the plan's windows for the simulation that runs on this thread.
    pub(crate) fn install(plan: &Plan, seed: u64) -> Passages {
        let passages = Passages(Arc::default());
        let counted = passages.clone();
        let mut rng = Rng::new(seed, Purpose::Windows);
        let held: Vec<_> = plan.windows.clone();
        stretch(Some(Box::new(move |window, member| {
            counted.count(window);
            let mine = |held: &&crate::plan::Window| {
                held.name == window.name() && held.member.is_none_or(|only| only == member)
            };
            let Some(held) = held.iter().find(mine) else {
                return Duration::ZERO;
            };
            // Both draws are made for each passage, so that a passage more or less held does not shift the others.
            let (hold, ms) = (
                rng.chance(held.chance),
                rng.between(held.ms.low, held.ms.high),
            );
            if hold {
                Duration::from_millis(ms)
            } else {
                Duration::ZERO
            }
        })));
        passages
    }

    fn count(&self, window: Window) {
        let at = Window::ALL
            .iter()
            .position(|known| *known == window)
            .expect("ALL holds every window");
        self.0.lock().unwrap_or_else(PoisonError::into_inner)[at] += 1;
    }

    /// What was counted so far.
    pub(crate) fn marks(&self) -> Marks {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Window::ALL
            .iter()
            .zip(counts.iter())
            .map(|(window, count)| (window.name().to_owned(), *count))
            .collect()
    }
}
