//! Why there is no order, in words: a few calls that cannot be ordered, how far they can, and what is wrong with the next.
//! Which calls these are is [`shrink`](super::shrink)'s business.

use super::Proof;
use super::calls::{Call, NEVER, Told};
use super::order::{Budget, Found, Search};
use super::problem::{Contradiction, Ground, Problem};
use super::shrink::{self, Shrinking, Shrunk, Why};
use super::state::{Scope, State, Step};
use crate::history::{Op, TokenRules};
use crate::model::Refusal;
use crate::words;
use std::collections::BTreeSet;

/// Why no order explains what clients were told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The property that is broken: `LIN`, or another if the calls make it plain.
    pub property: &'static str,
    /// What happened and what should have, in one sentence.
    pub sentence: String,
    /// Calls whose answers no order explains, whatever those of all others were.
    pub calls: Vec<u64>,
    /// Whether each of them is needed: without the answer of any one of them an order was found. If not, the search for
    /// fewer calls ran out of its budget.
    pub is_minimal: bool,
    /// The set, and how far it can be ordered, a line each.
    pub lines: Vec<String>,
}

/// Most calls that are listed, a line each; more would not be read.
const LISTED_MAX: usize = 40;

/// How long is looked for an order of all calls, to say how far it goes.
const LOOK: Budget = Budget {
    steps: 300_000,
    states: 100_000,
};

/// What there is to say if no single call can be blamed.
const CONTRADICT: &str = "their times and answers contradict each other";

/// Explains a proof.
pub(super) fn explain<'h>(
    calls: &[Call<'h>],
    rules: TokenRules,
    proof: &Proof<'h>,
    budget: Budget,
) -> Explanation {
    let part = match proof {
        Proof::Whole => shrink::part_without_order(calls, budget),
        _ => None,
    };
    let proof = part.as_ref().unwrap_or(proof);
    let shrunk = Shrinking::new(calls, rules, proof, budget).run();
    let (property, sentence, reason) = match &shrunk.why {
        Why::Contradiction(contradiction) => of_contradiction(calls, contradiction),
        Why::Search { deepest } => of_search(calls, &shrunk, deepest),
        Why::Proved => ("LIN", CONTRADICT.to_owned(), Vec::new()),
    };
    let mut lines = listed(calls, &shrunk);
    lines.extend(reason);
    Explanation {
        property,
        sentence: format!("no order of the calls explains what clients were told: {sentence}"),
        calls: shrunk.set.iter().map(|id| calls[*id].number).collect(),
        is_minimal: shrunk.is_minimal,
        lines,
    }
}

