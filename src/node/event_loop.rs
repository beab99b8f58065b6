//! The one task that owns raft and the state. Each wake takes everything that waits, so that proposals share a
//! transaction and a sync; then raft's `Ready` is worked off, step by step, in [`EventLoop::work_off`].

use super::apply::{Applier, Done, Work};
use super::barriers::Barriers;
use super::event::{Event, Forwarded};
use super::failure::MemberError;
use super::guard;
use super::log::Log;
use super::peers::Peers;
use super::proposals::Proposals;
use super::snapshot_inbox::Inbox;
use super::ticker::Ticker;
use super::token_keeper::TokenKeeper;
use super::{NodeStatus, View};
use crate::observer::{Observed, Observer};
use crate::platform::Setter;
use crate::storage::Durability;
use crate::window::{self, Window};
use raft::eraftpb::{Entry, Message, MessageType};
use raft::{INVALID_ID, RawNode, SnapshotStatus, StateRole};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};

/// Events taken in one wake: enough to share a sync, and few enough that a tick is not late.
const EVENTS_PER_WAKE_MAX: usize = 512;

/// Bytes of entries proposed to raft in one message, which becomes one append to each follower.
pub(super) const APPEND_BYTES_MAX: usize = 1 << 20;

pub(super) struct EventLoop {
    pub(super) raft: RawNode<Log>,
    pub(super) applier: Applier,
    pub(super) proposals: Proposals,
    pub(super) barriers: Barriers,
    pub(super) inbox: Inbox,
    pub(super) peers: Peers,
    pub(super) ticker: Ticker,
    pub(super) token_keeper: TokenKeeper,
    pub(super) queue: mpsc::Receiver<Event>,
    pub(super) stop: watch::Receiver<bool>,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) view: Setter<Arc<View>>,
    pub(super) status: watch::Sender<NodeStatus>,
    /// Proposals of other members that wait for the end of this wake.
    pub(super) forwarded: Vec<Forwarded>,
    /// The term in which this member led when the observer was last told, if it did.
    pub(super) led: Option<u64>,
    /// What raft must be told, but not while a `Ready` is being worked off.
    pub(super) later: Later,
}

/// raft may not be called between `ready` and `advance`, so some news waits until then.
#[derive(Default)]
pub(super) struct Later {
    /// Members whose messages were lost.
    unreachable: BTreeSet<u64>,
    /// Members whose snapshot cannot be sent.
    pub(super) snapshot_lost: BTreeSet<u64>,
    /// Who leads, or what the leader can answer, has changed: an outstanding ReadIndex round is asked again.
    ask_again: bool,
}

impl EventLoop {
    /// Runs until the member is told to stop. Whoever waits for an answer then learns that it has stopped.
    ///
    /// # Errors
    /// Why the member cannot go on.
    pub(super) async fn run(mut self) -> Result<(), MemberError> {
        if self.raft.store().voters() == [self.raft.raft.id] {
            // Nobody else could answer, so there is nothing to wait for.
            self.raft.campaign()?;
        }
        let mut events = Vec::with_capacity(EVENTS_PER_WAKE_MAX);
        loop {
            self.wait(&mut events).await;
            self.check_readers()?;
            for event in events.drain(..) {
                if let Event::Stop = event {
                    return Ok(());
                }
                self.take(event)?;
            }
            self.propose();
            self.ask();
            if self.raft.has_ready() {
                self.work_off().await?;
            }
            self.publish_status();
        }
    }

    /// Waits for events; not at all while raft has something to do.
    async fn wait(&mut self, events: &mut Vec<Event>) {
        let busy = self.raft.has_ready();
        tokio::select! {
            biased;
            // A dropped sender counts as a stop: nobody could ever send one.
            _ = self.stop.wait_for(|stop| *stop) => events.push(Event::Stop),
            // The caller looks.
            () = self.applier.storage.failed() => {}
            () = self.ticker.tick() => events.push(Event::Tick),
            _ = self.queue.recv_many(events, EVENTS_PER_WAKE_MAX) => {}
            () = tokio::task::yield_now(), if busy => {}
        }
    }

    fn take(&mut self, event: Event) -> Result<(), MemberError> {
        match event {
            Event::Tick => self.tick()?,
            Event::Messages(messages) => {
                for message in messages {
                    self.step(message)?;
                }
            }
            Event::Unreachable(peer) => self.raft.report_unreachable(peer),
            Event::Propose(proposal) => self.proposals.add(proposal),
            Event::Refused { request_id, term } => self.proposals.refused(request_id, term),
            Event::Forwarded(forwarded) => self.forwarded.push(forwarded),
            Event::ReadIndex(caller) => self.barriers.join(caller),
            Event::SnapshotPart { part, answer } => self.take_part(part, answer)?,
            Event::SnapshotSent { to, id, complete } => self.snapshot_sent(to, id, complete),
            #[cfg(madsim)]
            Event::CompareDerived => self.applier.compare_derived(self.observer.as_ref())?,
            // The caller ends the loop instead of coming here.
            Event::Stop => {}
        }
        Ok(())
    }

