//! Proposals that wait to be applied here.
//!
//! The answer to a proposal is always this member's own apply of its request id. What was sent in term T is appended in
//! term T or never, so what has not been applied when the first entry of a later term is applied never will be: then, and
//! after a definite refusal, it is safe to send it again. A sent proposal whose fate is unknown is left alone.

use super::Outcome;
use super::stage::Stage;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Request ids that no member and no restart repeats: each member counts from a random number of 64 bits, drawn at its
/// start.
#[derive(Debug)]
pub(super) struct RequestIds(AtomicU64);

impl RequestIds {
    pub(super) fn from(boot_nonce: u64) -> RequestIds {
        RequestIds(AtomicU64::new(boot_nonce))
    }

    pub(super) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// A proposal of a call, or of the member itself, as it arrives at the event loop.
pub(super) struct Proposal {
    pub(super) request_id: u64,
    pub(super) entry: Bytes,
    /// When the caller gives up.
    pub(super) deadline: Instant,
    pub(super) stage: Arc<Stage>,
    pub(super) answer: oneshot::Sender<Outcome>,
}

/// A proposal on its way to the leader.
pub(super) struct Outgoing {
    pub(super) request_id: u64,
    pub(super) entry: Bytes,
    pub(super) deadline: Instant,
}

struct Waiting {
    proposal: Proposal,
    /// The term in which it was sent, while it may still be applied.
    sent_in: Option<u64>,
}

/// Every proposal of this member that has not been answered.
#[derive(Default)]
pub(super) struct Proposals {
    waiting: BTreeMap<u64, Waiting>,
    /// To be sent as soon as there is a leader.
    unsent: VecDeque<u64>,
    /// To be sent again, but not at once: whoever refused would refuse again.
    refused: Vec<u64>,
}

impl Proposals {
    pub(super) fn add(&mut self, proposal: Proposal) {
        self.unsent.push_back(proposal.request_id);
        self.waiting.insert(
            proposal.request_id,
            Waiting {
                proposal,
                sent_in: None,
            },
        );
    }

    /// Everything that is to be sent, which now counts as sent in `term`.
    pub(super) fn send(&mut self, term: u64) -> Vec<Outgoing> {
        let mut outgoing = Vec::with_capacity(self.unsent.len());
        for request_id in self.unsent.drain(..) {
            let Some(waiting) = self.waiting.get_mut(&request_id) else {
                continue;
            };
            if waiting.proposal.stage.send() {
                waiting.sent_in = Some(term);
                let Proposal {
                    entry, deadline, ..
                } = &waiting.proposal;
                let (entry, deadline) = (entry.clone(), *deadline);
                outgoing.push(Outgoing {
                    request_id,
                    entry,
                    deadline,
                });
            } else {
                self.waiting.remove(&request_id);
            }
        }
        outgoing
    }

    /// Takes note that what was sent in `term` was certainly not appended.
    pub(super) fn refused(&mut self, request_id: u64, term: u64) {
        // A refusal of an earlier term says nothing about what has been sent since.
        if let Some(waiting) = self.waiting.get_mut(&request_id)
            && waiting.sent_in == Some(term)
        {
            waiting.sent_in = None;
            waiting.proposal.stage.give_back();
            self.refused.push(request_id);
        }
    }

    /// The reason for the refusals may be gone: a new leader, or some time.
    pub(super) fn try_refused_again(&mut self) {
        self.unsent.extend(self.refused.drain(..));
    }

    /// The first entry of `term` is being applied: what was sent in an earlier term and has not been applied never will be.
    pub(super) fn term_began(&mut self, term: u64) {
        for (request_id, waiting) in &mut self.waiting {
            if waiting.sent_in.is_some_and(|sent_in| sent_in < term) {
                waiting.sent_in = None;
                waiting.proposal.stage.give_back();
                self.unsent.push_back(*request_id);
            }
        }
    }

