//! Fingerprints of parts of the state. The whole's is the exclusive or of its parts', so a change costs no more than the
//! part that it touches (Zobrist hashing).

use xxhash_rust::xxh3::xxh3_128;

/// The fingerprint of one part in the making: a kind, then fields in a fixed order.
pub(crate) struct Blend(Vec<u8>);

impl Blend {
    /// A part of this kind.
    pub(crate) fn of(kind: &str) -> Blend {
        let mut blend = Blend(Vec::with_capacity(64));
        blend.text(kind);
        blend
    }

    /// Adds a text, with its length, so that no two lists of fields look alike.
    pub(crate) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    /// Adds a number.
    pub(crate) fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// The fingerprint.
    pub(crate) fn finish(&self) -> u128 {
        xxh3_128(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use crate::history::{Grant, GrantKind, Op};
    use crate::model::Model;
    use crate::text::Text;

    fn after(ops: &[Op]) -> Model {
        let mut model = Model::new();
        for (index, op) in (1..).zip(ops) {
            model.perform(index, op);
        }
        model
    }

    fn put(key: &str, value: &str) -> Op {
        Op::Put {
            key: key.into(),
            value: value.into(),
            prev_kv: false,
        }
    }

    fn grant(key: &str) -> Op {
        Op::GrantPermission {
            role: "r".into(),
            grant: Grant {
                kind: GrantKind::Read,
                key: key.into(),
                range_end: Text::default(),
            },
        }
    }

    #[test]
    fn equal_states_have_equal_fingerprints_and_others_have_not() {
        let role = || Op::RoleAdd { role: "r".into() };
        let user = |password: &str| Op::UserAdd {
            user: "u".into(),
            password: password.into(),
        };
        let gone = || Op::UserDelete { user: "u".into() };
        let states = [
            after(&[]),
            after(&[role()]),
            after(&[user("p")]),
            after(&[user("q")]),
            after(&[role(), user("p")]),
            after(&[user("p"), role()]), // Another epoch.
            after(&[role(), grant("a"), grant("b")]),
            after(&[role(), grant("a")]),
            after(&[user("p"), gone(), user("p")]),
            after(&[put("a", "1")]),
            after(&[put("a", "1"), put("b", "1")]),
            after(&[put("b", "1"), put("a", "1")]),
            after(&[put("a", "1"), put("a", "1")]),
        ];
        for (one, state) in states.iter().enumerate() {
            for (other, another) in states.iter().enumerate() {
                let equal = state.fingerprint() == another.fingerprint();
                assert_eq!(equal, one == other, "{one} {other}");
            }
        }
        let swapped = after(&[role(), grant("b"), grant("a")]);
        assert_eq!(swapped.fingerprint(), states[6].fingerprint());
        let mut readded = after(&[role(), grant("a"), grant("b")]);
        readded.perform(9, &grant("b"));
        assert_ne!(
            readded.fingerprint(),
            states[6].fingerprint(),
            "auth revision"
        );
    }

    #[test]
    fn a_change_to_a_clone_leaves_the_original_alone() {
        let original = after(&[put("a", "1")]);
        let before = original.fingerprint();
        let mut clone = original.clone();
        clone.perform(2, &put("a", "2"));
        assert_ne!(clone.fingerprint(), before);
        assert_eq!(original.fingerprint(), before);
        assert_eq!(original.keys().pair("a").map(|pair| pair.version), Some(1));
    }
}
