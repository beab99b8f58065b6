//! Right histories of any size, made without a server: a make-believe cluster of three members that decides as the
//! model does, and clients whose calls overlap. They show how many calls the judge can take, and that it objects to
//! none of them.
//!
//! Most calls touch keys, some are denied, a few log in, and about one in a hundred changes users, roles or rights.
//! Members lag behind each other by a few entries, tokens die with their user's password, and some answers are lost.

mod client;
mod cluster;
mod workload;

use crate::history::{Event, FORMAT_VERSION, Header, History, What};
use crate::history_file::FORMAT;
use crate::rng::{Purpose, Rng};
use client::Client;
use cluster::Cluster;

/// Members of the make-believe cluster.
const MEMBERS: u64 = 3;

/// Clients with a call each.
const CLIENTS: u64 = 64;

/// Most microseconds between two events: a million calls take less virtual time than a token lives.
const PAUSE_US: u64 = 40;

/// A right history of `calls` calls at least (the last ones come to their end), the same for the same seed.
pub fn history(calls: u64, seed: u64) -> History {
    let mut record = Record::default();
    let mut rng = Rng::new(seed, Purpose::Workload(0));
    let mut cluster = Cluster::start(&mut record, &mut rng);
    let mut clients: Vec<Client> = (0..CLIENTS).map(Client::new).collect();
    workload::set_up(&mut clients, &mut cluster, &mut record, &mut rng);
    while record.calls < calls {
        let choice = rng.between(0, CLIENTS - 1);
        let client = usize::try_from(choice).expect("fewer clients than an index can count");
        record.pause(&mut rng);
        clients[client].advance(&mut cluster, &mut record, &mut rng);
        cluster.drift(&mut record, &mut rng);
    }
    for client in &mut clients {
        while client.is_busy() {
            record.pause(&mut rng);
            client.advance(&mut cluster, &mut record, &mut rng);
        }
    }
    cluster.stop(&mut record);
    let header = Header {
        format: FORMAT.into(),
        version: FORMAT_VERSION,
        scenario: "synthetic".into(),
        seed,
        members: MEMBERS,
        ..Header::default()
    };
    let events = record.events;
    History { header, events }
}

/// The history in the making.
#[derive(Default)]
struct Record {
    events: Vec<Event>,
    now_us: u64,
    /// Calls so far.
    calls: u64,
}

impl Record {
    fn push(&mut self, what: What) {
        let at_us = self.now_us;
        self.events.push(Event { at_us, what });
    }

    fn pause(&mut self, rng: &mut Rng) {
        self.now_us += rng.between(0, PAUSE_US);
    }
}
