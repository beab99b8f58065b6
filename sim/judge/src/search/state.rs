//! The state that a search carries along, and what each call may do in it: the model, with every token bound to the epoch
//! of the place that its login was given.

use super::calls::{Call, Told};
use super::slice::Slice;
use crate::history::{Op, Reply};
use crate::model::{Blend, Model, Refusal};
use crate::sameness::is_same;
use imbl::OrdMap;
use std::sync::Arc;

/// What is searched: the whole history, or one user's part of it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scope<'s, 'h> {
    /// Every answer counts, to the last revision.
    Whole,
    /// Only decisions that concern the user count.
    Part(&'s Slice<'h>),
}

impl Scope<'_, '_> {
    fn knows_rights(self, op: &Op) -> bool {
        match self {
            Scope::Whole => true,
            Scope::Part(slice) => slice.knows_rights(op),
        }
    }
}

/// A token, as its login's place made it.
#[derive(Clone, Debug)]
struct Bound {
    user: Arc<str>,
    epoch: u64,
    auth_revision: u64,
}

/// State after some calls.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) model: Model,
    tokens: OrdMap<u64, Bound>,
}

/// What comes of putting a call next.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "it lives for a moment, and a box would cost an allocation for each of millions of steps"
)]
pub(super) enum Step {
    /// It cannot have been answered like that here.
    Wrong,
    /// It can, and changes nothing.
    Same,
    /// It can, and leaves this state.
    New(State),
}

impl State {
    /// A number that two states share if the same calls of the scope are right in both, now and later.
    pub(super) fn fingerprint(&self, scope: Scope<'_, '_>) -> u128 {
        match scope {
            Scope::Whole => {
                let accounts = self.model.accounts().timeless_fingerprint();
                accounts ^ self.model.keys().fingerprint() ^ self.fingerprint_of_tokens()
            }
            Scope::Part(slice) => self.fingerprint_of(slice),
        }
    }

    /// Which tokens are alive, and what else their answers may tell. From which epoch each is makes no difference, because
    /// an epoch never comes back.
    fn fingerprint_of_tokens(&self) -> u128 {
        let accounts = self.model.accounts();
        let mut blend = Blend::of("tokens");
        for (login, bound) in &self.tokens {
            let is_alive = accounts.epoch(&bound.user) == Some(bound.epoch);
            let was_off_since = accounts.epoch_floor() > bound.auth_revision;
            blend.number(*login);
            blend.number(u64::from(is_alive) + 2 * u64::from(was_off_since));
        }
        blend.finish()
    }

    /// A part never looks at auth revisions as such, only at which tokens are alive: so states that differ in the number
    /// of changes alone are one.
    fn fingerprint_of(&self, slice: &Slice<'_>) -> u128 {
        let accounts = self.model.accounts();
        let mut blend = Blend::of("part");
        blend.number(u64::from(accounts.is_enabled()));
        if let Some(user) = accounts.user(slice.user) {
            blend.text(&user.password);
            for role in accounts.roles_of(slice.user) {
                blend.text(&role);
            }
        }
        for role in slice.roles() {
            blend.text(role);
            let known = accounts.knows_role(role);
            blend.number(u64::from(known));
            let mut grants = accounts.permissions_of(role);
            grants.sort();
            for grant in grants {
                blend.number(grant.kind as u64);
                blend.text(&grant.key);
                blend.text(&grant.range_end);
            }
        }
        let epoch = accounts.epoch(slice.user);
        for (login, bound) in &self.tokens {
            if *bound.user == *slice.user {
                let is_alive = epoch == Some(bound.epoch);
                let was_off_since = accounts.epoch_floor() > bound.auth_revision;
                blend.number(*login);
                blend.number(u64::from(is_alive) + 2 * u64::from(was_off_since));
            }
        }
        blend.finish()
    }

    /// Puts the call next. Of a call that may have happened or not, no answer counts.
    pub(super) fn step_unknown(&self, call: &Call<'_>, scope: Scope<'_, '_>) -> Step {
        self.carry_out(call, None, scope)
    }