    /// The state has jumped over entries that nobody looked at: what was sent by then may stand among them, or after them,
    /// or nowhere. Whoever waits for it is told that nobody knows.
    pub(super) fn overtaken(&mut self) {
        self.waiting.retain(|_, waiting| {
            if waiting.sent_in.is_some() {
                waiting.proposal.stage.overtake();
            }
            waiting.sent_in.is_none()
        });
    }

    /// Who waits for the entry of this request id, which has been applied.
    pub(super) fn applied(&mut self, request_id: u64) -> Option<oneshot::Sender<Outcome>> {
        Some(self.waiting.remove(&request_id)?.proposal.answer)
    }

    /// Forgets callers that have given up.
    pub(super) fn prune(&mut self) {
        self.waiting
            .retain(|_, waiting| !waiting.proposal.answer.is_closed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(proposals: &mut Proposals, request_id: u64) -> oneshot::Receiver<Outcome> {
        let (answer, outcome) = oneshot::channel();
        proposals.add(Proposal {
            request_id,
            entry: Bytes::new(),
            deadline: Instant::now(),
            stage: Arc::default(),
            answer,
        });
        outcome
    }

    fn sent(proposals: &mut Proposals, term: u64) -> Vec<u64> {
        proposals
            .send(term)
            .into_iter()
            .map(|outgoing| outgoing.request_id)
            .collect()
    }

    #[test]
    fn a_proposal_is_sent_once_in_a_term() {
        let mut proposals = Proposals::default();
        let _caller = add(&mut proposals, 7);
        assert_eq!(sent(&mut proposals, 2), [7]);
        proposals.try_refused_again();
        proposals.term_began(2);
        assert_eq!(sent(&mut proposals, 2), []);
    }

    #[test]
    fn a_later_term_sends_it_again() {
        let mut proposals = Proposals::default();
        let _caller = add(&mut proposals, 7);
        assert_eq!(sent(&mut proposals, 2), [7]);
        proposals.term_began(3);
        assert_eq!(sent(&mut proposals, 3), [7]);
    }

    #[test]
    fn a_late_refusal_does_not_send_it_twice_in_the_later_term() {
        let mut proposals = Proposals::default();
        let _caller = add(&mut proposals, 7);
        assert_eq!(sent(&mut proposals, 2), [7]);
        proposals.term_began(3);
        assert_eq!(sent(&mut proposals, 3), [7]);
        proposals.refused(7, 2);
        proposals.try_refused_again();
        assert_eq!(sent(&mut proposals, 3), []);
    }

    #[test]
    fn a_refused_proposal_waits_until_it_may_be_tried_again() {
        let mut proposals = Proposals::default();
        let _caller = add(&mut proposals, 7);
        assert_eq!(sent(&mut proposals, 2), [7]);
        proposals.refused(7, 2);
        assert_eq!(sent(&mut proposals, 2), []);
        proposals.try_refused_again();
        assert_eq!(sent(&mut proposals, 2), [7]);
    }

    #[test]
    fn a_snapshot_ends_the_wait_for_what_was_sent_and_leaves_what_was_not() {
        let mut proposals = Proposals::default();
        let mut sent_before = add(&mut proposals, 7);
        let _refused = add(&mut proposals, 8);
        assert_eq!(sent(&mut proposals, 2), [7, 8]);
        proposals.refused(8, 2);
        let _waiting = add(&mut proposals, 9);
        proposals.overtaken();
        assert_eq!(
            sent_before.try_recv(),
            Err(oneshot::error::TryRecvError::Closed)
        );
        proposals.term_began(3);
        proposals.try_refused_again();
        assert_eq!(sent(&mut proposals, 3), [9, 8]);
    }

    #[test]
    fn a_caller_that_is_gone_is_forgotten() {
        let mut proposals = Proposals::default();
        drop(add(&mut proposals, 7));
        proposals.prune();
        assert_eq!(sent(&mut proposals, 2), []);
        assert!(proposals.applied(7).is_none());
    }
}
