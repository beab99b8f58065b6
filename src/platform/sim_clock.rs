//! A simulated member's clock, which the simulation can set wrong and make run fast or slow.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

const PPM: i128 = 1_000_000;

/// The handle the simulation turns; clones share the clock, which survives restarts of its member. Exact at first.
#[derive(Clone, Debug, Default)]
pub struct SimClock(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// The last moment the rate changed; set by the first use, which must be inside the simulation.
    anchor: Option<Anchor>,
    offset_ms: i64,
    drift_ppm: i64,
}

#[derive(Clone, Copy, Debug)]
struct Anchor {
    /// Exact time at the anchor.
    exact: Instant,
    /// This clock's elapsed time at the anchor.
    elapsed: Duration,
    /// Exact time of day when the clock began.
    began: SystemTime,
}

impl SimClock {
    /// An exact clock.
    pub fn new() -> SimClock {
        SimClock::default()
    }

    /// Shifts the time of day by so many milliseconds from now on, instead of the shift before. A jump, seen by
    /// [`super::Clock::wall`] only.
    pub fn set_offset_ms(&self, offset_ms: i64) {
        self.state().offset_ms = offset_ms;
    }

    /// Runs fast (positive) or slow from now on, in millionths. At -1 000 000 and below it stands still, as no clock runs
    /// backwards.
    pub fn set_drift_ppm(&self, drift_ppm: i64) {
        let mut state = self.state();
        if let Some(anchor) = state.anchor {
            let now = Instant::now();
            let elapsed = elapsed_at(anchor, state.drift_ppm, now);
            state.anchor = Some(Anchor {
                exact: now,
                elapsed,
                ..anchor
            });
        }
        state.drift_ppm = drift_ppm;
    }

    /// This clock's time since its first use.
    pub(super) fn elapsed(&self) -> Duration {
        let mut state = self.state();
        let now = Instant::now();
        let anchor = *state.anchor.get_or_insert_with(|| Anchor {
            exact: now,
            elapsed: Duration::ZERO,
            began: SystemTime::now(),
        });
        elapsed_at(anchor, state.drift_ppm, now)
    }

    pub(super) fn wall(&self) -> SystemTime {
        let elapsed = self.elapsed();
        let state = self.state();
        let began = state
            .anchor
            .expect("asking for the elapsed time has set the anchor")
            .began;
        let shift = Duration::from_millis(state.offset_ms.unsigned_abs());
        let exact = began + elapsed;
        let shifted = if state.offset_ms < 0 {
            exact.checked_sub(shift)
        } else {
            exact.checked_add(shift)
        };
        // A shift beyond what the type can hold is a mistake of the plan; the epoch is as wrong as any other time.
        shifted.unwrap_or(SystemTime::UNIX_EPOCH)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn elapsed_at(anchor: Anchor, drift_ppm: i64, now: Instant) -> Duration {
    let exact = now.saturating_duration_since(anchor.exact);
    let nanos = i128::try_from(exact.as_nanos()).unwrap_or(i128::MAX / (2 * PPM));
    let local = nanos.saturating_mul(PPM + i128::from(drift_ppm)) / PPM;
    // Never backwards, and at most the 584 years that fit.
    let local = u64::try_from(local.max(0)).unwrap_or(u64::MAX);
    anchor.elapsed.saturating_add(Duration::from_nanos(local))
}
