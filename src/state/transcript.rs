//! Runs the transcripts in `testdata/`: each row says who asks for what, and what comes of it.
//!
//! ```text
//! CALLER  COMMAND → RESULT
//! ```
//!
//! Callers: `anon`; `internal`; `alice@4`, named by a certificate and resolved at auth revision 4 (`alice@` at the
//! current one); `alice#t@4`, named by the token that a `login … as t` row made; `alice$3@4`, named by a signed token
//! with claim 3. Words are separated by spaces; `''` is the empty word, `\0` and `\xff` are those bytes.
//!
//! After each row the runner claims what holds for every row: a refusal changed nothing, the state equals the one
//! restored from its own image and from what the store was told to write.

mod language;
mod show;

use super::*;
use folded_store::FoldedStore;
use language::{Login, Request, Row};
use std::collections::BTreeMap;

/// A store and a state that follow one transcript.
struct Runner {
    state: State,
    store: FoldedStore,
    /// Tokens by the name that their row gave them, with the epoch they were issued under.
    tokens: BTreeMap<String, (TokenKey, u64)>,
}

impl Runner {
    fn new() -> Runner {
        let state = State::restore(Image::default());
        Runner {
            state,
            store: FoldedStore::default(),
            tokens: BTreeMap::new(),
        }
    }

    fn run(&mut self, row: &Row) -> String {
        let caller = self.caller(&row.caller);
        match language::request(&row.command) {
            Request::Apply(op) => self.apply(caller, op),
            Request::Login(login) => self.login(caller, login),
            Request::Refresh(names) => {
                let keys = names.iter().map(|name| self.tokens[name].0).collect();
                self.apply(caller, Op::TokenRefresh(keys))
            }
            Request::Expire(names) => {
                let due = names
                    .iter()
                    .map(|(name, seen)| (self.tokens[name].0, *seen));
                let due = due.collect();
                self.apply(caller, Op::TokenExpire(due))
            }
            Request::Tokens => self.live_tokens(),
            Request::Get { range, detailed } => {
                match self.state.range(&caller, &range, &self.store) {
                    Ok(found) => show::found(&found, detailed),
                    Err(error) => error.to_string(),
                }
            }
            Request::ReadTxn(txn) => match self.state.read_txn(&caller, &txn, &self.store) {
                Ok(response) => show::txn(&response),
                Err(error) => error.to_string(),
            },
            Request::UserGet(user) => show::names(self.state.user_get(&caller, &user)),
            Request::UserList => show::names(self.state.user_list(&caller)),
            Request::RoleGet(role) => show::permissions(self.state.role_get(&caller, &role)),
            Request::RoleList => show::names(self.state.role_list(&caller)),
            Request::LoginRecord(user) => show::login_record(self.state.login_record(&user)),
            Request::CheckAdmin => show::check(self.state.check_admin(&caller)),
            Request::CheckIdentity => show::check(self.state.check_identity(&caller)),
            Request::Show => show::meta(&self.state),
        }
    }

    fn caller(&self, text: &str) -> Caller {
        let identity = match text {
            "anon" => return Caller::ANONYMOUS,
            "internal" => {
                return Caller {
                    identity: Identity::Internal,
                    auth_revision: 0,
                };
            }
            named => named,
        };
        let (named, revision) = identity.split_once('@').expect("a caller is name@revision");
        let auth_revision = match revision {
            "" => self.state.auth_revision(),
            number => number.parse().expect("the revision is a number"),
        };
        let (name, credential) = if let Some((name, token)) = named.split_once('#') {
            let (key, epoch) = self.tokens[token];
            (name, Credential::SimpleToken(key, epoch))
        } else if let Some((name, claim)) = named.split_once('$') {
            (
                name,
                Credential::Jwt(claim.parse().expect("the claim is a number")),
            )
        } else {
            (named, Credential::Certificate)
        };
        Caller {
            identity: Identity::User(name.into(), credential),
            auth_revision,
        }
    }

    fn apply(&mut self, caller: Caller, op: Op) -> String {
        let applied = self.commit(caller, op);
        let events = show::events(&applied.events);
        match &applied.result {
            Err(refusal) => refusal.to_string(),
            Ok(response) => show::response(response, &self.state, &events),
        }
    }

