//! Range reads, as etcd's `server/etcdserver/txn/range.go` answers them: select, filter, sort, limit, then fetch values.
//! The count is that of the whole range, whatever is filtered or cut.

use super::super::command::{Range, SortOrder, SortTarget};
use super::super::outcome::{ApplyError, Found, KeyValue};
use super::super::{ReadError, ValueError, Values};
use super::index::{KeyMeta, KvIndex, ReadAt};
use bytes::Bytes;
use std::cmp::Ordering;

/// A range read of a complete revision.
///
/// # Errors
/// [`ApplyError::FutureRevision`] and [`ApplyError::Compacted`] for a revision that does not exist yet or is gone;
/// [`ReadError::Value`].
pub(in crate::state) fn read_range(
    kv: &KvIndex,
    range: &Range,
    values: &dyn Values,
) -> Result<Found, ReadError> {
    match read_at(range) {
        ReadAt::Revision(revision) if revision > kv.revision => {
            Err(ApplyError::FutureRevision.into())
        }
        ReadAt::Revision(revision) if revision < kv.compact_revision => {
            Err(ApplyError::Compacted.into())
        }
        // The current keys are the newest revision's, and cheaper to walk.
        ReadAt::Revision(revision) if revision == kv.revision => {
            Ok(select(kv, range, ReadAt::Newest, values)?)
        }
        read @ (ReadAt::Revision(_) | ReadAt::Newest) => Ok(select(kv, range, read, values)?),
    }
}

/// Whether the revision that a read in a transaction asks for exists and is still there. There a negative one is a
/// revision as well, gone since the first compaction, while a read by itself takes it for the newest (etcd's
/// `server/etcdserver/txn/txn.go`, `checkRange`).
pub(super) fn check_revision(kv: &KvIndex, range: &Range) -> Result<(), ApplyError> {
    match range.revision {
        0 => Ok(()),
        revision if revision > kv.revision => Err(ApplyError::FutureRevision),
        revision if revision < kv.compact_revision => Err(ApplyError::Compacted),
        _ => Ok(()),
    }
}

/// Where `range` reads; zero and less mean the newest.
pub(super) fn read_at(range: &Range) -> ReadAt {
    if range.revision > 0 {
        ReadAt::Revision(range.revision)
    } else {
        ReadAt::Newest
    }
}

/// The answer to `range` at `read`, whose revision has been checked.
pub(super) fn select(
    kv: &KvIndex,
    range: &Range,
    read: ReadAt,
    values: &dyn Values,
) -> Result<Found, ValueError> {
    let limit = usize::try_from(range.limit).ok().filter(|limit| *limit > 0);
    // In key order and unfiltered, one key beyond the limit is enough to know that there are more.
    let in_key_order = range.sort.is_none() && !is_filtered(range);
    let kept_max = limit
        .filter(|_| in_key_order)
        .map_or(usize::MAX, |limit| limit.saturating_add(1));
    let mut count = 0;
    let mut kept: Vec<Selected> = Vec::new();
    kv.visit(&range.range, read, |key, meta| {
        count += 1;
        if !range.count_only && kept.len() < kept_max && passes(range, meta) {
            kept.push(Selected {
                key: key.clone(),
                meta,
                value: None,
            });
        }
    });
    if let Some((target, order)) = range.sort {
        if target == SortTarget::Value {
            for selected in &mut kept {
                selected.value = Some(values.value(selected.meta.at)?);
            }
        }
        kept.sort_by(|a, b| directed(order, compare(target, a, b)));
    }
    let more = limit.is_some_and(|limit| kept.len() > limit);
    kept.truncate(limit.unwrap_or(usize::MAX));
    let answer = |Selected { key, meta, value }| match value {
        _ if range.keys_only => Ok(key_value(key, meta, Bytes::new())),
        Some(value) => Ok(key_value(key, meta, value)),
        None => Ok(key_value(key, meta, values.value(meta.at)?)),
    };
    let kvs = kept
        .into_iter()
        .map(answer)
        .collect::<Result<_, ValueError>>()?;
    Ok(Found { kvs, more, count })
}

/// A version as clients see it.
pub(super) fn key_value(key: Bytes, meta: KeyMeta, value: Bytes) -> KeyValue {
    let KeyMeta {
        at,
        create_revision,
        version,
        lease,
    } = meta;
    KeyValue {
        key,
        value,
        create_revision,
        mod_revision: at.main,
        version,
        lease,
    }
}

