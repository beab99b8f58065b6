//! The age of tokens in virtual time: an expiry must not come too early (P7), uses must be reported in time (P7), and a
//! token that nobody uses must end (P17). Everything allows for clocks that drift, and nothing is claimed of a time in
//! which the cluster was disturbed.

use super::blame::Accusation;
use super::calm::Calm;
use super::describe;
use super::log::{Entry, OWN_KINDS};
use super::replay::{Diverged, Replay, Step};
use super::run::{Call, Moment};
use crate::history::{History, TokenNote, TokenRules};
use std::collections::BTreeMap;

/// What a calm cluster may take to bring a report or an expiry into the log, and to notice that it is time for one:
/// far above a round trip and a tick, so that only a missing entry exceeds it.
const SLACK_US: u64 = 2_000_000;

/// Clocks count in milliseconds: a deadline may be rounded down by one.
const ROUNDING_US: u64 = 1000;

const MILLION: u64 = 1_000_000;

/// True times that a lifetime may take on a member's own clock, microseconds.
#[derive(Clone, Copy, Debug)]
struct Spans {
    /// A token is not expired before it has been unused for this long: 1¼ lifetimes by the fastest clock.
    expiry_least_us: u64,
    /// Uses are reported at least this often: a quarter of a lifetime by the slowest clock.
    report_most_us: u64,
    /// A token that is not used ends within this: 1½ lifetimes by the slowest clock.
    unused_most_us: u64,
}

impl Spans {
    fn of(rules: TokenRules) -> Spans {
        let ttl_us = u128::from(rules.ttl_ms) * 1000;
        let drift = rules.drift_ppm.min(MILLION - 1);
        let (fast, slow) = (MILLION + drift, MILLION - drift);
        let quarters = |count: u128, clock: u64| {
            let us = ttl_us * count * u128::from(MILLION) / (4 * u128::from(clock));
            u64::try_from(us).unwrap_or(u64::MAX)
        };
        Spans {
            expiry_least_us: quarters(5, fast),
            report_most_us: quarters(1, slow).saturating_add(1),
            unused_most_us: quarters(6, slow).saturating_add(1),
        }
    }
}

impl Replay<'_, '_> {
    /// Carries out an entry of the cluster's own.
    pub(super) fn own(&mut self, entry: &Entry<'_>) -> Step {
        let applied = entry.applied;
        let [refresh, expire] = OWN_KINDS;
        let kind = applied.kind.as_str();
        if kind != refresh && kind != expire {
            return Ok(()); // Raft's own.
        }
        if applied.decision != "ok" {
            let sentence = format!(
                "the `{kind}` entry at index {} was decided as `{}`, which the model does not know",
                applied.index,
                applied.decision.escape_debug()
            );
            self.findings.doubt(entry.seen.event, sentence, Vec::new());
            return Err(Diverged);
        }
        if kind == refresh {
            self.model.refresh(applied.index, &applied.tokens);
            return Ok(());
        }
        for login in self.model.expire(applied.index, &applied.tokens) {
            self.check_not_early(entry, login);
        }
        Ok(())
    }

    fn check_not_early(&mut self, entry: &Entry<'_>, login: u64) {
        let Some(token) = self.model.token(login) else {
            return;
        };
        let last = token.refreshed_at;
        let Some(reported) = self.log.entry(last).map(|last| last.seen) else {
            return;
        };
        let unused_us = entry.seen.at_us.saturating_sub(reported.at_us);
        let least_us = Spans::of(self.rules).expiry_least_us;
        if unused_us.saturating_add(ROUNDING_US) >= least_us {
            return;
        }
        let sentence = format!(
            "the token of login {login} was expired at index {} at {}, {} ms after index {last} had reported its last \
             use; it lives at least {} ms from there (1¼ lifetimes)",
            entry.applied.index,
            describe::time(entry.seen),
            unused_us / 1000,
            least_us / 1000
        );
        self.findings
            .violation(entry.seen.event, "P7", &sentence, vec![login]);
    }
}

/// Holds the uses of tokens against the reports and the expiries in the log.
pub(super) fn check(history: &History, replay: &mut Replay<'_, '_>) {
    let ages = Ages {
        calm: Calm::of(history),
        spans: Spans::of(replay.rules),
        reports: reports(replay),
        presented: presented(replay),
    };
    let uses = std::mem::take(&mut replay.uses);
    let found: Vec<Accusation> = uses
        .iter()
        .flat_map(|(call, index)| {
            let call = replay.run.call(*call);
            let unreported = ages.unreported(replay, call);
            let outlived = ages.outlived(replay, call, *index);
            unreported.into_iter().chain(outlived)
        })
        .collect();
    for accusation in found {
        replay.report(accusation);
    }
}

