//! Refuses transactions that nest too deep, hold too much, or hold what is no data call; and reads at negative revisions,
//! which mean the newest or, in a transaction, one that is gone.

use super::{Checked, wrong};
use gatehouse_judge::history::Op;

/// Most operations in one branch of a transaction, and most comparisons: the server's own default.
const TXN_OPS_MAX: usize = 128;
/// Deepest nesting of transactions, the outermost counted: far beyond use, and far below what a message may nest.
const TXN_DEPTH_MAX: usize = 8;

/// Checks `op` if it is a transaction or a read. `depth` counts the transactions around it, itself included.
pub(super) fn check(field: &str, op: &Op, depth: usize) -> Checked {
    if let Op::Get { revision, .. } = op
        && *revision < 0
    {
        return wrong(field, "a revision is not negative");
    }
    let Op::Txn {
        compare,
        success,
        failure,
    } = op
    else {
        return Ok(());
    };
    if depth > TXN_DEPTH_MAX {
        let problem = format!("transactions nest at most {TXN_DEPTH_MAX} deep");
        return wrong(field, problem);
    }
    if compare.len() > TXN_OPS_MAX {
        let problem = format!("at most {TXN_OPS_MAX} comparisons");
        return wrong(format!("{field}, compare"), problem);
    }
    for (name, branch) in [("success", success), ("failure", failure)] {
        let branch_field = format!("{field}, {name}");
        if branch.len() > TXN_OPS_MAX {
            let problem = format!("at most {TXN_OPS_MAX} operations in a branch");
            return wrong(branch_field, problem);
        }
        for op in branch {
            if !op.is_data() {
                return wrong(
                    branch_field,
                    "a transaction holds put, get, delete and txn only",
                );
            }
            check(field, op, depth + 1)?;
        }
    }
    Ok(())
}
