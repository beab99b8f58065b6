//! Users, roles, the flag and the auth revision, with the conditions and effects of each auth change.

use super::fingerprint::Blend;
use super::refusal::Refusal;
use super::span::{Span, is_covered, may_be_granted};
use crate::history::{Grant, GrantKind, Op};
use crate::text::Text;
use imbl::OrdMap;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The role that may do everything, and the user that must hold it while auth is on.
const ROOT: &str = "root";

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Id of its password.
    pub password: Text,
    roles: BTreeSet<Text>,
    /// Auth revision after creation or after the last password change, whichever came later.
    pub renewed: u64,
}

/// Everything about auth except tokens. A clone shares what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accounts {
    enabled: bool,
    revision: u64,
    generation: u64,
    epoch_floor: u64,
    users: OrdMap<Text, Arc<User>>,
    roles: OrdMap<Text, Arc<Vec<Grant>>>,
    /// The fingerprints of all users and roles, blended.
    blend: u128,
    /// The same, without the auth revisions that users carry.
    timeless: u128,
}

impl Default for Accounts {
    fn default() -> Self {
        Accounts {
            enabled: false,
            revision: 1,
            generation: 0,
            epoch_floor: 0,
            users: OrdMap::new(),
            roles: OrdMap::new(),
            blend: 0,
            timeless: 0,
        }
    }
}

impl Accounts {
    /// Whether auth is on.
    pub fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Etcd's auth revision: from 1, one more with each change except AuthEnable.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Counts every change, AuthEnable included.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Auth revision after the last AuthDisable; no epoch lies below it.
    pub fn epoch_floor(&self) -> u64 {
        self.epoch_floor
    }

    /// The same of two states that differ at most in which changes made their epochs: for whoever knows which tokens are
    /// alive, those are equal.
    pub fn timeless_fingerprint(&self) -> u128 {
        let mut blend = Blend::of("accounts");
        blend.number(u64::from(self.enabled));
        blend.number(self.revision);
        blend.number(self.generation);
        self.timeless ^ blend.finish()
    }

    /// The user of this name.
    pub fn user(&self, name: &str) -> Option<&User> {
        self.users.get(name).map(Arc::as_ref)
    }

    /// The user's epoch: moved by its creation, its password changes and AuthDisable. `None` if there is no such user.
    pub fn epoch(&self, name: &str) -> Option<u64> {
        self.user(name)
            .map(|user| user.renewed.max(self.epoch_floor))
    }

    /// A number that two states share if they are equal, and practically never otherwise.
    pub fn fingerprint(&self) -> u128 {
        let mut blend = Blend::of("accounts");
        blend.number(u64::from(self.enabled));
        blend.number(self.revision);
        blend.number(self.generation);
        blend.number(self.epoch_floor);
        self.blend ^ blend.finish()
    }

    /// Whether there is a role of this name.
    pub fn knows_role(&self, name: &str) -> bool {
        self.roles.contains_key(name)
    }

    /// Whether the user holds the role `root`.
    pub fn is_admin(&self, name: &str) -> bool {
        self.holds(name, ROOT)
    }

    /// Whether the user holds the role.
    pub fn holds(&self, name: &str, role: &str) -> bool {
        self.user(name)
            .is_some_and(|user| user.roles.contains(role))
    }

    /// Whether the user may read (or write) every key in the span.
    pub fn allows(&self, name: &str, to_write: bool, span: &Span) -> bool {
        let Some(user) = self.user(name) else {
            return false;
        };
        let grants = user
            .roles
            .iter()
            .filter_map(|role| self.roles.get(role.as_str()));
        self.is_admin(name) || is_covered(grants.flat_map(|held| held.iter()), to_write, span)
    }

    /// Every permission that the user holds through a role.
    pub fn grants_of(&self, name: &str) -> Vec<&Grant> {
        let roles = self.user(name).into_iter().flat_map(|user| &user.roles);
        roles
            .filter_map(|role| self.roles.get(role))
            .flat_map(|grants| grants.iter())
            .collect()
    }

    /// Names of those who hold the role.
    pub fn holders_of(&self, role: &str) -> Vec<Text> {
        let holds = |user: &&Text| self.holds(user, role);
        self.users.keys().filter(holds).cloned().collect()
    }

    /// Whether somebody can still administer: while auth is on, the user `root` must exist and hold the role `root`.
    pub fn is_administrable(&self) -> bool {
        !self.enabled || self.is_admin(ROOT)
    }

