//! Whether a caller may ask at all: auth off, identity, credential, right; in this order.

use super::accounts::Accounts;
use super::refusal::Refusal;
use super::span::Span;
use super::{Caller, Model};
use crate::history::Op;

impl Model {
    /// Decides whether `caller` may ask for `op`.
    pub(super) fn admit(&self, caller: Caller, op: &Op) -> Result<(), Refusal> {
        if !self.accounts.is_enabled() || matches!(op, Op::AuthStatus {}) {
            return Ok(());
        }
        let Caller::Bearer { login } = caller else {
            return Err(Refusal::UserEmpty);
        };
        let token = self
            .token(login)
            .filter(|_| self.is_alive(login))
            .ok_or(Refusal::InvalidToken)?;
        if self.accounts.may(&token.user, op) {
            Ok(())
        } else {
            Err(Refusal::PermissionDenied)
        }
    }
}

impl Accounts {
    /// Whether `user` has the right to ask for `op` while auth is on.
    pub fn may(&self, user: &str, op: &Op) -> bool {
        match op {
            Op::AuthStatus {} | Op::Login { .. } => true,
            Op::UserGet { user: other } if other == user => self.user(user).is_some(),
            Op::RoleGet { role } if self.holds(user, role) => true,
            _ if op.is_data() => self.may_touch(user, op),
            _ => self.is_admin(user),
        }
    }

    /// Whether `user` has the right to every key that the data call `op` names. Of a transaction both branches count,
    /// whichever will run, because otherwise the answer would tell how its comparisons went.
    fn may_touch(&self, user: &str, op: &Op) -> bool {
        let may_read = |key: &str, end: &str| self.allows(user, false, &Span::new(key, end));
        let may_write = |key: &str, end: &str| self.allows(user, true, &Span::new(key, end));
        match op {
            Op::Get { key, range_end, .. } => may_read(key, range_end),
            Op::Put { key, prev_kv, .. } => may_write(key, "") && (!prev_kv || may_read(key, "")),
            Op::Delete {
                key,
                range_end,
                prev_kv,
            } => may_write(key, range_end) && (!prev_kv || may_read(key, range_end)),
            Op::Txn {
                compare,
                success,
                failure,
            } => {
                let mut ops = success.iter().chain(failure);
                compare.iter().all(|compare| may_read(&compare.key, ""))
                    && ops.all(|op| self.may_touch(user, op))
            }
            _ => false,
        }
    }
}
