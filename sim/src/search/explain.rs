//! Why there is no order, in words: the smallest set of calls that cannot be ordered, how far they can, and what is wrong
//! with the next.
//!
//! A call that is left out of the set is treated like one whose answer is lost: it may have happened or not. That only
//! makes it easier to find an order, so if there is none even then, the set alone contradicts itself. Calls are left out
//! for as long as that holds.

use super::calls::{Call, NEVER, Told};
use super::order::{Budget, Found, Search};
use super::problem::{Contradiction, Ground, Problem};
use super::state::{Scope, State, Step};
use super::{Proof, describe};
use crate::history::Op;
use crate::model::Refusal;
use std::collections::BTreeSet;

/// Why no order explains what clients were told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The property that is broken: `LIN`, or another if the calls make it plain.
    pub property: &'static str,
    /// What happened and what should have, in one sentence.
    pub sentence: String,
    /// The smallest set of calls that was found to have no order.
    pub calls: Vec<u64>,
    /// The set, and how far it can be ordered, a line each.
    pub lines: Vec<String>,
}

/// Explains a proof.
pub(super) fn explain(calls: &[Call<'_>], proof: &Proof<'_>, budget: Budget) -> Explanation {
    match proof {
        Proof::Contradiction(contradiction) => of_contradiction(calls, contradiction),
        Proof::Part(slice) => of_search(calls, Scope::Part(slice), budget),
        Proof::Whole => of_search(calls, Scope::Whole, budget),
    }
}

fn of_contradiction(calls: &[Call<'_>], contradiction: &Contradiction) -> Explanation {
    let (mut ids, what) = match contradiction {
        Contradiction::SameRevision { first, second } => {
            let what = format!(
                "{} and {} cannot both have made the same key-value revision",
                call(&calls[*first]),
                call(&calls[*second])
            );
            (vec![*first, *second], what)
        }
        Contradiction::Backwards { first, second } => {
            let what = format!(
                "{} stands after {} by the revision that it was told, but had ended before that was sent",
                call(&calls[*second]),
                call(&calls[*first])
            );
            (vec![*first, *second], what)
        }
        Contradiction::Orphan {
            reader,
            key,
            revision,
        } => {
            let what = format!(
                "{} was told of {} with revision {revision}, which no call can have written",
                call(&calls[*reader]),
                key.escape_debug()
            );
            (vec![*reader], what)
        }
    };
    ids.sort_unstable();
    let lines = ids.iter().map(|id| line(&calls[*id])).collect();
    Explanation {
        property: "LIN",
        sentence: format!("no order of the calls explains what clients were told: {what}"),
        calls: ids.iter().map(|id| calls[*id].number).collect(),
        lines,
    }
}

fn of_search<'h>(calls: &[Call<'h>], scope: Scope<'_, 'h>, budget: Budget) -> Explanation {
    let mut shrinking = Shrinking {
        calls,
        scope,
        budget,
        left: budget.steps,
        deepest: Vec::new(),
    };
    let set = shrinking.smallest();
    let kept: Vec<usize> = set.iter().copied().collect();
    let mut state = State::default();
    for id in &shrinking.deepest {
        let step = if set.contains(id) {
            state.step(&calls[*id], scope)
        } else {
            state.step_unknown(&calls[*id], scope)
        };
        if let Step::New(next) = step {
            state = next;
        }
    }
    let mut waiting: Vec<usize> = kept
        .iter()
        .copied()
        .filter(|id| !shrinking.deepest.contains(id))
        .collect();
    waiting.sort_by_key(|id| calls[*id].ended);
    let next = waiting.first().map(|id| &calls[*id]);
    let (property, what) = match next {
        Some(next) => blame(calls, &kept, next, &state, scope),
        None => (
            "LIN",
            "their times and answers contradict each other".to_owned(),
        ),
    };
    let mut lines = vec![format!("{} calls cannot be put in order:", kept.len())];
    lines.extend(kept.iter().map(|id| format!("  {}", line(&calls[*id]))));
    lines.push(how_far(calls, &shrinking.deepest, &set));
    if let Some(next) = next {
        lines.extend(
            about(next, &state, scope)
                .into_iter()
                .map(|text| format!("  there, {text}")),
        );
        lines.push(format!("  next would be call {}: {what}", next.number));
    }
    Explanation {
        property,
        sentence: format!("no order of the calls explains what clients were told: {what}"),
        calls: kept.iter().map(|id| calls[*id].number).collect(),
        lines,
    }
}