    /// The user's roles in order.
    pub fn roles_of(&self, name: &str) -> Vec<Text> {
        self.user(name)
            .map(|user| user.roles.iter().cloned().collect())
            .unwrap_or_default()
    }

    /// Every user's name in order.
    pub fn user_names(&self) -> Vec<Text> {
        self.users.keys().cloned().collect()
    }

    /// Every role's name in order.
    pub fn role_names(&self) -> Vec<Text> {
        self.roles.keys().cloned().collect()
    }

    /// The role's permissions. `root` always shows the right to everything (etcd 3.6).
    pub fn permissions_of(&self, role: &str) -> Vec<Grant> {
        if role == ROOT {
            let range_end = Text::from("\0");
            let kind = GrantKind::Readwrite;
            return vec![Grant {
                kind,
                key: Text::default(),
                range_end,
            }];
        }
        self.grants(role)
    }

    /// Whether the change (or listing) can be done, once the caller is known to be allowed to ask.
    ///
    /// # Errors
    /// The first condition that does not hold.
    pub fn check(&self, op: &Op) -> Result<(), Refusal> {
        let protected = |name: &str| self.enabled && name == ROOT;
        match op {
            Op::AuthEnable {} => self.check_enable(),
            Op::UserAdd { user, .. } => {
                refuse_if(user.is_empty(), Refusal::UserEmpty)?;
                refuse_if(self.users.contains_key(user.as_str()), Refusal::UserExists)
            }
            Op::UserDelete { user } => {
                refuse_if(protected(user), Refusal::InvalidManagement)?;
                self.check_user(user)
            }
            Op::UserGet { user } | Op::ChangePassword { user, .. } => self.check_user(user),
            Op::GrantRole { user, role } => {
                self.check_user(user)?;
                if role == ROOT {
                    return Ok(()); // It may be granted without existing.
                }
                self.check_role(role)
            }
            Op::RevokeRole { user, role } => {
                refuse_if(protected(user) && role == ROOT, Refusal::InvalidManagement)?;
                self.check_user(user)?;
                refuse_if(!self.holds(user, role), Refusal::RoleNotGranted)
            }
            Op::RoleAdd { role } => {
                refuse_if(role.is_empty(), Refusal::RoleEmpty)?;
                refuse_if(self.roles.contains_key(role.as_str()), Refusal::RoleExists)
            }
            Op::RoleDelete { role } => {
                refuse_if(protected(role), Refusal::InvalidManagement)?;
                self.check_role(role)
            }
            Op::RoleGet { role } => self.check_role(role),
            Op::GrantPermission { role, grant } => {
                let is_range = may_be_granted(&grant.key, &grant.range_end);
                refuse_if(!is_range, Refusal::InvalidManagement)?;
                self.check_role(role)
            }
            Op::RevokePermission {
                role,
                key,
                range_end,
            } => {
                self.check_role(role)?;
                let named = |grant: &Grant| grant.key == *key && grant.range_end == *range_end;
                let held = self.roles.get(role.as_str());
                let held = held.is_some_and(|grants| grants.iter().any(named));
                refuse_if(!held, Refusal::PermissionNotGranted)
            }
            _ => Ok(()),
        }
    }

    fn check_enable(&self) -> Result<(), Refusal> {
        // Switching on what is on does nothing, so it needs nothing.
        if self.enabled {
            return Ok(());
        }
        refuse_if(!self.users.contains_key(ROOT), Refusal::NoRootUser)?;
        refuse_if(!self.is_admin(ROOT), Refusal::NoRootRole)
    }

    fn check_user(&self, name: &str) -> Result<(), Refusal> {
        refuse_if(!self.users.contains_key(name), Refusal::UserNotFound)
    }

    fn check_role(&self, name: &str) -> Result<(), Refusal> {
        refuse_if(!self.roles.contains_key(name), Refusal::RoleNotFound)
    }

