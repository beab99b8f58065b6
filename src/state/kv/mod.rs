//! Keys and their versions: the index, reads, and what puts, deletions and transactions do to it. Permissions are
//! decided before anything here runs; only existence, leases and revisions are checked here.

mod compact;
mod compare;
mod index;
mod range_read;
mod txn;
mod writer;

pub(super) use compact::compact;
pub(super) use index::KvIndex;
pub(super) use range_read::read_range;
pub(super) use txn::{delete_range, put, read_txn, write_txn};
