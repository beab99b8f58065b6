//! A store for tests: folds what entries write, as the real one does, and serves values from it. What it holds after a
//! log is what a member would find on its disk.

use super::{Applied, Image, KvRevision, Meta, ValueError, Values, Write};
#[cfg(madsim)]
use super::{ApplyError, Caller, Command, Identity, Op, Response, State};
use bytes::Bytes;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub(super) struct FoldedStore {
    image: Image,
    values: BTreeMap<KvRevision, Bytes>,
}

impl FoldedStore {
    /// Stores what an entry did, and the state's small things after it.
    pub(super) fn commit(&mut self, applied: &Applied, meta: Meta) {
        assert_eq!(meta.applied_index, applied.index);
        for write in applied.writes.clone() {
            match write {
                Write::Kv(at, mut record) => {
                    let value = std::mem::take(&mut record.value);
                    assert!(
                        self.image.history.insert(at, record).is_none(),
                        "{at:?} written twice"
                    );
                    self.values.insert(at, value);
                }
                Write::User(name, user) => fold(&mut self.image.users, name, user),
                Write::Role(name, role) => fold(&mut self.image.roles, name, role),
                Write::KvGone(at) => {
                    self.image.history.remove(&at);
                }
                Write::Token(key, token) => fold(&mut self.image.tokens, key, token),
            }
        }
        self.image.meta = meta;
    }

    /// What is stored.
    pub(super) fn image(&self) -> Image {
        self.image.clone()
    }
}

impl Values for FoldedStore {
    fn value(&self, at: KvRevision) -> Result<Bytes, ValueError> {
        let value = self.values.get(&at).cloned();
        value.ok_or_else(|| ValueError {
            at,
            cause: "no such version".to_owned(),
        })
    }
}

/// Applies `op` as the cluster itself, which nobody refuses for what it may do.
#[cfg(madsim)]
pub(super) fn apply_as_cluster(state: &mut State, op: Op) -> Result<Response, ApplyError> {
    let index = state.meta().applied_index + 1;
    let caller = Caller {
        identity: Identity::Internal,
        auth_revision: 0,
    };
    let command = Command {
        request_id: index,
        caller,
        op,
    };
    let applied = state.apply(index, 1, Some(command), &FoldedStore::default());
    applied.unwrap().result
}

fn fold<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) {
    match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    };
}
