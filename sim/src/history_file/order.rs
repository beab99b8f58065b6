//! What the lines so far allow the next one to be. A file that was put out of order tells of a run that cannot have been,
//! so it is refused where that shows first, and never judged.

use crate::history::{Event, Op, What};
use crate::numbered::Numbered;
use crate::text::Text;
use std::collections::{BTreeMap, BTreeSet};

/// A call that was sent.
struct Known {
    client: Text,
    is_login: bool,
    has_ended: bool,
}

/// The lines so far.
pub(super) struct Order {
    members: u64,
    last_us: u64,
    calls: Numbered<Known>,
    /// The call that each client waits for.
    waiting: BTreeMap<Text, u64>,
    /// The call of each request id.
    proposals: BTreeMap<u64, u64>,
    /// Request ids of applied entries that nobody had proposed before.
    unproposed: BTreeSet<u64>,
}

impl Order {
    /// Nothing so far, of a cluster of so many members.
    pub(super) fn new(members: u64) -> Order {
        Order {
            members,
            last_us: 0,
            calls: Numbered::default(),
            waiting: BTreeMap::new(),
            proposals: BTreeMap::new(),
            unproposed: BTreeSet::new(),
        }
    }

    /// Takes note of the next event.
    ///
    /// # Errors
    /// Why it cannot come next.
    pub(super) fn follow(&mut self, event: &Event) -> Result<(), String> {
        let Event { at_us, what } = event;
        if *at_us < self.last_us {
            let last = self.last_us;
            return Err(format!(
                "time goes back: {at_us} µs after {last} µs; the lines are not in order"
            ));
        }
        self.last_us = *at_us;
        self.check_member(what)?;
        match what {
            What::Invoke { .. } => self.send(what),
            What::Return { call, .. } => self.end(*call),
            What::Proposed {
                call, request_id, ..
            } => self.propose(*call, *request_id),
            What::Served { call, .. } => self.known(*call, "is answered").map(|_| ()),
            What::Applied(applied) => {
                let request_id = applied.request_id;
                if request_id != 0 && !self.proposals.contains_key(&request_id) {
                    self.unproposed.insert(request_id);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn check_member(&self, what: &What) -> Result<(), String> {
        let member = match what {
            What::Invoke { member, .. }
            | What::Proposed { member, .. }
            | What::Served { member, .. }
            | What::Started { member, .. }
            | What::Role { member, .. }
            | What::Probe { member, .. } => *member,
            What::Applied(applied) => applied.member,
            What::Return { .. } | What::Fault { .. } | What::Healed => return Ok(()),
        };
        if (1..=self.members).contains(&member) {
            return Ok(());
        }
        let members = self.members;
        Err(format!(
            "member {member}: the header says that there are {members}, from 1"
        ))
    }

    fn send(&mut self, what: &What) -> Result<(), String> {
        let What::Invoke {
            call,
            client,
            token,
            op,
            ..
        } = what
        else {
            return Ok(());
        };
        if self.calls.contains_key(call) {
            return Err(format!("call {call} is sent a second time"));
        }
        if let Some(login) = token {
            self.check_token(*call, *login)?;
        }
        if holds_more_than_data(op) {
            return Err(format!(
                "the transaction of call {call} holds more than data calls"
            ));
        }
        if let Some(other) = self.waiting.insert(client.clone(), *call) {
            let client = client.escape_debug();
            return Err(format!(
                "{client} sends call {call} while it waits for call {other}"
            ));
        }
        let known = Known {
            client: client.clone(),
            is_login: matches!(**op, Op::Login { .. }),
            has_ended: false,
        };
        self.calls.insert(*call, known);
        Ok(())
    }

    /// Nobody holds a token before its login has ended.
    fn check_token(&self, call: u64, login: u64) -> Result<(), String> {
        match self.calls.get(&login) {
            Some(known) if !known.is_login => Err(format!(
                "call {call} carries the token of call {login}, which is no login"
            )),
            Some(known) if known.has_ended => Ok(()),
            Some(_) | None => Err(format!(
                "call {call} carries the token of call {login} before that has ended"
            )),
        }
    }

    fn end(&mut self, call: u64) -> Result<(), String> {
        let known = self.known(call, "ends")?;
        if known.has_ended {
            return Err(format!("call {call} ends a second time"));
        }
        known.has_ended = true;
        let client = known.client.clone();
        self.waiting.remove(&client);
        Ok(())
    }

    fn propose(&mut self, call: u64, request_id: u64) -> Result<(), String> {
        self.known(call, "is proposed")?;
        if self.unproposed.contains(&request_id) {
            return Err(format!(
                "request id {request_id} is proposed after it was applied"
            ));
        }
        match self.proposals.insert(request_id, call) {
            Some(other) if other != call => Err(format!(
                "request id {request_id} stands for call {other} and for call {call}"
            )),
            _ => Ok(()),
        }
    }

    fn known(&mut self, call: u64, verb: &str) -> Result<&mut Known, String> {
        self.calls
            .get_mut(&call)
            .ok_or_else(|| format!("call {call} {verb} before it was sent"))
    }
}

fn holds_more_than_data(op: &Op) -> bool {
    let Op::Txn {
        success, failure, ..
    } = op
    else {
        return false;
    };
    success.iter().chain(failure).any(|op| match op {
        Op::Put { .. } | Op::Get { .. } | Op::Delete { .. } => false,
        Op::Txn { .. } => holds_more_than_data(op),
        _ => true,
    })
}
