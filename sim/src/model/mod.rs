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
mod transaction;

pub use accounts::Accounts;
pub(crate) use fingerprint::Blend;
pub use keyspace::Keyspace;
pub use passwords::Passwords;
pub use refusal::Refusal;
pub use span::Span;

use crate::history::{AuthStatus, Op, Reply};
use imbl::OrdMap;

/// Who asks, as the log entry says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Nobody in particular.
    Anonymous,
    /// The bearer of a login's token.
    Bearer {
        /// Call number of the login.
        login: u64,
        /// Auth revision under which the token was looked up; `None` for a read, which looks it up in the very state
        /// that it reads.
        auth_revision: Option<u64>,
    },
}

/// A token that the log says was issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Whom it names.
    pub user: String,
    /// Index of the login's entry.
    pub index: u64,
    /// Auth revision at that index.
    pub auth_revision: u64,
    /// Epochs of the user in which the presented password was the user's, within the login's interval. The token is
    /// good while the user's epoch is one of them, wherever it was really minted (property P6).
    pub epochs: Vec<u64>,
}

/// Replicated state after one log index. It is persistent: a clone shares everything with its original and costs nothing
/// worth counting, whatever it holds.
#[derive(Clone, Debug, Default)]
pub struct Model {
    accounts: Accounts,
    keys: Keyspace,
    passwords: Passwords,
    tokens: OrdMap<u64, Token>,
}

impl Model {
    /// The state of a new cluster.
    pub fn new() -> Self {
        Model::default()
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
        let tokens = self.tokens.iter().map(|(login, token)| {
            let mut blend = Blend::of("token");
            blend.number(*login);
            blend.text(&token.user);
            blend.number(token.auth_revision);
            for epoch in &token.epochs {
                blend.number(*epoch);
            }
            blend.finish()
        });
        let tokens = tokens.fold(0, |all, one| all ^ one);
        self.accounts.fingerprint() ^ self.keys.fingerprint() ^ tokens
    }

    /// Newest key-value revision; 1 for an empty store.
    pub fn kv_revision(&self) -> i64 {
        self.keys.revision()
    }

    /// Every user's passwords and epochs so far.
    pub fn passwords(&self) -> &Passwords {
        &self.passwords
    }

    /// The token of a login, if the log says that it was issued.
    pub fn token(&self, login: u64) -> Option<&Token> {
        self.tokens.get(&login)
    }

    /// Whether the token of `login` is good now: its user exists, and in an epoch that the token belongs to.
    pub fn is_alive(&self, login: u64) -> bool {
        let Some(token) = self.tokens.get(&login) else {
            return false;
        };
        self.accounts
            .epoch(&token.user)
            .is_some_and(|epoch| token.epochs.contains(&epoch))
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
        let user = user.to_owned();
        self.tokens.insert(
            login,
            Token {
                user,
                index,
                auth_revision,
                epochs,
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
                self.accounts.perform(op);
                self.passwords.note(index, op, &self.accounts);
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
