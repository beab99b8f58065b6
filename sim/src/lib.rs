//! Runs the complete Gatehouse server on a simulated network, disk and clock, and judges every auth decision.
//!
//! Modules are the stages of a run: `plan` → `cluster` → `clients` + `faults` → `history` → `checker` → `report`.

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
mod input_file;
mod labels;
mod liveness;
pub mod nearest;
mod numbered;
mod recorder;
mod retry;
mod sequence;
mod stop;
mod trace;
pub mod windows;
mod world;

pub mod history;
pub mod history_file;
pub mod text;

pub mod checker;
pub mod expect;
pub mod marks;
pub mod model;
pub mod search;
pub mod verdict;

pub mod batch;
pub mod log;
pub mod run;
pub mod scenarios;
pub mod synthetic;
pub mod syscall_shim;

pub use calls::PASSWORD_MARKER;
