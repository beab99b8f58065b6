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
use crate::random::Random;
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
    let mut rng = Random(seed);
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

    fn pause(&mut self, rng: &mut Random) {
        self.now_us += rng.between(0, PAUSE_US);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::count;
    use crate::history::Outcome;
    use crate::judgement::judge;
    use crate::verdict::{Verdict, VerdictKind};

    #[test]
    fn the_judge_objects_to_nothing() {
        let history = history(20_000, 1);
        assert_eq!(judge(&history), Verdict::ok());
        let counts = count(&history);
        assert!(counts.calls >= 20_000, "{counts:?}");
        let least = [
            counts.logins_ok,
            counts.logins_refused,
            counts.allowed / 10,
            counts.denied,
            counts.unknown,
        ];
        assert!(least.iter().all(|count| *count > 50), "{counts:?}");
    }

    #[test]
    fn one_flipped_decision_among_thousands_is_found() {
        let right = history(20_000, 2);
        for (from, to) in [("ok", "permission denied"), ("permission denied", "ok")] {
            let mut history = right.clone();
            // The last entry of this decision that was told to its client.
            let is_one = |event: &Event| {
                matches!(&event.what, What::Applied(applied)
                if applied.kind == "put" && applied.decision == from)
            };
            let at = history.events.iter().rposition(is_one).unwrap();
            let What::Applied(chosen) = history.events[at].what.clone() else {
                unreachable!("as chosen");
            };
            for event in &mut history.events {
                if let What::Applied(applied) = &mut event.what
                    && applied.index == chosen.index
                {
                    applied.decision = to.into();
                }
            }
            let verdict = judge(&history);
            assert_eq!(verdict.kind, VerdictKind::Violation, "{verdict:?}");
            assert!(
                verdict
                    .sentence
                    .contains(&format!("index {}", chosen.index))
            );
        }
    }

    #[test]
    fn one_flipped_answer_of_a_read_among_thousands_is_found() {
        let mut history = history(20_000, 3);
        let is_read = |event: &Event| {
            matches!(&event.what, What::Return { outcome: Outcome::Ok(reply), .. }
            if !reply.kvs.is_empty())
        };
        let at = history.events.iter().rposition(is_read).unwrap();
        let What::Return { call, outcome } = &mut history.events[at].what else {
            unreachable!("as chosen");
        };
        *outcome = Outcome::Refused {
            code: "PermissionDenied".into(),
            message: "etcdserver: permission denied".into(),
        };
        let call = *call;
        let verdict = judge(&history);
        assert_eq!(verdict.kind, VerdictKind::Violation, "{verdict:?}");
        assert_eq!(verdict.calls[0], call);
    }

    #[test]
    fn the_same_seed_gives_the_same_history() {
        assert_eq!(history(500, 4), history(500, 4));
        assert_ne!(history(500, 4), history(500, 5));
    }
}
