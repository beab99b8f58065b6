//! A state in a line: what matters of it for certain calls, and no more.

use super::bounds::Bounds;
use super::findings::Findings;
use super::log::Log;
use super::reach::Reach;
use super::replay::{Replay, view};
use super::run::Run;
use crate::history::{History, Op};
use crate::model::Model;
use crate::words;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Users, roles and keys shown at most; more would hide the point.
const SHOWN: usize = 4;

/// Whom and what a state is shown for.
#[derive(Debug, Default)]
pub(crate) struct Subjects<'h> {
    users: BTreeSet<&'h str>,
    roles: BTreeSet<&'h str>,
    keys: BTreeSet<&'h str>,
}

impl<'h> Subjects<'h> {
    /// Adds whom and what a call is about, and whom its token names.
    pub(crate) fn note(&mut self, bearer: Option<&'h str>, op: &'h Op) {
        self.users.extend(bearer.filter(|name| !name.is_empty()));
        match op {
            Op::Login { user, .. }
            | Op::UserAdd { user, .. }
            | Op::UserDelete { user }
            | Op::UserGet { user }
            | Op::ChangePassword { user, .. } => {
                self.users.insert(user);
            }
            Op::GrantRole { user, role } | Op::RevokeRole { user, role } => {
                self.users.insert(user);
                self.roles.insert(role);
            }
            Op::RoleAdd { role }
            | Op::RoleDelete { role }
            | Op::RoleGet { role }
            | Op::GrantPermission { role, .. }
            | Op::RevokePermission { role, .. } => {
                self.roles.insert(role);
            }
            Op::Put { key, .. } | Op::Get { key, .. } | Op::Delete { key, .. } => {
                self.keys.insert(key);
            }
            Op::Txn {
                success, failure, ..
            } => {
                for op in success.iter().chain(failure) {
                    self.note(None, op);
                }
            }
            Op::AuthEnable {}
            | Op::AuthDisable {}
            | Op::AuthStatus {}
            | Op::UserList {}
            | Op::RoleList {} => {}
        }
    }

    /// The state of the subjects: `auth on at auth revision 9; alice: password alice-2, roles writer; …`. `has_rights`:
    /// whether the state knows what roles may do; `has_keys`: whether it knows keys and counts revisions.
    pub(crate) fn line(&self, model: &Model, has_rights: bool, has_keys: bool) -> String {
        let accounts = model.accounts();
        let mut line = format!("auth {}", if accounts.is_enabled() { "on" } else { "off" });
        if has_keys {
            let _ = write!(line, " at auth revision {}", accounts.revision());
        }
        let mut roles = self.roles.clone();
        let mut held = Vec::new();
        for name in self.users.iter().take(SHOWN) {
            let Some(user) = accounts.user(name) else {
                let _ = write!(line, "; no user {}", name.escape_debug());
                continue;
            };
            let of_user = accounts.roles_of(name);
            let named = match of_user.len() {
                0 => "no role".to_owned(),
                _ => format!("roles {}", of_user.join(" ")),
            };
            let password = user.password.escape_debug();
            let _ = write!(
                line,
                "; {}: password {password}, {named}",
                name.escape_debug()
            );
            held.extend(of_user);
        }
        roles.extend(
            held.iter()
                .map(|role| role.as_str())
                .filter(|role| *role != "root"),
        );
        for role in roles.iter().take(SHOWN).filter(|_| has_rights) {
            if !accounts.knows_role(role) {
                let _ = write!(line, "; no role {}", role.escape_debug());
                continue;
            }
            let grants: Vec<String> = accounts
                .permissions_of(role)
                .iter()
                .take(SHOWN)
                .map(words::grant)
                .collect();
            let grants = if grants.is_empty() {
                "no right".to_owned()
            } else {
                grants.join(", ")
            };
            let _ = write!(line, "; {}: {grants}", role.escape_debug());
        }
        for key in self.keys.iter().take(SHOWN).filter(|_| has_keys) {
            let _ = match model.keys().pair(key) {
                Some(pair) => write!(line, "; {}", words::pair(pair)),
                None => write!(line, "; no {}", key.escape_debug()),
            };
        }
        line
    }
}

/// The state before and after the index at which the first of the calls was decided, a line each: the model's, by the
/// rules, not what any member had. Without an index, or without calls, there is nothing to show.
pub(super) fn around(
    history: &History,
    run: &Run<'_>,
    log: &Log<'_>,
    bounds: &Bounds,
    calls: &[u64],
) -> Vec<String> {
    let Some(first) = calls.first().map(|number| run.call(*number)) else {
        return Vec::new();
    };
    let entry = log.decisive(first.number).map(|entry| entry.applied.index);
    let Some(index) = view(first, log).or(entry) else {
        return Vec::new();
    };
    let mut subjects = Subjects::default();
    for number in calls {
        let call = run.call(*number);
        subjects.note(bearer(run, call.token), call.op);
    }
    // Again from the start, for violations only: to keep every state on the way would cost each passing run.
    let reach = Reach::of(history);
    let mut unheard = Findings::default();
    let rules = history.header.tokens;
    let mut replay = Replay::new(run, log, bounds, &mut unheard, (&reach, rules));
    let (mut before, mut at) = (None, None);
    let stopped = replay.walk(|replay, indices| {
        if indices.contains(&index.saturating_sub(1)) {
            before = Some(replay.model.clone());
        }
        if indices.contains(&index) {
            at = Some(replay.model.clone());
        }
    });
    if stopped == index {
        at = Some(replay.model.clone());
    }
    let line = |place: &str, model: Option<Model>| {
        model.map(|model| {
            format!(
                "{place} index {index}: {}",
                subjects.line(&model, true, true)
            )
        })
    };
    // An answer from a view changes nothing.
    if entry.is_none() {
        return line("at", at).into_iter().collect();
    }
    line("before", before)
        .into_iter()
        .chain(line("after", at))
        .collect()
}

fn bearer<'h>(run: &Run<'h>, login: Option<u64>) -> Option<&'h str> {
    match run.calls.get(&login?)?.op {
        Op::Login { user, .. } => Some(user),
        _ => None,
    }
}
