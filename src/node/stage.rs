//! How far a waiting proposal has come: what the caller may say when its time is over, and whether the event loop may
//! still propose. Both sides decide on the same word, so that "definitely not proposed" is never said of a proposal that
//! goes out a moment later.

use std::sync::atomic::{AtomicU8, Ordering};

/// Never left this member.
const WAITING: u8 = 0;
/// Handed to a leader; may be applied.
const SENT: u8 = 1;
/// Was handed to a leader and certainly will not be applied; may be sent again.
const RETURNED: u8 = 2;
/// The caller is gone; must not be sent any more.
const ABANDONED: u8 = 3;
/// May have been applied, but this member got a snapshot in place of the entries among which it would stand.
const OVERTAKEN: u8 = 4;

#[derive(Debug, Default)]
pub(super) struct Stage(AtomicU8);

impl Stage {
    /// Whether the proposal may be sent now; it then counts as sent.
    pub(super) fn send(&self) -> bool {
        let send = |stage| matches!(stage, WAITING | RETURNED).then_some(SENT);
        self.0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, send)
            .is_ok()
    }

    /// Takes note that what was sent will certainly not be applied.
    pub(super) fn give_back(&self) {
        let give_back = |stage| (stage == SENT).then_some(RETURNED);
        // Nothing to do for a caller that is gone.
        let _ = self
            .0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, give_back);
    }

    /// Nobody will ever say here whether it was applied. It is not sent any more.
    pub(super) fn overtake(&self) {
        let overtake = |stage| (stage != ABANDONED).then_some(OVERTAKEN);
        let _ = self
            .0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, overtake);
    }

    /// Whether a snapshot came instead of an answer.
    pub(super) fn is_overtaken(&self) -> bool {
        self.0.load(Ordering::SeqCst) == OVERTAKEN
    }

    /// The caller goes. True if the proposal never left this member, and now never will.
    pub(super) fn abandon(&self) -> bool {
        self.0.swap(ABANDONED, Ordering::SeqCst) == WAITING
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abandoned_proposal_is_not_sent() {
        let stage = Stage::default();
        assert!(stage.abandon());
        assert!(!stage.send());
    }

    #[test]
    fn a_sent_proposal_is_not_sent_again_until_given_back() {
        let stage = Stage::default();
        assert!(stage.send());
        assert!(!stage.send());
        stage.give_back();
        assert!(stage.send());
    }

    #[test]
    fn an_overtaken_proposal_is_not_sent_again_and_never_called_unsent() {
        let stage = Stage::default();
        assert!(stage.send());
        stage.overtake();
        assert!(stage.is_overtaken());
        stage.give_back();
        assert!(!stage.send());
        assert!(!stage.abandon());
    }

    #[test]
    fn a_proposal_that_was_sent_once_is_never_called_unsent() {
        let stage = Stage::default();
        assert!(stage.send());
        stage.give_back();
        assert!(!stage.abandon());
    }
}
