//! The judge: says of a finished run whether every authentication and authorisation decision in it was right. It reads the
//! history and nothing else; it knows neither the server nor the simulator.
//!
//! ```
//! use gatehouse_judge::history::{Event, FORMAT_VERSION, Header, History, Op, Outcome, What};
//! use gatehouse_judge::judge;
//!
//! let op = Box::new(Op::Put { key: "k".into(), value: "1".into(), prev_kv: false });
//! let (code, message) = ("PermissionDenied".into(), "etcdserver: permission denied".into());
//! let events = [
//!     What::Invoke { call: 1, client: "alice".into(), member: 1, token: None, op },
//!     What::Return { call: 1, outcome: Outcome::Refused { code, message } },
//! ];
//! let events = events.into_iter().zip(1..).map(|(what, at_us)| Event { at_us, what }).collect();
//! let header = Header { version: FORMAT_VERSION, members: 1, ..Header::default() };
//! let verdict = judge(&History { header, events });
//! assert!(verdict.sentence.contains("put k"), "auth was off all the time: {}", verdict.sentence);
//! assert_eq!(verdict.calls, [1]);
//! ```
//!
//! Modules stand in the order in which they know each other: what stands above knows nothing of what stands below.

// Text, numbers, chance, files.
pub mod input_file;
mod numbered;
pub mod random;
pub mod text;

// What happened, and how it is told.
pub mod history;
pub mod history_file;
mod sequence;
pub mod words;

// What should have happened.
pub mod model;
mod noncommittal;
mod sameness;

// What comes of both.
pub mod checker;
mod judgement;
pub mod marks;
pub mod search;
pub mod synthetic;
pub mod verdict;

pub use judgement::{Judgement, examine, judge};
