//! Calls, made of the events that tell of them, and the defects that make a history unfit for judging: those are faults
//! of the harness, not of the server, so they are never violations.

use crate::history::{Event, History, Op, Outcome, What};
use crate::numbered::Numbered;
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

    /// Nobody but the member that a call was sent to has anything to do with it.
    fn check_member(&self, member: u64) -> Result<(), String> {
        if member == self.member {
            return Ok(());
        }
        Err(format!(
            "n{member} says that it took call {}, which was sent to n{}",
            self.number, self.member
        ))
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
    /// Calls that clients still wait for.
    outstanding: BTreeMap<&'h str, u64>,
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
        let mut last_us = 0;
        for (event, Event { at_us, what }) in history.events.iter().enumerate() {
            if *at_us < last_us {
                return Err(format!(
                    "event {event} goes back in time: {at_us} µs after {last_us} µs"
                ));
            }
            last_us = *at_us;
            let moment = Moment {
                event,
                at_us: *at_us,
            };
            run.take(moment, what)?;
        }
        if run.calls.is_empty() {
            return Err("the history holds no call".to_owned());
        }
        run.check_tokens()?;
        Ok(run)
    }

    /// The call of this number.
    pub(super) fn call(&self, number: u64) -> &Call<'h> {
        &self.calls[&number]
    }

    fn take(&mut self, moment: Moment, what: &'h What) -> Result<(), String> {
        match what {
            What::Invoke { call, .. } => {
                if self.calls.contains_key(call) {
                    return Err(format!("call {call} is sent twice"));
                }
                self.invoke(moment, what)
            }
            What::Return { call, outcome } => self.end(moment, *call, outcome),
            What::Proposed {
                member,
                call,
                request_id,
            } => {
                self.known(*call, "proposed")?.check_member(*member)?;
                self.propose(moment, *call, *request_id)
            }
            What::Served {
                member,
                call,
                index,
            } => {
                let boot = self.boots.get(member).copied().unwrap_or(0);
                let found = self.known(*call, "answered")?;
                found.check_member(*member)?;
                // A client that gave up saw nothing of a later answer.
                if found.returned.is_none() {
                    found.served = Some(Served {
                        member: *member,
                        index: *index,
                        boot,
                    });
                }
                Ok(())
            }
            What::Started { member, .. } => {
                *self.boots.entry(*member).or_default() += 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn invoke(&mut self, moment: Moment, what: &'h What) -> Result<(), String> {
        let What::Invoke {
            call: number,
            client,
            member,
            token,
            op,
        } = what
        else {
            return Ok(());
        };
        check_shape(*number, op)?;
        if let Some(other) = self.outstanding.insert(client, *number) {
            return Err(format!(
                "{client} sends call {number} while it waits for call {other}"
            ));
        }
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
        Ok(())
    }

    fn end(&mut self, moment: Moment, number: u64, outcome: &'h Outcome) -> Result<(), String> {
        let call = self.known(number, "ended")?;
        if call.returned.is_some() {
            return Err(format!("call {number} ends twice"));
        }
        call.returned = Some((moment, outcome));
        let client = call.client;
        self.outstanding.remove(client);
        Ok(())
    }

    fn propose(&mut self, moment: Moment, number: u64, request_id: u64) -> Result<(), String> {
        self.known(number, "proposed")?.proposed = true;
        match self.proposals.insert(request_id, (number, moment)) {
            Some((other, _)) if other != number => Err(format!(
                "request id {request_id} stands for call {other} and for call {number}"
            )),
            _ => Ok(()),
        }
    }

    fn known(&mut self, number: u64, verb: &str) -> Result<&mut Call<'h>, String> {
        self.calls
            .get_mut(&number)
            .ok_or_else(|| format!("call {number} is {verb} but was never sent"))
    }

    fn check_tokens(&self) -> Result<(), String> {
        for call in self.calls.values() {
            let Some(login) = call.token else { continue };
            let is_login = |login: &Call<'_>| matches!(login.op, Op::Login { .. });
            if !self.calls.get(&login).is_some_and(is_login) {
                return Err(format!(
                    "call {} carries the token of call {login}, which is no login",
                    call.number
                ));
            }
        }
        Ok(())
    }
}

/// A transaction may hold data calls only.
fn check_shape(number: u64, op: &Op) -> Result<(), String> {
    let Op::Txn {
        success, failure, ..
    } = op
    else {
        return Ok(());
    };
    for op in success.iter().chain(failure) {
        match op {
            Op::Put { .. } | Op::Get { .. } | Op::Delete { .. } => {}
            Op::Txn { .. } => check_shape(number, op)?,
            _ => {
                return Err(format!(
                    "the transaction of call {number} holds more than data calls"
                ));
            }
        }
    }
    Ok(())
}
