//! Stories about a cluster of members in one simulation, driven through [`super::Node`] without the client api.

mod cluster;
mod codec;
mod peers;
mod stories;
mod torture;