    /// Puts the call next.
    pub(super) fn step(&self, call: &Call<'_>, scope: Scope<'_, '_>) -> Step {
        match call.told {
            Told::Nothing => Step::Same,
            Told::Refused(refusal) => {
                if self.explains(call, refusal, scope) {
                    Step::Same
                } else {
                    Step::Wrong
                }
            }
            Told::Done(reply) => self.carry_out(call, Some(reply), scope),
            Told::Unknown => self.carry_out(call, None, scope),
        }
    }

    /// Whether the refusal is right here.
    fn explains(&self, call: &Call<'_>, refusal: Refusal, scope: Scope<'_, '_>) -> bool {
        let accounts = self.model.accounts();
        if let Op::Login { user, password } = call.op {
            return match refusal {
                Refusal::NotEnabled => !accounts.is_enabled(),
                Refusal::AuthFailed => !self.has_password(user, password),
                _ => false,
            };
        }
        let bound = call.token.and_then(|login| self.tokens.get(&login));
        let knows_caller = match scope {
            Scope::Whole => true,
            Scope::Part(slice) => slice.knows_caller(call),
        };
        match refusal {
            Refusal::InvalidToken | Refusal::UserEmpty | Refusal::PermissionDenied
                if !knows_caller =>
            {
                true
            }
            // A token that died stays dead, and one that was never given was never good.
            Refusal::InvalidToken => {
                call.token.is_some() && (call.may_have_died || !self.is_alive(call))
            }
            // Whether a simple token is good is the cluster's to know, so its age is nobody's excuse.
            Refusal::OldRevision => false,
            // A token is ignored where auth is off, and the member may have been there still.
            Refusal::UserEmpty if call.token.is_some() => {
                let was_off_since =
                    bound.is_none_or(|bound| accounts.epoch_floor() > bound.auth_revision);
                accounts.is_enabled() && was_off_since
            }
            Refusal::UserEmpty | Refusal::PermissionDenied => match self.admit(call, scope) {
                // Where the scope does not know the rights, they may have been missing.
                Ok(()) => {
                    refusal == Refusal::PermissionDenied
                        && !scope.knows_rights(call.op)
                        && accounts.is_enabled()
                }
                Err(found) => found == refusal,
            },
            // A condition of the call itself: whoever is told of it was allowed to ask.
            refusal => {
                let may_ask = !knows_caller || self.admit(call, scope).is_ok();
                may_ask
                    && self
                        .conditions(call, scope)
                        .is_none_or(|found| found == Err(refusal))
            }
        }
    }

    /// Whether the call can be done here, if its caller may ask; `None` where the scope cannot know.
    fn conditions(&self, call: &Call<'_>, scope: Scope<'_, '_>) -> Option<Result<(), Refusal>> {
        match scope {
            Scope::Whole => Some(self.model.check(call.op)),
            Scope::Part(slice) if slice.knows_conditions(call.op) => {
                Some(self.model.accounts().check(call.op))
            }
            Scope::Part(_) => None,
        }
    }

    /// The right decision here, as far as the scope knows.
    pub(super) fn verdict(&self, call: &Call<'_>, scope: Scope<'_, '_>) -> Result<(), Refusal> {
        if let Op::Login { user, password } = call.op {
            return if !self.model.accounts().is_enabled() {
                Err(Refusal::NotEnabled)
            } else if self.has_password(user, password) {
                Ok(())
            } else {
                Err(Refusal::AuthFailed)
            };
        }
        match scope {
            Scope::Part(slice) if !slice.knows_caller(call) => {}
            _ => self.admit(call, scope)?,
        }
        self.conditions(call, scope).unwrap_or(Ok(()))
    }

    /// Whether the call is allowed here and can be done, as far as the scope knows.
    fn accepts(&self, call: &Call<'_>, scope: Scope<'_, '_>) -> bool {
        let may_ask = match scope {
            Scope::Part(slice) if !slice.knows_caller(call) => true,
            _ => self.admit(call, scope).is_ok(),
        };
        may_ask
            && self
                .conditions(call, scope)
                .is_none_or(|found| found.is_ok())
    }