fn how_far(calls: &[Call<'_>], deepest: &[usize], set: &BTreeSet<usize>) -> String {
    if deepest.is_empty() {
        return "none of them can come first".to_owned();
    }
    let names: Vec<String> = deepest
        .iter()
        .map(|id| {
            let lost = if set.contains(id) {
                ""
            } else {
                " (taken to have happened)"
            };
            format!("{}{lost}", calls[*id].number)
        })
        .collect();
    format!("they go no further than call {}", names.join(", "))
}

/// A set of calls on its way to becoming as small as it can be.
struct Shrinking<'c, 's, 'h> {
    calls: &'c [Call<'h>],
    scope: Scope<'s, 'h>,
    budget: Budget,
    /// Steps left for all searches that make the set smaller.
    left: u64,
    /// The longest beginning of an order of the last set that had none.
    deepest: Vec<usize>,
}

impl Shrinking<'_, '_, '_> {
    fn smallest(&mut self) -> BTreeSet<usize> {
        let mut set: BTreeSet<usize> = (0..self.calls.len()).collect();
        if let Ok(ground) = Ground::new(self.calls, |_| true) {
            set = Problem::new(&ground, self.scope)
                .required
                .into_iter()
                .collect();
        }
        self.contradicts(&set);
        set = self.shortest_beginning(set);
        // Ever smaller pieces are left out, at last single calls, until none can be.
        let mut size = set.len().div_ceil(2);
        loop {
            let before = set.len();
            let ids: Vec<usize> = set.iter().rev().copied().collect();
            for piece in ids.chunks(size.max(1)) {
                let mut smaller = set.clone();
                for id in piece {
                    smaller.remove(id);
                }
                if !smaller.is_empty() && self.contradicts(&smaller) {
                    set = smaller;
                }
            }
            if size <= 1 && set.len() == before {
                break;
            }
            size = size.div_ceil(2);
        }
        // What would be wrong with a token is only plain with the login that gave it.
        let logins = set.iter().filter_map(|id| self.login_of(*id));
        let logins: Vec<usize> = logins.collect();
        set.extend(logins);
        // Once more, for its beginning.
        self.left = self.budget.steps;
        self.contradicts(&set);
        set
    }

    /// The login that gave the token of a call, if the scope knows its user.
    fn login_of(&self, id: usize) -> Option<usize> {
        let call = &self.calls[id];
        let knows = match self.scope {
            Scope::Whole => true,
            Scope::Part(slice) => slice.knows_caller(call),
        };
        let login = call.token.filter(|_| knows)?;
        let gave = |call: &Call<'_>| call.number == login && matches!(call.told, Told::Done(_));
        self.calls.iter().position(gave)
    }

    /// The calls that ended up to the first event by which there is no order any more.
    fn shortest_beginning(&mut self, set: BTreeSet<usize>) -> BTreeSet<usize> {
        let mut ends: Vec<usize> = set.iter().map(|id| self.calls[*id].ended).collect();
        ends.sort_unstable();
        let (mut fine, mut bad) = (0, ends.len().saturating_sub(1));
        let begin = |this: &Self, at: usize| -> BTreeSet<usize> {
            let early = set.iter().copied();
            early
                .filter(|id| this.calls[*id].ended <= ends[at])
                .collect()
        };
        while fine < bad {
            let middle = fine.midpoint(bad);
            let beginning = begin(self, middle);
            if self.contradicts(&beginning) {
                bad = middle;
            } else {
                fine = middle + 1;
            }
        }
        ends.get(bad)
            .map_or_else(|| set.clone(), |_| begin(self, bad))
    }

    /// Whether the set alone has no order.
    fn contradicts(&mut self, set: &BTreeSet<usize>) -> bool {
        let calls = lost_but(self.calls, set);
        let Ok(ground) = Ground::new(&calls, |id| set.contains(&id)) else {
            self.deepest.clear();
            return true;
        };
        let problem = Problem::new(&ground, self.scope);
        let budget = Budget {
            steps: self.left.min(self.budget.steps / 20),
            ..self.budget
        };
        let mut search = Search::new(&problem, &[], budget);
        let found = search.run();
        // Making ready for a search costs something, too.
        self.left = self
            .left
            .saturating_sub(search.steps() + self.calls.len() as u64);
        match found {
            Found::Nothing(best) => {
                self.deepest = best;
                true
            }
            _ => false,
        }
    }
}

/// The calls with the answers of only those in the set: a call whose answer does not count may have had any.
fn lost_but<'h>(calls: &[Call<'h>], set: &BTreeSet<usize>) -> Vec<Call<'h>> {
    let lost = |(id, call): (usize, &Call<'h>)| match call.told {
        Told::Done(_) | Told::Refused(_) | Told::Nothing if !set.contains(&id) => Call {
            told: Told::Unknown,
            ..*call
        },
        _ => *call,
    };
    calls.iter().enumerate().map(lost).collect()
}

