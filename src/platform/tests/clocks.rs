//! Clocks that are wrong on purpose.

use super::world::{simulate, sleep_ms};
use crate::platform::{Clock, SimClock};
use std::time::{Duration, SystemTime};

fn close(actual: Duration, expected_ms: u64) {
    let expected = Duration::from_millis(expected_ms);
    let difference = actual.abs_diff(expected);
    assert!(difference < Duration::from_millis(2), "{actual:?}");
}

#[test]
fn drift_changes_the_rate_and_never_turns_a_clock_back() {
    simulate(1, 0.0, || async {
        let handle = SimClock::new();
        let clock = Clock::simulated(handle.clone());
        sleep_ms(1_000).await;
        close(clock.mono(), 1_000);
        handle.set_drift_ppm(500_000);
        sleep_ms(1_000).await;
        close(clock.mono(), 2_500);
        handle.set_drift_ppm(-500_000);
        sleep_ms(1_000).await;
        close(clock.mono(), 3_000);
        handle.set_drift_ppm(-5_000_000);
        let before = clock.mono();
        sleep_ms(1_000).await;
        assert!(clock.mono() >= before);
        close(clock.mono(), 3_000);
    });
}

#[test]
fn offset_moves_the_time_of_day_of_one_member_only() {
    simulate(1, 0.0, || async {
        let (handle, exact) = (SimClock::new(), Clock::system());
        let clock = Clock::simulated(handle.clone());
        let ahead = || {
            let exact = exact.wall().duration_since(SystemTime::UNIX_EPOCH).unwrap();
            let shown = clock.wall().duration_since(SystemTime::UNIX_EPOCH).unwrap();
            shown.as_secs_f64() - exact.as_secs_f64()
        };
        assert!(ahead().abs() < 0.01);
        handle.set_offset_ms(5_000);
        assert!((ahead() - 5.0).abs() < 0.01);
        handle.set_offset_ms(-5_000);
        assert!((ahead() + 5.0).abs() < 0.01);
        close(clock.mono(), 0);
        handle.set_drift_ppm(1_000_000);
        sleep_ms(1_000).await;
        assert!(
            (ahead() + 4.0).abs() < 0.01,
            "drift shows in the time of day as well"
        );
    });
}

#[test]
fn restarted_member_starts_at_zero_on_the_same_clock() {
    simulate(1, 0.0, || async {
        let handle = SimClock::new();
        let first = Clock::simulated(handle.clone());
        handle.set_drift_ppm(1_000_000);
        sleep_ms(1_000).await;
        close(first.mono(), 2_000);
        let second = Clock::simulated(handle);
        close(second.mono(), 0);
        sleep_ms(1_000).await;
        close(second.mono(), 2_000);
    });
}