/// The calls of the set, and the logins of their tokens.
fn listed(calls: &[Call<'_>], shrunk: &Shrunk) -> Vec<String> {
    let count = shrunk.set.len();
    let mut lines = vec![match (count, shrunk.is_minimal) {
        (1, _) => "1 call has no place:".to_owned(),
        (_, true) => format!(
            "{count} calls cannot be put in order, but without any one of them the others can:"
        ),
        (_, false) => format!("{count} calls cannot be put in order:"),
    }];
    let list = |ids: Vec<usize>| ids.into_iter().map(|id| format!("  {}", line(&calls[id])));
    let few = shrunk.set.iter().copied().take(LISTED_MAX);
    lines.extend(list(few.collect()));
    if count > LISTED_MAX {
        lines.push(format!("  and {} more", count - LISTED_MAX));
    }
    let logins: Vec<usize> = shrunk.logins.iter().copied().take(LISTED_MAX).collect();
    if !logins.is_empty() {
        lines.push("their tokens are of:".to_owned());
        lines.extend(list(logins));
    }
    lines
}

/// The property, the sentence and further lines.
type Reason = (&'static str, String, Vec<String>);

fn of_contradiction(calls: &[Call<'_>], contradiction: &Contradiction) -> Reason {
    let what = match contradiction {
        Contradiction::SameRevision { first, second } => format!(
            "{} and {} cannot both have made the same key-value revision",
            call(&calls[*first]),
            call(&calls[*second])
        ),
        Contradiction::Backwards { first, second } => format!(
            "{} stands after {} by the revision that it was told, but had ended before that was sent",
            call(&calls[*second]),
            call(&calls[*first])
        ),
        Contradiction::Orphan {
            reader,
            key,
            revision,
        } => format!(
            "{} was told of {} with revision {revision}, which no call can have written",
            call(&calls[*reader]),
            key.escape_debug()
        ),
    };
    ("LIN", what, Vec::new())
}

fn of_search(calls: &[Call<'_>], shrunk: &Shrunk, deepest: &[usize]) -> Reason {
    let shown: BTreeSet<usize> = shrunk.set.union(&shrunk.logins).copied().collect();
    let mut lines = vec![how_far(calls, deepest, &shown)];
    // Without the answers of the others hardly anything is known, so what is right is said of an order of all calls.
    let Some(beginning) = beginning(calls, &shown) else {
        return ("LIN", CONTRADICT.to_owned(), lines);
    };
    let (next, state) = (&calls[beginning.next], beginning.state);
    let (property, what) = blame(calls, &shown, next, &state);
    let last = beginning.last.map_or(String::new(), |last| {
        format!(", as far as call {}", calls[last].number)
    });
    lines.push(format!("all calls can be put in order up to there{last}:"));
    lines.extend(
        about(next, &state)
            .into_iter()
            .map(|text| format!("  {text}")),
    );
    lines.push(format!("  next would be call {}: {what}", next.number));
    (property, what, lines)
}

/// The longest beginning of an order of all calls.
struct Beginning {
    last: Option<usize>,
    /// The state behind it.
    state: State,
    /// Of the calls in question, the one that should come next.
    next: usize,
}

/// How far all calls can be put in order. `None` if all that are in question can stand in it, or if their answers
/// contradict each other without a search.
fn beginning(calls: &[Call<'_>], shown: &BTreeSet<usize>) -> Option<Beginning> {
    let ground = Ground::new(calls, |_| true).ok()?;
    let whole = Problem::new(&ground, Scope::Whole);
    let best = match Search::new(&whole, &[], LOOK).run() {
        Found::Order(_) => return None,
        Found::Nothing(best) | Found::OverBudget(best) => best,
    };
    let mut state = State::default();
    for id in &best {
        let step = if whole.is_required(*id) && !matches!(calls[*id].told, Told::Unknown) {
            state.step(&calls[*id], Scope::Whole)
        } else {
            state.step_unknown(&calls[*id], Scope::Whole)
        };
        if let Step::New(next) = step {
            state = next;
        }
    }
    let placed: BTreeSet<usize> = best.iter().copied().collect();
    let waiting = shown.iter().filter(|id| !placed.contains(id));
    let next = *waiting.min_by_key(|id| calls[**id].ended)?;
    let last = best.last().copied();
    Some(Beginning { last, state, next })
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

/// Which property the call breaks in this state, and how.
fn blame(
    calls: &[Call<'_>],
    kept: &BTreeSet<usize>,
    next: &Call<'_>,
    state: &State,
) -> (&'static str, String) {
    let told = told(next);
    let right = state.verdict(next, Scope::Whole);
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
            format!(
                "{name} was told {told}, which is not so where the other calls leave a place for it"
            )
        }
        _ => format!(
            "{name} was told {told}, but where the other calls leave a place for it it would have been {should}"
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
fn about(next: &Call<'_>, state: &State) -> Vec<String> {
    let accounts = state.model.accounts();
    let flag = if accounts.is_enabled() { "on" } else { "off" };
    let auth = format!("auth is {flag} at auth revision {}", accounts.revision());
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
    let roles = accounts.roles_of(name).into_iter();
    let rights = roles.map(|role| role_gives(state, &role));
    let role = match next.op {
        Op::RoleGet { role }
        | Op::RoleDelete { role }
        | Op::GrantPermission { role, .. }
        | Op::RevokePermission { role, .. }
            if !accounts.knows_role(role) =>
        {
            Some(format!("there is no role {role}"))
        }
        Op::RoleGet { role } => Some(role_gives(state, role)),
        _ => None,
    };
    let key = match next.op {
        Op::Put { key, .. } | Op::Get { key, .. } | Op::Delete { key, .. } => {
            state.model.keys().pair(key).map(words::pair)
        }
        _ => None,
    };
    let all = std::iter::once(auth).chain(user).chain(rights);
    all.chain(role).chain(key).collect()
}

fn role_gives(state: &State, role: &str) -> String {
    let grants = state.model.accounts().permissions_of(role);
    let grants: Vec<String> = grants.iter().map(words::grant).collect();
    format!("role {role} gives [{}]", grants.join(", "))
}

/// `call 41 (mallory put /app/x on n2 at 6.120 s)`.
pub(super) fn call(call: &Call<'_>) -> String {
    format!(
        "call {} ({} {} on n{} at {})",
        call.number,
        call.client,
        words::op(call.op),
        call.member,
        words::seconds(call.sent_us)
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
        format!("ended at {}", words::seconds(of.ended_us))
    };
    format!("{}{with}: {end}, told {}", call(of), told(of))
}

fn told(call: &Call<'_>) -> String {
    match call.told {
        Told::Done(reply) => match words::reply(reply).as_str() {
            "nothing" => "`ok`".to_owned(),
            reply => format!("`ok` ({reply})"),
        },
        Told::Refused(refusal) => format!("`{}`", refusal.text()),
        Told::Unknown | Told::Nothing => "nothing".to_owned(),
    }
}
