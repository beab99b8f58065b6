//! What the events so far allow the next one to be. A history that was put out of order tells of a run that cannot have
//! been, so it is refused where that shows first, and never judged: by the reader of files, which adds the place, and by
//! the judge for a history that never was a file.

use crate::history::{Applied, Event, Header, Op, What};
use crate::numbered::Numbered;
use crate::text::Text;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};

/// Why an event cannot come next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Defect {
    /// In a sentence.
    pub(crate) what: String,
    /// The event's field that is at fault.
    pub(crate) field: &'static str,
}

impl Display for Defect {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

fn defect<T>(field: &'static str, what: String) -> Result<T, Defect> {
    Err(Defect { what, field })
}

/// A call that was sent.
#[derive(Debug)]
struct Known {
    client: Text,
    member: u64,
    is_login: bool,
    has_ended: bool,
}

/// The events so far.
#[derive(Debug)]
pub(crate) struct Sequence {
    /// How many members there are, from 1; 0 if the header does not say, which no file's does.
    members: u64,
    last_us: u64,
    calls: Numbered<Known>,
    /// The call that each client waits for.
    waiting: BTreeMap<Text, u64>,
    /// The call of each request id.
    proposals: BTreeMap<u64, u64>,
    /// Request ids of applied entries that nobody had proposed before.
    unproposed: BTreeSet<u64>,
    /// The last index that any member has applied. What an entry is shows when the first of them does.
    applied: u64,
    /// Log indices of logins that any member has applied.
    logins: BTreeSet<u64>,
}

impl Sequence {
    /// Nothing so far.
    pub(crate) fn new(header: &Header) -> Sequence {
        Sequence {
            members: header.members,
            last_us: 0,
            calls: Numbered::default(),
            waiting: BTreeMap::new(),
            proposals: BTreeMap::new(),
            unproposed: BTreeSet::new(),
            applied: 0,
            logins: BTreeSet::new(),
        }
    }

    /// Takes note of the next event.
    ///
    /// # Errors
    /// Why it cannot come next.
    pub(crate) fn follow(&mut self, event: &Event) -> Result<(), Defect> {
        let Event { at_us, what } = event;
        if *at_us < self.last_us {
            let last = self.last_us;
            let what =
                format!("time goes back: {at_us} µs after {last} µs; the events are not in order");
            return defect("at_us", what);
        }
        self.last_us = *at_us;
        self.check_member(what)?;
        match what {
            What::Invoke { .. } => self.send(what),
            What::Return { call, .. } => self.end(*call),
            What::Proposed {
                member,
                call,
                request_id,
            } => self.propose(*member, *call, *request_id),
            What::Served { member, call, .. } => {
                self.known(*call, "is answered")?.takes(*call, *member)
            }
            What::Applied(applied) => self.apply(applied),
            _ => Ok(()),
        }
    }

    fn check_member(&self, what: &What) -> Result<(), Defect> {
        let member = match what {
            What::Invoke { member, .. }
            | What::Proposed { member, .. }
            | What::Served { member, .. }
            | What::Started { member, .. }
            | What::Truncated { member, .. }
            | What::SnapshotSent { member, .. }
            | What::Compared { member, .. }
            | What::Role { member, .. }
            | What::Probe { member, .. } => *member,
            What::Applied(applied) => applied.member,
            What::Installed(installed) => installed.member,
            What::Return { .. } | What::Fault { .. } | What::Healed => return Ok(()),
        };
        let members = self.members;
        if members == 0 || (1..=members).contains(&member) {
            return Ok(());
        }
        let what = format!("member {member}: the header says that there are {members}, from 1");
        defect("member", what)
    }

    fn send(&mut self, what: &What) -> Result<(), Defect> {
        let What::Invoke {
            call,
            client,
            member,
            token,
            op,
        } = what
        else {
            return Ok(());
        };
        if self.calls.contains_key(call) {
            return defect("call", format!("call {call} is sent a second time"));
        }
        if let Some(login) = token {
            self.check_token(*call, *login)?;
        }
        if holds_more_than_data(op) {
            let what = format!("the transaction of call {call} holds more than data calls");
            return defect("op", what);
        }
        if let Some(other) = self.waiting.insert(client.clone(), *call) {
            let client = client.escape_debug();
            let what = format!("{client} sends call {call} while it waits for call {other}");
            return defect("client", what);
        }
        let known = Known {
            client: client.clone(),
            member: *member,
            is_login: matches!(**op, Op::Login { .. }),
            has_ended: false,
        };
        self.calls.insert(*call, known);
        Ok(())
    }

    /// Nobody holds a token before its login has ended.
    fn check_token(&self, call: u64, login: u64) -> Result<(), Defect> {
        let what = match self.calls.get(&login) {
            Some(known) if !known.is_login => {
                format!("call {call} carries the token of call {login}, which is no login")
            }
            Some(known) if known.has_ended => return Ok(()),
            Some(_) | None => {
                format!("call {call} carries the token of call {login} before that has ended")
            }
        };
        defect("token", what)
    }

    fn end(&mut self, call: u64) -> Result<(), Defect> {
        let known = self.known(call, "ends")?;
        if known.has_ended {
            return defect("call", format!("call {call} ends a second time"));
        }
        known.has_ended = true;
        let client = known.client.clone();
        self.waiting.remove(&client);
        Ok(())
    }

    fn propose(&mut self, member: u64, call: u64, request_id: u64) -> Result<(), Defect> {
        self.known(call, "is proposed")?.takes(call, member)?;
        if self.unproposed.contains(&request_id) {
            let what = format!("request id {request_id} is proposed after it was applied");
            return defect("request_id", what);
        }
        match self.proposals.insert(request_id, call) {
            Some(other) if other != call => {
                let what =
                    format!("request id {request_id} stands for call {other} and for call {call}");
                defect("request_id", what)
            }
            _ => Ok(()),
        }
    }

    fn apply(&mut self, applied: &Applied) -> Result<(), Defect> {
        let request_id = applied.request_id;
        let is_first = applied.index > self.applied;
        self.applied = self.applied.max(applied.index);
        if is_first && request_id != 0 && !self.proposals.contains_key(&request_id) {
            self.unproposed.insert(request_id);
        }
        // An entry speaks of tokens only after somebody has applied the logins that gave them.
        let index = |note: &&u64| !self.logins.contains(note);
        let named = applied.tokens.iter().map(|note| &note.login_index);
        if let Some(login) = named.clone().find(index) {
            let what = format!(
                "index {} speaks of the token of index {login}, where no login was applied",
                applied.index
            );
            return defect("tokens", what);
        }
        if is_first && matches!(&*applied.kind, "login" | "authenticate") {
            self.logins.insert(applied.index);
        }
        Ok(())
    }

    fn known(&mut self, call: u64, verb: &str) -> Result<&mut Known, Defect> {
        self.calls.get_mut(&call).ok_or_else(|| Defect {
            what: format!("call {call} {verb} before it was sent"),
            field: "call",
        })
    }
}

impl Known {
    /// Nobody but the member that a call was sent to has anything to do with it.
    fn takes(&self, call: u64, member: u64) -> Result<(), Defect> {
        if member == self.member {
            return Ok(());
        }
        let sent_to = self.member;
        let what = format!("n{member} says that it took call {call}, which was sent to n{sent_to}");
        defect("member", what)
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
