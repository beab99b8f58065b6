//! Linearizable reads share ReadIndex rounds: one is outstanding, and whoever comes meanwhile joins the next one, because
//! only a round that begins after a call began says something about it.
//!
//! raft drops a round without a word while its leader has not committed in its own term, and messages get lost; so an
//! outstanding round is asked again until it is answered, each time under a context of its own. The leader registers what
//! comes from others under a context of its own, too. raft knows requests by their context alone: were one registered
//! twice, because it was asked again or its message arrived twice, late acknowledgements of the first heartbeats would
//! confirm a leader that has been deposed since.

use tokio::sync::oneshot;

/// Ticks until a round is asked again.
const ASK_AGAIN_TICKS: u32 = 3;

/// Length of a context: the asker and the number of the question.
const CONTEXT_BYTES: usize = 24;

/// The rounds of one member.
pub(super) struct Barriers {
    /// Says which member asks, and in which of its lives: an answer to a question from before a restart answers nothing.
    asker: [u8; 16],
    /// Contexts made so far.
    contexts: u64,
    joining: Vec<oneshot::Sender<u64>>,
    outstanding: Option<Round>,
}

struct Round {
    /// Number of its first question. An answer to any of its questions will do, since all were asked after its callers came.
    first: u64,
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
            contexts: 0,
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
        let context = self.context();
        let callers = std::mem::take(&mut self.joining);
        self.outstanding = Some(Round {
            first: self.contexts,
            callers,
            ticks: 0,
        });
        Some(context)
    }

    /// The context under which a leader registers another member's question: the asker finds its own at the end.
    pub(super) fn stamp(&mut self, question: &[u8]) -> Vec<u8> {
        let mut context = self.context();
        context.extend_from_slice(question);
        context
    }

    /// The answer to the question with this context, stamped or not; one to an earlier round is late and means nothing.
    pub(super) fn answered(&mut self, context: &[u8], index: u64) {
        let Some(question) = self.own_question(context) else {
            return;
        };
        if let Some(round) = self.outstanding.take_if(|round| question >= round.first) {
            for caller in round.callers {
                // A caller whose time is over has gone.
                let _ = caller.send(index);
            }
        }
    }

    /// A tick: the context under which to ask again, if the round has taken long.
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
        self.ask_again()
    }

    /// The context under which to ask again at once, since there is a new leader or it has become able to answer.
    pub(super) fn ask_again(&mut self) -> Option<Vec<u8>> {
        self.outstanding.as_mut()?.ticks = 0;
        Some(self.context())
    }

    /// A context that nobody has used.
    fn context(&mut self) -> Vec<u8> {
        self.contexts += 1;
        let mut context = Vec::with_capacity(2 * CONTEXT_BYTES);
        context.extend(self.asker);
        context.extend(self.contexts.to_be_bytes());
        context
    }

    /// The number of this member's question at the end of a context.
    fn own_question(&self, context: &[u8]) -> Option<u64> {
        let start = context.len().checked_sub(CONTEXT_BYTES)?;
        let number = context[start..].strip_prefix(&self.asker)?;
        Some(u64::from_be_bytes(number.try_into().ok()?))
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
        let again = barriers.tick().unwrap();
        assert_ne!(again, round, "raft must tell the two apart");
    }

    #[test]
    fn any_question_of_a_round_answers_it_and_none_of_an_earlier_one() {
        let mut barriers = Barriers::new(1, 2);
        let (first, mut first_answer) = oneshot::channel();
        barriers.join(first);
        let round = barriers.begin().unwrap();
        let again = barriers.ask_again().unwrap();
        barriers.answered(&again, 5);
        assert_eq!(first_answer.try_recv(), Ok(5));
        let (second, mut second_answer) = oneshot::channel();
        barriers.join(second);
        let next = barriers.begin().unwrap();
        barriers.answered(&round, 6);
        barriers.answered(&again, 6);
        assert!(second_answer.try_recv().is_err());
        barriers.answered(&next, 7);
        assert_eq!(second_answer.try_recv(), Ok(7));
    }

    #[test]
    fn a_leader_registers_a_question_that_arrives_twice_under_two_contexts() {
        let mut asker = Barriers::new(1, 2);
        let mut leader = Barriers::new(3, 4);
        let (caller, mut answer) = oneshot::channel();
        asker.join(caller);
        let question = asker.begin().unwrap();
        let (one, other) = (leader.stamp(&question), leader.stamp(&question));
        assert_ne!(one, other);
        leader.answered(&one, 5);
        asker.answered(&one, 5);
        assert_eq!(answer.try_recv(), Ok(5));
    }

    #[test]
    fn rubbish_answers_nothing() {
        let mut barriers = Barriers::new(1, 2);
        let (caller, mut answer) = oneshot::channel();
        barriers.join(caller);
        let question = barriers.begin().unwrap();
        for context in [&[][..], &question[1..], &question[..23], &[7; 24]] {
            barriers.answered(context, 5);
        }
        assert!(answer.try_recv().is_err());
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
