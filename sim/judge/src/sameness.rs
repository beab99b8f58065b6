//! Whether two answers say the same.

use crate::history::{Op, Reply};

/// Whether two answers to `op` say the same. The header's revision is part of every data call's answer; an auth call's
/// history need not hold it.
pub(crate) fn is_same(op: &Op, told: &Reply, right: &Reply) -> bool {
    match op {
        Op::Put { .. } | Op::Get { .. } | Op::Delete { .. } | Op::Txn { .. } => {
            told.revision == right.revision && has_same_content(told, right)
        }
        _ => {
            let is_same_revision = told.revision == 0 || told.revision == right.revision;
            is_same_revision && has_same_content(told, right)
        }
    }
}

fn has_same_content(told: &Reply, right: &Reply) -> bool {
    // The rules fix which permissions a role lists, but for equal keys not their order.
    let sorted = |reply: &Reply| {
        let mut permissions = reply.permissions.clone();
        permissions.sort();
        permissions
    };
    told.kvs == right.kvs
        && told.count == right.count
        && told.succeeded == right.succeeded
        && told.names == right.names
        && told.auth == right.auth
        && sorted(told) == sorted(right)
        && told.responses.len() == right.responses.len()
        && told
            .responses
            .iter()
            .zip(&right.responses)
            .all(|(told, right)| has_same_content(told, right))
}
