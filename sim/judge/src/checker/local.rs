//! Local reads (P4): the answer must be that of one index which the member had applied, and no older than what it had
//! answered from before. The index that the member names is a hint. If it does not fit, another may: then the hint was
//! wrong, and nothing is held against the rules. If none fits, the accusation stands.

use super::answers::fits;
use super::blame::Accusation;
use super::describe;
use super::findings::Findings;
use super::replay::{Replay, bearer};
use super::run::Call;
use crate::history::{Event, History, Outcome, Reply, What};
use crate::model::Refusal;
use std::collections::BTreeMap;

/// Indices that may be behind a local read.
#[derive(Clone, Copy, Debug, Default)]
struct Range {
    /// What its member had answered from before the call was sent, or had on disk when it started.
    low: u64,
    /// What its member had applied by the answer.
    high: u64,
}

/// Looks for another index behind each local read that does not fit, and reports.
pub(super) fn settle(history: &History, replay: &mut Replay<'_, '_>) {
    let suspects = replay.take_suspects();
    if suspects.is_empty() {
        return;
    }
    let ranges = ranges(history, replay, &suspects);
    let (found, next) = explain(replay, &ranges);
    for (number, accusation) in suspects {
        let call = replay.run.call(number);
        let range = ranges.get(&number).copied().unwrap_or_default();
        let hint = call.served.map_or(0, |served| served.index);
        let calls = vec![number];
        if let Some(index) = found.get(&number) {
            let sentence = format!(
                "{} has the answer of index {index}, which its member may give, but the member named index {hint}",
                describe::call(call)
            );
            replay.findings.doubt(accusation.event, sentence, calls);
        } else if range.high >= next {
            let sentence = format!(
                "{} may have been answered from any index up to {}, but what the log says ends before {next}",
                describe::call(call),
                range.high
            );
            replay.findings.doubt(accusation.event, sentence, calls);
        } else {
            replay.report(accusation);
        }
    }
}

/// For each suspect the indices that may be behind it.
fn ranges(
    history: &History,
    replay: &Replay<'_, '_>,
    suspects: &BTreeMap<u64, Accusation>,
) -> BTreeMap<u64, Range> {
    let mut ranges: BTreeMap<u64, Range> = BTreeMap::new();
    // By member, what it has certainly answered from since which start, and what it has applied.
    let mut served: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let mut applied: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let at = |indices: &BTreeMap<u64, (u64, u64)>, call: &Call<'_>| {
        let member = call.served.map_or(call.member, |served| served.member);
        indices.get(&member).copied().unwrap_or_default()
    };
    for Event { what, .. } in &history.events {
        match what {
            What::Started { member, index } => {
                let (boot, _) = served.get(member).copied().unwrap_or_default();
                let started = (boot + 1, *index);
                served.insert(*member, started);
                for (call, range) in &mut ranges {
                    // It was sent before the start and answered after it.
                    let served = replay.run.call(*call).served;
                    if served
                        .is_some_and(|served| (served.member, served.boot) == (*member, boot + 1))
                    {
                        range.low = *index;
                    }
                }
            }
            What::Applied(entry) => {
                let (_, most) = applied.entry(entry.member).or_default();
                *most = entry.index.max(*most);
            }
            What::Installed(installed) => {
                let (_, most) = applied.entry(installed.member).or_default();
                *most = installed.index.max(*most);
            }
            What::Invoke { call, .. } if suspects.contains_key(call) => {
                let (_, low) = at(&served, replay.run.call(*call));
                ranges.insert(*call, Range { low, high: low });
            }
            What::Return { call, .. } => {
                let call = replay.run.call(*call);
                if let Some(range) = ranges.get_mut(&call.number) {
                    let (_, high) = at(&applied, call);
                    range.high = high.max(range.low);
                } else if let (Some(_), Some(hint)) = (call.answer(), call.served) {
                    let most = served.entry(hint.member).or_default();
                    *most = (hint.boot, hint.index).max(*most);
                }
            }
            _ => {}
        }
    }
    ranges
}

/// Goes through the log once more. Gives the first index that explains each call, and the first index not reached.
fn explain(replay: &Replay<'_, '_>, ranges: &BTreeMap<u64, Range>) -> (BTreeMap<u64, u64>, u64) {
    // Whatever is wrong with the log has been reported.
    let mut unheard = Findings::default();
    let known = (replay.reach, replay.rules);
    let mut again = Replay::new(replay.run, replay.log, replay.bounds, &mut unheard, known);
    let mut opening: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for (call, range) in ranges {
        opening.entry(range.low).or_default().push(*call);
    }
    let mut open: Vec<u64> = Vec::new();
    let mut found = BTreeMap::new();
    let next = again.walk(|again, indices| {
        let (first, index) = (*indices.start(), *indices.end());
        open.extend(opening.range(first..=index).flat_map(|(_, calls)| calls));
        open.retain(|number| {
            let call = again.run.call(*number);
            if fits(call, &again.model.read(bearer(call), call.op)) {
                found.insert(*number, index);
                return false;
            }
            index < ranges[number].high
        });
    });
    (found, next)
}

impl Replay<'_, '_> {
    /// Adds to what is held against a local read what it gave away: data that was written when its caller had no
    /// access any more.
    pub(super) fn local_accusation(&self, call: &Call<'_>, accusation: Accusation) -> Accusation {
        let Some((_, Outcome::Ok(reply))) = call.answer() else {
            return accusation;
        };
        let index = call.served.map_or(0, |served| served.index);
        let refused = self.model.decide(bearer(call), call.op);
        if !matches!(refused, Err(Refusal::PermissionDenied | Refusal::UserEmpty)) {
            return accusation;
        }
        let user = self.user_of(call);
        let Some(taken) = self.turn(call, &user, index) else {
            return accusation;
        };
        let entry = self.log.entry(taken.index);
        let then = entry.map_or(i64::MAX, |entry| entry.applied.kv_revision);
        let newest = newest_revision(reply);
        if newest <= then {
            return accusation;
        }
        let who = if user.is_empty() {
            "an anonymous caller"
        } else {
            &user
        };
        let sentence = format!(
            "{}; it returned a value written at revision {newest}, after {who} had lost access at index {}",
            accusation.sentence, taken.index
        );
        Accusation {
            sentence,
            ..accusation
        }
    }
}

/// Revision of the newest value in an answer; 0 for none.
fn newest_revision(reply: &Reply) -> i64 {
    let own = reply.kvs.iter().map(|pair| pair.mod_revision);
    let inner = reply.responses.iter().map(newest_revision);
    own.chain(inner).max().unwrap_or(0)
}
