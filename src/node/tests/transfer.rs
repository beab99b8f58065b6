//! A snapshot from one store to another, part by part, without a network: what is lost, repeated, broken or from somebody
//! else.

use crate::node::snapshot_inbox::{Inbox, Standing, Taken};
use crate::node::snapshot_offers::{Offer, Offers};
use crate::pb::gatehousepb as pb;
use crate::state::{Caller, Command, Image, Op, PasswordHash, Put, State, UserAdd};
use crate::storage::{Durability, Identity, Loaded, Storage};
use bytes::Bytes;
use protobuf::Message as _;
use raft::eraftpb::{Entry, HardState, Message, MessageType};
use redb::backends::InMemoryBackend;
use std::sync::Arc;

const SENDER: u64 = 1;
const RECEIVER: u64 = 2;
const KEYS: u64 = 60;

fn open(member_id: u64) -> (Storage, Loaded) {
    let identity = Identity {
        cluster_id: 1,
        member_id,
        voters: &[SENDER, RECEIVER],
        new_store_id: member_id,
    };
    Storage::open(InMemoryBackend::new(), &identity, 1 << 20).unwrap()
}

/// A store that has applied something of every kind.
fn full() -> Storage {
    let (storage, loaded) = open(SENDER);
    let mut state = State::restore(loaded.image);
    let put = |number: u64| {
        Op::Put(Put {
            key: Bytes::from(format!("key-{}", number % 7)),
            value: Bytes::from(vec![7; 50]),
            ..Put::default()
        })
    };
    let user = |name: &str| {
        Op::UserAdd(UserAdd {
            name: name.into(),
            password: PasswordHash(Bytes::from_static(b"$2b$04$hash")),
            no_password: false,
        })
    };
    let mut ops = vec![user("root"), user("alice"), Op::RoleAdd("writer".into())];
    ops.push(Op::UserGrantRole("alice".into(), "writer".into()));
    ops.extend((0..KEYS).map(put));
    for (index, op) in (1..).zip(ops) {
        let transaction = storage.begin(Durability::Deferred).unwrap();
        let mut tables = transaction.tables();
        let command = Command {
            request_id: index,
            caller: Caller::ANONYMOUS,
            op,
        };
        let values = tables.values().unwrap();
        let applied = state.apply(index, 3, Some(command), &values).unwrap();
        drop(values);
        assert!(applied.result.is_ok(), "{:?}", applied.result);
        tables.put_writes(&applied.writes).unwrap();
        tables.put_state(&state.meta()).unwrap();
        drop(tables);
        transaction.commit().unwrap();
    }
    storage
}

/// What the sender announces, and the offer behind it.
fn announce(offers: &mut Offers, storage: &Storage, term: u64) -> (pb::SnapshotPart, Arc<Offer>) {
    let mut message = Message {
        from: SENDER,
        to: RECEIVER,
        term,
        ..Message::default()
    };
    message.set_msg_type(MessageType::MsgSnapshot);
    message.set_snapshot(offers.announce(RECEIVER, storage, 1).unwrap());
    let offer = offers.send(RECEIVER).unwrap();
    let part = pb::SnapshotPart {
        sender: SENDER,
        snapshot_id: offer.id,
        message: message.write_to_bytes().unwrap().into(),
        ..pb::SnapshotPart::default()
    };
    (part, offer)
}

fn part(offer: &Offer, number: u64) -> pb::SnapshotPart {
    pb::SnapshotPart {
        sender: SENDER,
        ..offer.part(number).unwrap().unwrap()
    }
}

const STANDING: Standing = Standing {
    term: 5,
    applied: 0,
    installing: false,
};

fn wanted(taken: &Taken) -> u64 {
    assert!(
        !taken.progress.refused && !taken.progress.complete,
        "{taken:?}"
    );
    taken.progress.next
}

struct Pair {
    from: Storage,
    to: Storage,
    offers: Offers,
    inbox: Inbox,
}

impl Pair {
    fn new() -> Pair {
        Pair {
            from: full(),
            to: open(RECEIVER).0,
            offers: Offers::new(70, 300),
            inbox: Inbox::new(RECEIVER),
        }
    }

