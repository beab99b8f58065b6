//! What a correct cluster does with each log entry and each read: the judge's own statement of the rules.
//!
//! It is written from the rules' text alone, shares no code with the server, and is naive on purpose: where the server
//! keeps caches and interval trees, this walks over lists. It knows nothing of members, times or clients; what they
//! observed is compared with it in [`crate::checker`].

mod accounts;
mod fingerprint;
mod gate;
mod keyspace;
mod passwords;
mod refusal;
mod span;
mod tokens;
mod transaction;

pub use accounts::Accounts;
pub(crate) use fingerprint::Blend;
pub use keyspace::Keyspace;
pub use passwords::Passwords;
pub use refusal::Refusal;
pub use span::Span;
pub use tokens::{End, Ending, Token};

use crate::history::{AuthStatus, Op, Reply, TokenRules};
use crate::text::Text;
use tokens::Tokens;

/// Who asks, as the log entry says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Nobody in particular.
    Anonymous,
    /// The bearer of a login's token.
    Bearer {
        /// Call number of the login.
        login: u64,
    },
}

/// Replicated state after one log index. It is persistent: a clone shares everything with its original and costs nothing
/// worth counting, whatever it holds.
#[derive(Clone, Debug, Default)]
pub struct Model {
    accounts: Accounts,
    keys: Keyspace,
    passwords: Passwords,
    tokens: Tokens,
}

impl Model {
    /// The state of a new cluster.
    pub fn new() -> Self {
        Model::default()
    }

    /// The state of a new cluster with these limits on tokens.
    pub fn with_rules(rules: TokenRules) -> Self {
        Model {
            tokens: Tokens::new(rules),
            ..Model::default()
        }
    }

    /// Users, roles and the flag.
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// Keys and values.
    pub fn keys(&self) -> &Keyspace {
        &self.keys
    }

    /// A number that two states share if they are equal in all that later decisions and answers depend on, and
    /// practically never otherwise (128 bits). It does not depend on the machine.
    pub fn fingerprint(&self) -> u128 {
        self.accounts.fingerprint() ^ self.keys.fingerprint() ^ self.tokens.fingerprint()
    }

    /// Newest key-value revision; 1 for an empty store.
    pub fn kv_revision(&self) -> i64 {
        self.keys.revision()
    }

    /// Every user's passwords and epochs so far.
    pub fn passwords(&self) -> &Passwords {
        &self.passwords
    }

    /// Decides a call and carries it out. Logins are not decided here: see [`Model::issue`].
    ///
    /// # Errors
    /// The refusal that the caller must see; nothing has changed then.
    pub fn apply(&mut self, index: u64, caller: Caller, op: &Op) -> Result<Reply, Refusal> {
        self.decide(caller, op)?;
        Ok(self.perform(index, op))
    }

    /// Decides a call without carrying it out: first whether the caller may, then whether it can be done.
    ///
    /// # Errors
    /// The refusal that the caller must see.
    pub fn decide(&self, caller: Caller, op: &Op) -> Result<(), Refusal> {
        self.admit(caller, op)?;
        self.check(op)
    }

    /// Whether a call can be done, once its caller is known to be allowed to ask.
    ///
    /// # Errors
    /// The first condition that does not hold.
    pub fn check(&self, op: &Op) -> Result<(), Refusal> {
        self.keys.check(op)?;
        self.accounts.check(op)
    }

    /// Answers a call that changes nothing.
    ///
    /// # Errors
    /// The refusal that the caller must see.
    pub fn read(&self, caller: Caller, op: &Op) -> Result<Reply, Refusal> {
        self.decide(caller, op)?;
        Ok(self.look_up(op))
    }

    /// Issues the token of `login`, which presented `password` for `user`, at `index`. `since` is the first index whose
    /// state the login may have been compared with. Gives whether the password was right at any index in between.
    pub fn issue(
        &mut self,
        index: u64,
        login: u64,
        user: &str,
        password: &str,
        since: u64,
    ) -> bool {
        let epochs = self.passwords.epochs_with(user, password, since..=index);
        let was_right = !epochs.is_empty();
        let auth_revision = self.accounts.revision();
        let user = Text::from(user);
        self.tokens.issue(
            login,
            Token {
                user,
                index,
                auth_revision,
                epochs,
                refreshes: 0,
                refreshed_at: index,
                end: None,
            },
        );
        was_right
    }

    /// Carries out a call that [`Model::decide`] has let pass, as the entry at `index`.
    pub fn perform(&mut self, index: u64, op: &Op) -> Reply {
        match op {
            Op::Put { .. } | Op::Delete { .. } | Op::Txn { .. } | Op::Get { .. } => {
                self.keys.perform(op)
            }
            Op::AuthStatus {}
            | Op::UserGet { .. }
            | Op::UserList {}
            | Op::RoleGet { .. }
            | Op::RoleList {} => self.look_up(op),
            _ => {
                let was_on = self.accounts.is_enabled();
                self.accounts.perform(op);
                self.passwords.note(index, op, &self.accounts);
                match op {
                    Op::UserDelete { user } | Op::ChangePassword { user, .. } => {
                        self.tokens.end_epoch(Some(user), index);
                    }
                    Op::AuthDisable {} if was_on => self.tokens.end_epoch(None, index),
                    _ => {}
                }
                Reply {
                    revision: self.kv_revision(),
                    ..Reply::default()
                }
            }
        }
    }

    fn look_up(&self, op: &Op) -> Reply {
        let mut reply = Reply {
            revision: self.kv_revision(),
            ..Reply::default()
        };
        match op {
            Op::Get { .. } | Op::Txn { .. } => return self.keys.look_up(op),
            Op::AuthStatus {} => {
                let enabled = self.accounts.is_enabled();
                let revision = self.accounts.revision();
                reply.auth = Some(AuthStatus { enabled, revision });
            }
            Op::UserGet { user } => reply.names = self.accounts.roles_of(user),
            Op::UserList {} => reply.names = self.accounts.user_names(),
            Op::RoleGet { role } => reply.permissions = self.accounts.permissions_of(role),
            Op::RoleList {} => reply.names = self.accounts.role_names(),
            _ => {}
        }
        reply
    }
}
