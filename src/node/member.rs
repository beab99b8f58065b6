//! Starting a member: from what its disk says to a running event loop.

use super::apply::Applier;
use super::barriers::Barriers;
use super::event_loop::{APPEND_BYTES_MAX, EventLoop, Later};
use super::failure::MemberError;
use super::log::Log;
use super::peers::Peers;
use super::proposals::{Proposals, RequestIds};
use super::snapshot_inbox::Inbox;
use super::snapshot_offers::Offers;
use super::ticker::Ticker;
use super::token_keeper::TokenKeeper;
use super::token_uses::TokenUses;
use super::{Node, NodeStatus, PeerService, View};
use crate::config::Config;
use crate::observer::{Observed, Observer};
use crate::planted::{Bug, planted};
use crate::platform::{Clock, Disk, blocking, random_u64, watched};
use crate::state::{Image, State};
use crate::storage::{Commits, Durability, Identity, Loaded, Storage};
use raft::RawNode;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// Events that wait for the loop. While it waits for the disk, this much arrives before calls are refused.
const EVENTS_WAITING_MAX: usize = 8192;

/// redb's cache, bytes. A simulation runs many members in one process and has small stores.
const CACHE_BYTES: usize = if cfg!(madsim) { 1 << 20 } else { 256 << 20 };

/// Appends to one follower that may be unanswered: replication is pipelined up to here.
const INFLIGHT_APPENDS_MAX: usize = 256;

/// Bytes of entries that may wait for a quorum; more is refused until some have committed.
const UNCOMMITTED_BYTES_MAX: u64 = 64 << 20;

/// Bytes of entries applied in one transaction, so that a long replay leaves room for ticks.
const COMMITTED_BYTES_MAX: u64 = 1 << 20;

/// A started member.
pub struct Member {
    /// The handle for everyone else.
    pub node: Node,
    /// What other members call.
    pub peers: PeerService,
    /// Ends when the member has been told to stop, or cannot go on.
    pub task: JoinHandle<Result<(), MemberError>>,
}

impl Member {
    /// Opens the store, creating it for a new member, and starts the event loop, which runs until `stop` holds `true` or
    /// its sender is gone.
    ///
    /// # Errors
    /// [`MemberError::Disk`], [`MemberError::Open`], [`MemberError::Storage`], [`MemberError::Raft`].
    pub async fn start(
        config: Config,
        disk: Disk,
        clock: Clock,
        observer: Arc<dyn Observer>,
        stop: watch::Receiver<bool>,
    ) -> Result<Member, MemberError> {
        let (storage, loaded, commits) = open(&config, &disk).await?;
        let applied = loaded.image.meta.applied_index;
        observer.observe(Observed::Started { applied });
        let boot_nonce = random_u64();
        let raft = start_raft(&config, &storage, &loaded, boot_nonce)?;
        let state = restore(&storage, loaded.image, loaded.created)?;
        let first = View {
            state: state.clone(),
            term: raft.raft.term,
            values: storage.reader()?,
        };
        let (view, viewers) = watched(Arc::new(first));
        let (status, status_readers) = watch::channel(NodeStatus {
            leader: 0,
            term: raft.raft.term,
            last_index: loaded.last_index,
            applied_index: applied,
            db_size: storage.size_bytes(),
        });
        let (events, queue) = mpsc::channel(EVENTS_WAITING_MAX);
        let request_ids = Arc::new(RequestIds::from(boot_nonce));
        let token_uses = Arc::new(TokenUses::default());
        let (ids, uses) = (Arc::clone(&request_ids), Arc::clone(&token_uses));
        let token_keeper = TokenKeeper::new(&config, clock.clone(), uses, ids);
        let applier = Applier {
            storage,
            disk,
            commits,
            state,
        };
        applier.compare_derived(observer.as_ref())?;
        let event_loop = EventLoop {
            raft,
            applier,
            inbox: Inbox::new(config.member_id),
            proposals: Proposals::default(),
            barriers: Barriers::new(config.member_id, boot_nonce),
            peers: Peers::start(&config, &events),
            ticker: Ticker::new(clock, config.heartbeat),
            token_keeper,
            queue,
            stop,
            observer: Arc::clone(&observer),
            view,
            status,
            forwarded: Vec::new(),
            led: None,
            later: Later::default(),
        };
        let peers = PeerService::new(&config, events.clone());
        let node = Node::new(
            config,
            observer,
            events,
            viewers,
            status_readers,
            request_ids,
            token_uses,
        );
        Ok(Member {
            node,
            peers,
            task: tokio::spawn(event_loop.run()),
        })
    }
}

