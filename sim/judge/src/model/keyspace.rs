//! Keys and values with every version of them.

use super::fingerprint::Blend;
use super::refusal::Refusal;
use super::span::Span;
use crate::history::{Op, Pair, Reply};
use crate::text::Text;
use imbl::{OrdMap, Vector};
use std::cmp::Ordering;
use std::sync::Arc;

/// One version of a key; without a pair it says that the key was deleted.
#[derive(Clone, Debug)]
struct Version {
    revision: i64,
    pair: Option<Arc<Pair>>,
}

/// Keys and values. A clone shares what it holds.
#[derive(Clone, Debug)]
pub struct Keyspace {
    revision: i64,
    keys: OrdMap<Text, Vector<Version>>,
    /// The fingerprints of all versions of all keys, blended.
    blend: u128,
}

impl Default for Keyspace {
    fn default() -> Self {
        Keyspace {
            revision: 1,
            keys: OrdMap::new(),
            blend: 0,
        }
    }
}

impl Keyspace {
    /// Newest revision.
    pub fn revision(&self) -> i64 {
        self.revision
    }

    /// A number that two states share if they hold the same versions, and practically never otherwise.
    pub fn fingerprint(&self) -> u128 {
        let mut blend = Blend::of("keys");
        blend.number(self.revision.cast_unsigned());
        self.blend ^ blend.finish()
    }

    /// Whether the call can be done.
    ///
    /// # Errors
    /// [`Refusal::FutureRevision`] for a read of what is not yet.
    pub fn check(&self, op: &Op) -> Result<(), Refusal> {
        match op {
            Op::Get { revision, .. } if *revision > self.revision => Err(Refusal::FutureRevision),
            Op::Txn {
                compare,
                success,
                failure,
            } => {
                let branch = if self.holds(compare) {
                    success
                } else {
                    failure
                };
                branch.iter().try_for_each(|op| self.check(op))
            }
            _ => Ok(()),
        }
    }

    /// Carries out a data call, as one revision if it changes anything.
    pub fn perform(&mut self, op: &Op) -> Reply {
        let mut work = self.begin();
        let mut reply = work.run(op);
        if work.changed() {
            self.revision += 1;
        }
        reply.revision = self.revision;
        reply
    }

    /// Answers a call that only reads.
    pub fn look_up(&self, op: &Op) -> Reply {
        let mut reply = match op {
            Op::Get { .. } => self.get(op),
            Op::Txn {
                compare,
                success,
                failure,
            } => {
                let succeeded = self.holds(compare);
                let branch = if succeeded { success } else { failure };
                let responses = branch.iter().map(|op| self.get(op)).collect();
                Reply {
                    succeeded: Some(succeeded),
                    responses,
                    ..Reply::default()
                }
            }
            _ => Reply::default(),
        };
        reply.revision = self.revision;
        reply
    }

    /// The answer to a range, without a header.
    pub(super) fn get(&self, op: &Op) -> Reply {
        let Op::Get {
            key,
            range_end,
            limit,
            revision,
            count_only,
            ..
        } = op
        else {
            return Reply::default();
        };
        let at = if *revision > 0 { *revision } else { i64::MAX };
        let found = self.pairs(key, range_end, at);
        let count = i64::try_from(found.len()).unwrap_or(i64::MAX);
        let most = match usize::try_from(*limit) {
            _ if *count_only => 0,
            Ok(limit) if limit > 0 => limit,
            _ => usize::MAX,
        };
        let kvs = found.into_iter().take(most).cloned().collect();
        Reply {
            kvs,
            count,
            ..Reply::default()
        }
    }

    /// The newest version of a key, if it exists.
    pub fn pair(&self, key: &str) -> Option<&Pair> {
        self.keys.get(key)?.last()?.pair.as_deref()
    }

    /// The pairs in a range as they were at a revision, in key order.
    pub(super) fn pairs(&self, key: &str, range_end: &str, revision: i64) -> Vec<&Pair> {
        let span = Span::new(key, range_end);
        let from = self.keys.range::<_, Text>(Text::from(key)..);
        from.take_while(|(key, _)| !span.ends_before(key))
            .filter_map(|(_, versions)| {
                let after = versions.binary_search_by(|version| {
                    // Never equal, so what comes back is where the newer ones begin.
                    version.revision.cmp(&revision).then(Ordering::Less)
                });
                let (Ok(after) | Err(after)) = after;
                versions.get(after.checked_sub(1)?)?.pair.as_deref()
            })
            .collect()
    }

    /// Adds a version of a key.
    pub(super) fn write(&mut self, key: &Text, revision: i64, pair: Option<Pair>) {
        let mut blend = Blend::of("version");
        blend.text(key);
        blend.number(revision.cast_unsigned());
        if let Some(pair) = &pair {
            blend.text(&pair.value);
            blend.number(pair.create_revision.cast_unsigned());
            blend.number(pair.version.cast_unsigned());
        }
        self.blend ^= blend.finish();
        let pair = pair.map(Arc::new);
        let versions = self.keys.entry(key.clone()).or_default();
        versions.push_back(Version { revision, pair });
    }
}
