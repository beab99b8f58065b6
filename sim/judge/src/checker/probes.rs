//! Members' states as they were read at the end and at checkpoints: equal index, equal hashes (P9).

use super::findings::Findings;
use super::log::Log;
use crate::history::{Event, History, What};
use std::collections::BTreeMap;

/// What a probe saw.
#[derive(Clone, Copy)]
struct Seen {
    member: u64,
    kv_hash: u32,
    auth_hash: u64,
    digest: u64,
}

/// Compares the probes with each other and with the log's running hash.
pub(super) fn check(history: &History, log: &Log<'_>, findings: &mut Findings) {
    let mut first: BTreeMap<u64, Seen> = BTreeMap::new();
    for (event, Event { what, .. }) in history.events.iter().enumerate() {
        let What::Probe {
            member,
            index,
            kv_hash,
            auth_hash,
            digest,
        } = *what
        else {
            continue;
        };
        let seen = Seen {
            member,
            kv_hash,
            auth_hash,
            digest,
        };
        let other = *first.entry(index).or_insert(seen);
        let hashes = [
            ("keys and values", seen.kv_hash == other.kv_hash),
            ("users, roles and tokens", seen.auth_hash == other.auth_hash),
            ("applied entries", seen.digest == other.digest),
        ];
        if let Some((what, _)) = hashes.into_iter().find(|(_, equal)| !equal) {
            let one = other.member;
            let sentence =
                format!("n{one} and n{member} are both at index {index}, but their {what} differ");
            findings.violation(event, "P9", &sentence, Vec::new());
        }
        if let Some(entry) = log.entry(index)
            && entry.applied.digest != digest
        {
            let one = entry.applied.member;
            let sentence = format!(
                "n{member} is at index {index} with another running hash than n{one} had when it applied that index"
            );
            findings.violation(event, "P9", &sentence, Vec::new());
        }
    }
}