/// The state that the store holds, with everything that is derived from it.
fn restore(storage: &Storage, mut image: Image, created: bool) -> Result<State, MemberError> {
    if planted(Bug::EnabledFlagLostOnBoot) {
        image.meta.auth_enabled = false;
    }
    if planted(Bug::AuthRevBumpOnBoot) && !created {
        image.meta.auth_revision += 1;
        let transaction = storage.begin(Durability::Synced)?;
        transaction.tables().put_state(&image.meta)?;
        blocking(|| transaction.commit())?;
    }
    let mut state = State::restore(image);
    if planted(Bug::PermCacheEmptyAfterBoot) {
        state.forget_rights();
    }
    Ok(state)
}

/// Opens the store, and makes sure that it has not lost anything.
pub(super) async fn open(
    config: &Config,
    disk: &Disk,
) -> Result<(Storage, Loaded, Commits), MemberError> {
    let backend = disk.backend().map_err(MemberError::Disk)?;
    let voters: Vec<u64> = config.members.iter().map(|member| member.id).collect();
    let identity = Identity {
        cluster_id: config.cluster_id,
        member_id: config.member_id,
        voters: &voters,
        new_store_id: disk.draw_id(),
    };
    let unusable = |cause| MemberError::Open {
        disk: disk.to_string(),
        cause,
    };
    let opened = blocking(|| Storage::open(backend, &identity, CACHE_BYTES));
    let (storage, loaded) = opened.map_err(unusable)?;
    // Opening may have written: a new store's mark, or a repair.
    disk.barrier().await.map_err(MemberError::Disk)?;
    let counted = blocking(|| Commits::open(disk.register(), &loaded));
    let commits = counted.map_err(unusable)?;
    disk.keep().map_err(MemberError::Disk)?;
    Ok((storage, loaded, commits))
}

fn start_raft(
    config: &Config,
    storage: &Storage,
    loaded: &Loaded,
    boot_nonce: u64,
) -> Result<RawNode<Log>, MemberError> {
    let ticks = config.election.as_nanos() / config.heartbeat.as_nanos().max(1);
    let raft_config = raft::Config {
        id: config.member_id,
        heartbeat_tick: 1,
        // raft wants an election to take longer than a heartbeat.
        election_tick: usize::try_from(ticks).unwrap_or(usize::MAX / 2).max(2),
        applied: loaded.image.meta.applied_index,
        max_size_per_msg: APPEND_BYTES_MAX as u64,
        max_inflight_msgs: INFLIGHT_APPENDS_MAX,
        max_uncommitted_size: UNCOMMITTED_BYTES_MAX,
        max_committed_size_per_ready: COMMITTED_BYTES_MAX,
        // A member that was cut off must neither depose a working leader when it comes back, nor go on leading alone.
        pre_vote: true,
        check_quorum: true,
        // Leases would trust clocks.
        read_only_option: raft::ReadOnlyOption::Safe,
        ..raft::Config::default()
    };
    let offers = Offers::new(boot_nonce, config.snapshot_part_bytes);
    let silent = slog::Logger::root(slog::Discard, slog::o!());
    Ok(RawNode::new(
        &raft_config,
        Log::new(storage.clone(), loaded, config.snapshot_count, offers),
        &silent,
    )?)
}
