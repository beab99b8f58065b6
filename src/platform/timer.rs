//! Gives hyper the runtime's time, so that keepalive runs on virtual time in a simulation.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// hyper's timer over tokio's, real or simulated. Without one, hyper's keepalive panics.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timer;

impl hyper::rt::Timer for Timer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(Sleep(Box::pin(tokio::time::sleep(duration))))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        // hyper measures in std's `Instant`, which the simulation answers with virtual time.
        self.sleep(deadline.saturating_duration_since(Instant::now()))
    }
}

/// Boxed once more because the simulated and the real sleep are different types, and neither need be `Unpin`.
struct Sleep(Pin<Box<dyn Future<Output = ()> + Send + Sync>>);

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

impl hyper::rt::Sleep for Sleep {}
