//! The wire contract. The files in `src/pb/` are generated from `proto/` and checked in: `cargo run -p
//! gatehouse-proto-gen` writes them again, `cargo test -p gatehouse-proto-gen` fails if they are not what `proto/` says.

#![allow(missing_docs, reason = "generated code; the meaning stands in proto/")]
#![allow(clippy::pedantic, reason = "generated code")]
#![allow(clippy::allow_attributes_without_reason, reason = "generated code")]
#![allow(unreachable_pub, reason = "generated code")]

// Keys and events.
#[rustfmt::skip]
pub mod mvccpb;

// Users, roles and permissions.
#[rustfmt::skip]
pub mod authpb;

// Services and their messages.
#[rustfmt::skip]
pub mod etcdserverpb;

// Log entries, stored records and the peer protocol.
#[rustfmt::skip]
pub mod gatehousepb;

// What the transport's own tests call.
#[cfg(test)]
#[rustfmt::skip]
pub(crate) mod gatehousetest;
