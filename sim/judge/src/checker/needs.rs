//! The rights that a data call needs, one by one: which of them its caller lacks says what a wrong decision gave away,
//! and whether the arithmetic of ranges went wrong (P14).

use crate::history::{GrantKind, Op};
use crate::model::{Accounts, Span};

/// One right that a call needs.
#[derive(Clone, Debug)]
pub(super) struct Need {
    pub(super) span: Span,
    pub(super) to_write: bool,
    /// Whether a transaction within a transaction needs it.
    pub(super) is_nested: bool,
}

/// Every right that the call needs; none for a call that touches no keys.
pub(super) fn of(op: &Op) -> Vec<Need> {
    let mut needs = Vec::new();
    collect(op, 0, &mut needs);
    needs
}

fn collect(op: &Op, depth: u32, needs: &mut Vec<Need>) {
    let mut add = |key: &str, range_end: &str, to_write| {
        needs.push(Need {
            span: Span::new(key, range_end),
            to_write,
            is_nested: depth > 1,
        });
    };
    match op {
        Op::Get { key, range_end, .. } => add(key, range_end, false),
        Op::Put { key, prev_kv, .. } => {
            add(key, "", true);
            if *prev_kv {
                add(key, "", false);
            }
        }
        Op::Delete {
            key,
            range_end,
            prev_kv,
        } => {
            add(key, range_end, true);
            if *prev_kv {
                add(key, range_end, false);
            }
        }
        Op::Txn {
            compare,
            success,
            failure,
        } => {
            for compare in compare {
                needs.push(Need {
                    span: Span::new(&compare.key, ""),
                    to_write: false,
                    is_nested: depth > 0,
                });
            }
            for op in success.iter().chain(failure) {
                collect(op, depth + 1, needs);
            }
        }
        _ => {}
    }
}

/// The needs of the call that `user` has no right to.
pub(super) fn lacking(accounts: &Accounts, user: &str, op: &Op) -> Vec<Need> {
    let lacks = |need: &Need| !accounts.allows(user, need.to_write, &need.span);
    of(op).into_iter().filter(lacks).collect()
}

/// Whether everything that `user` lacks lies at an edge of what the user holds: it overlaps or touches a granted range,
/// so that wrong arithmetic of ranges would allow it. What a nested transaction lacks says more about nesting.
pub(super) fn lacks_at_an_edge(accounts: &Accounts, user: &str, op: &Op) -> bool {
    let lacking = lacking(accounts, user, op);
    let at_an_edge = |need: &Need| {
        let held = held(accounts, user, need.to_write);
        !need.is_nested && held.iter().any(|held| held.touches(&need.span))
    };
    !lacking.is_empty() && lacking.iter().all(at_an_edge)
}

/// Whether something that the call needs is covered only by arithmetic of ranges: by several grants together, by one
/// without an end, or by one that touches a neighbour and may be merged with it.
pub(super) fn is_covered_at_an_edge(accounts: &Accounts, user: &str, op: &Op) -> bool {
    of(op).iter().any(|need| {
        let held = held(accounts, user, need.to_write);
        let is_plain = |span: &Span| {
            let neighbours = held.iter().filter(|other| other.touches(span)).count();
            span.covers(&need.span) && !span.is_open() && neighbours == 1 // Itself.
        };
        !held.iter().any(is_plain)
    })
}

/// The ranges that `user` may read, or write, grant by grant.
fn held(accounts: &Accounts, user: &str, to_write: bool) -> Vec<Span> {
    let unwanted = if to_write {
        GrantKind::Read
    } else {
        GrantKind::Write
    };
    let grants = accounts.grants_of(user).into_iter();
    grants
        .filter(|grant| grant.kind != unwanted)
        .map(|grant| Span::new(&grant.key, &grant.range_end))
        .collect()
}
