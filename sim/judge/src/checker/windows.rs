//! Refusals whose place in the log is not known, or not to be trusted: something within the call's window must explain
//! them. A member's restart, a lag or a snapshot explains none.

use super::bounds::Bounds;
use super::describe;
use super::findings::Findings;
use super::log::Log;
use super::logins::is_wrong;
use super::replay::{Replay, bearer};
use super::run::{Call, Run};
use crate::history::{Op, Outcome};
use crate::model::Refusal;
use crate::noncommittal::tells_nothing;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// Refusals by the indices between which something must explain them.
#[derive(Default)]
pub(super) struct Windows {
    refusals: BTreeMap<u64, Refusal>,
    opening: BTreeMap<u64, Vec<u64>>,
    closing: BTreeMap<u64, Vec<u64>>,
    /// Refusals whose window is open and that nothing has explained yet.
    waiting: BTreeMap<u64, Refusal>,
    /// Auth changes, and tokens that had ended, when the waiting were last looked at.
    seen: (u64, u64),
}

impl Windows {
    /// Collects the refusals; those with a text that nobody knows are doubts at once.
    pub(super) fn of(
        run: &Run<'_>,
        log: &Log<'_>,
        bounds: &Bounds,
        findings: &mut Findings,
    ) -> Windows {
        let mut windows = Windows::default();
        for call in run.calls.values() {
            let Some((end, Outcome::Refused { code, message })) = call.answer() else {
                continue;
            };
            if log.decisive(call.number).is_some() || tells_nothing(call.op, code, message) {
                continue;
            }
            let Some(refusal) = Refusal::from_message(message) else {
                let sentence = format!(
                    "{} was refused with `{}`, which the model does not know",
                    describe::call(call),
                    message.escape_debug()
                );
                findings.doubt(end.event, sentence, vec![call.number]);
                continue;
            };
            let is_login = matches!(call.op, Op::Login { .. });
            if refusal == Refusal::OldRevision {
                let sentence = format!(
                    "{} was refused with `{}`, which no change of anybody's makes right with a simple token",
                    describe::call(call),
                    refusal.text()
                );
                findings.violation(end.event, "P18", &sentence, vec![call.number]);
                continue;
            }
            let trusts_view = refusal != Refusal::InvalidToken;
            if call.served.is_some() && trusts_view && !is_login {
                continue; // The replay judges it at that index.
            }
            let window = bounds.window(call.number);
            // A local read may come from a look-up without a barrier.
            let low = if call.is_serializable() {
                window.local_low
            } else {
                window.low
            };
            windows.refusals.insert(call.number, refusal);
            windows.opening.entry(low).or_default().push(call.number);
            windows
                .closing
                .entry(window.high.max(low))
                .or_default()
                .push(call.number);
        }
        windows
    }

    /// Opens, tries and closes windows at the given indices, whose last one is the model's.
    pub(super) fn look(&mut self, replay: &mut Replay<'_, '_>, indices: RangeInclusive<u64>) {
        let generation = replay.model.accounts().generation();
        let mut to_try: BTreeSet<u64> = BTreeSet::new();
        for call in self
            .opening
            .range(indices.clone())
            .flat_map(|(_, calls)| calls)
        {
            let refusal = self.refusals[call];
            self.waiting.insert(*call, refusal);
            to_try.insert(*call);
        }
        // Only an auth change or the end of a token can explain what the state before it did not.
        let now = (generation, replay.model.tokens_ended());
        if now != self.seen {
            self.seen = now;
            to_try.extend(self.waiting.keys());
        }
        for call in to_try {
            if explains(replay, replay.run.call(call), self.waiting[&call]) {
                self.waiting.remove(&call);
            }
        }
        for call in self.closing.range(indices).flat_map(|(_, calls)| calls) {
            if let Some(refusal) = self.waiting.remove(call) {
                report(replay, replay.run.call(*call), refusal);
            }
        }
    }
}

/// Whether the state here explains the refusal.
fn explains(replay: &Replay<'_, '_>, call: &Call<'_>, refusal: Refusal) -> bool {
    let model = &replay.model;
    if let Op::Login { user, password } = call.op {
        return match refusal {
            Refusal::AuthFailed => is_wrong(model, user, password),
            Refusal::NotEnabled => !model.accounts().is_enabled(),
            _ => false,
        };
    }
    match refusal {
        // A token that died stays dead, and one that was never given was never good.
        Refusal::InvalidToken => call.token.is_some_and(|login| !model.is_alive(login)),
        refusal => model.decide(bearer(call), call.op) == Err(refusal),
    }
}

/// Why a token should not have been called invalid: most often the member lagged and did not wait for the login.
fn good_token(replay: &Replay<'_, '_>, call: &Call<'_>, login: u64) -> String {
    let good = format!("the token of login {login} was good all the time");
    let Some((token, (end, _))) = replay.model.token(login).zip(call.returned) else {
        return good;
    };
    let applied = replay.reach.of_member(call.member, end.event);
    let seen = call.served.map_or(applied, |served| served.index);
    if seen >= token.index {
        return good;
    }
    let (member, issued) = (call.member, token.index);
    format!("{good}: n{member} had applied index {seen}, the token's login stands at {issued}")
}

fn report(replay: &mut Replay<'_, '_>, call: &Call<'_>, refusal: Refusal) {
    let Some((end, _)) = call.answer() else {
        return;
    };
    let text = describe::call(call);
    let (property, sentence) = match (call.op, refusal) {
        (Op::Login { user, password }, Refusal::AuthFailed) => {
            let sentence = format!(
                "{text} was refused as wrong, although `{password}` was {user}'s password from before it was sent \
                 until after it was answered"
            );
            ("P5", sentence)
        }
        (Op::Login { .. }, Refusal::NotEnabled) => (
            "P5",
            format!("{text} was refused as if auth were off, but auth was on all the time"),
        ),
        (_, Refusal::InvalidToken) => {
            let token = match call.token {
                Some(login) => good_token(replay, call, login),
                None => "no token was presented".to_owned(),
            };
            (
                "P7",
                format!("{text} was refused with an invalid token, although {token}"),
            )
        }
        (_, refusal) => {
            let property = match refusal {
                Refusal::PermissionDenied | Refusal::UserEmpty => "P3",
                _ => "P1",
            };
            let why = refusal.text();
            (
                property,
                format!("{text} was refused with `{why}`, which was wrong all the time"),
            )
        }
    };
    replay
        .findings
        .violation(end.event, property, &sentence, vec![call.number]);
}
