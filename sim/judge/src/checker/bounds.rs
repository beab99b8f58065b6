//! Real time: which part of the log each call may have seen, and whether every call's place in the log fits the order in
//! which calls were sent and answered. One pass over the events.

use super::describe;
use super::findings::Findings;
use super::log::Log;

use super::run::{Call, Run};
use crate::history::{History, Op, Outcome, What};
use crate::model::Refusal;
use crate::numbered::Numbered;
use std::collections::BTreeMap;

/// The part of the log that a call may have seen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    /// Greatest index at which a call stands that had been answered before this one was sent. States before it are too
    /// old for a call that must be linearizable.
    pub(super) low: u64,
    /// What the call's own member had applied when it was sent, if that is less: a look-up without a barrier may be
    /// as old as that.
    pub(super) local_low: u64,
    /// Greatest index that any member had applied when the call was answered.
    pub(super) high: u64,
}

/// A call that stands before one that was answered before it was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Late {
    /// The call that it should have seen.
    pub(super) unseen: u64,
    /// The index from whose view it was answered.
    pub(super) index: u64,
}

/// Every call's window.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    windows: Numbered<Window>,
    /// Reads from a view that is too old; the replay names the property.
    pub(super) late_reads: BTreeMap<u64, Late>,
    /// Local reads from an older index than one that their member had answered from before, with that index.
    pub(super) backward: BTreeMap<u64, u64>,
}

/// A place in the order of effects: an entry at `index`, or a look at the state just after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) index: u64,
    after: bool,
}

/// What has happened so far.
#[derive(Default)]
struct Progress {
    /// The furthest place of a call that has been answered, and the call.
    answered: Option<(Place, u64)>,
    /// Greatest index that anyone has applied.
    applied: u64,
    /// The same for each member.
    applied_by: BTreeMap<u64, u64>,
    /// By member: its last start from which an answer has come, and the greatest index that it answered from since.
    served_by: BTreeMap<u64, (u64, u64)>,
}

impl Bounds {
    /// Passes over the events.
    pub(super) fn sweep(
        history: &History,
        run: &Run<'_>,
        log: &Log<'_>,
        findings: &mut Findings,
    ) -> Bounds {
        let mut bounds = Bounds::default();
        let mut progress = Progress::default();
        for event in &history.events {
            match &event.what {
                What::Invoke { call, .. } => {
                    bounds.open(run.call(*call), log, &progress, findings);
                }
                What::Return { call, .. } => {
                    if let Some(window) = bounds.windows.get_mut(call) {
                        window.high = progress.applied.max(window.low);
                    }
                    progress.end(run.call(*call), log);
                }
                What::Applied(applied) => {
                    progress.applied = progress.applied.max(applied.index);
                    progress.applied_by.insert(applied.member, applied.index);
                }
                What::Installed(installed) => {
                    progress.applied = progress.applied.max(installed.index);
                    progress
                        .applied_by
                        .insert(installed.member, installed.index);
                }
                What::Started { member, index } => {
                    progress.applied_by.insert(*member, *index);
                }
                _ => {}
            }
        }
        bounds
    }

    /// The window of a call.
    pub(super) fn window(&self, call: u64) -> Window {
        self.windows.get(&call).copied().unwrap_or_default()
    }

    fn open(
        &mut self,
        call: &Call<'_>,
        log: &Log<'_>,
        progress: &Progress,
        findings: &mut Findings,
    ) {
        let low = progress.answered.map_or(0, |(place, _)| place.index);
        let own = progress.applied_by.get(&call.member).copied().unwrap_or(0);
        let window = Window {
            low,
            local_low: low.min(own),
            high: low,
        };
        self.windows.insert(call.number, window);
        if let Some(last) = goes_back(call, progress) {
            self.backward.insert(call.number, last);
        }
        let (Some(place), Some((seen, unseen))) = (place(call, log), progress.answered) else {
            return;
        };
        if place >= seen {
            return;
        }
        if place.after {
            let index = place.index;
            self.late_reads.insert(call.number, Late { unseen, index });
            return;
        }
        let event = log.entry(place.index).map_or(0, |entry| entry.seen.event);
        let sentence = format!(
            "{} took effect at index {}, although call {unseen}, which stands at index {}, had been answered before \
             it was sent",
            describe::call(call),
            place.index,
            seen.index,
        );
        findings.violation(event, "LIN", &sentence, vec![call.number, unseen]);
    }
}

impl Progress {
    fn end(&mut self, call: &Call<'_>, log: &Log<'_>) {
        if call.answer().is_none() {
            return;
        }
        if let Some(served) = call.served {
            // An answer on its way may outlive the member that gave it.
            let last = self.served_by.entry(served.member).or_default();
            *last = (served.boot, served.index).max(*last);
        }
        let place = place(call, log).map(|place| (place, call.number));
        // Of equal places the first call is the better witness.
        if place.map(|(place, _)| place) > self.answered.map(|(place, _)| place) {
            self.answered = place;
        }
    }
}

/// The index that a local read's member had answered from before, if the read is from an older one.
fn goes_back(call: &Call<'_>, progress: &Progress) -> Option<u64> {
    let (served, _) = call.served.zip(call.answer())?;
    let (boot, last) = *progress.served_by.get(&served.member)?;
    let is_older = boot == served.boot && served.index < last;
    (call.is_serializable() && is_older).then_some(last)
}

/// Where a call stands, if the order of effects binds it. Refusals of a token or a password do not: they are judged by
/// whether anything explains them, without trusting the index that they came from.
pub(super) fn place(call: &Call<'_>, log: &Log<'_>) -> Option<Place> {
    if let Some(entry) = log.decisive(call.number) {
        let is_login = matches!(call.op, Op::Login { .. });
        let index = entry.applied.index;
        return (!is_login || entry.is_ok()).then_some(Place {
            index,
            after: false,
        });
    }
    let served = call.served?;
    let index = served.index;
    let is_bound = match call.answer()?.1 {
        Outcome::Ok(_) => true,
        Outcome::Refused { message, .. } => !matches!(
            Refusal::from_message(message),
            None | Some(Refusal::InvalidToken | Refusal::OldRevision)
        ),
        Outcome::Unknown { .. } => false,
    };
    let is_local = call.is_serializable() || matches!(call.op, Op::Login { .. });
    (is_bound && !is_local).then_some(Place { index, after: true })
}
