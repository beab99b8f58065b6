//! One transaction: new entries, hard state, what the committed entries do, and the state they leave.

use super::Outcome;
use super::entry;
use super::failure::MemberError;
use super::log::Log;
use super::proposals::Proposals;
use crate::observer::{Observed, Observer};
use crate::planted::{Bug, planted};
use crate::platform::{Disk, blocking};
use crate::state::State;
use crate::storage::{Commits, Durability, Storage, Tables};
use raft::eraftpb::{Entry, EntryType, HardState};
use tokio::sync::oneshot;

/// What of a ready belongs into the store.
pub(super) struct Work {
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
    /// Whether anything was applied.
    pub(super) applied: bool,
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
        if work.durability == Durability::Deferred && work.committed.is_empty() {
            // Only the commit index moved. It is worth nothing without the entries that it lets apply.
            log.set_hard_state(hard_state);
            return Ok(Done::default());
        }
        let transaction = self.storage.begin(work.durability)?;
        let log_end = log.stored_last_index();
        let (done, left_over) = {
            let mut tables = transaction.tables();
            tables.put_hard_state(&hard_state)?;
            let left_over = tables.append(&work.entries, log_end)?;
            let stored_index = self.state.meta().applied_index;
            let done = self.apply(&work.committed, &mut tables, proposals, observer)?;
            if done.applied {
                let mut meta = self.state.meta();
                if planted(Bug::AuthIndexNotAtomic) && work.committed.iter().all(changes_auth) {
                    meta.applied_index = stored_index;
                }
                tables.put_state(&meta)?;
            }
            (done, left_over)
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
        log.appended(work.entries);
        Ok(done)
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
