//! Stand-ins for planted bugs: decisions that a member takes from its own state before the log position is known. The
//! server has no such step, so each switch needs one here; `state/apply.rs` then skips its own. Without a switch nothing
//! here does anything, and a real build contains none of it.

use super::Api;
use super::call::Call;
use super::error::ApiError;
use super::identity::Resolved;
use crate::node::View;
use crate::planted::{Bug, planted};
use crate::state::{ApplyError, Caller, Identity, Op, Range, State, Txn};
use crate::window::{self, Window};
use std::sync::Arc;

/// For what has been decided already: whoever asks now is not asked again.
const DECIDED: Caller = Caller {
    identity: Identity::Internal,
    auth_revision: 0,
};

/// What a read asks for.
#[derive(Clone, Copy)]
pub(super) enum Reading<'m> {
    /// A range.
    Range(&'m Range),
    /// A transaction that only reads.
    Txn(&'m Txn),
}

impl Reading<'_> {
    fn permit(self, state: &State, caller: &Caller) -> Result<(), ApplyError> {
        match self {
            Reading::Range(range) => state.permit_range(caller, range),
            Reading::Txn(txn) => state.permit_txn(caller, txn),
        }
    }

    /// The switch that parts a serializable read of this kind from its decision.
    fn without_recheck(self) -> Bug {
        match self {
            Reading::Range(_) => Bug::SerializableNoRecheckA,
            Reading::Txn(_) => Bug::SerializableNoRecheckB,
        }
    }
}

impl Api {
    /// The view in which a write's caller is looked up: this member's own.
    pub(super) async fn view_for_write(&self, call: &Call, op: &Op) -> Result<Arc<View>, ApiError> {
        if decides_on_fresh_state(op) {
            return Ok(self.node.barrier(call.deadline()).await?);
        }
        Ok(self.node.view())
    }

    /// Decides a write where it arrives, if a switch says so.
    pub(super) fn decide_write(&self, resolved: Resolved, op: &Op) -> Result<Caller, ApiError> {
        let Resolved { caller, view } = resolved;
        let is_data = matches!(op, Op::Put(_) | Op::DeleteRange(_) | Op::Txn(_));
        if self.believes_auth_is_off() {
            return Ok(Caller::ANONYMOUS);
        }
        let is_stale = is_data && planted(Bug::StaleMemberCheckA);
        // Where auth is known to be on, an anonymous entry would pass: some members believe that it is off.
        let is_anonymous = caller == Caller::ANONYMOUS && planted(Bug::StaleMemberCheckB);
        if is_stale || is_anonymous || decides_on_fresh_state(op) {
            view.state.permit(&caller, op)?;
        }
        Ok(caller)
    }

    /// Decides a linearizable read on this member's own state and passes the barrier after that, if a switch says so.
    pub(super) async fn decide_before_barrier(
        &self,
        call: &Call,
        reading: Reading<'_>,
    ) -> Result<Option<Resolved>, ApiError> {
        if self.believes_auth_is_off() {
            let view = self.node.barrier(call.deadline()).await?;
            return Ok(Some(Resolved {
                caller: DECIDED,
                view,
            }));
        }
        if !planted(Bug::StaleMemberCheckC) {
            return Ok(None);
        }
        let Resolved { caller, view } = self.resolve(call, self.node.view()).await?;
        if let Err(refusal) = reading.permit(&view.state, &caller) {
            self.served(call, &view);
            return Err(refusal.into());
        }
        let view = self.node.barrier(call.deadline()).await?;
        Ok(Some(Resolved {
            caller: DECIDED,
            view,
        }))
    }

    /// What lies between the decision of a serializable read and the reading itself: nothing, as both come from one view;
    /// unless a switch says so.
    pub(super) async fn part_from_decision(
        &self,
        call: &Call,
        resolved: Resolved,
        reading: Reading<'_>,
    ) -> Result<Resolved, ApiError> {
        let decided = planted(reading.without_recheck());
        if decided && let Err(refusal) = reading.permit(&resolved.view.state, &resolved.caller) {
            self.served(call, &resolved.view);
            return Err(refusal.into());
        }
        window::pass(Window::CheckToRead, self.node.member_id()).await;
        if decided {
            let view = self.node.view();
            return Ok(Resolved {
                caller: DECIDED,
                view,
            });
        }
        Ok(resolved)
    }

    /// Whether this member does not lead, and was started while auth was off, and a switch has it never look again.
    fn believes_auth_is_off(&self) -> bool {
        planted(Bug::StaleMemberCheckB)
            && !self.auth_at_start
            && self.node.status().leader != self.node.member_id()
    }
}

fn decides_on_fresh_state(op: &Op) -> bool {
    match op {
        Op::Put(_) | Op::DeleteRange(_) | Op::Txn(_) => planted(Bug::CheckAtApiLayerA),
        _ => planted(Bug::CheckAtApiLayerB),
    }
}
