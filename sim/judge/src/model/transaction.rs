//! Data calls that may write: all of their changes carry one revision, and later operations of the same call see the
//! earlier ones.

use super::keyspace::Keyspace;
use crate::history::{Compare, Op, Operand, Pair, Reply};
use crate::text::Text;

/// A data call at work.
pub(super) struct Work<'a> {
    keys: &'a mut Keyspace,
    /// Revision that its changes carry.
    revision: i64,
    changed: bool,
}

/// The branch that a transaction takes, and the same for every operation in it; nothing for what is no transaction.
#[derive(Default)]
struct Path {
    succeeded: bool,
    inner: Vec<Path>,
}

impl Keyspace {
    /// Begins a data call.
    pub(super) fn begin(&mut self) -> Work<'_> {
        let revision = self.revision() + 1;
        Work {
            keys: self,
            revision,
            changed: false,
        }
    }

    /// Whether every comparison holds.
    pub(super) fn holds(&self, compares: &[Compare]) -> bool {
        compares.iter().all(|compare| {
            let pair = self.pair(&compare.key);
            match &compare.equals {
                // An absent key has no value, so it equals none, not even the empty one.
                Operand::Value(value) => pair.is_some_and(|pair| pair.value == *value),
                Operand::Version(version) => pair.map_or(0, |pair| pair.version) == *version,
                Operand::ModRevision(revision) => {
                    pair.map_or(0, |pair| pair.mod_revision) == *revision
                }
            }
        })
    }

    fn path(&self, op: &Op) -> Path {
        let Op::Txn {
            compare,
            success,
            failure,
        } = op
        else {
            return Path::default();
        };
        let succeeded = self.holds(compare);
        let branch = if succeeded { success } else { failure };
        let inner = branch.iter().map(|op| self.path(op)).collect();
        Path { succeeded, inner }
    }
}