    fn tick(&mut self) -> Result<(), MemberError> {
        self.raft.tick();
        self.tick_snapshots()?;
        self.proposals.prune();
        self.proposals.try_refused_again();
        if let Some(context) = self.barriers.tick() {
            self.raft.read_index(context);
        }
        for proposal in self.token_keeper.tick(&self.applier.state) {
            self.proposals.add(proposal);
        }
        Ok(())
    }

    fn step(&mut self, mut message: Message) -> Result<(), MemberError> {
        if guard::admit(&self.raft, &message)? {
            let leads = self.raft.raft.state == StateRole::Leader;
            if leads && message.get_msg_type() == MessageType::MsgReadIndex {
                for question in message.mut_entries().iter_mut() {
                    question.data = self.barriers.stamp(&question.data).into();
                }
            }
            // raft refuses what is stale or unexpected, which on a network is nothing special.
            if let Err(reason) = self.raft.step(message) {
                tracing::debug!(%reason, "raft refused a message");
            }
        }
        self.check_log()
    }

    /// Hands everything that waits to the leader: to raft if that is this member, else to the member that is.
    fn propose(&mut self) {
        let term = self.raft.raft.term;
        if self.raft.raft.state == StateRole::Leader {
            self.append(term);
            return;
        }
        for Forwarded { answer, .. } in self.forwarded.drain(..) {
            let _ = answer.send(false);
        }
        let leader = self.raft.raft.leader_id;
        if leader != INVALID_ID {
            for proposal in self.proposals.send(term) {
                self.peers.forward(leader, term, proposal);
            }
        }
    }

    /// Appends, as leader of `term`, own and forwarded proposals, in as few messages to raft as their size allows.
    fn append(&mut self, term: u64) {
        let mut batch = Batch::default();
        for proposal in self.proposals.send(term) {
            let origin = Origin::Own(proposal.request_id);
            self.append_to(&mut batch, proposal.entry, origin, term);
        }
        for Forwarded {
            term: expected,
            entry,
            answer,
        } in std::mem::take(&mut self.forwarded)
        {
            if expected == term {
                self.append_to(&mut batch, entry, Origin::Peer(answer), term);
            } else {
                let _ = answer.send(false);
            }
        }
        self.append_batch(batch, term);
    }

    fn append_to(&mut self, batch: &mut Batch, entry: bytes::Bytes, origin: Origin, term: u64) {
        if batch.bytes + entry.len() > APPEND_BYTES_MAX {
            self.append_batch(std::mem::take(batch), term);
        }
        batch.bytes += entry.len();
        batch.entries.push(Entry {
            data: entry,
            ..Entry::default()
        });
        batch.origins.push(origin);
    }

    fn append_batch(&mut self, batch: Batch, term: u64) {
        if batch.entries.is_empty() {
            return;
        }
        let mut message = Message::default();
        message.set_msg_type(MessageType::MsgPropose);
        message.from = self.raft.raft.id;
        message.set_entries(batch.entries.into());
        // Too much is uncommitted: a definite refusal of the whole batch.
        let accepted = self.raft.step(message).is_ok();
        for origin in batch.origins {
            match origin {
                Origin::Own(_) if accepted => {}
                Origin::Own(request_id) => self.proposals.refused(request_id, term),
                Origin::Peer(answer) => {
                    let _ = answer.send(accepted);
                }
            }
        }
    }

    /// Begins a ReadIndex round if one is due.
    fn ask(&mut self) {
        if let Some(context) = self.barriers.begin() {
            self.raft.read_index(context);
        }
    }

