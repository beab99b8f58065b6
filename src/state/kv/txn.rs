//! What entries and reads do to the keys, once they are allowed. A transaction is decided as a whole before its first
//! change, as etcd does (`server/etcdserver/txn/txn.go`): every comparison, nested ones too, and every precondition
//! looks at the keys as they were before it. So a transaction that is refused half-way does not exist.

use super::super::command::{DeleteRange, Put, Range, Txn, TxnOp};
use super::super::effects::Effects;
use super::super::outcome::{ApplyError, Deleted, KeyValue, TxnOpResponse, TxnResponse};
use super::super::{ReadError, ValueError, Values};
use super::compare::all_hold;
use super::index::KvIndex;
use super::range_read::{check_revision, read_range};
use super::writer::Writer;

/// Writes one key.
///
/// # Errors
/// [`ApplyError::LeaseNotFound`], [`ApplyError::KeyNotFound`] (in this order); [`ReadError::Value`].
pub(in crate::state) fn put(
    kv: &mut KvIndex,
    put: Put,
    values: &dyn Values,
    effects: &mut Effects,
) -> Result<Option<KeyValue>, ReadError> {
    check_lease(&put)?;
    check_present(kv, &put)?;
    let mut writer = Writer::new(kv, values, effects);
    let previous = writer.put(put)?;
    writer.finish();
    Ok(previous)
}

/// Deletes the keys of a range.
pub(in crate::state) fn delete_range(
    kv: &mut KvIndex,
    delete: &DeleteRange,
    values: &dyn Values,
    effects: &mut Effects,
) -> Result<Deleted, ValueError> {
    let mut writer = Writer::new(kv, values, effects);
    let deleted = writer.delete_range(delete)?;
    writer.finish();
    Ok(deleted)
}

/// Runs a transaction.
///
/// # Errors
/// For an operation that would run: [`ApplyError::KeyNotFound`], [`ApplyError::LeaseNotFound`], then
/// [`ApplyError::FutureRevision`], [`ApplyError::Compacted`]; [`ReadError::Value`].
pub(in crate::state) fn write_txn(
    kv: &mut KvIndex,
    txn: Txn,
    values: &dyn Values,
    effects: &mut Effects,
) -> Result<TxnResponse, ReadError> {
    let plan = Plan::new(kv, txn, values)?;
    plan.check_puts(kv)?;
    plan.check_ranges(kv)?;
    let mut writer = Writer::new(kv, values, effects);
    let response = plan.run(&mut writer)?;
    writer.finish();
    Ok(response)
}

/// Runs a transaction that only reads.
///
/// # Errors
/// [`ApplyError::FutureRevision`], [`ApplyError::Compacted`]; [`ReadError::Value`].
///
/// # Panics
/// When the transaction writes or nests: those go through the log, and answering here would lose the writes.
pub(in crate::state) fn read_txn(
    kv: &KvIndex,
    txn: &Txn,
    values: &dyn Values,
) -> Result<TxnResponse, ReadError> {
    assert!(
        txn.reads_only(),
        "a transaction that writes was sent to a reader"
    );
    let succeeded = all_hold(kv, txn, values)?;
    let branch = txn.branch(succeeded);
    for op in branch {
        check_revision(kv, reading(op))?;
    }
    let read = |op: &TxnOp| Ok(TxnOpResponse::Range(read_range(kv, reading(op), values)?));
    let responses = branch.iter().map(read).collect::<Result<_, ReadError>>()?;
    Ok(TxnResponse {
        succeeded,
        responses,
    })
}

impl Txn {
    /// Whether neither branch could change anything. A nested transaction counts as a change even if it only reads,
    /// as in etcd, which sends it through the log.
    pub(crate) fn reads_only(&self) -> bool {
        let reads = |op: &TxnOp| match op {
            TxnOp::Range(_) => true,
            TxnOp::Put(_) | TxnOp::DeleteRange(_) | TxnOp::Txn(_) => false,
        };
        self.success.iter().chain(&self.failure).all(reads)
    }

    fn branch(&self, succeeded: bool) -> &[TxnOp] {
        if succeeded {
            &self.success
        } else {
            &self.failure
        }
    }
}

fn reading(op: &TxnOp) -> &Range {
    match op {
        TxnOp::Range(range) => range,
        TxnOp::Put(_) | TxnOp::DeleteRange(_) | TxnOp::Txn(_) => {
            unreachable!("the transaction was found to read only")
        }
    }
}

/// A transaction whose comparisons have been evaluated: what will run.
struct Plan {
    succeeded: bool,
    steps: Vec<Step>,
}

enum Step {
    Range(Range),
    Put(Put),
    DeleteRange(DeleteRange),
    Txn(Plan),
}

impl Plan {
    fn new(kv: &KvIndex, txn: Txn, values: &dyn Values) -> Result<Plan, ValueError> {
        let succeeded = all_hold(kv, &txn, values)?;
        let ops = if succeeded { txn.success } else { txn.failure };
        let step = |op| {
            Ok(match op {
                TxnOp::Range(range) => Step::Range(range),
                TxnOp::Put(put) => Step::Put(put),
                TxnOp::DeleteRange(delete) => Step::DeleteRange(delete),
                TxnOp::Txn(txn) => Step::Txn(Plan::new(kv, txn, values)?),
            })
        };
        Ok(Plan {
            succeeded,
            steps: ops
                .into_iter()
                .map(step)
                .collect::<Result<_, ValueError>>()?,
        })
    }

    fn check_puts(&self, kv: &KvIndex) -> Result<(), ApplyError> {
        for step in &self.steps {
            match step {
                Step::Put(put) => {
                    check_present(kv, put)?;
                    check_lease(put)?;
                }
                Step::Txn(plan) => plan.check_puts(kv)?,
                Step::Range(_) | Step::DeleteRange(_) => {}
            }
        }
        Ok(())
    }

    fn check_ranges(&self, kv: &KvIndex) -> Result<(), ApplyError> {
        for step in &self.steps {
            match step {
                Step::Range(range) => check_revision(kv, range)?,
                Step::Txn(plan) => plan.check_ranges(kv)?,
                Step::Put(_) | Step::DeleteRange(_) => {}
            }
        }
        Ok(())
    }

    fn run(self, writer: &mut Writer<'_>) -> Result<TxnResponse, ValueError> {
        let run = |step| {
            Ok(match step {
                Step::Range(range) => TxnOpResponse::Range(writer.range(&range)?),
                Step::Put(put) => TxnOpResponse::Put(writer.put(put)?),
                Step::DeleteRange(delete) => {
                    TxnOpResponse::DeleteRange(writer.delete_range(&delete)?)
                }
                Step::Txn(plan) => TxnOpResponse::Txn(plan.run(writer)?),
            })
        };
        let responses = self
            .steps
            .into_iter()
            .map(run)
            .collect::<Result<_, ValueError>>()?;
        Ok(TxnResponse {
            succeeded: self.succeeded,
            responses,
        })
    }
}

/// There are no leases yet, so none can be found.
fn check_lease(put: &Put) -> Result<(), ApplyError> {
    if put.lease == 0 {
        Ok(())
    } else {
        Err(ApplyError::LeaseNotFound)
    }
}

fn check_present(kv: &KvIndex, put: &Put) -> Result<(), ApplyError> {
    let needs_key = put.ignore_value || put.ignore_lease;
    if needs_key && kv.newest(&put.key).is_none() {
        return Err(ApplyError::KeyNotFound);
    }
    Ok(())
}
