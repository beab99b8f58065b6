//! Simple tokens as the log has them: given by logins, refreshed by reports of their use, and ended by expiry, by room
//! that is made for later logins, or by what moves their user's epoch.

use super::Model;
use super::fingerprint::Blend;
use crate::history::{TokenNote, TokenRules};
use crate::text::Text;
use imbl::{OrdMap, OrdSet};

/// A token that the log says was issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Whom it names.
    pub user: Text,
    /// Index of the login's entry.
    pub index: u64,
    /// Auth revision at that index.
    pub auth_revision: u64,
    /// Epochs of the user in which the presented password was the user's, within the login's interval. The token is
    /// good while the user's epoch is one of them, wherever it was really minted (property P6).
    pub epochs: Vec<u64>,
    /// Reports of use so far. An expiry counts only if its proposer had seen as many.
    pub refreshes: u64,
    /// Index of the last report of use, or of the login.
    pub refreshed_at: u64,
    /// What ended it, if it has ended.
    pub end: Option<End>,
}

/// The end of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Index of the entry that ended it.
    pub index: u64,
    /// Why.
    pub why: Ending,
}

/// Why a token has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was not used for long.
    Expired,
    /// Its user had too many; the login with this call number needed the room.
    MadeRoom(u64),
    /// The user was deleted, got another password, or auth was switched off.
    EpochMoved,
}

/// Every token that was ever issued, and which of them are held: those that have not ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Tokens {
    rules: TokenRules,
    /// By the login's call number.
    issued: OrdMap<u64, Token>,
    /// Call numbers of the logins, by the index of their entry.
    logins: OrdMap<u64, u64>,
    /// Each user's held tokens, the least recently refreshed first: index of the last report, index of the login.
    held: OrdMap<Text, OrdSet<(u64, u64)>>,
    held_in_all: u64,
    /// Tokens that have ended.
    ended: u64,
}

impl Tokens {
    pub(super) fn new(rules: TokenRules) -> Tokens {
        Tokens {
            rules,
            ..Tokens::default()
        }
    }

    pub(super) fn get(&self, login: u64) -> Option<&Token> {
        self.issued.get(&login)
    }

    /// Of every token what later decisions depend on; no user has an epoch twice, so what ended one by its epoch does not.
    pub(super) fn fingerprint(&self) -> u128 {
        let tokens = self.issued.iter().map(|(login, token)| {
            let mut blend = Blend::of("token");
            blend.number(*login);
            blend.text(&token.user);
            blend.number(token.auth_revision);
            blend.number(token.refreshes);
            blend.number(u64::from(token.end.is_some()));
            for epoch in &token.epochs {
                blend.number(*epoch);
            }
            blend.finish()
        });
        tokens.fold(0, |all, one| all ^ one)
    }

    /// Whether a login of `user` finds room: one that ends another token of the same user always does.
    fn has_room(&self, user: &str) -> bool {
        self.is_full(user) || self.held_in_all < self.rules.total_max
    }

    /// Whether a further token of `user` must end another.
    fn is_full(&self, user: &str) -> bool {
        let held = self.held.get(user).map_or(0, OrdSet::len);
        held > 0 && held as u64 >= self.rules.per_user_max
    }

    /// Adds the token of `login`, and makes room for it among its user's.
    pub(super) fn issue(&mut self, login: u64, token: Token) {
        while self.is_full(&token.user) {
            let Some((_, oldest)) = self.held.get(&token.user).and_then(OrdSet::get_min) else {
                break;
            };
            self.end(*oldest, token.index, Ending::MadeRoom(login));
        }
        let order = (token.refreshed_at, token.index);
        let held = self.held.entry(token.user.clone()).or_default();
        self.held_in_all += u64::from(held.insert(order).is_none());
        self.logins.insert(token.index, login);
        self.issued.insert(login, token);
    }

    /// Ends every token of `user`, or of all users.
    pub(super) fn end_epoch(&mut self, user: Option<&str>, index: u64) {
        let of_user = |(name, _): &(&Text, _)| user.is_none_or(|user| user == name.as_str());
        let held = self.held.iter().filter(of_user);
        let ended: Vec<u64> = held
            .flat_map(|(_, held)| held.iter().map(|(_, issued)| *issued))
            .collect();
        for issued in ended {
            self.end(issued, index, Ending::EpochMoved);
        }
    }

    fn refresh(&mut self, issued: u64, index: u64) {
        let Some(token) = held_token(&self.logins, &mut self.issued, issued) else {
            return;
        };
        let held = self.held.entry(token.user.clone()).or_default();
        held.remove(&(token.refreshed_at, issued));
        token.refreshed_at = index;
        token.refreshes += 1;
        held.insert((index, issued));
    }

    /// Ends the held token whose login stands at `issued`; gives the login's call number.
    fn end(&mut self, issued: u64, index: u64, why: Ending) -> Option<u64> {
        let token = held_token(&self.logins, &mut self.issued, issued)?;
        token.end = Some(End { index, why });
        self.ended += 1;
        if let Some(held) = self.held.get_mut(&token.user) {
            self.held_in_all -= u64::from(held.remove(&(token.refreshed_at, issued)).is_some());
        }
        self.logins.get(&issued).copied()
    }

    fn refreshes(&self, issued: u64) -> Option<u64> {
        let token = self.issued.get(self.logins.get(&issued)?)?;
        Some(token.refreshes)
    }
}

