//! Which password each user had, and in which epoch, at every index so far: what a login may have been compared with.

use super::accounts::Accounts;
use crate::history::Op;
use crate::text::Text;
use imbl::{OrdMap, Vector};
use std::ops::RangeInclusive;

/// What held from an index on.
#[derive(Clone, Debug)]
struct Since {
    index: u64,
    /// Password and epoch without the floor; `None`: no such user.
    user: Option<(Text, u64)>,
}

/// Every user's passwords and epochs, by index.
#[derive(Clone, Debug, Default)]
pub struct Passwords {
    users: OrdMap<Text, Vector<Since>>,
    /// From which index on no epoch lay below which auth revision.
    floors: Vector<(u64, u64)>,
}

impl Passwords {
    /// Takes note of what `op`, the entry at `index`, left in `accounts`.
    pub(super) fn note(&mut self, index: u64, op: &Op, accounts: &Accounts) {
        match op {
            Op::UserAdd { user, .. }
            | Op::UserDelete { user }
            | Op::ChangePassword { user, .. } => {
                let found = accounts.user(user);
                let user_now = found.map(|found| (found.password.clone(), found.renewed));
                let past = self.users.entry(user.clone()).or_default();
                past.push_back(Since {
                    index,
                    user: user_now,
                });
            }
            Op::AuthDisable {} => self.floors.push_back((index, accounts.epoch_floor())),
            _ => {}
        }
    }

    /// The user's epochs within `window` in which `password` was the user's, oldest first.
    pub fn epochs_with(&self, user: &str, password: &str, window: RangeInclusive<u64>) -> Vec<u64> {
        let mut epochs = Vec::new();
        for (stretch, base) in self.stretches_with(user, password, window) {
            let first_floor = self.floor_at(*stretch.start());
            let later = self
                .floors
                .iter()
                .rev()
                .take_while(|(index, _)| index > stretch.start())
                .filter(|(index, _)| stretch.contains(index))
                .map(|(_, floor)| base.max(*floor));
            epochs.push(base.max(first_floor));
            epochs.extend(later);
        }
        epochs.sort_unstable();
        epochs.dedup();
        epochs
    }

    /// The last index in `window` at which `password` was the user's.
    pub fn last_with(
        &self,
        user: &str,
        password: &str,
        window: RangeInclusive<u64>,
    ) -> Option<u64> {
        let stretches = self.stretches_with(user, password, window);
        stretches.iter().map(|(stretch, _)| *stretch.end()).max()
    }

    /// The parts of `window` in which `password` was the user's, each with its epoch without the floor.
    fn stretches_with(
        &self,
        user: &str,
        password: &str,
        window: RangeInclusive<u64>,
    ) -> Vec<(RangeInclusive<u64>, u64)> {
        let mut stretches = Vec::new();
        let mut end = *window.end();
        for since in self.users.get(user).into_iter().flatten().rev() {
            let start = since.index.max(*window.start());
            if let Some((had, base)) = &since.user
                && had == password
                && start <= end
            {
                stretches.push((start..=end, *base));
            }
            if since.index <= *window.start() {
                break;
            }
            end = end.min(since.index - 1);
        }
        stretches
    }

    fn floor_at(&self, index: u64) -> u64 {
        let mut floors = self.floors.iter().rev();
        let last = floors.find(|(from, _)| *from <= index);
        last.map_or(0, |(_, floor)| *floor)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Model;
    use crate::history::Op;
    use crate::text::Text;

    fn model() -> Model {
        let mut model = Model::new();
        let user = || Text::from("alice");
        let add = |password: &str| Op::UserAdd {
            user: user(),
            password: password.into(),
        };
        let change = |password: &str| Op::ChangePassword {
            user: user(),
            password: password.into(),
        };
        model.perform(3, &add("old")); // Auth revision 2.
        model.perform(5, &change("new")); // 3.
        model.perform(7, &change("old")); // 4.
        model.perform(9, &Op::UserDelete { user: user() }); // 5.
        model.perform(11, &add("old")); // 6.
        model
    }

    #[test]
    fn epochs_are_those_in_which_the_password_was_right() {
        let model = model();
        let epochs = |password, window| model.passwords().epochs_with("alice", password, window);
        assert_eq!(epochs("old", 0..=20), [2, 4, 6]);
        assert_eq!(epochs("new", 0..=20), [3]);
        assert_eq!(epochs("new", 6..=6), [3]);
        assert_eq!(epochs("new", 7..=20), [0u64; 0]);
        assert_eq!(epochs("old", 5..=6), [0u64; 0]);
        assert_eq!(epochs("old", 9..=10), [0u64; 0]);
        assert_eq!(epochs("old", 8..=10), [4]);
        assert_eq!(epochs("old", 0..=2), [0u64; 0]);
        assert_eq!(epochs("other", 0..=20), [0u64; 0]);
    }

    #[test]
    fn the_last_right_index_is_the_one_before_the_change() {
        let model = model();
        let last = |password, window| model.passwords().last_with("alice", password, window);
        assert_eq!(last("old", 0..=6), Some(4));
        assert_eq!(last("old", 0..=10), Some(8));
        assert_eq!(last("new", 0..=10), Some(6));
        assert_eq!(last("new", 7..=10), None);
    }

    #[test]
    fn a_disable_starts_an_epoch_with_the_same_password() {
        let mut model = model();
        let root = |op: fn(Text) -> Op| op("root".into());
        let add = root(|user| Op::UserAdd {
            user,
            password: "r".into(),
        });
        let grant = root(|user| Op::GrantRole {
            role: user.clone(),
            user,
        });
        for (index, op) in [(12, &add), (13, &grant), (14, &Op::AuthEnable {})] {
            model.perform(index, op); // Auth revision 8 in the end.
        }
        model.perform(15, &Op::AuthDisable {});
        let epochs = |window| model.passwords().epochs_with("alice", "old", window);
        assert_eq!(epochs(11..=14), [6]);
        assert_eq!(epochs(11..=15), [6, 9]);
        assert_eq!(epochs(15..=16), [9]);
    }
}
