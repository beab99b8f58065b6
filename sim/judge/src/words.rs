//! Words for operations, times and answers, as verdicts, expectations and logs use them.

use crate::history::{Grant, GrantKind, Op, Outcome, Pair, Reply, TokenNote};

/// Pairs that a sentence shows of an answer; more would hide the point.
const PAIRS_SHOWN: usize = 3;

/// `6.120 s`, of a time in microseconds.
pub fn seconds(at_us: u64) -> String {
    let milliseconds = at_us / 1000;
    format!("{}.{:03} s", milliseconds / 1000, milliseconds % 1000)
}

/// The operation's tag in histories and plans.
pub fn kind(op: &Op) -> &'static str {
    match op {
        Op::Login { .. } => "login",
        Op::AuthEnable {} => "auth-enable",
        Op::AuthDisable {} => "auth-disable",
        Op::AuthStatus {} => "auth-status",
        Op::UserAdd { .. } => "user-add",
        Op::UserDelete { .. } => "user-delete",
        Op::UserGet { .. } => "user-get",
        Op::UserList {} => "user-list",
        Op::ChangePassword { .. } => "change-password",
        Op::GrantRole { .. } => "grant-role",
        Op::RevokeRole { .. } => "revoke-role",
        Op::RoleAdd { .. } => "role-add",
        Op::RoleDelete { .. } => "role-delete",
        Op::RoleGet { .. } => "role-get",
        Op::RoleList {} => "role-list",
        Op::GrantPermission { .. } => "grant-permission",
        Op::RevokePermission { .. } => "revoke-permission",
        Op::Put { .. } => "put",
        Op::Get { .. } => "get",
        Op::Delete { .. } => "delete",
        Op::Txn { .. } => "txn",
    }
}

/// The operation with what it is about.
pub fn op(op: &Op) -> String {
    let kind = kind(op);
    match op {
        Op::Login { user, .. }
        | Op::UserAdd { user, .. }
        | Op::UserDelete { user }
        | Op::UserGet { user }
        | Op::ChangePassword { user, .. } => format!("{kind} {user}"),
        Op::GrantRole { user, role } | Op::RevokeRole { user, role } => {
            format!("{kind} {user} {role}")
        }
        Op::RoleAdd { role } | Op::RoleDelete { role } | Op::RoleGet { role } => {
            format!("{kind} {role}")
        }
        Op::GrantPermission { role, grant } => format!("{kind} {role} {}", self::grant(grant)),
        Op::RevokePermission {
            role,
            key,
            range_end,
        } => format!("{kind} {role} {}", range(key, range_end)),
        Op::Put { key, .. } => format!("{kind} {}", range(key, "")),
        Op::Get {
            key,
            range_end,
            serializable,
            ..
        } => {
            let local = if *serializable { "serializable " } else { "" };
            format!("{local}{kind} {}", range(key, range_end))
        }
        Op::Delete { key, range_end, .. } => format!("{kind} {}", range(key, range_end)),
        Op::Txn {
            compare,
            success,
            failure,
        } => {
            let compares = compare.iter().map(|compare| range(&compare.key, ""));
            let compares = compares.map(|key| format!("compare {key}"));
            let ops = success.iter().chain(failure).map(self::op);
            let inner: Vec<String> = compares.chain(ops).collect();
            format!("{kind} of {}", inner.join(", "))
        }
        Op::AuthEnable {}
        | Op::AuthDisable {}
        | Op::AuthStatus {}
        | Op::UserList {}
        | Op::RoleList {} => kind.to_owned(),
    }
}

/// An answer's content, shortened.
pub fn reply(reply: &Reply) -> String {
    let mut parts = Vec::new();
    if let Some(auth) = reply.auth {
        let flag = if auth.enabled { "on" } else { "off" };
        parts.push(format!("auth {flag} at auth revision {}", auth.revision));
    }
    if let Some(succeeded) = reply.succeeded {
        let branch = if succeeded { "success" } else { "failure" };
        let inner: Vec<String> = reply.responses.iter().map(self::reply).collect();
        parts.push(format!("branch {branch} ({})", inner.join("; ")));
    }
    if !reply.names.is_empty() {
        parts.push(reply.names.join(" "));
    }
    parts.extend(reply.permissions.iter().map(grant));
    parts.extend(reply.kvs.iter().take(PAIRS_SHOWN).map(pair));
    if reply.kvs.len() > PAIRS_SHOWN {
        parts.push("…".to_owned());
    }
    if reply.count != 0 {
        parts.push(format!("count {}", reply.count));
    }
    if reply.revision != 0 {
        parts.push(format!("revision {}", reply.revision));
    }
    if parts.is_empty() {
        return "nothing".to_owned();
    }
    parts.join(", ")
}

/// How a call ended, as what it "was": `refused with PermissionDenied "etcdserver: permission denied"`.
pub fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Ok(told) => format!("done with {}", reply(told)),
        Outcome::Refused { code, message } => {
            format!("refused with {code} \"{}\"", message.escape_debug())
        }
        Outcome::Unknown { code, message } => {
            format!("given up with {code} \"{}\"", message.escape_debug())
        }
    }
}

/// The tokens that an entry names: `15 with 2 reports of use, 18`; each by the index of its login.
pub fn tokens(notes: &[TokenNote]) -> String {
    let one = |note: &TokenNote| match note.refresh_count {
        0 => note.login_index.to_string(),
        1 => format!("{} with 1 report of use", note.login_index),
        count => format!("{} with {count} reports of use", note.login_index),
    };
    if notes.is_empty() {
        return "none".to_owned();
    }
    notes.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// `/app/x=1 of revision 7`.
pub fn pair(pair: &Pair) -> String {
    format!(
        "{}={} of revision {}",
        pair.key.escape_debug(),
        pair.value.escape_debug(),
        pair.mod_revision
    )
}

/// `readwrite /app/../app0`.
pub fn grant(grant: &Grant) -> String {
    let kind = match grant.kind {
        GrantKind::Read => "read",
        GrantKind::Write => "write",
        GrantKind::Readwrite => "readwrite",
    };
    format!("{kind} {}", range(&grant.key, &grant.range_end))
}

fn range(key: &str, range_end: &str) -> String {
    match range_end {
        "" => key.escape_debug().to_string(),
        "\0" => format!("{} and up", key.escape_debug()),
        end => format!("{}..{}", key.escape_debug(), end.escape_debug()),
    }
}