/// The token whose login stands at `issued`, if it has not ended.
fn held_token<'t>(
    logins: &OrdMap<u64, u64>,
    tokens: &'t mut OrdMap<u64, Token>,
    issued: u64,
) -> Option<&'t mut Token> {
    let token = tokens.get_mut(logins.get(&issued)?)?;
    token.end.is_none().then_some(token)
}

impl Model {
    /// The token of a login, if the log says that it was issued.
    pub fn token(&self, login: u64) -> Option<&Token> {
        self.tokens.get(login)
    }

    /// Whether the token of `login` is good now: it has not ended, and its user is in an epoch that it belongs to.
    pub fn is_alive(&self, login: u64) -> bool {
        let held = self.token(login).filter(|token| token.end.is_none());
        held.is_some_and(|token| {
            let epoch = self.accounts.epoch(&token.user);
            epoch.is_some_and(|epoch| token.epochs.contains(&epoch))
        })
    }

    /// Counts the tokens that have ended so far.
    pub fn tokens_ended(&self) -> u64 {
        self.tokens.ended
    }

    /// Whether a login of `user` would be given a token, as far as the limits go.
    pub fn has_room(&self, user: &str) -> bool {
        self.tokens.has_room(user)
    }

    /// Takes note of reports of use, the entry at `index`. One for a token that has ended says nothing.
    pub fn refresh(&mut self, index: u64, notes: &[TokenNote]) {
        for note in notes {
            self.tokens.refresh(note.login_index, index);
        }
    }

    /// Expires tokens, the entry at `index`: those whose use has not been reported since the entry was proposed. Gives
    /// the logins whose tokens have ended by it.
    pub fn expire(&mut self, index: u64, notes: &[TokenNote]) -> Vec<u64> {
        let mut ended = Vec::new();
        for note in notes {
            if self.tokens.refreshes(note.login_index) == Some(note.refresh_count) {
                ended.extend(self.tokens.end(note.login_index, index, Ending::Expired));
            }
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Op;

    fn model(per_user_max: u64, total_max: u64) -> Model {
        let mut model = Model::with_rules(TokenRules {
            per_user_max,
            total_max,
            ..TokenRules::default()
        });
        for (index, user) in (1..).zip(["alice", "bob"]) {
            let (user, password) = (user.into(), "p".into());
            model.perform(index, &Op::UserAdd { user, password });
        }
        model
    }

    /// The login with call number `index` stands at that index.
    fn log_in(model: &mut Model, index: u64, user: &str) {
        assert!(model.issue(index, index, user, "p", index));
    }

    fn note(login_index: u64, refresh_count: u64) -> [TokenNote; 1] {
        [TokenNote {
            login_index,
            refresh_count,
        }]
    }

    fn alive(model: &Model) -> Vec<u64> {
        (0..20).filter(|login| model.is_alive(*login)).collect()
    }

    #[test]
    fn the_least_recently_refreshed_token_of_the_user_makes_room() {
        let mut model = model(2, 10);
        log_in(&mut model, 3, "alice");
        log_in(&mut model, 4, "bob");
        log_in(&mut model, 5, "alice");
        model.refresh(6, &note(3, 0));
        log_in(&mut model, 7, "alice");
        assert_eq!(alive(&model), [3, 4, 7]);
        log_in(&mut model, 8, "alice");
        assert_eq!(alive(&model), [4, 7, 8]);
        let end = model.token(3).unwrap().end.unwrap();
        assert_eq!((end.index, end.why), (8, Ending::MadeRoom(8)));
    }

    #[test]
    fn of_tokens_refreshed_by_one_entry_the_older_login_makes_room() {
        let mut model = model(2, 10);
        log_in(&mut model, 3, "alice");
        log_in(&mut model, 4, "alice");
        model.refresh(5, &[note(4, 0), note(3, 0)].concat());
        log_in(&mut model, 6, "alice");
        assert_eq!(alive(&model), [4, 6]);
    }

    #[test]
    fn a_full_table_has_room_only_for_who_makes_it() {
        let mut model = model(2, 3);
        for (index, user) in [(3, "alice"), (4, "alice"), (5, "bob")] {
            assert!(model.has_room(user));
            log_in(&mut model, index, user);
        }
        assert!(model.has_room("alice"), "by ending one of her own");
        assert!(!model.has_room("bob"));
        model.expire(6, &note(3, 0));
        assert!(model.has_room("bob"));
    }

    #[test]
    fn an_expiry_counts_only_for_the_uses_that_it_has_seen() {
        let mut model = model(9, 9);
        log_in(&mut model, 3, "alice");
        model.refresh(4, &note(3, 0));
        assert_eq!(model.expire(5, &note(3, 0)), [0u64; 0]);
        assert_eq!(model.expire(6, &note(9, 0)), [0u64; 0], "no such token");
        assert_eq!(alive(&model), [3]);
        assert_eq!(model.expire(7, &note(3, 1)), [3]);
        assert_eq!(model.expire(8, &note(3, 1)), [0u64; 0], "it has ended");
        assert_eq!(alive(&model), [0u64; 0]);
        assert_eq!(model.token(3).unwrap().end.unwrap().index, 7);
    }

    #[test]
    fn what_moves_the_epoch_frees_the_room() {
        let mut model = model(9, 2);
        log_in(&mut model, 3, "alice");
        log_in(&mut model, 4, "bob");
        assert!(!model.has_room("alice"));
        let (user, password) = ("alice".into(), "q".into());
        model.perform(5, &Op::ChangePassword { user, password });
        assert_eq!(alive(&model), [4]);
        assert!(model.has_room("bob"));
        let end = model.token(3).unwrap().end.unwrap();
        assert_eq!((end.index, end.why), (5, Ending::EpochMoved));
    }
}