impl Work<'_> {
    /// Whether anything was written.
    pub(super) fn changed(&self) -> bool {
        self.changed
    }

    /// Carries out one operation and gives its answer, without a header. Comparisons of inner transactions look at the
    /// keys as they were before the first change, too (etcd's `server/etcdserver/txn/txn.go`, `compareToPath`).
    pub(super) fn run(&mut self, op: &Op) -> Reply {
        let path = self.keys.path(op);
        self.follow(op, &path)
    }

    fn follow(&mut self, op: &Op, path: &Path) -> Reply {
        match op {
            Op::Get { .. } => self.keys.get(op),
            Op::Put {
                key,
                value,
                prev_kv,
            } => self.put(key, value, *prev_kv),
            Op::Delete {
                key,
                range_end,
                prev_kv,
            } => self.delete(key, range_end, *prev_kv),
            Op::Txn {
                success, failure, ..
            } => {
                let succeeded = path.succeeded;
                let branch = if succeeded { success } else { failure };
                let steps = branch.iter().zip(&path.inner);
                let responses = steps.map(|(op, path)| self.follow(op, path)).collect();
                Reply {
                    succeeded: Some(succeeded),
                    responses,
                    ..Reply::default()
                }
            }
            _ => Reply::default(),
        }
    }

    fn put(&mut self, key: &Text, value: &Text, prev_kv: bool) -> Reply {
        let previous = self.keys.pair(key).cloned();
        let pair = Pair {
            key: key.clone(),
            value: value.clone(),
            create_revision: previous
                .as_ref()
                .map_or(self.revision, |previous| previous.create_revision),
            mod_revision: self.revision,
            version: previous.as_ref().map_or(0, |previous| previous.version) + 1,
        };
        self.keys.write(key, self.revision, Some(pair));
        self.changed = true;
        let kvs = previous.into_iter().filter(|_| prev_kv).collect();
        Reply {
            kvs,
            ..Reply::default()
        }
    }

    fn delete(&mut self, key: &str, range_end: &str, prev_kv: bool) -> Reply {
        let found = self.keys.pairs(key, range_end, i64::MAX);
        let gone: Vec<Pair> = found.into_iter().cloned().collect();
        for pair in &gone {
            self.keys.write(&pair.key, self.revision, None);
            self.changed = true;
        }
        let count = i64::try_from(gone.len()).unwrap_or(i64::MAX);
        let kvs = if prev_kv { gone } else { Vec::new() };
        Reply {
            kvs,
            count,
            ..Reply::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key: &str, value: &str) -> Op {
        Op::Put {
            key: key.into(),
            value: value.into(),
            prev_kv: true,
        }
    }

    fn get(key: &str, revision: i64) -> Op {
        Op::Get {
            key: key.into(),
            range_end: Text::default(),
            serializable: false,
            limit: 0,
            revision,
            count_only: false,
        }
    }

    fn delete(key: &str, range_end: &str) -> Op {
        Op::Delete {
            key: key.into(),
            range_end: range_end.into(),
            prev_kv: true,
        }
    }

    fn pair(value: &str, create_revision: i64, mod_revision: i64, version: i64) -> Pair {
        Pair {
            key: "a".into(),
            value: value.into(),
            create_revision,
            mod_revision,
            version,
        }
    }

    #[test]
    fn versions_and_revisions_count_as_etcd_counts_them() {
        let mut keys = Keyspace::default();
        assert_eq!(keys.perform(&put("a", "1")).kvs, []);
        assert_eq!(keys.perform(&put("a", "2")).kvs, [pair("1", 2, 2, 1)]);
        assert_eq!(keys.look_up(&get("a", 0)).kvs, [pair("2", 2, 3, 2)]);
        assert_eq!(keys.look_up(&get("a", 2)).kvs, [pair("1", 2, 2, 1)]);
        let deleted = keys.perform(&delete("a", "b"));
        assert_eq!((deleted.count, deleted.revision), (1, 4));
        assert_eq!(
            keys.perform(&delete("a", "b")).revision,
            4,
            "nothing deleted"
        );
        keys.perform(&put("a", "3"));
        assert_eq!(keys.look_up(&get("a", 0)).kvs, [pair("3", 5, 5, 1)]);
        assert_eq!(keys.look_up(&get("a", 4)).kvs, []);
    }

    #[test]
    fn a_transaction_has_one_revision_and_sees_its_own_writes() {
        let mut keys = Keyspace::default();
        keys.perform(&put("a", "1"));
        let compare = Compare {
            key: "a".into(),
            equals: Operand::Value("1".into()),
        };
        let txn = Op::Txn {
            compare: vec![compare],
            success: vec![put("a", "2"), get("a", 0), put("b", "2")],
            failure: vec![delete("a", "")],
        };
        let reply = keys.perform(&txn);
        assert_eq!((reply.succeeded, reply.revision), (Some(true), 3));
        assert_eq!(reply.responses[1].kvs, [pair("2", 2, 3, 2)]);
        let reply = keys.perform(&txn);
        assert_eq!((reply.succeeded, reply.revision), (Some(false), 4));
        assert_eq!(reply.responses[0].kvs, [pair("2", 2, 3, 2)]);
    }

    #[test]
    fn comparisons_of_inner_transactions_see_nothing_of_the_outer_ones() {
        let mut keys = Keyspace::default();
        keys.perform(&put("a", "1"));
        let inner = |value: &str| Op::Txn {
            compare: vec![Compare {
                key: "a".into(),
                equals: Operand::Value(value.into()),
            }],
            success: vec![get("a", 0)],
            failure: vec![],
        };
        let txn = Op::Txn {
            compare: vec![],
            success: vec![put("a", "2"), inner("1"), inner("2")],
            failure: vec![],
        };
        let reply = keys.perform(&txn);
        assert_eq!(reply.responses[1].succeeded, Some(true));
        assert_eq!(reply.responses[1].responses[0].kvs, [pair("2", 2, 3, 2)]);
        assert_eq!(reply.responses[2].succeeded, Some(false));
    }

    #[test]
    fn an_absent_key_has_version_zero_and_no_value() {
        let keys = Keyspace::default();
        let holds = |equals| {
            keys.holds(&[Compare {
                key: "a".into(),
                equals,
            }])
        };
        assert!(holds(Operand::Version(0)));
        assert!(holds(Operand::ModRevision(0)));
        assert!(!holds(Operand::Version(1)));
        assert!(!holds(Operand::Value(Text::default())));
    }
}