    /// Works off one `Ready`. The order matters.
    async fn work_off(&mut self) -> Result<(), MemberError> {
        let mut ready = self.raft.ready();
        self.check_log()?;
        if let Some(soft_state) = ready.ss() {
            // A new leader need not refuse what the old one refused, and knows nothing of what the old one was asked.
            if soft_state.leader_id != INVALID_ID {
                self.proposals.try_refused_again();
                self.later.ask_again = true;
            }
        }
        self.observe_role();
        for read in ready.take_read_states() {
            self.barriers.answered(&read.request_ctx, read.index);
        }
        // A leader's appends leave before its own disk has them: it counts its own vote only after `advance`, and so the
        // disks of all members work at the same time.
        self.send(ready.take_messages());
        // Everything that belongs together goes into one transaction, which one sync makes durable.
        let durability = if ready.must_sync() {
            Durability::Synced
        } else {
            Durability::Deferred
        };
        let snapshot = self.staged(ready.snapshot())?;
        let done = self
            .commit(Work {
                snapshot,
                entries: ready.take_entries(),
                hard_state: ready.hs().cloned(),
                committed: ready.take_committed_entries(),
                durability,
            })
            .await?;
        // Votes and acknowledgements promise what is durable only now.
        self.send(ready.take_persisted_messages());
        // A caller that has been answered must find its own write in any later view: publish, then answer.
        self.publish(done).await?;
        let mut light = self.raft.advance(ready);
        self.check_log()?;
        self.send(light.take_messages());
        // These entries have just been synced as part of the log. Applying them needs no second sync: after a crash they
        // are applied again from there.
        let done = self
            .commit(Work {
                snapshot: None,
                entries: Vec::new(),
                hard_state: None,
                committed: light.take_committed_entries(),
                durability: Durability::Deferred,
            })
            .await?;
        self.publish(done).await?;
        self.raft.advance_apply();
        self.tell_raft();
        // What a new term gave back, or a freed window lets in, need not wait for the next event.
        self.propose();
        self.ask();
        Ok(())
    }

    fn tell_raft(&mut self) {
        for peer in std::mem::take(&mut self.later.unreachable) {
            self.raft.report_unreachable(peer);
        }
        for peer in std::mem::take(&mut self.later.snapshot_lost) {
            self.raft.report_snapshot(peer, SnapshotStatus::Failure);
        }
        if std::mem::take(&mut self.later.ask_again)
            && let Some(context) = self.barriers.ask_again()
        {
            self.raft.read_index(context);
        }
    }

    async fn commit(&mut self, work: Work) -> Result<Done, MemberError> {
        let log = self.raft.mut_store();
        self.applier
            .commit(work, log, &mut self.proposals, self.observer.as_ref())
            .await
    }

    async fn publish(&mut self, done: Done) -> Result<(), MemberError> {
        if !done.applied {
            return Ok(());
        }
        let term = self.raft.raft.term;
        self.token_keeper.applied(&self.applier.state);
        window::pass(Window::CommitToPublish, self.raft.raft.id).await;
        let state = self.applier.state.clone();
        let index = state.meta().applied_index;
        let values = self.applier.storage.reader()?;
        self.view.set(Arc::new(View {
            state,
            term,
            values,
        }));
        self.observer.observe(Observed::Published { index });
        for (answer, outcome) in done.answers {
            // A caller whose time is over has gone.
            let _ = answer.send(outcome);
        }
        if self.raft.raft.state == StateRole::Leader {
            // What was refused because too much was uncommitted may fit now.
            self.proposals.try_refused_again();
        }
        // Once it has committed in its own term, the leader answers.
        self.later.ask_again |= done.term_began;
        Ok(())
    }

    fn observe_role(&mut self) {
        let raft = &self.raft.raft;
        let leads = (raft.state == StateRole::Leader).then_some(raft.term);
        self.token_keeper.lead(leads);
        if leads == self.led {
            return;
        }
        let (term, leader) = (raft.term, leads.is_some());
        if !leader {
            self.withdraw_snapshots();
        }
        tracing::info!(term, leader, "role changed");
        self.observer.observe(Observed::Role { term, leader });
        self.led = leads;
    }

    fn send(&mut self, messages: Vec<Message>) {
        let messages = self.send_snapshots(messages);
        if !messages.is_empty() {
            self.later
                .unreachable
                .append(&mut self.peers.send(messages));
        }
    }

    /// A store that fails while raft reads from it cannot tell raft, so it is asked here.
    pub(super) fn check_log(&self) -> Result<(), MemberError> {
        self.raft
            .store()
            .take_failure()
            .map_or(Ok(()), |failure| Err(failure.into()))
    }

    /// A reader that finds the store corrupt can refuse its own call only; the next one may be given something wrong.
    fn check_readers(&self) -> Result<(), MemberError> {
        let failure = self.applier.storage.take_failure();
        failure.map_or(Ok(()), |failure| Err(failure.into()))
    }

    fn publish_status(&self) {
        let raft = &self.raft.raft;
        let now = NodeStatus {
            leader: raft.leader_id,
            term: raft.term,
            last_index: raft.raft_log.last_index(),
            applied_index: self.applier.state.meta().applied_index,
            db_size: self.applier.storage.size_bytes(),
        };
        self.status.send_if_modified(|status| {
            let changed = *status != now;
            *status = now;
            changed
        });
    }
}

/// Proposals for one message to raft.
#[derive(Default)]
struct Batch {
    entries: Vec<Entry>,
    origins: Vec<Origin>,
    bytes: usize,
}

/// Who is told whether an entry was appended.
enum Origin {
    /// A call of this member.
    Own(u64),
    /// Another member.
    Peer(oneshot::Sender<bool>),
}
