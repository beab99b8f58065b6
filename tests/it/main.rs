//! Stories over real sockets: the server's program, driven as users drive it. Simulation builds have no sockets, so
//! theirs holds the rules of tidiness only; the stories run with `cargo test-real`.

#![cfg_attr(
    real,
    expect(clippy::unwrap_used, reason = "a story that cannot go on fails")
)]

/// The rules of ARCHITECTURE.md that a text search can check.
mod tidy;

/// Starts, kills and restarts members.
#[cfg(real)]
mod harness;

/// Runs Debian's `etcdctl`.
#[cfg(real)]
mod etcdctl;

/// Runs Debian's `etcd`.
#[cfg(real)]
mod etcd;

/// Calls a member over gRPC, for what `etcdctl` cannot say.
#[cfg(real)]
mod client;

/// What the program accepts and refuses to start with.
#[cfg(real)]
mod command_line;

/// Users, roles, logins and refusals, as an operator sees them.
#[cfg(real)]
mod permissions;

/// Codes and texts that only a raw client sees: tokens, passwords, malformed requests.
#[cfg(real)]
mod protocol;

/// Work goes on while admins change what does not concern it.
#[cfg(real)]
mod strangers;

/// How long tokens live.
#[cfg(real)]
mod lifetimes;

/// Three members: crashes lose nothing, and members agree.
#[cfg(real)]
mod cluster;

/// No password and no token in logs or on disk.
#[cfg(real)]
mod secrets;

/// Every row of `docs/differences.md`, asked of the server, and of etcd where it is installed.
#[cfg(real)]
mod differences;

/// Random calls to the server and to etcd: no difference but those of `docs/differences.md`.
#[cfg(real)]
mod differential;
