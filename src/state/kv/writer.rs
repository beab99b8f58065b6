//! The changes of one entry, all under one new main revision: numbers them, notes them in the index, and reads back what
//! the entry itself has written, since the store does not hold that yet.

use super::super::command::{DeleteRange, Put, Range};
use super::super::effects::Effects;
use super::super::outcome::{Deleted, Event, Found, KeyValue, Write};
use super::super::record::{KvRecord, KvRevision};
use super::super::{ValueError, Values};
use super::index::{KeyMeta, KvIndex, ReadAt};
use super::range_read::{key_value, read_at, select};
use bytes::Bytes;

/// One entry's hold on the index.
pub(super) struct Writer<'a> {
    kv: &'a mut KvIndex,
    effects: &'a mut Effects,
    values: Pending<'a>,
}

/// Values as they are in the middle of an entry.
struct Pending<'a> {
    stored: &'a dyn Values,
    /// The revision that the entry makes.
    main: i64,
    /// What it has written so far; a change's number is its place here.
    written: Vec<Bytes>,
}

impl Values for Pending<'_> {
    fn value(&self, at: KvRevision) -> Result<Bytes, ValueError> {
        if at.main != self.main {
            return self.stored.value(at);
        }
        let written = usize::try_from(at.sub)
            .ok()
            .and_then(|sub| self.written.get(sub));
        Ok(written
            .expect("the index knows no change of this entry but those made here")
            .clone())
    }
}

impl<'a> Writer<'a> {
    /// Starts the revision after the newest.
    pub(super) fn new(
        kv: &'a mut KvIndex,
        stored: &'a dyn Values,
        effects: &'a mut Effects,
    ) -> Writer<'a> {
        let main = kv.revision + 1;
        Writer {
            kv,
            effects,
            values: Pending {
                stored,
                main,
                written: Vec::new(),
            },
        }
    }

    /// Completes the revision, unless nothing was changed: then the revision stays what it was.
    pub(super) fn finish(self) {
        if !self.values.written.is_empty() {
            self.kv.revision = self.values.main;
        }
    }

    /// A read in the middle of the entry, which sees the entry's own changes unless it asks for an older revision.
    pub(super) fn range(&self, range: &Range) -> Result<Found, ValueError> {
        select(self.kv, range, read_at(range), &self.values)
    }

    /// Writes one key. With `ignore_value` or `ignore_lease` the key was there before the entry; should the entry itself
    /// have deleted it, what is kept is empty.
    pub(super) fn put(&mut self, put: Put) -> Result<Option<KeyValue>, ValueError> {
        let Put {
            key,
            value,
            lease,
            prev_kv,
            ignore_value,
            ignore_lease,
        } = put;
        let previous = self.kv.newest(&key);
        let previous_value = match previous {
            Some(meta) if prev_kv || ignore_value => self.values.value(meta.at)?,
            Some(_) | None => Bytes::new(),
        };
        let at = self.next();
        let record = KvRecord {
            key: key.clone(),
            value: if ignore_value {
                previous_value.clone()
            } else {
                value
            },
            create_revision: previous.map_or(at.main, |meta| meta.create_revision),
            version: previous.map_or(0, |meta| meta.version) + 1,
            lease: if ignore_lease {
                previous.map_or(0, |meta| meta.lease)
            } else {
                lease
            },
            tombstone: false,
        };
        let KvRecord {
            create_revision,
            version,
            lease,
            ..
        } = record;
        let meta = KeyMeta {
            at,
            create_revision,
            version,
            lease,
        };
        let event = Event::Put(key_value(key.clone(), meta, record.value.clone()));
        self.change(at, record, event);
        Ok(previous
            .filter(|_| prev_kv)
            .map(|meta| key_value(key, meta, previous_value)))
    }

    /// Deletes the keys of a range, in key order.
    pub(super) fn delete_range(&mut self, delete: &DeleteRange) -> Result<Deleted, ValueError> {
        let mut keys = Vec::new();
        self.kv.visit(&delete.range, ReadAt::Newest, |key, meta| {
            keys.push((key.clone(), meta))
        });
        let mut deleted = Deleted::default();
        for (key, meta) in keys {
            deleted.deleted += 1;
            if delete.prev_kv {
                deleted
                    .prev_kvs
                    .push(key_value(key.clone(), meta, self.values.value(meta.at)?));
            }
            let at = self.next();
            let event = Event::Delete(key.clone(), at.main);
            self.change(
                at,
                KvRecord {
                    key,
                    tombstone: true,
                    ..KvRecord::default()
                },
                event,
            );
        }
        Ok(deleted)
    }

    /// The place of the next change.
    fn next(&self) -> KvRevision {
        let sub =
            i64::try_from(self.values.written.len()).expect("changes of one entry fit in memory");
        KvRevision {
            main: self.values.main,
            sub,
        }
    }

    fn change(&mut self, at: KvRevision, record: KvRecord, event: Event) {
        self.kv.record(at, &record);
        self.values.written.push(record.value.clone());
        self.effects.events.push(event);
        self.effects.writes.push(Write::Kv(at, record));
    }
}
