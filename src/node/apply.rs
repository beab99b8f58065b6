//! One transaction: new entries, hard state, what the committed entries do, and the state they leave.

use super::Outcome;
use super::entry;
use super::failure::MemberError;
use super::log::Log;
use super::proposals::Proposals;
use crate::observer::{Observed, Observer};
use crate::planted::{Bug, planted};
use crate::platform::{Disk, blocking};
use crate::state::{Image, State};
use crate::storage::{Commits, Durability, Storage, Tables};
use raft::eraftpb::{Entry, EntryType, HardState, SnapshotMetadata};
use tokio::sync::oneshot;

/// What of a ready belongs into the store.
pub(super) struct Work {
    /// A snapshot that has been staged, to be installed before anything else.
    pub(super) snapshot: Option<SnapshotMetadata>,
    /// To be appended to the log.
    pub(super) entries: Vec<Entry>,
    /// Raft's new hard state.
    pub(super) hard_state: Option<HardState>,
    /// To be applied.
    pub(super) committed: Vec<Entry>,
    /// Whether it must be durable before anyone is told.
    pub(super) durability: Durability,
}

/// Answers that become true once the view has been published.
#[derive(Default)]
pub(super) struct Done {
    /// Whether anything was applied, or installed.
    pub(super) applied: bool,
    /// Whether everything that was applied was refused.
    all_refused: bool,
    /// Whether an entry of a later term than before was applied.
    pub(super) term_began: bool,
    /// Who gets which outcome.
    pub(super) answers: Vec<(oneshot::Sender<Outcome>, Outcome)>,
}

/// The replicated state with everything that applying needs.
pub(super) struct Applier {
    pub(super) storage: Storage,
    pub(super) disk: Disk,
    pub(super) commits: Commits,
    pub(super) state: State,
}

impl Applier {
    /// Does `work` in one transaction, and waits until it is as durable as it must be.
    ///
    /// # Errors
    /// Any. The state may then be ahead of the store: the member must stop.
    pub(super) async fn commit(
        &mut self,
        work: Work,
        log: &mut Log,
        proposals: &mut Proposals,
        observer: &dyn Observer,
    ) -> Result<Done, MemberError> {
        let mut hard_state = work.hard_state.unwrap_or_else(|| log.hard_state().clone());
        if let Some(last) = work.committed.last() {
            // After a restart raft refuses to have applied more than was committed.
            hard_state.commit = hard_state.commit.max(last.index);
        }
        if let Some(snapshot) = &work.snapshot {
            hard_state.commit = hard_state.commit.max(snapshot.index);
        }
        if work.durability == Durability::Deferred && work.committed.is_empty() {
            // Only the commit index moved. It is worth nothing without the entries that it lets apply.
            log.set_hard_state(hard_state);
            return Ok(Done::default());
        }
        let transaction = self.storage.begin(work.durability)?;
        let mut image = None;
        let log_end = log.stored_last_index();
        let (mut done, left_over, gone) = {
            let mut tables = transaction.tables();
            let mut last_index = log_end;
            if let Some(snapshot) = &work.snapshot {
                image = Some(blocking(|| tables.install(snapshot))?);
                last_index = snapshot.index;
            }
            tables.put_hard_state(&hard_state)?;
            let left_over = tables.append(&work.entries, last_index)?;
            let stored_index = self.state.meta().applied_index;
            let done = self.apply(&work.committed, &mut tables, proposals, observer)?;
            if done.applied && !(planted(Bug::DeniedEntrySkipsIndex) && done.all_refused) {
                let mut meta = self.state.meta();
                if planted(Bug::AuthIndexNotAtomic) && work.committed.iter().all(changes_auth) {
                    meta.applied_index = stored_index;
                }
                tables.put_state(&meta)?;
            }
            let gone = log.truncatable(self.state.meta().applied_index);
            if let Some((gone, term)) = &gone {
                tables.truncate(gone.clone(), *term)?;
            }
            (done, left_over, gone)
        };
        let number = blocking(|| transaction.commit())?;
        if let Some(first) = left_over {
            let last = log_end;
            observer.observe(Observed::TailRemoved { first, last });
        }
        if work.durability == Durability::Synced && !planted(Bug::CommitSkipsSync) {
            self.disk.barrier().await.map_err(MemberError::Disk)?;
            self.commits.note(number).map_err(MemberError::Disk)?;
        }
        log.set_hard_state(hard_state);
        if let (Some(snapshot), Some(image)) = (work.snapshot, image) {
            log.installed(&snapshot);
            proposals.overtaken();
            self.restore(image, observer)?;
            done.applied = true;
            done.term_began = true;
        }
        log.appended(work.entries);
        if let Some((gone, _)) = gone {
            let first_index = gone.end;
            log.truncated(first_index);
            observer.observe(Observed::Truncated { first_index });
        }
        Ok(done)
    }