/// A key of the range, and its value once something needed it.
struct Selected {
    key: Bytes,
    meta: KeyMeta,
    value: Option<Bytes>,
}

fn is_filtered(range: &Range) -> bool {
    range.mod_revision != (0, 0) || range.create_revision != (0, 0)
}

fn passes(range: &Range, meta: KeyMeta) -> bool {
    let within = |(lowest, highest): (i64, i64), revision: i64| {
        (lowest == 0 || revision >= lowest) && (highest == 0 || revision <= highest)
    };
    within(range.mod_revision, meta.at.main) && within(range.create_revision, meta.create_revision)
}

fn compare(target: SortTarget, a: &Selected, b: &Selected) -> Ordering {
    match target {
        SortTarget::Key => a.key.cmp(&b.key),
        SortTarget::Version => a.meta.version.cmp(&b.meta.version),
        SortTarget::Create => a.meta.create_revision.cmp(&b.meta.create_revision),
        SortTarget::Mod => a.meta.at.main.cmp(&b.meta.at.main),
        SortTarget::Value => a.value.cmp(&b.value),
    }
}

fn directed(order: SortOrder, ordering: Ordering) -> Ordering {
    match order {
        SortOrder::Ascend => ordering,
        SortOrder::Descend => ordering.reverse(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::*;
    use std::collections::BTreeMap;

    /// A store in which nothing can be read.
    struct Broken;

    impl Values for Broken {
        fn value(&self, at: KvRevision) -> Result<Bytes, ValueError> {
            Err(ValueError {
                at,
                cause: "broken".to_owned(),
            })
        }
    }

    /// `a` was put at 2 and 4; revisions below 3 have been compacted away, which kept the one that was alive.
    fn compacted() -> State {
        let record = |version| KvRecord {
            key: "a".into(),
            create_revision: 2,
            version,
            ..KvRecord::default()
        };
        let at = |main| KvRevision { main, sub: 0 };
        State::restore(Image {
            meta: Meta {
                kv_revision: 4,
                compact_revision: 3,
                ..Meta::default()
            },
            history: BTreeMap::from([(at(2), record(1)), (at(4), record(2))]),
            ..Image::default()
        })
    }

    fn keys_at(state: &State, revision: i64) -> Result<Found, ReadError> {
        let range = RawRange {
            key: "a".into(),
            range_end: Bytes::new(),
        };
        let range = Range {
            range,
            revision,
            keys_only: true,
            ..Range::default()
        };
        state.range(&Caller::ANONYMOUS, &range, &Broken)
    }

    #[test]
    fn compacted_revisions_are_refused() {
        let state = compacted();
        assert_eq!(
            keys_at(&state, 2),
            Err(ReadError::Refused(ApplyError::Compacted))
        );
        assert_eq!(keys_at(&state, 3).unwrap().kvs[0].mod_revision, 2);
        assert_eq!(keys_at(&state, 4).unwrap().kvs[0].mod_revision, 4);
        assert_eq!(
            keys_at(&state, 5),
            Err(ReadError::Refused(ApplyError::FutureRevision))
        );
        assert_eq!(
            state.kv_hash(2, &Broken),
            Err(ReadError::Refused(ApplyError::Compacted))
        );
        assert_eq!(
            state.kv_hash(5, &Broken),
            Err(ReadError::Refused(ApplyError::FutureRevision))
        );
    }

    #[test]
    fn a_store_that_fails_is_told_apart_from_a_refusal() {
        let mut state = compacted();
        let broken = |main| ValueError {
            at: KvRevision { main, sub: 0 },
            cause: "broken".to_owned(),
        };
        let range = Range {
            range: RawRange {
                key: "a".into(),
                range_end: Bytes::new(),
            },
            ..Range::default()
        };
        let read = state.range(&Caller::ANONYMOUS, &range, &Broken);
        assert_eq!(read, Err(ReadError::Value(broken(4))));
        assert_eq!(state.kv_hash(3, &Broken), Err(ReadError::Value(broken(2))));
        let put = Put {
            key: "a".into(),
            prev_kv: true,
            ..Put::default()
        };
        let command = Command {
            request_id: 1,
            caller: Caller::ANONYMOUS,
            op: Op::Put(put),
        };
        assert_eq!(state.apply(1, 1, Some(command), &Broken), Err(broken(4)));
    }

    #[test]
    fn keys_alone_need_no_value() {
        let found = keys_at(&compacted(), 0).unwrap();
        assert_eq!((found.count, found.kvs.len()), (1, 1));
        assert!(found.kvs[0].value.is_empty());
    }
}