    /// The live tokens by name with their counts of reported uses, the longest unused first.
    fn live_tokens(&self) -> String {
        let name = |key: &TokenKey| {
            let named = self.tokens.iter().find(|(_, (named, _))| named == key);
            named.map_or("?", |(name, _)| name)
        };
        let live = self.state.tokens_refreshed_until(u64::MAX);
        let live: Vec<String> = live
            .map(|(key, count)| format!("{}×{count}", name(&key)))
            .collect();
        if live.is_empty() {
            return "none".to_owned();
        }
        live.join(" ")
    }

    fn login(&mut self, caller: Caller, login: Login) -> String {
        let Login {
            name,
            epoch,
            kind,
            token,
            limits,
        } = login;
        let known = self
            .state
            .login_record(&name)
            .map_or(0, |record| record.epoch);
        let epoch = epoch.unwrap_or(known);
        let prefix_hash = [7; 32];
        let login = Authenticate {
            user: name,
            epoch,
            kind,
            prefix_hash,
            limits,
        };
        let applied = self.commit(caller, Op::Authenticate(login));
        assert!(applied.events.is_empty(), "a login changes no right");
        match applied.result {
            Ok(Response::Authenticated(key)) => {
                assert_eq!(
                    key,
                    TokenKey {
                        index: applied.index,
                        prefix_hash
                    }
                );
                let epoch = self.state.token(&key).expect("it was just issued").epoch;
                self.tokens.insert(token, (key, epoch));
                format!("token of epoch {epoch}")
            }
            Ok(Response::AuthenticateAgain) => "compare again".to_owned(),
            Ok(Response::Done) => "ok".to_owned(),
            Ok(response) => panic!("{response:?} is no answer to a login"),
            Err(refusal) => refusal.to_string(),
        }
    }

    /// Applies an entry, stores it, and claims what holds for every entry.
    fn commit(&mut self, caller: Caller, op: Op) -> Applied {
        let before = self.state.clone();
        let index = before.meta().applied_index + 1;
        let command = Command {
            request_id: index,
            caller,
            op,
        };
        let applied = self
            .state
            .apply(index, 1, Some(command), &self.store)
            .unwrap();
        let meta = self.state.meta();
        self.store.commit(&applied, meta);
        assert_eq!(applied.revision, meta.kv_revision);
        assert_ne!(meta.digest, before.meta().digest);
        if applied.result.is_err() {
            let mut image = before.image();
            image.meta = Meta {
                applied_index: index,
                applied_term: 1,
                digest: meta.digest,
                ..image.meta
            };
            assert_eq!(self.state.image(), image, "a refusal changed something");
        }
        let auth_changed = applied.events.contains(&Event::AuthChanged);
        assert_eq!(auth_changed, meta.generation != before.meta().generation);
        assert_eq!(
            self.state,
            State::restore(self.state.image()),
            "derived structures differ"
        );
        assert_eq!(
            self.state,
            State::restore(self.store.image()),
            "the store was told something else"
        );
        applied
    }
}

#[track_caller]
fn check(transcript: &str) {
    let mut runner = Runner::new();
    for row in language::rows(transcript) {
        let result = runner.run(&row);
        assert_eq!(
            result, row.result,
            "line {}: {} {}",
            row.line, row.caller, row.command
        );
    }
}

#[test]
fn users() {
    check(include_str!("testdata/users.txt"));
}

#[test]
fn roles() {
    check(include_str!("testdata/roles.txt"));
}

#[test]
fn switching() {
    check(include_str!("testdata/switching.txt"));
}

#[test]
fn credentials() {
    check(include_str!("testdata/credentials.txt"));
}

#[test]
fn tokens() {
    check(include_str!("testdata/tokens.txt"));
}

#[test]
fn ranges() {
    check(include_str!("testdata/ranges.txt"));
}

#[test]
fn data_requests() {
    check(include_str!("testdata/data_requests.txt"));
}

#[test]
fn transactions() {
    check(include_str!("testdata/transactions.txt"));
}

#[test]
fn compaction() {
    check(include_str!("testdata/compaction.txt"));
}

#[test]
fn keys_and_revisions() {
    check(include_str!("testdata/keys_and_revisions.txt"));
}
