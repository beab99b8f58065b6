//! The beat of raft's logical clock, on the member's own clock, which may run fast or slow.

use crate::platform::{Clock, random_bytes};
use std::pin::Pin;
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

pub(super) struct Ticker {
    clock: Clock,
    period: Duration,
    /// On the member's clock.
    next: Duration,
    timer: Pin<Box<Sleep>>,
}

impl Ticker {
    pub(super) fn new(clock: Clock, period: Duration) -> Ticker {
        // Members that booted together would tick together, and two that draw the same election timeout would then
        // stand for election in the same instant: each begins somewhere else in the period.
        let first =
            period.mul_f64(f64::from(u32::from_be_bytes(random_bytes())) / f64::from(u32::MAX));
        let next = clock.mono() + first;
        Ticker {
            clock,
            period,
            next,
            timer: Box::pin(sleep(first)),
        }
    }

    /// Resolves once in every period. Ticks that were missed, because the process stood still, are not made up for: a
    /// burst of them would look like a silent leader.
    pub(super) async fn tick(&mut self) {
        loop {
            self.timer.as_mut().await;
            let now = self.clock.mono();
            let due = now >= self.next;
            if due {
                self.next = (self.next + self.period).max(now);
            }
            // The clocks disagree a little; what is left is slept again.
            let left = self.next.saturating_sub(now).min(self.period);
            self.timer
                .as_mut()
                .reset(Instant::now() + left.max(Duration::from_micros(1)));
            if due {
                return;
            }
        }
    }
}