/// When things happened to tokens.
struct Ages {
    calm: Calm,
    spans: Spans,
    /// By login: when its entry and the reports of use were first applied, in order, microseconds.
    reports: BTreeMap<u64, Vec<u64>>,
    /// By login: when calls with its token were sent and answered, in order of sending. A call that is never answered
    /// ends never.
    presented: BTreeMap<u64, Vec<(u64, u64)>>,
}

impl Ages {
    /// Whether a use of a token should have been reported and was not.
    fn unreported(&self, replay: &Replay<'_, '_>, call: &Call<'_>) -> Option<Accusation> {
        let login = call.token?;
        let (end, _) = call.answer()?;
        let within_us = self.spans.report_most_us.saturating_add(SLACK_US);
        let due_us = end.at_us.checked_add(within_us)?;
        // A report just before the use may cover it.
        let since_us = call.invoked.at_us.checked_sub(within_us)?;
        if !self.calm.lasts(since_us, due_us) {
            return None;
        }
        let reports = self.reports.get(&login)?;
        let is_reported = reports.iter().any(|at| (since_us..=due_us).contains(at));
        // A token that has ended need not be reported.
        let token = replay.model.token(login)?;
        let ended = token.end.and_then(|end| replay.log.entry(end.index));
        if is_reported || ended.is_some_and(|ended| ended.seen.at_us <= due_us) {
            return None;
        }
        let sentence = format!(
            "{} used the token of login {login}, but until {} no report of a use of it came into the log; one is due \
             within a quarter of its lifetime",
            describe::call(call),
            describe::time(Moment {
                at_us: due_us,
                ..end
            })
        );
        Some(accuse(end, "P7", sentence, call, login))
    }

    /// Whether a token was accepted that should have ended long before.
    fn outlived(&self, replay: &Replay<'_, '_>, call: &Call<'_>, index: u64) -> Option<Accusation> {
        // A local read may come from an old view.
        if call.is_serializable() {
            return None;
        }
        let login = call.token?;
        let sent_us = call.invoked.at_us;
        let reports = self.reports.get(&login)?;
        let reported = reports.iter().filter(|at| **at <= sent_us).max()?;
        let earlier = self.presented.get(&login).into_iter().flatten();
        let earlier = earlier.take_while(|(sent, _)| *sent < sent_us);
        let presented = earlier.map(|(_, answered)| *answered).max().unwrap_or(0);
        let last_us = presented.max(*reported);
        let since_us = last_us.max(self.calm.disturbed_before(sent_us));
        let unused_us = sent_us.checked_sub(since_us)?;
        if unused_us <= self.spans.unused_most_us.saturating_add(SLACK_US) {
            return None;
        }
        let entry = replay.log.decisive(call.number);
        let shown = entry.map(|entry| entry.seen);
        let shown = shown.or(call.answer().map(|(end, _)| end))?;
        let sentence = format!(
            "{} was allowed at index {index}, but the token of login {login} should have expired: nobody had presented \
             it for {} ms, the cluster was calm for {} ms, and it lives at most {} ms without use (1½ lifetimes)",
            describe::call(call),
            sent_us.saturating_sub(last_us) / 1000,
            unused_us / 1000,
            self.spans.unused_most_us / 1000
        );
        Some(accuse(shown, "P17", sentence, call, login))
    }
}

fn accuse(
    shown: Moment,
    property: &'static str,
    sentence: String,
    call: &Call<'_>,
    login: u64,
) -> Accusation {
    Accusation {
        event: shown.event,
        property,
        sentence,
        calls: vec![call.number, login],
    }
}

/// When each login's entry, and reports of uses of its token, were first applied.
fn reports(replay: &Replay<'_, '_>) -> BTreeMap<u64, Vec<u64>> {
    let mut reports: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut logins = BTreeMap::new();
    let [refresh, _] = OWN_KINDS;
    for entry in replay.log.entries() {
        let at_us = entry.seen.at_us;
        if let Some(login) = entry.call.filter(|login| {
            let token = replay.model.token(*login);
            token.is_some_and(|token| token.index == entry.applied.index)
        }) {
            logins.insert(entry.applied.index, login);
            reports.entry(login).or_default().push(at_us);
        }
        if entry.applied.kind == refresh {
            for TokenNote { login_index, .. } in &entry.applied.tokens {
                if let Some(login) = logins.get(login_index) {
                    reports.entry(*login).or_default().push(at_us);
                }
            }
        }
    }
    reports
}

/// When each login's token was presented.
fn presented(replay: &Replay<'_, '_>) -> BTreeMap<u64, Vec<(u64, u64)>> {
    let mut presented: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    for call in replay.run.calls.values() {
        if let Some(login) = call.token {
            let answered = call.returned.map_or(u64::MAX, |(end, _)| end.at_us);
            let times = (call.invoked.at_us, answered);
            presented.entry(login).or_default().push(times);
        }
    }
    for times in presented.values_mut() {
        times.sort_unstable();
    }
    presented
}
