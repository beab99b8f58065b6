//! Ranges of keys, and whether a list of grants covers one: by laying the grants' pieces side by side, with none of the
//! structures that a fast implementation would use.

use crate::history::{Grant, GrantKind};

/// The range end that means "everything from the key on".
const OPEN_END: &str = "\0";

/// The keys from a first one up to, but not including, an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    first: Vec<u8>,
    /// `None`: no end.
    end: Option<Vec<u8>>,
}

impl Span {
    /// The range that `key` and `range_end` name in a request or a grant.
    pub fn new(key: &str, range_end: &str) -> Span {
        let first = key.as_bytes().to_vec();
        let end = match range_end {
            // The next string after a key is the key with a zero byte behind it.
            "" => Some([key.as_bytes(), &[0]].concat()),
            OPEN_END => None,
            end => Some(end.as_bytes().to_vec()),
        };
        Span { first, end }
    }

    /// Whether no key can lie in it.
    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.first)
    }

    /// Whether `key` lies in it.
    pub fn contains(&self, key: &str) -> bool {
        key.as_bytes() >= self.first.as_slice() && !self.ends_before(key)
    }

    /// Whether it has no end.
    pub fn is_open(&self) -> bool {
        self.end.is_none()
    }

    /// Whether every key of `other` lies in it.
    pub fn covers(&self, other: &Span) -> bool {
        let reaches = match (&self.end, &other.end) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(end), Some(asked)) => asked <= end,
        };
        self.first <= other.first && reaches
    }

    /// Whether they have a key in common, or one begins where the other ends.
    pub fn touches(&self, other: &Span) -> bool {
        let reaches = |one: &Span, other: &Span| match &one.end {
            None => true,
            Some(end) => other.first <= *end,
        };
        reaches(self, other) && reaches(other, self)
    }

    /// Whether it ends at or before `key`.
    pub fn ends_before(&self, key: &str) -> bool {
        self.end
            .as_ref()
            .is_some_and(|end| key.as_bytes() >= end.as_slice())
    }
}

/// Whether `key` and `range_end` may stand in a grant.
pub(super) fn may_be_granted(key: &str, range_end: &str) -> bool {
    !key.is_empty() && !Span::new(key, range_end).is_empty()
}

/// Whether `grants` together give the right to read (or write) every key in `span`. A range without keys is refused.
pub(super) fn is_covered<'a>(
    grants: impl Iterator<Item = &'a Grant>,
    to_write: bool,
    span: &Span,
) -> bool {
    let unwanted = if to_write {
        GrantKind::Read
    } else {
        GrantKind::Write
    };
    let mut pieces: Vec<Span> = grants
        .filter(|grant| grant.kind != unwanted)
        .map(|grant| Span::new(&grant.key, &grant.range_end))
        .collect();
    pieces.sort_by(|a, b| a.first.cmp(&b.first));
    if span.is_empty() {
        return false;
    }
    let mut reached = span.first.clone();
    for piece in pieces {
        if piece.first > reached {
            return false;
        }
        match piece.end {
            None => return true,
            Some(end) => reached = reached.max(end),
        }
        if span.end.as_ref().is_some_and(|end| reached >= *end) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(grants: &[(&str, &str)], asked: (&str, &str), expected: bool) {
        let grants: Vec<Grant> = grants
            .iter()
            .map(|(key, end)| Grant {
                kind: GrantKind::Read,
                key: (*key).into(),
                range_end: (*end).into(),
            })
            .collect();
        let span = Span::new(asked.0, asked.1);
        assert_eq!(
            is_covered(grants.iter(), false, &span),
            expected,
            "{grants:?} {asked:?}"
        );
        assert!(
            !is_covered(grants.iter(), true, &span),
            "reading is not writing"
        );
    }

    #[test]
    fn a_request_needs_every_key_of_its_range() {
        check(&[("a", "")], ("a", ""), true);
        check(&[("a", "")], ("b", ""), false);
        check(&[("a", "")], ("a", "b"), false);
        check(&[("a", "c")], ("b", ""), true);
        check(&[("a", "c")], ("c", ""), false);
        check(&[("a", "c"), ("c", "e")], ("b", "d"), true);
        check(&[("c", "e"), ("a", "b")], ("a", "d"), false);
        check(&[("a", "c")], ("a", "\0"), false);
        check(&[("b", "\0")], ("c", "\0"), true);
        check(&[("b", "\0")], ("a", ""), false);
        check(&[("a", ""), ("a\0", "b")], ("a", "b"), true);
        check(&[("a", "z"), ("b", "c")], ("d", "y"), true);
        check(&[("a", "z")], ("c", "b"), false);
    }

    #[test]
    fn neighbours_touch_and_wider_ones_cover() {
        let span = |(key, end)| Span::new(key, end);
        for (one, other, touch, cover) in [
            (("a", "c"), ("b", ""), true, true),
            (("a", "c"), ("c", ""), true, false),
            (("a", "c"), ("c", "d"), true, false),
            (("a", "c"), ("ca", "d"), false, false),
            (("a", "c"), ("b", "\0"), true, false),
            (("a", "\0"), ("b", "\0"), true, true),
            (("a", ""), ("a\0", ""), true, false),
            (("a", ""), ("b", ""), false, false),
        ] {
            let (one, other) = (span(one), span(other));
            assert_eq!(one.touches(&other), touch, "{one:?} {other:?}");
            assert_eq!(other.touches(&one), touch, "{one:?} {other:?}");
            assert_eq!(one.covers(&other), cover, "{one:?} {other:?}");
        }
    }

    #[test]
    fn a_grant_needs_a_key_and_an_end_after_it() {
        assert!(may_be_granted("a", ""));
        assert!(may_be_granted("a", "\0"));
        assert!(may_be_granted("\0", "\0"));
        assert!(may_be_granted("a", "b"));
        assert!(!may_be_granted("", ""));
        assert!(!may_be_granted("", "\0"));
        assert!(!may_be_granted("b", "b"));
        assert!(!may_be_granted("b", "a"));
    }
}
