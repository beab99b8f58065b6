//! Stories about the transport and the disk: on simulated ones in a simulation build, on real ones in a real build.

mod probe;

#[cfg(madsim)]
mod calls;
#[cfg(madsim)]
mod clocks;
#[cfg(madsim)]
mod deadlines;
#[cfg(madsim)]
mod disk_faults;
#[cfg(madsim)]
mod disks;
#[cfg(madsim)]
mod faults;
#[cfg(madsim)]
mod first_bytes;
#[cfg(madsim)]
mod shutdown;
#[cfg(madsim)]
mod torture;
#[cfg(madsim)]
mod world;

#[cfg(real)]
mod loopback;
