//! A transaction's comparisons, as etcd's `server/etcdserver/txn/txn.go` evaluates them.

use super::super::command::{Compare, Operand, Relation, Txn};
use super::super::{ValueError, Values};
use super::index::{KeyMeta, KvIndex, ReadAt};
use std::cmp::Ordering;

/// Whether every comparison of `txn` holds for the keys as they are.
pub(super) fn all_hold(kv: &KvIndex, txn: &Txn, values: &dyn Values) -> Result<bool, ValueError> {
    for compare in &txn.compares {
        if !holds(kv, compare, values)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn holds(kv: &KvIndex, compare: &Compare, values: &dyn Values) -> Result<bool, ValueError> {
    let mut metas = Vec::new();
    kv.visit(&compare.range, ReadAt::Newest, |_, meta| metas.push(meta));
    if metas.is_empty() {
        return Ok(holds_for_absent(compare));
    }
    for meta in metas {
        if !related(compare.relation, ordering(&compare.operand, meta, values)?) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What is not there has all numbers zero. It has no value either, but an empty value would be one, so every
/// comparison of values fails.
fn holds_for_absent(compare: &Compare) -> bool {
    match compare.operand {
        Operand::Version(operand)
        | Operand::Create(operand)
        | Operand::Mod(operand)
        | Operand::Lease(operand) => related(compare.relation, 0.cmp(&operand)),
        Operand::Value(_) => false,
    }
}

fn ordering(operand: &Operand, meta: KeyMeta, values: &dyn Values) -> Result<Ordering, ValueError> {
    Ok(match operand {
        Operand::Version(operand) => meta.version.cmp(operand),
        Operand::Create(operand) => meta.create_revision.cmp(operand),
        Operand::Mod(operand) => meta.at.main.cmp(operand),
        Operand::Lease(operand) => meta.lease.cmp(operand),
        Operand::Value(operand) => values.value(meta.at)?.cmp(operand),
    })
}

fn related(relation: Relation, ordering: Ordering) -> bool {
    match relation {
        Relation::Equal => ordering.is_eq(),
        Relation::NotEqual => ordering.is_ne(),
        Relation::Greater => ordering.is_gt(),
        Relation::Less => ordering.is_lt(),
    }
}
