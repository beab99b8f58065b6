//! The calls of a history as clients saw them: sent, ended, told. Nothing that members recorded is read here.

use crate::history::{History, Op, Outcome, Reply, TokenRules, What};
use crate::model::Refusal;
use crate::noncommittal::tells_nothing;
use crate::words;
use std::collections::{BTreeMap, BTreeSet};

/// The end of a call that never ended: later than every event.
pub(super) const NEVER: usize = usize::MAX;

/// What the client was told.
#[derive(Clone, Copy, Debug)]
pub(super) enum Told<'h> {
    /// It was done.
    Done(&'h Reply),
    /// It was refused, and had no effect.
    Refused(Refusal),
    /// Nothing, or nothing that says anything about the call's effect.
    Unknown,
    /// It was refused for its form, or because the cluster could not: no effect, and no word about any state.
    Nothing,
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'h> {
    pub(super) number: u64,
    pub(super) client: &'h str,
    pub(super) member: u64,
    /// The login whose token was presented.
    pub(super) token: Option<u64>,
    /// Whom that login named.
    pub(super) user: &'h str,
    pub(super) op: &'h Op,
    /// Number of the event that sent it, and its time in microseconds.
    pub(super) sent: usize,
    pub(super) sent_us: u64,
    /// The same of the event that ended it; [`NEVER`] without one.
    pub(super) ended: usize,
    pub(super) ended_us: u64,
    pub(super) told: Told<'h>,
    /// Whether the rules allow that its token had died of age, or had made room for others.
    pub(super) may_have_died: bool,
    /// For a login: whether any call presents its token.
    pub(super) token_is_used: bool,
}

/// Why calls could not be read.
#[derive(Debug)]
pub(super) struct Unreadable {
    pub(super) sentence: String,
    pub(super) call: u64,
}

/// Collects the calls, in the order in which they were sent.
///
/// # Errors
/// A refusal that no rule knows.
pub(super) fn read(history: &History) -> Result<Vec<Call<'_>>, Unreadable> {
    let mut calls: Vec<Call<'_>> = Vec::new();
    let mut places = BTreeMap::new();
    let mut users: BTreeMap<u64, &str> = BTreeMap::new();
    for (event, at) in history.events.iter().enumerate() {
        match &at.what {
            What::Invoke {
                call: number,
                client,
                member,
                token,
                op,
            } => {
                if let Op::Login { user, .. } = &**op {
                    users.insert(*number, user);
                }
                places.insert(*number, calls.len());
                calls.push(Call {
                    number: *number,
                    client,
                    member: *member,
                    token: *token,
                    user: "",
                    op,
                    sent: event,
                    sent_us: at.at_us,
                    ended: NEVER,
                    ended_us: u64::MAX,
                    told: Told::Unknown,
                    may_have_died: false,
                    token_is_used: false,
                });
            }
            What::Return { call, outcome } => {
                let Some(place) = places.get(call) else {
                    continue; // Cannot be: the judge has seen to it that answers have questions.
                };
                let call = &mut calls[*place];
                (call.ended, call.ended_us) = (event, at.at_us);
                call.told = told(call, outcome)?;
            }
            _ => {}
        }
    }
    note_tokens(&mut calls, &users);
    note_deaths(&mut calls, history.header.tokens);
    Ok(calls)
}

/// The calls as they would have been read from the same history without the answers of those that are not in the set: one
/// whose answer is lost may have had any, and may have taken effect at any later time, or never.
pub(super) fn with_answers_of<'h>(
    calls: &[Call<'h>],
    set: &BTreeSet<usize>,
    rules: TokenRules,
) -> Vec<Call<'h>> {
    let mut left: Vec<Call<'h>> = calls.to_vec();
    for (id, call) in left.iter_mut().enumerate() {
        if !set.contains(&id) {
            (call.ended, call.ended_us) = (NEVER, u64::MAX);
            call.told = Told::Unknown;
        }
    }
    // A login that was refused may now have given a token, which may have died or have made others die.
    note_deaths(&mut left, rules);
    left
}

fn note_tokens<'h>(calls: &mut [Call<'h>], users: &BTreeMap<u64, &'h str>) {
    let mut used = BTreeSet::new();
    for call in calls.iter_mut() {
        let Some(login) = call.token else { continue };
        call.user = users.get(&login).copied().unwrap_or_default();
        used.insert(login);
    }
    for call in calls.iter_mut() {
        call.token_is_used = used.contains(&call.number);
    }
}

fn told<'h>(call: &Call<'_>, outcome: &'h Outcome) -> Result<Told<'h>, Unreadable> {
    Ok(match outcome {
        Outcome::Ok(reply) => Told::Done(reply),
        Outcome::Unknown { .. } => Told::Unknown,
        Outcome::Refused { code, message } if tells_nothing(call.op, code, message) => {
            Told::Nothing
        }
        Outcome::Refused { message, .. } => match Refusal::from_message(message) {
            Some(refusal) => Told::Refused(refusal),
            None => {
                let sentence = format!(
                    "call {} ({} {}) was refused with `{}`, which the model does not know",
                    call.number,
                    call.client,
                    words::op(call.op),
                    message.escape_debug()
                );
                let call = call.number;
                return Err(Unreadable { sentence, call });
            }
        },
    })
}

/// Notes whose token may have died without an auth change. A use renews a token only once its member has reported it, and
/// clients cannot see whether that happened; so age counts from the login, and a crowd from all logins of the user. That
/// lets some false refusals pass, and accuses nobody of a right one.
fn note_deaths(calls: &mut [Call<'_>], rules: TokenRules) {
    let slack = rules.ttl_ms.saturating_mul(rules.drift_ppm) / 1000; // Microseconds.
    let lifetime_us = rules.ttl_ms.saturating_mul(1000).saturating_sub(slack);
    let mut born: BTreeMap<u64, u64> = BTreeMap::new();
    let mut logins: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for call in calls.iter() {
        if let Op::Login { user, .. } = call.op
            && matches!(call.told, Told::Done(_) | Told::Unknown)
        {
            born.insert(call.number, call.sent_us);
            logins.entry(user).or_default().push(call.sent);
        }
    }
    for call in calls.iter_mut() {
        let Some(born) = call.token.and_then(|login| born.get(&login)) else {
            continue;
        };
        let is_old = call.ended_us.saturating_sub(*born) >= lifetime_us;
        let sent = logins.get(call.user).map_or(&[][..], Vec::as_slice);
        let crowd = sent.partition_point(|sent| *sent < call.ended) as u64;
        call.may_have_died = is_old || crowd > rules.per_user_max;
    }
}

impl Call<'_> {
    /// Whether a member answers it from its own state, which may be old.
    pub(super) fn is_local(&self) -> bool {
        self.op.is_local()
    }

    /// Whether it can change nothing, whatever the state.
    pub(super) fn only_reads(&self) -> bool {
        only_reads(self.op)
    }
}

fn only_reads(op: &Op) -> bool {
    match op {
        Op::Get { .. }
        | Op::AuthStatus {}
        | Op::UserGet { .. }
        | Op::UserList {}
        | Op::RoleGet { .. }
        | Op::RoleList {} => true,
        Op::Txn {
            success, failure, ..
        } => success.iter().chain(failure).all(only_reads),
        _ => false,
    }
}
