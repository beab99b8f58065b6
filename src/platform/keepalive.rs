//! When a silent connection counts as broken.

use std::time::Duration;

/// HTTP/2 pings on a connection; either side may send them.
///
/// A partition is silent: without pings a call that waits for an answer waits for as long as the partition lasts, and
/// longer. With them it ends after `interval + timeout` at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// Silence after which a ping is sent.
    pub interval: Duration,
    /// How long the ping's answer may take before the connection is closed.
    pub timeout: Duration,
}