    fn take(&mut self, part: pb::SnapshotPart) -> Taken {
        self.inbox.take(part, STANDING, &self.to).unwrap()
    }

    /// Hands over everything from `number` on; gives what raft is to hear, and how many parts it took.
    fn finish(&mut self, offer: &Offer, mut number: u64) -> (Message, u64) {
        loop {
            let taken = self.take(part(offer, number));
            if let Some(message) = taken.complete {
                assert!(taken.progress.complete);
                return (message, number);
            }
            assert_eq!(wanted(&taken), number + 1);
            number += 1;
        }
    }

    fn install(&mut self, message: &Message) -> Image {
        let metadata = message.get_snapshot().get_metadata();
        assert!(self.inbox.holds(metadata));
        let transaction = self.to.begin(Durability::Synced).unwrap();
        let image = transaction.tables().install(metadata).unwrap();
        transaction.commit().unwrap();
        image
    }
}

#[test]
fn what_arrives_is_what_was_sent() {
    let mut pair = Pair::new();
    // What the receiver had must go, its log included.
    let transaction = pair.to.begin(Durability::Synced).unwrap();
    let mut tables = transaction.tables();
    let entry = Entry {
        index: 1,
        term: 1,
        ..Entry::default()
    };
    tables.append(&[entry], 0).unwrap();
    tables.put_hard_state(&HardState::default()).unwrap();
    drop(tables);
    transaction.commit().unwrap();
    let (announcement, offer) = announce(&mut pair.offers, &pair.from, 5);
    assert_eq!(wanted(&pair.take(announcement)), 1);
    let before = pair.to.image().unwrap();
    let (message, parts) = pair.finish(&offer, 1);
    assert!(parts > 10, "{parts} parts make no series");
    assert_eq!(pair.to.image().unwrap(), before, "staged is not installed");
    let image = pair.install(&message);
    assert_eq!(image, pair.from.image().unwrap());
    assert_eq!(image, pair.to.image().unwrap());
    assert!(pair.to.entries(1, 2, u64::MAX).is_err(), "the log is empty");
}

#[test]
fn what_is_written_meanwhile_does_not_show() {
    let mut pair = Pair::new();
    let (announcement, offer) = announce(&mut pair.offers, &pair.from, 5);
    pair.take(announcement);
    let then = pair.from.image().unwrap();
    let transaction = pair.from.begin(Durability::Synced).unwrap();
    let later = crate::state::Meta {
        applied_index: 1_000,
        ..then.meta
    };
    transaction.tables().put_state(&later).unwrap();
    transaction.commit().unwrap();
    let (message, _) = pair.finish(&offer, 1);
    assert_eq!(pair.install(&message), then);
}

#[test]
fn a_lost_answer_and_a_repeated_part_change_nothing() {
    let mut pair = Pair::new();
    let (announcement, offer) = announce(&mut pair.offers, &pair.from, 5);
    pair.take(announcement);
    for number in [1, 1, 2, 1, 2] {
        pair.take(part(&offer, number));
    }
    let (message, _) = pair.finish(&offer, 3);
    assert_eq!(pair.install(&message), pair.from.image().unwrap());
}

#[test]
fn a_broken_transfer_goes_on_where_it_was() {
    let mut pair = Pair::new();
    let (announcement, offer) = announce(&mut pair.offers, &pair.from, 5);
    pair.take(announcement);
    for number in 1..=4 {
        pair.take(part(&offer, number));
    }
    assert_eq!(pair.offers.ended(RECEIVER, offer.id, false), None);
    // The same member leads in a later term by now.
    let (announcement, again) = announce(&mut pair.offers, &pair.from, 6);
    assert_eq!(again.id, offer.id);
    assert_eq!(wanted(&pair.take(announcement)), 5);
    let (message, _) = pair.finish(&again, 5);
    assert_eq!(message.term, 6);
    assert_eq!(pair.install(&message), pair.from.image().unwrap());
    let index = pair.from.image().unwrap().meta.applied_index;
    assert_eq!(pair.offers.ended(RECEIVER, offer.id, true), Some(index));
}

