//! Runs the complete Gatehouse server on a simulated network, disk and clock, and judges every auth decision.
//!
//! Modules are the stages of a run: `plan` → `cluster` → `clients` + `faults` → a history, for `gatehouse-judge`.

#[cfg(not(madsim))]
compile_error!(
    "the simulator needs a simulation build, and `--cfg madsim` is not set: a RUSTFLAGS variable (even an empty one) \
     replaces the flags of .cargo/config.toml; unset it and use plain `cargo build`, `cargo run` or `cargo test`"
);

pub mod plan;
pub mod rng;

mod calls;
mod clients;
mod cluster;
mod faults;
pub mod fuzz;
mod labels;
mod liveness;
pub mod nearest;
mod recorder;
mod retry;
mod stop;
mod trace;
pub mod windows;
mod world;

pub mod expect;

pub mod batch;
pub mod log;
pub mod run;
pub mod scenarios;
pub mod syscall_shim;

pub use calls::PASSWORD_MARKER;
