//! Draws reads, writes and transactions over few keys, so that they meet, with ends and revisions of every kind, so that
//! edges are met.

use super::request::Request;
use super::rng::Rng;
use bytes::Bytes;
use gatehouse::pb::etcdserverpb as pb;
use pb::request_op::Request as Op;

const KEYS: [&[u8]; 12] = [
    b"a", b"a", b"a\0", b"ab", b"b", b"b", b"b\xff", b"c", b"d", b"\0", b"\xff", b"",
];
/// Where ranges end: nowhere, behind and before keys, and before every key.
const ENDS: [&[u8]; 11] = [
    b"", b"", b"\0", b"a", b"a\0", b"b", b"b", b"c", b"d", b"d", b"\xff",
];
const VALUES: [&str; 5] = ["", "1", "2", "3", "longer"];

/// What revisions there are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Past {
    pub(super) revision: i64,
    pub(super) compacted: i64,
}

impl Past {
    /// Some revision, mostly one that can be read.
    fn draw(self, rng: &mut Rng) -> i64 {
        let span = usize::try_from(self.revision - self.compacted).unwrap_or(0) + 1;
        let inside = self.compacted + i64::try_from(rng.below(span.max(1))).unwrap();
        match rng.below(12) {
            0 => self.revision + 1,
            1 => self.compacted - 1,
            2 => self.compacted,
            3 => self.revision,
            4 => rng.pick(&[-1, -7, 1, i64::MAX, i64::MIN]),
            _ => inside,
        }
    }
}

/// Draws a data call.
pub(super) fn draw(rng: &mut Rng, past: Past) -> Request {
    match rng.below(100) {
        0..38 => range_request(rng, past).into(),
        38..40 => odd_sort(rng, past).into(),
        40..58 => put(rng).into(),
        58..70 => delete(rng).into(),
        70..97 => transaction(rng, past, 2).into(),
        _ => pb::CompactionRequest {
            revision: past.draw(rng),
            physical: rng.chance(50),
        }
        .into(),
    }
}

/// A key, and where a range from it ends: mostly behind it.
pub(super) fn range(rng: &mut Rng) -> (Bytes, Bytes) {
    let key = rng.pick(&KEYS);
    // The key that is none is met often enough.
    let key = if key.is_empty() { rng.pick(&KEYS) } else { key };
    let mut range_end = rng.pick(&ENDS);
    if range_end <= key && range_end.len() + key.len() > 1 && rng.chance(75) {
        range_end = rng.pick(&ENDS);
    }
    (Bytes::from_static(key), Bytes::from_static(range_end))
}

/// A put.
pub(super) fn put(rng: &mut Rng) -> pb::PutRequest {
    let (key, _) = range(rng);
    let ignore_value = rng.chance(8);
    let ignore_lease = rng.chance(8);
    let value = if ignore_value && rng.chance(80) {
        Bytes::new()
    } else if rng.chance(1) && rng.chance(15) {
        Bytes::from(vec![b'x'; 1_700_000]) // Beyond --max-request-bytes, and within what a message may take.
    } else {
        Bytes::from(rng.pick(&VALUES))
    };
    pb::PutRequest {
        key,
        value,
        lease: if rng.chance(4) { 7 } else { 0 },
        prev_kv: rng.chance(30),
        ignore_value,
        ignore_lease,
    }
}

fn delete(rng: &mut Rng) -> pb::DeleteRangeRequest {
    let (key, range_end) = range(rng);
    pb::DeleteRangeRequest {
        key,
        range_end,
        prev_kv: rng.chance(40),
    }
}

/// A read whose order has no name, or is left out where the limit then matters. (An unknown target is not drawn: before
/// 3.6.0 it stops etcd, issue 13554.)
fn odd_sort(rng: &mut Rng, past: Past) -> pb::RangeRequest {
    let read = range_request(rng, past);
    if rng.chance(30) {
        return pb::RangeRequest {
            sort_order: 9,
            ..read
        };
    }
    pb::RangeRequest {
        sort_order: 0,
        sort_target: rng.pick(&[1, 2, 3, 4]),
        limit: rng.pick(&[1, 2, 3]),
        ..read
    }
}

fn range_request(rng: &mut Rng, past: Past) -> pb::RangeRequest {
    let (key, range_end) = range(rng);
    let limit = rng.pick(&[0, 0, 0, 1, 2, 3, 100, -1]);
    let sort_target = rng.pick(&[0, 0, 1, 2, 3, 4]);
    let sort_order = match rng.pick(&[0, 0, 1, 2, 2]) {
        // See `odd_sort`.
        0 if sort_target != 0 && limit > 0 => 1,
        order => order,
    };
    let bound = |rng: &mut Rng| if rng.chance(8) { past.draw(rng) } else { 0 };
    pb::RangeRequest {
        key,
        range_end,
        limit,
        revision: if rng.chance(25) { past.draw(rng) } else { 0 },
        sort_order,
        sort_target,
        serializable: rng.chance(30),
        keys_only: rng.chance(15),
        count_only: rng.chance(15),
        min_mod_revision: bound(rng),
        max_mod_revision: bound(rng),
        min_create_revision: bound(rng),
        max_create_revision: bound(rng),
    }
}

fn compare(rng: &mut Rng, past: Past) -> pb::Compare {
    use pb::compare::TargetUnion;
    let (key, range_end) = range(rng);
    let range_end = if rng.chance(70) {
        Bytes::new()
    } else {
        range_end
    };
    let target = rng.pick(&[0, 1, 2, 3, 3, 4]);
    let union = match if rng.chance(4) { 9 } else { target } {
        0 => Some(TargetUnion::Version(rng.pick(&[0, 1, 2]))),
        1 => Some(TargetUnion::CreateRevision(past.draw(rng))),
        2 => Some(TargetUnion::ModRevision(past.draw(rng))),
        3 => Some(TargetUnion::Value(rng.pick(&VALUES).into())),
        4 => Some(TargetUnion::Lease(rng.pick(&[0, 7]))),
        // Nothing to compare with.
        _ => None,
    };
    pb::Compare {
        result: rng.pick(&[0, 0, 1, 2, 3]),
        target,
        key,
        range_end,
        target_union: union,
    }
}

fn transaction(rng: &mut Rng, past: Past, depth: usize) -> pb::TxnRequest {
    // A third only reads, and goes another way through the server.
    let reads_only = rng.chance(30);
    let branch = |rng: &mut Rng| {
        let length = rng.pick(&[0, 1, 1, 2, 3]);
        (0..length)
            .map(|_| op(rng, past, depth, reads_only))
            .collect()
    };
    let compares = rng.pick(&[0, 0, 1, 1, 2]);
    pb::TxnRequest {
        compare: (0..compares).map(|_| compare(rng, past)).collect(),
        success: branch(rng),
        failure: branch(rng),
    }
}

fn op(rng: &mut Rng, past: Past, depth: usize, reads_only: bool) -> pb::RequestOp {
    let request = match rng.below(40) {
        _ if reads_only => Some(Op::RequestRange(range_request(rng, past))),
        0 => None,
        1..11 => Some(Op::RequestRange(range_request(rng, past))),
        11..24 => Some(Op::RequestPut(put(rng))),
        24..31 => Some(Op::RequestDeleteRange(delete(rng))),
        _ if depth == 0 => Some(Op::RequestPut(put(rng))),
        _ => Some(Op::RequestTxn(transaction(rng, past, depth - 1))),
    };
    pb::RequestOp { request }
}
