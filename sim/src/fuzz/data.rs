//! Calls that touch keys.

use super::cast::{KEYS, RANGES};
use super::menu::Menu;
use crate::rng::Rng;
use gatehouse_judge::history::{Compare, Op, Operand};

/// Kinds of calls that touch keys.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Put,
    Get,
    GetLocal,
    GetOld,
    Delete,
    Txn,
}

/// With weights.
const KINDS: [(u64, Kind); 6] = [
    (6, Kind::Put),
    (5, Kind::Get),
    (3, Kind::GetLocal),
    (1, Kind::GetOld),
    (1, Kind::Delete),
    (3, Kind::Txn),
];

/// Deepest nesting of transactions, the outer one included.
const DEPTH_MAX: u64 = 3;

/// The calls of one seed.
pub(super) struct DataCalls {
    kinds: Menu<Kind>,
    values: u64,
}

impl DataCalls {
    pub(super) fn new(rng: &mut Rng) -> DataCalls {
        DataCalls {
            kinds: Menu::some_of(&KINDS, rng),
            values: 0,
        }
    }

    /// A call.
    pub(super) fn draw(&mut self, rng: &mut Rng) -> Op {
        match self.kinds.draw(rng) {
            Kind::Put => self.put(rng),
            Kind::Get => get(rng, false, 0),
            Kind::GetLocal => get(rng, true, 0),
            // Before anything, in the middle, or in the future.
            Kind::GetOld => {
                let revision = i64::try_from(rng.between(1, 25)).expect("small");
                get(rng, false, revision)
            }
            Kind::Delete => delete(rng),
            Kind::Txn => self.txn(rng, DEPTH_MAX),
        }
    }

    /// A put of a value that no other put of the plan writes.
    pub(super) fn put(&mut self, rng: &mut Rng) -> Op {
        self.values += 1;
        Op::Put {
            key: key(rng).into(),
            value: format!("v{}", self.values).into(),
            prev_kv: rng.chance(0.3),
        }
    }

    fn txn(&mut self, rng: &mut Rng, depth: u64) -> Op {
        let compare = (0..rng.between(0, 2)).map(|_| compare(rng)).collect();
        Op::Txn {
            compare,
            success: self.branch(rng, depth),
            failure: self.branch(rng, depth),
        }
    }

    fn branch(&mut self, rng: &mut Rng, depth: u64) -> Vec<Op> {
        let mut ops = Vec::new();
        // A key may be written once only in one branch, so there is one write at most.
        let mut may_write = true;
        for _ in 0..rng.between(0, 2) {
            let write = may_write && rng.chance(0.5);
            may_write &= !write;
            ops.push(match (write, rng.between(1, 6)) {
                (true, 1) => delete(rng),
                (true, 2) if depth > 1 => self.txn(rng, depth - 1),
                (true, _) => self.put(rng),
                (false, _) => get(rng, false, 0),
            });
        }
        ops
    }
}

fn key(rng: &mut Rng) -> &'static str {
    rng.pick(&KEYS).expect("not empty")
}

/// A single key, or a range.
fn target(rng: &mut Rng) -> (&'static str, &'static str) {
    if rng.chance(0.5) {
        (key(rng), "")
    } else {
        *rng.pick(&RANGES).expect("not empty")
    }
}

fn get(rng: &mut Rng, serializable: bool, revision: i64) -> Op {
    let (key, range_end) = target(rng);
    let limited = rng.chance(0.15);
    Op::Get {
        key: key.into(),
        range_end: range_end.into(),
        serializable,
        limit: if limited { 2 } else { 0 },
        revision,
        count_only: rng.chance(0.1),
    }
}

fn delete(rng: &mut Rng) -> Op {
    let (key, range_end) = target(rng);
    Op::Delete {
        key: key.into(),
        range_end: range_end.into(),
        prev_kv: rng.chance(0.3),
    }
}

fn compare(rng: &mut Rng) -> Compare {
    let number = i64::try_from(rng.between(0, 4)).expect("small");
    let equals = match rng.between(1, 3) {
        1 => Operand::Value("first".into()),
        2 => Operand::Version(number),
        _ => Operand::ModRevision(number),
    };
    Compare {
        key: key(rng).into(),
        equals,
    }
}
