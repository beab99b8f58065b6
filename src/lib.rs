//! Gatehouse: an etcd-v3-compatible key-value server with etcd's authentication and authorisation, built so that the
//! complete server also runs inside a deterministic simulator.
//!
//! Directories are the stages of a request: `api` → `credential` → `node` → `state` → `storage`, all on `platform`.
//! `ARCHITECTURE.md` is the map.

#[cfg(not(any(madsim, real)))]
compile_error!(
    "neither `--cfg madsim` nor `--cfg real` is set: a RUSTFLAGS variable (even an empty one) replaces the flags of \
     .cargo/config.toml; unset it, and build with `cargo build` (simulation) or `cargo build-real` (server)"
);
#[cfg(all(madsim, real))]
compile_error!("`--cfg madsim` and `--cfg real` exclude each other");

pub mod api;
pub mod config;
mod credential;
pub mod node;
pub mod observer;
pub mod pb;
pub mod planted;
pub mod platform;
pub mod server;
pub mod state;
pub mod storage;
pub mod window;
