//! The wire contract, generated from `proto/`.

#![allow(missing_docs, reason = "generated code; the meaning stands in proto/")]
#![allow(clippy::pedantic, reason = "generated code")]
#![allow(clippy::allow_attributes_without_reason, reason = "generated code")]
#![allow(unreachable_pub, reason = "generated code")]

/// Keys and events.
pub mod mvccpb {
    include!(concat!(env!("OUT_DIR"), "/mvccpb.rs"));
}
/// Users, roles and permissions.
pub mod authpb {
    include!(concat!(env!("OUT_DIR"), "/authpb.rs"));
}
/// Services and their messages.
pub mod etcdserverpb {
    include!(concat!(env!("OUT_DIR"), "/etcdserverpb.rs"));
}
/// Log entries, stored records and the peer protocol.
pub mod gatehousepb {
    include!(concat!(env!("OUT_DIR"), "/gatehousepb.rs"));
}
