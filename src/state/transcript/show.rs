//! Writes results as transcripts state them.

use crate::state::*;
use std::fmt::Display;

/// The answer to an entry, with what clients can tell from it.
pub(super) fn response(response: &Response, state: &State, events: &str) -> String {
    match response {
        Response::Done => format!("ok, auth revision {}", state.auth_revision()),
        Response::Put(previous) => {
            let previous = previous
                .as_ref()
                .map_or(String::new(), |kv| format!(", was {}", pair(kv)));
            format!("revision {}{previous}{events}", state.meta().kv_revision)
        }
        Response::DeleteRange(deletion) => {
            format!(
                "revision {}, {}{events}",
                state.meta().kv_revision,
                deleted(deletion)
            )
        }
        Response::Txn(response) => {
            format!(
                "revision {}, {}{events}",
                state.meta().kv_revision,
                txn(response)
            )
        }
        Response::Authenticated(_) | Response::AuthenticateAgain => {
            panic!("only logins are answered so")
        }
    }
}

/// What watchers see of keys, as a part of the answer: nothing if there is nothing.
pub(super) fn events(events: &[Event]) -> String {
    let show = |event: &Event| match event {
        Event::Put(kv) => Some(format!("{}@{}", pair(kv), kv.mod_revision)),
        Event::Delete(key, revision) => Some(format!("-{}@{revision}", escape(key))),
        Event::AuthChanged => None,
    };
    let shown: Vec<String> = events.iter().filter_map(show).collect();
    if shown.is_empty() {
        String::new()
    } else {
        format!(", events {}", shown.join(" "))
    }
}

pub(super) fn txn(response: &TxnResponse) -> String {
    let show = |response: &TxnOpResponse| match response {
        TxnOpResponse::Range(response) => found(response, false),
        TxnOpResponse::Put(None) => "put".to_owned(),
        TxnOpResponse::Put(Some(previous)) => format!("put, was {}", pair(previous)),
        TxnOpResponse::DeleteRange(response) => deleted(response),
        TxnOpResponse::Txn(response) => txn(response),
    };
    let shown: Vec<String> = response.responses.iter().map(show).collect();
    let branch = if response.succeeded { "then" } else { "else" };
    if shown.is_empty() {
        format!("{branch} ()")
    } else {
        format!("{branch} ( {} )", shown.join(" ; "))
    }
}

pub(super) fn found(found: &Found, detailed: bool) -> String {
    let show = |kv: &KeyValue| match detailed {
        true => format!(
            "{} (create {} mod {} version {} lease {})",
            pair(kv),
            kv.create_revision,
            kv.mod_revision,
            kv.version,
            kv.lease
        ),
        false => pair(kv),
    };
    let mut text: Vec<String> = found.kvs.iter().map(show).collect();
    if text.is_empty() {
        text.push("none".to_owned());
    }
    if found.more {
        text.push("and more".to_owned());
    }
    if i64::try_from(found.kvs.len()).unwrap() != found.count {
        text.push(format!("of {}", found.count));
    }
    text.join(" ")
}

fn deleted(deleted: &Deleted) -> String {
    let mut text = format!("deleted {}", deleted.deleted);
    for kv in &deleted.prev_kvs {
        text += &format!(" {}", pair(kv));
    }
    text
}

pub(super) fn names<T: Display>(names: Result<Vec<T>, ApplyError>) -> String {
    list(names, |name| name.to_string())
}

pub(super) fn permissions(permissions: Result<Vec<Permission>, ApplyError>) -> String {
    list(permissions, |Permission { kind, range }| {
        let kind = match kind {
            PermissionKind::Read => "read".to_owned(),
            PermissionKind::Write => "write".to_owned(),
            PermissionKind::ReadWrite => "both".to_owned(),
            PermissionKind::Unknown(number) => number.to_string(),
        };
        format!(
            "{kind} [{},{})",
            escape(&range.key),
            escape(&range.range_end)
        )
    })
}

fn list<T>(items: Result<Vec<T>, ApplyError>, show: impl Fn(&T) -> String) -> String {
    match items {
        Ok(items) if items.is_empty() => "none".to_owned(),
        Ok(items) => items.iter().map(show).collect::<Vec<_>>().join(" "),
        Err(refusal) => refusal.to_string(),
    }
}

pub(super) fn check(checked: Result<(), ApplyError>) -> String {
    checked.map_or_else(|refusal| refusal.to_string(), |()| "ok".to_owned())
}

/// What a login would compare with. The hashes of transcripts are no secrets.
pub(super) fn login_record(record: Option<LoginRecord>) -> String {
    let Some(LoginRecord {
        password,
        no_password,
        epoch,
    }) = record
    else {
        return "none".to_owned();
    };
    let kind = if no_password { "no password, " } else { "" };
    format!("{kind}hash '{}', epoch {epoch}", escape(&password.0))
}

/// The parts of the state that no client sees in an answer.
pub(super) fn meta(state: &State) -> String {
    let Meta {
        auth_enabled,
        auth_revision,
        generation,
        epoch_floor,
        kv_revision,
        ..
    } = state.meta();
    let auth = if auth_enabled { "on" } else { "off" };
    let tokens = state.image().tokens.len();
    format!(
        "auth {auth}, auth revision {auth_revision}, generation {generation}, epoch floor {epoch_floor}, \
         tokens {tokens}, revision {kv_revision}"
    )
}

fn pair(kv: &KeyValue) -> String {
    format!("{}={}", escape(&kv.key), escape(&kv.value))
}

fn escape(bytes: &[u8]) -> String {
    let show = |byte: &u8| match byte {
        0 => "\\0".to_owned(),
        0xff => "\\xff".to_owned(),
        byte => char::from(*byte).to_string(),
    };
    bytes.iter().map(show).collect()
}
