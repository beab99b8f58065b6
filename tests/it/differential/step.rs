//! One call with who makes it, as a value that can be made again: callers are named, since tokens differ between runs.

use super::request::{Answer, Request};
use crate::client::Client;
use std::collections::BTreeMap;

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Without a token.
    Anonymous,
    /// With this text as its token.
    Presenting(String),
    /// With the token of this user's last login; a text that is none if it has not logged in.
    User(String),
    /// With the token of the login before.
    Former(String),
    /// An administrator, whatever has become of its earlier tokens; without a token where auth is off.
    Administrator,
}

/// A call.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) caller: Caller,
    pub(crate) request: Request,
}

/// One server in a run, with what it has given.
pub(crate) struct Side {
    anyone: Client,
    /// Of every user, the token of its last login and that of the login before.
    tokens: BTreeMap<String, (String, String)>,
    root_password: String,
}

/// A token that nobody ever had.
const NONE: &str = "none";

impl Side {
    pub(super) fn new(address: &str) -> Side {
        Side {
            anyone: Client::anonymous(address),
            tokens: BTreeMap::new(),
            root_password: String::new(),
        }
    }

    /// Makes the call.
    pub(super) async fn take(&mut self, step: &Step) -> Answer {
        let answer = match self.client(&step.caller) {
            Some(client) => step.request.send(&client).await,
            None => self.as_root(&step.request).await,
        };
        self.keep(&step.request, &answer);
        answer
    }

    /// Keeps what an answer gives for later calls.
    pub(super) fn keep(&mut self, request: &Request, answer: &Answer) {
        if answer.outcome.is_err() {
            return;
        }
        match request {
            Request::Authenticate(login) => {
                let token = answer.token.clone().unwrap_or_default();
                let none = || (NONE.to_owned(), NONE.to_owned());
                let known = self.tokens.entry(login.name.clone()).or_insert_with(none);
                *known = (token, std::mem::take(&mut known.0));
            }
            Request::UserAdd(add) if add.name == "root" => {
                self.root_password.clone_from(&add.password);
            }
            Request::UserChangePassword(change) if change.name == "root" => {
                self.root_password.clone_from(&change.password);
            }
            _ => {}
        }
    }

    /// Makes a call as [`Caller::Administrator`].
    pub(super) async fn as_root(&self, request: &Request) -> Answer {
        match self.anyone.login("root", &self.root_password).await {
            Ok(token) => request.send(&self.anyone.presenting("token", &token)).await,
            Err(_) => request.send(&self.anyone).await,
        }
    }

    fn client(&self, caller: &Caller) -> Option<Client> {
        let token = match caller {
            Caller::Administrator => return None,
            Caller::Anonymous => return Some(self.anyone.clone()),
            Caller::Presenting(text) => text,
            Caller::User(name) => self.tokens.get(name).map_or(NONE, |(last, _)| last),
            Caller::Former(name) => self.tokens.get(name).map_or(NONE, |(_, former)| former),
        };
        Some(self.anyone.presenting("token", token))
    }
}