/// Which property the call breaks in this state, and how.
fn blame(
    calls: &[Call<'_>],
    kept: &[usize],
    next: &Call<'_>,
    state: &State,
    scope: Scope<'_, '_>,
) -> (&'static str, String) {
    let told = told(next);
    let right = state.verdict(next, scope);
    let name = call(next);
    let should = match &right {
        Ok(()) => "allowed".to_owned(),
        Err(refusal) => format!("refused (`{}`)", refusal.text()),
    };
    let ended_before = |is_it: fn(&Op) -> bool| {
        kept.iter().any(|id| {
            let call = &calls[*id];
            call.ended < next.sent && matches!(call.told, Told::Done(_)) && is_it(call.op)
        })
    };
    let property = match (next.op, next.told, right) {
        (Op::Login { .. }, ..) => "P5",
        (_, Told::Done(_), Err(Refusal::InvalidToken)) => "P6",
        (_, Told::Done(_), Err(Refusal::PermissionDenied | Refusal::UserEmpty))
            if ended_before(takes) =>
        {
            "P2"
        }
        (_, Told::Refused(Refusal::PermissionDenied), Ok(())) if ended_before(gives) => "P3",
        (_, Told::Refused(Refusal::InvalidToken), _) => "P7",
        _ => "LIN",
    };
    let what = match (next.told, right) {
        (Told::Done(_), Ok(())) => {
            format!("{name} was told {told}, which is not so in any state that it can stand in")
        }
        _ => format!(
            "{name} was told {told}, but in every place that is left for it it would have been {should}"
        ),
    };
    (property, what)
}

fn takes(op: &Op) -> bool {
    matches!(
        op,
        Op::RevokeRole { .. }
            | Op::RevokePermission { .. }
            | Op::RoleDelete { .. }
            | Op::UserDelete { .. }
            | Op::GrantPermission { .. } // A lesser kind in place of a greater one.
            | Op::AuthEnable {}
    )
}

fn gives(op: &Op) -> bool {
    matches!(
        op,
        Op::GrantRole { .. } | Op::GrantPermission { .. } | Op::AuthDisable {}
    )
}

/// What the state holds that the call is about.
fn about(next: &Call<'_>, state: &State, scope: Scope<'_, '_>) -> Vec<String> {
    let accounts = state.model.accounts();
    let flag = if accounts.is_enabled() { "on" } else { "off" };
    let auth = match scope {
        Scope::Whole => format!("auth is {flag} at auth revision {}", accounts.revision()),
        Scope::Part(_) => format!("auth is {flag}"), // It counts its own changes only.
    };
    let name = match next.op {
        Op::Login { user, .. } => user.as_str(),
        _ => next.user,
    };
    let user = match accounts.user(name) {
        _ if name.is_empty() => None,
        Some(user) => Some(format!(
            "{name} has password `{}` and the roles [{}]",
            user.password,
            accounts.roles_of(name).join(" ")
        )),
        None => Some(format!("there is no user {name}")),
    };
    let rights = accounts.roles_of(name).into_iter().map(|role| {
        let grants = accounts.permissions_of(&role);
        let grants: Vec<String> = grants.iter().map(describe::grant).collect();
        format!("role {role} gives [{}]", grants.join(", "))
    });
    let key = match next.op {
        Op::Put { key, .. } | Op::Get { key, .. } | Op::Delete { key, .. } => {
            state.model.keys().pair(key).map(describe::pair)
        }
        _ => None,
    };
    let all = std::iter::once(auth).chain(user).chain(rights).chain(key);
    all.collect()
}

/// `call 41 (mallory put /app/x on n2 at 6.120 s)`.
pub(super) fn call(call: &Call<'_>) -> String {
    format!(
        "call {} ({} {} on n{} at {})",
        call.number,
        call.client,
        describe::op(call.op),
        call.member,
        describe::seconds(call.sent_us)
    )
}

fn line(of: &Call<'_>) -> String {
    let with = match of.token {
        Some(login) => format!(", with the token of login {login}"),
        None => String::new(),
    };
    let end = if of.ended == NEVER {
        "never ended".to_owned()
    } else {
        format!("ended at {}", describe::seconds(of.ended_us))
    };
    format!("{}{with}: {end}, told {}", call(of), told(of))
}

fn told(call: &Call<'_>) -> String {
    match call.told {
        Told::Done(reply) => match describe::reply(reply).as_str() {
            "nothing" => "`ok`".to_owned(),
            reply => format!("`ok` ({reply})"),
        },
        Told::Refused(refusal) => format!("`{}`", refusal.text()),
        Told::Unknown | Told::Nothing => "nothing".to_owned(),
    }
}
