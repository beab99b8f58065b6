//! Calls, made of the events that tell of them. What makes a history unfit for judging is a fault of the harness, not of
//! the server, so it is never a violation.

use crate::history::{Event, History, Op, Outcome, What};
use crate::numbered::Numbered;
use crate::sequence::Sequence;
use std::collections::BTreeMap;

/// Where in the history something stands. Events at equal times keep their order, so the number is what is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    /// Number of the event, from 0.
    pub(super) event: usize,
    /// Its time, microseconds.
    pub(super) at_us: u64,
}

/// An answer from a member's published view.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    pub(super) member: u64,
    pub(super) index: u64,
    /// How often the member had started by then. What it answered from before its last start binds it no more.
    pub(super) boot: u64,
}

/// One call.
#[derive(Clone, Debug)]
pub(super) struct Call<'h> {
    pub(super) number: u64,
    pub(super) client: &'h str,
    pub(super) member: u64,
    /// The login whose token was presented.
    pub(super) token: Option<u64>,
    pub(super) op: &'h Op,
    pub(super) invoked: Moment,
    /// `None`: the history ends first, which says as little as an unknown outcome.
    pub(super) returned: Option<(Moment, &'h Outcome)>,
    /// The last view that it was answered from.
    pub(super) served: Option<Served>,
    /// Whether it was ever proposed.
    pub(super) proposed: bool,
}

impl Call<'_> {
    /// The answer, if there was one that says something.
    pub(super) fn answer(&self) -> Option<(Moment, &Outcome)> {
        self.returned
            .filter(|(_, outcome)| !matches!(outcome, Outcome::Unknown { .. }))
    }

    /// Whether the client was told that it was done.
    pub(super) fn is_ok(&self) -> bool {
        matches!(self.returned, Some((_, Outcome::Ok(_))))
    }

    /// Whether the call asks for a member's own state, which may be old.
    pub(super) fn is_serializable(&self) -> bool {
        self.op.is_local()
    }

    /// Whether the call can be answered without an entry.
    pub(super) fn is_read(&self) -> bool {
        match self.op {
            Op::Get { .. }
            | Op::AuthStatus {}
            | Op::UserGet { .. }
            | Op::UserList {}
            | Op::RoleGet { .. }
            | Op::RoleList {} => true,
            Op::Txn {
                success, failure, ..
            } => success
                .iter()
                .chain(failure)
                .all(|op| matches!(op, Op::Get { .. })),
            _ => false,
        }
    }
}

/// What was called, and which call each proposal was for.
#[derive(Debug, Default)]
pub(super) struct Run<'h> {
    pub(super) calls: Numbered<Call<'h>>,
    /// By request id: the call, and where it was proposed.
    pub(super) proposals: BTreeMap<u64, (u64, Moment)>,
    /// How often each member has started so far.
    boots: BTreeMap<u64, u64>,
}

impl<'h> Run<'h> {
    /// Collects the calls.
    ///
    /// # Errors
    /// The first defect, as a sentence.
    pub(super) fn read(history: &'h History) -> Result<Run<'h>, String> {
        let mut run = Run::default();
        let mut sequence = Sequence::new(&history.header);
        for (number, event) in history.events.iter().enumerate() {
            sequence
                .follow(event)
                .map_err(|defect| format!("event {number}: {defect}"))?;
            let Event { at_us, what } = event;
            let moment = Moment {
                event: number,
                at_us: *at_us,
            };
            run.take(moment, what);
        }
        if run.calls.is_empty() {
            return Err("the history holds no call".to_owned());
        }
        Ok(run)
    }

    /// The call of this number.
    pub(super) fn call(&self, number: u64) -> &Call<'h> {
        &self.calls[&number]
    }

    /// Takes an event that fits to those before it.
    fn take(&mut self, moment: Moment, what: &'h What) {
        match what {
            What::Invoke { .. } => self.invoke(moment, what),
            What::Return { call, outcome } => {
                if let Some(call) = self.calls.get_mut(call) {
                    call.returned = Some((moment, outcome));
                }
            }
            What::Proposed {
                call: number,
                request_id,
                ..
            } => {
                if let Some(call) = self.calls.get_mut(number) {
                    call.proposed = true;
                }
                self.proposals.insert(*request_id, (*number, moment));
            }
            What::Served {
                member,
                call,
                index,
            } => self.serve(*member, *call, *index),
            What::Started { member, .. } => *self.boots.entry(*member).or_default() += 1,
            _ => {}
        }
    }

    fn invoke(&mut self, moment: Moment, what: &'h What) {
        let What::Invoke {
            call: number,
            client,
            member,
            token,
            op,
        } = what
        else {
            return;
        };
        let call = Call {
            number: *number,
            client,
            member: *member,
            token: *token,
            op,
            invoked: moment,
            returned: None,
            served: None,
            proposed: false,
        };
        self.calls.insert(*number, call);
    }

    fn serve(&mut self, member: u64, call: u64, index: u64) {
        let boot = self.boots.get(&member).copied().unwrap_or(0);
        // A client that gave up saw nothing of a later answer.
        if let Some(call) = self.calls.get_mut(&call)
            && call.returned.is_none()
        {
            call.served = Some(Served {
                member,
                index,
                boot,
            });
        }
    }
}