    /// Puts the state that has been installed in the store in the place of the one in memory.
    fn restore(&mut self, image: Image, observer: &dyn Observer) -> Result<(), MemberError> {
        let installed = State::restore(image);
        let before = std::mem::replace(&mut self.state, installed);
        if planted(Bug::PermCacheStaleAfterSnapshotA) {
            self.state.keep_rights_of(&before);
        }
        if planted(Bug::PermCacheStaleAfterSnapshotB) {
            self.state.forget_rights();
        }
        let meta = self.state.meta();
        tracing::info!(index = meta.applied_index, "installed a snapshot");
        observer.observe(Observed::Installed { meta });
        self.compare_derived(observer)
    }

    /// In simulations, compares the state with what a start would make of the store.
    ///
    /// # Errors
    /// The store's.
    pub(super) fn compare_derived(&self, observer: &dyn Observer) -> Result<(), MemberError> {
        if cfg!(madsim) {
            let equal = State::restore(self.storage.image()?) == self.state;
            let index = self.state.meta().applied_index;
            observer.observe(Observed::Compared { index, equal });
        }
        Ok(())
    }

    fn apply(
        &mut self,
        committed: &[Entry],
        tables: &mut Tables<'_>,
        proposals: &mut Proposals,
        observer: &dyn Observer,
    ) -> Result<Done, MemberError> {
        let mut done = Done {
            applied: !committed.is_empty(),
            all_refused: true,
            ..Done::default()
        };
        for entry in committed {
            let (index, term) = (entry.index, entry.term);
            if term > self.state.meta().applied_term {
                proposals.term_began(term);
                done.term_began = true;
            }
            let command = match entry.get_entry_type() {
                EntryType::EntryNormal if entry.data.is_empty() => None,
                EntryType::EntryNormal => Some(
                    entry::decode(&entry.data)
                        .map_err(|cause| MemberError::Entry { index, cause })?,
                ),
                EntryType::EntryConfChange | EntryType::EntryConfChangeV2 => {
                    return Err(MemberError::MembershipChange { index });
                }
            };
            let observed = command.clone();
            let applied = self.state.apply(index, term, command, &tables.values()?)?;
            done.all_refused &= applied.result.is_err();
            tables.put_writes(&applied.writes)?;
            let meta = self.state.meta();
            let command = observed.as_ref();
            observer.observe(Observed::Applied {
                term,
                command,
                applied: &applied,
                meta,
            });
            if let Some(answer) = observed.and_then(|command| proposals.applied(command.request_id))
            {
                let (revision, result) = (applied.revision, applied.result);
                done.answers.push((
                    answer,
                    Outcome {
                        index,
                        term,
                        revision,
                        result,
                    },
                ));
            }
        }
        Ok(done)
    }
}

/// For the planted bug that stores some indexes and others not.
fn changes_auth(entry: &Entry) -> bool {
    use crate::state::Op;
    entry::decode(&entry.data).is_ok_and(|command| {
        !matches!(
            command.op,
            Op::Put(_)
                | Op::DeleteRange(_)
                | Op::Txn(_)
                | Op::Authenticate(_)
                | Op::TokenRefresh(_)
                | Op::TokenExpire(_)
        )
    })
}