    /// Makes a change that [`Accounts::check`] has let pass.
    pub fn perform(&mut self, op: &Op) {
        match op {
            Op::AuthEnable {} if self.enabled => {}
            Op::AuthEnable {} => {
                self.enabled = true;
                self.generation += 1; // But not the revision.
            }
            Op::AuthDisable {} if !self.enabled => {}
            Op::AuthDisable {} => {
                self.enabled = false;
                self.epoch_floor = self.advance();
            }
            // Granting a held role is accepted and changes nothing.
            Op::GrantRole { user, role } if self.holds(user, role) => {}
            Op::UserAdd { user, password } => {
                let added = User {
                    password: password.clone(),
                    roles: BTreeSet::new(),
                    renewed: self.advance(),
                };
                self.set_user(user, Some(added));
            }
            Op::UserDelete { user } => {
                self.advance();
                self.set_user(user, None);
            }
            Op::ChangePassword { user, password } => {
                let renewed = self.advance();
                self.change_user(user, |user| {
                    user.password.clone_from(password);
                    user.renewed = renewed;
                });
            }
            Op::GrantRole { user, role } => {
                self.advance();
                self.change_user(user, |user| {
                    user.roles.insert(role.clone());
                });
            }
            Op::RevokeRole { user, role } => {
                self.advance();
                self.change_user(user, |user| {
                    user.roles.remove(role);
                });
            }
            _ => self.perform_on_role(op),
        }
    }

    fn perform_on_role(&mut self, op: &Op) {
        match op {
            Op::RoleAdd { role } => {
                self.advance();
                self.set_role(role, Some(Vec::new()));
            }
            Op::RoleDelete { role } => {
                self.advance();
                self.set_role(role, None);
                for user in self.user_names() {
                    if self.holds(&user, role) {
                        self.change_user(&user, |user| {
                            user.roles.remove(role);
                        });
                    }
                }
            }
            Op::GrantPermission { role, grant } => {
                self.advance();
                let mut grants = self.grants(role);
                grants.retain(|held| !(held.key == grant.key && held.range_end == grant.range_end));
                grants.push(grant.clone());
                self.set_role(role, Some(grants));
            }
            Op::RevokePermission {
                role,
                key,
                range_end,
            } => {
                self.advance();
                let mut grants = self.grants(role);
                grants.retain(|held| !(held.key == *key && held.range_end == *range_end));
                self.set_role(role, Some(grants));
            }
            _ => {}
        }
    }

    fn grants(&self, role: &str) -> Vec<Grant> {
        self.roles
            .get(role)
            .map(|grants| grants.to_vec())
            .unwrap_or_default()
    }

    fn change_user(&mut self, name: &str, change: impl FnOnce(&mut User)) {
        if let Some(mut user) = self.user(name).cloned() {
            change(&mut user);
            self.set_user(name, Some(user));
        }
    }

    /// Puts a user in place of the one of that name, or removes it.
    fn set_user(&mut self, name: &str, user: Option<User>) {
        if let Some(old) = self.users.get(name) {
            self.blend ^= user_fingerprint(name, old, old.renewed);
            self.timeless ^= user_fingerprint(name, old, 0);
        }
        match user {
            Some(user) => {
                self.blend ^= user_fingerprint(name, &user, user.renewed);
                self.timeless ^= user_fingerprint(name, &user, 0);
                self.users.insert(name.into(), Arc::new(user));
            }
            None => {
                self.users.remove(name);
            }
        }
    }

    /// Puts a role in place of the one of that name, or removes it.
    fn set_role(&mut self, name: &str, grants: Option<Vec<Grant>>) {
        if let Some(old) = self.roles.get(name) {
            self.blend ^= role_fingerprint(name, old);
            self.timeless ^= role_fingerprint(name, old);
        }
        match grants {
            Some(grants) => {
                self.blend ^= role_fingerprint(name, &grants);
                self.timeless ^= role_fingerprint(name, &grants);
                self.roles.insert(name.into(), Arc::new(grants));
            }
            None => {
                self.roles.remove(name);
            }
        }
    }

    /// Counts one change and gives the auth revision after it.
    fn advance(&mut self) -> u64 {
        self.generation += 1;
        self.revision += 1;
        self.revision
    }
}

fn refuse_if(condition: bool, refusal: Refusal) -> Result<(), Refusal> {
    if condition { Err(refusal) } else { Ok(()) }
}

fn user_fingerprint(name: &str, user: &User, renewed: u64) -> u128 {
    let mut blend = Blend::of("user");
    blend.text(name);
    blend.text(&user.password);
    blend.number(renewed);
    for role in &user.roles {
        blend.text(role);
    }
    blend.finish()
}

fn role_fingerprint(name: &str, grants: &[Grant]) -> u128 {
    let mut blend = Blend::of("role");
    blend.text(name);
    // Their order tells nothing: the rules do not fix it.
    let mut sorted: Vec<&Grant> = grants.iter().collect();
    sorted.sort();
    for grant in sorted {
        blend.number(grant.kind as u64);
        blend.text(&grant.key);
        blend.text(&grant.range_end);
    }
    blend.finish()
}
