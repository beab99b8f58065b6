//! Linearizable reads share ReadIndex rounds: one is outstanding, and whoever comes meanwhile joins the next one, because
//! only a round that begins after a call began says something about it.
//!
//! raft drops a round without a word while its leader has not committed in its own term, and messages get lost; so an
//! outstanding round is asked again, with the same context, until it is answered.

use tokio::sync::oneshot;

/// Ticks until a round is asked again.
const ASK_AGAIN_TICKS: u32 = 3;

/// The rounds of one member.
pub(super) struct Barriers {
    /// Says which member asks, and in which of its lives: an answer to a question from before a restart answers nothing.
    asker: [u8; 16],
    rounds: u64,
    joining: Vec<oneshot::Sender<u64>>,
    outstanding: Option<Round>,
}

struct Round {
    context: Vec<u8>,
    callers: Vec<oneshot::Sender<u64>>,
    ticks: u32,
}

impl Barriers {
    pub(super) fn new(member_id: u64, boot_nonce: u64) -> Barriers {
        let mut asker = [0; 16];
        asker[..8].copy_from_slice(&member_id.to_be_bytes());
        asker[8..].copy_from_slice(&boot_nonce.to_be_bytes());
        Barriers {
            asker,
            rounds: 0,
            joining: Vec::new(),
            outstanding: None,
        }
    }

    /// `caller` wants the commit index as of some moment from now on.
    pub(super) fn join(&mut self, caller: oneshot::Sender<u64>) {
        self.joining.push(caller);
    }

    /// The context of a new round, if one is due: to be asked at once.
    pub(super) fn begin(&mut self) -> Option<Vec<u8>> {
        if self.outstanding.is_some() {
            return None;
        }
        self.joining.retain(|caller| !caller.is_closed());
        if self.joining.is_empty() {
            return None;
        }
        self.rounds += 1;
        let mut context = self.asker.to_vec();
        context.extend(self.rounds.to_be_bytes());
        let callers = std::mem::take(&mut self.joining);
        self.outstanding = Some(Round {
            context: context.clone(),
            callers,
            ticks: 0,
        });
        Some(context)
    }

    /// The answer to the round with this context; one to an earlier round is late and means nothing.
    pub(super) fn answered(&mut self, context: &[u8], index: u64) {
        if let Some(round) = self.outstanding.take_if(|round| round.context == context) {
            for caller in round.callers {
                // A caller whose time is over has gone.
                let _ = caller.send(index);
            }
        }
    }

    /// A tick: the context to be asked again, if the round has taken long.
    pub(super) fn tick(&mut self) -> Option<Vec<u8>> {
        let round = self.outstanding.as_mut()?;
        round.callers.retain(|caller| !caller.is_closed());
        if round.callers.is_empty() {
            self.outstanding = None;
            return None;
        }
        round.ticks += 1;
        if round.ticks < ASK_AGAIN_TICKS {
            return None;
        }
        round.ticks = 0;
        Some(round.context.clone())
    }

    /// The context to be asked again at once, since there is a new leader or it has become able to answer.
    pub(super) fn ask_again(&mut self) -> Option<Vec<u8>> {
        let round = self.outstanding.as_mut()?;
        round.ticks = 0;
        Some(round.context.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_during_a_round_joins_the_next_one() {
        let mut barriers = Barriers::new(1, 2);
        let (first, mut first_answer) = oneshot::channel();
        let (second, mut second_answer) = oneshot::channel();
        barriers.join(first);
        let round = barriers.begin().unwrap();
        barriers.join(second);
        assert_eq!(barriers.begin(), None);
        barriers.answered(&round, 5);
        assert_eq!(first_answer.try_recv(), Ok(5));
        assert!(second_answer.try_recv().is_err());
        let next = barriers.begin().unwrap();
        assert_ne!(next, round);
        barriers.answered(&round, 6);
        assert!(second_answer.try_recv().is_err());
        barriers.answered(&next, 7);
        assert_eq!(second_answer.try_recv(), Ok(7));
    }

    #[test]
    fn a_round_without_an_answer_is_asked_again() {
        let mut barriers = Barriers::new(1, 2);
        let (caller, _answer) = oneshot::channel();
        barriers.join(caller);
        let round = barriers.begin().unwrap();
        for _ in 1..ASK_AGAIN_TICKS {
            assert_eq!(barriers.tick(), None);
        }
        assert_eq!(barriers.tick(), Some(round));
    }

    #[test]
    fn a_round_that_nobody_waits_for_ends() {
        let mut barriers = Barriers::new(1, 2);
        let (caller, answer) = oneshot::channel();
        barriers.join(caller);
        barriers.begin().unwrap();
        drop(answer);
        assert_eq!(barriers.tick(), None);
        assert_eq!(barriers.ask_again(), None);
    }
}
