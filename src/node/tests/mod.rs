//! Stories about a cluster of members in one simulation, driven through [`super::Node`] without the client api.

#![expect(clippy::unwrap_used, reason = "a story that cannot go on fails")]

mod cluster;
mod codec;
mod peers;
mod stories;
mod torture;
