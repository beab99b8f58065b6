//! Drives raft: the event loop, the log store, peers, barriers, waiters and the published view.
//!
//! A request enters through [`Node`], which hands it to the event loop ([`event_loop`]) and waits. The loop alone touches
//! raft and the state; what it makes known goes through two watched values, the [`View`] and the [`NodeStatus`]. Nothing
//! here decides what a caller may do.

mod apply;
mod barriers;
pub(crate) mod convert;
mod entry;
mod event;
mod event_loop;
mod failure;
mod guard;
mod handle;
mod log;
mod member;
mod peer_service;
mod peers;
mod proposals;
mod snapshot_inbox;
mod snapshot_offers;
mod snapshot_part;
mod snapshot_sender;
mod snapshots;
mod stage;
mod ticker;
mod token_deadlines;
mod token_keeper;
mod token_reports;
mod token_uses;
mod view;

#[cfg(test)]
mod tests;

pub use entry::EntryError;
pub use failure::MemberError;
pub use handle::{Node, NodeError, Outcome};
pub use member::Member;
pub use peer_service::PeerService;
pub use peers::PEER_KEEPALIVE;
pub use view::{NodeStatus, View};