    /// Whether the caller may ask at all, as far as the scope knows.
    fn admit(&self, call: &Call<'_>, scope: Scope<'_, '_>) -> Result<(), Refusal> {
        let accounts = self.model.accounts();
        if !accounts.is_enabled() || matches!(call.op, Op::AuthStatus {}) {
            return Ok(());
        }
        if call.token.is_none() {
            return Err(Refusal::UserEmpty);
        }
        if !self.is_alive(call) {
            return Err(Refusal::InvalidToken);
        }
        if !scope.knows_rights(call.op) || accounts.may(call.user, call.op) {
            Ok(())
        } else {
            Err(Refusal::PermissionDenied)
        }
    }

    /// Whether the call's token belongs to its user's epoch.
    fn is_alive(&self, call: &Call<'_>) -> bool {
        let bound = call.token.and_then(|login| self.tokens.get(&login));
        bound.is_some_and(|bound| self.model.accounts().epoch(call.user) == Some(bound.epoch))
    }

    fn has_password(&self, user: &str, password: &str) -> bool {
        let user = self.model.accounts().user(user);
        user.is_some_and(|user| user.password == password)
    }

    fn carry_out(&self, call: &Call<'_>, told: Option<&Reply>, scope: Scope<'_, '_>) -> Step {
        if let Op::Login { user, password } = call.op {
            return self.log_in(call, user, password);
        }
        // Cheap, and in a long history nearly always the answer.
        let revision = self.model.kv_revision();
        if let (Scope::Whole, Some(told)) = (scope, told)
            && (told.revision != 0 || call.op.is_data())
            && told.revision != revision
            && told.revision != revision.saturating_add(1)
        {
            return Step::Wrong;
        }
        if !self.accepts(call, scope) {
            return Step::Wrong;
        }
        if let Scope::Part(slice) = scope {
            return self.carry_out_part(call, told, slice);
        }
        let mut after = self.model.clone();
        let reply = after.perform(0, call.op);
        if told.is_some_and(|told| !is_same(call.op, told, &reply)) {
            return Step::Wrong;
        }
        self.moved_to(after)
    }

    fn carry_out_part(&self, call: &Call<'_>, told: Option<&Reply>, slice: &Slice<'_>) -> Step {
        if slice.changes_with(call.op) {
            let mut after = self.model.clone();
            after.perform(0, call.op);
            return self.moved_to(after);
        }
        let Some(told) = told else { return Step::Same };
        let is_right = match call.op {
            Op::AuthStatus {} => told
                .auth
                .is_none_or(|auth| auth.enabled == self.model.accounts().is_enabled()),
            Op::UserList {} => {
                let is_listed = told.names.iter().any(|name| name == slice.user);
                is_listed == self.model.accounts().user(slice.user).is_some()
            }
            Op::RoleList {} => slice.roles().all(|role| {
                let is_listed = told.names.iter().any(|name| name == role);
                is_listed == self.model.accounts().knows_role(role)
            }),
            op if slice.knows_conditions(op) => {
                let mut reply = self.model.clone().perform(0, op);
                reply.revision = told.revision;
                is_same(op, told, &reply)
            }
            _ => true,
        };
        if is_right { Step::Same } else { Step::Wrong }
    }

    fn moved_to(&self, after: Model) -> Step {
        let is_same = after.kv_revision() == self.model.kv_revision()
            && after.accounts().generation() == self.model.accounts().generation();
        if is_same {
            return Step::Same;
        }
        Step::New(State {
            model: after,
            ..self.clone()
        })
    }

    fn log_in(&self, call: &Call<'_>, user: &str, password: &str) -> Step {
        let accounts = self.model.accounts();
        let Some(epoch) = accounts.epoch(user) else {
            return Step::Wrong;
        };
        if !accounts.is_enabled() || !self.has_password(user, password) {
            return Step::Wrong;
        }
        if !call.token_is_used {
            return Step::Same;
        }
        let bound = Bound {
            user: user.into(),
            epoch,
            auth_revision: accounts.revision(),
        };
        let mut after = self.clone();
        after.tokens.insert(call.number, bound);
        Step::New(after)
    }
}
