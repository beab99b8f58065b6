//! What time it is, for everyone who asks.

use std::time::{Duration, Instant, SystemTime};

#[cfg(madsim)]
use super::SimClock;

/// One member's clock, from its start on; clones agree.
#[derive(Clone, Debug)]
pub struct Clock {
    start: Start,
}

#[derive(Clone, Debug)]
enum Start {
    System(Instant),
    #[cfg(madsim)]
    Simulated {
        clock: SimClock,
        start: Duration,
    },
}

impl Clock {
    /// The machine's clock; in a simulation, exact virtual time. The member starts now.
    pub fn system() -> Clock {
        Clock {
            start: Start::System(Instant::now()),
        }
    }

    /// A member's own clock, wrong as its handle says. The member starts now; the handle survives restarts.
    #[cfg(madsim)]
    pub fn simulated(clock: SimClock) -> Clock {
        let start = clock.elapsed();
        Clock {
            start: Start::Simulated { clock, start },
        }
    }

    /// Time since the member started. Never goes back.
    pub fn mono(&self) -> Duration {
        match &self.start {
            Start::System(start) => start.elapsed(),
            #[cfg(madsim)]
            Start::Simulated { clock, start } => clock.elapsed().saturating_sub(*start),
        }
    }

    /// The time of day, which may jump either way: for what leaves the process (tokens, certificates), never for measuring.
    pub fn wall(&self) -> SystemTime {
        match &self.start {
            Start::System(_) => SystemTime::now(),
            #[cfg(madsim)]
            Start::Simulated { clock, .. } => clock.wall(),
        }
    }
}
