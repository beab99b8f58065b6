//! Stories about whole members in a simulation, told through their gRPC services: the races that real time would hit
//! once in a thousand runs.

#![expect(clippy::unwrap_used, reason = "a story that cannot go on fails")]

mod lifetimes;
mod logins;
mod observed;
mod tokens;
mod world;
