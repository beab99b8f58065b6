//! The only place where the real and the simulated world differ: byte streams, listener, executor, timer, clock, disk,
//! blocking work and randomness.
//!
//! Everything else asks here, and nothing here knows keys, users, raft or etcd's messages. The same source serves both
//! worlds: `tokio` is the simulated one under `--cfg madsim`, and hyper and h2 are real in both. tonic's own `Channel` and
//! `transport::Server` are absent on purpose: their timers need a real reactor.

mod blocking;
mod channel;
mod clock;
mod deadline;
mod dial;
mod disk;
mod executor;
mod first_bytes;
mod io;
mod keepalive;
mod listener;
pub mod passwords;
mod random;
mod response_body;
#[cfg(madsim)]
mod seeded;
mod serve;
mod severable;
#[cfg(madsim)]
mod sim_clock;
mod timer;
mod unsent;
mod watched;

#[cfg(test)]
mod tests;

pub use blocking::blocking;
pub use channel::{Channel, ChannelOptions};
pub use clock::Clock;
pub use deadline::{deadline, grpc_timeout, with_deadline};
pub use disk::{Backend, Disk, REGISTER_BYTES, Register, Slot};
#[cfg(madsim)]
pub use disk::{DiskCounters, DiskOperation, SimDisk};
pub use executor::Executor;
pub use io::Io;
pub use keepalive::Keepalive;
pub use listener::{Listener, bind};
pub use random::{random_bytes, random_u64};
pub use response_body::ResponseBody;
pub use serve::{MAX_CONCURRENT_STREAMS, SHUTDOWN_GRACE, ServeOptions, serve};
#[cfg(madsim)]
pub use sim_clock::SimClock;
pub use timer::Timer;
pub use unsent::{UNSENT, is_unsent};
pub use watched::{Setter, Watched, watched};
