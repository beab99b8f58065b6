//! When a client that follows etcd's documentation repeats a call: never if it may have been executed and changes
//! something; reads and logins on another member when one is unavailable; anything, after a new login, when the
//! server says that the token or its revision is out of date.

use gatehouse_judge::history::{Op, Outcome};

/// What to do after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advice {
    /// Take the outcome as it is.
    Accept,
    /// Make the call again, elsewhere if the client has a choice.
    Repeat,
    /// Log in again, then make the call again.
    LoginFirst,
}

/// Advice after `op` ended with `outcome`.
pub(crate) fn advise(op: &Op, outcome: &Outcome) -> Advice {
    match outcome {
        Outcome::Ok(_) => Advice::Accept,
        Outcome::Refused { code, .. } if code == "Unavailable" => Advice::Repeat,
        Outcome::Refused { message, .. } if renews(message) => Advice::LoginFirst,
        Outcome::Refused { .. } => Advice::Accept,
        Outcome::Unknown { .. } if repeatable(op) => Advice::Repeat,
        Outcome::Unknown { .. } => Advice::Accept,
    }
}

/// The texts on which etcd's client gets itself another token.
fn renews(message: &str) -> bool {
    [
        "etcdserver: invalid auth token",
        "etcdserver: revision of auth store is old",
    ]
    .contains(&message)
}

/// Whether executing it twice is as good as once.
fn repeatable(op: &Op) -> bool {
    match op {
        Op::Login { .. }
        | Op::AuthStatus {}
        | Op::UserGet { .. }
        | Op::UserList {}
        | Op::RoleGet { .. }
        | Op::RoleList {}
        | Op::Get { .. } => true,
        Op::AuthEnable {}
        | Op::AuthDisable {}
        | Op::UserAdd { .. }
        | Op::UserDelete { .. }
        | Op::ChangePassword { .. }
        | Op::GrantRole { .. }
        | Op::RevokeRole { .. }
        | Op::RoleAdd { .. }
        | Op::RoleDelete { .. }
        | Op::GrantPermission { .. }
        | Op::RevokePermission { .. }
        | Op::Put { .. }
        | Op::Delete { .. }
        | Op::Txn { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_safe_is_repeated() {
        let put = Op::Put {
            key: "k".into(),
            value: "v".into(),
            prev_kv: false,
        };
        let login = Op::Login {
            user: "u".into(),
            password: "p".into(),
        };
        let lost = Outcome::Unknown {
            code: "Unavailable".into(),
            message: "connection reset".into(),
        };
        let refused = |code: &str, message: &str| Outcome::Refused {
            code: code.into(),
            message: message.into(),
        };
        let rows = [
            (&put, lost.clone(), Advice::Accept),
            (&login, lost, Advice::Repeat),
            (
                &put,
                refused("Unavailable", "not sent: connection refused"),
                Advice::Repeat,
            ),
            (
                &put,
                refused("Unauthenticated", "etcdserver: invalid auth token"),
                Advice::LoginFirst,
            ),
            (
                &put,
                refused(
                    "InvalidArgument",
                    "etcdserver: revision of auth store is old",
                ),
                Advice::LoginFirst,
            ),
            (
                &put,
                refused("PermissionDenied", "etcdserver: permission denied"),
                Advice::Accept,
            ),
        ];
        for (op, outcome, advice) in rows {
            assert_eq!(advise(op, &outcome), advice, "{outcome:?}");
        }
    }
}
