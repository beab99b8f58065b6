//! Stories about a cluster of members in one simulation, driven through [`super::Node`] without the client api.

mod codec;
#[cfg(real)]
mod rot;

#[cfg(madsim)]
mod cluster;
#[cfg(madsim)]
mod peers;
#[cfg(madsim)]
mod snapshots;
#[cfg(madsim)]
mod stories;
#[cfg(madsim)]
mod tokens;
#[cfg(madsim)]
mod torture;
mod transfer;