#[test]
fn another_snapshot_begins_anew() {
    let mut pair = Pair::new();
    let (announcement, offer) = announce(&mut pair.offers, &pair.from, 5);
    pair.take(announcement);
    pair.take(part(&offer, 1));
    let mut others = Offers::new(90, 300);
    let (announcement, other) = announce(&mut others, &pair.from, 5);
    assert_eq!(wanted(&pair.take(announcement)), 1);
    assert!(pair.take(part(&offer, 2)).progress.refused);
    let (message, _) = pair.finish(&other, 1);
    assert_eq!(pair.install(&message), pair.from.image().unwrap());
}

#[test]
fn a_part_that_was_changed_on_the_way_is_asked_for_again() {
    let mut pair = Pair::new();
    let (announcement, offer) = announce(&mut pair.offers, &pair.from, 5);
    pair.take(announcement);
    pair.take(part(&offer, 1));
    let sound = part(&offer, 2);
    let mut changed = sound.clone();
    changed.rows[0].value = Bytes::from_static(b"other");
    let mut missing = sound.clone();
    missing.rows.remove(0);
    for broken in [changed, missing] {
        assert_eq!(wanted(&pair.take(broken)), 2);
    }
    let (message, _) = pair.finish(&offer, 2);
    assert_eq!(pair.install(&message), pair.from.image().unwrap());
}

#[test]
fn what_is_no_part_is_refused() {
    let mut pair = Pair::new();
    let (announcement, offer) = announce(&mut pair.offers, &pair.from, 5);
    assert!(pair.take(part(&offer, 1)).progress.refused, "not announced");
    let rubbish = pb::SnapshotPart {
        message: Bytes::from_static(&[0xff; 9]),
        ..announcement.clone()
    };
    let foreign = pb::SnapshotPart {
        snapshot_id: 1,
        ..announcement.clone()
    };
    let (old, _) = announce(&mut pair.offers, &pair.from, 4);
    for refused in [rubbish, foreign, old] {
        assert!(pair.take(refused).progress.refused);
    }
    let up_to_date = Standing {
        applied: 1_000,
        ..STANDING
    };
    let busy = Standing {
        installing: true,
        ..STANDING
    };
    let take = |inbox: &mut Inbox, standing| {
        inbox
            .take(announcement.clone(), standing, &pair.to)
            .unwrap()
            .progress
    };
    assert!(take(&mut pair.inbox, up_to_date).complete);
    assert!(take(&mut pair.inbox, busy).refused);
}

#[test]
fn a_key_of_no_table_is_refused_and_nothing_of_it_stays() {
    let mut pair = Pair::new();
    let (announcement, offer) = announce(&mut pair.offers, &pair.from, 5);
    pair.take(announcement.clone());
    let rows = vec![crate::storage::Row {
        table: crate::storage::RowTable::Kv,
        key: Bytes::from_static(b"short"),
        value: Bytes::new(),
    }];
    let strange = pb::SnapshotPart {
        checksum: crate::node::snapshot_part::checksum(0, &rows),
        rows: crate::node::snapshot_part::rows_to_pb(rows),
        ..part(&offer, 1)
    };
    assert!(pair.take(strange).progress.refused);
    assert_eq!(wanted(&pair.take(announcement)), 1);
}

#[test]
fn what_nobody_continues_is_given_up_on_both_sides() {
    let mut pair = Pair::new();
    let (announcement, offer) = announce(&mut pair.offers, &pair.from, 5);
    pair.take(announcement);
    pair.take(part(&offer, 1));
    for _ in 0..150 {
        pair.offers.tick();
        pair.inbox.tick(STANDING, &pair.to).unwrap();
    }
    assert!(pair.offers.lowest_index().is_some(), "it is being sent");
    assert!(pair.take(part(&offer, 2)).progress.refused);
    pair.offers.ended(RECEIVER, offer.id, false);
    for _ in 0..150 {
        pair.offers.tick();
    }
    assert_eq!(pair.offers.lowest_index(), None);
}
