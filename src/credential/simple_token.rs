//! The text of a simple token: sixteen random letters, a dot, and the log index of the login that made it. Clients hold
//! the text; the log and the store know [`TokenKey`], which holds a hash of the letters and so is no secret.

use crate::platform::random_bytes;
use crate::state::TokenKey;
use sha2::{Digest, Sha256};
use std::fmt;

/// Letters before the dot, as in etcd. 52 letters give 91 bits.
const PREFIX_LETTERS: usize = 16;

/// Upper and lower case, 52 in all.
const ALPHABET: &[u8; 52] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// The largest multiple of 52 that fits a byte: a draw at or above it is thrown away, or early letters would be likelier.
const FAIR_DRAWS: u8 = 208;

/// The secret part of a token. Its `Debug` form is a placeholder.
#[derive(Clone)]
pub(crate) struct Prefix(String);

impl Prefix {
    /// Draws a new one from the operating system's generator.
    pub(crate) fn draw() -> Prefix {
        let mut letters = String::with_capacity(PREFIX_LETTERS);
        while letters.len() < PREFIX_LETTERS {
            for byte in random_bytes::<32>() {
                if byte < FAIR_DRAWS && letters.len() < PREFIX_LETTERS {
                    letters.push(char::from(ALPHABET[usize::from(byte) % ALPHABET.len()]));
                }
            }
        }
        Prefix(letters)
    }

    /// What the log and the store know of it.
    pub(crate) fn hash(&self) -> [u8; 32] {
        hash(&self.0)
    }

    /// The whole token, once the login stands in the log at `index`.
    pub(crate) fn token(&self, index: u64) -> String {
        format!("{}.{index}", self.0)
    }
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Prefix(redacted)")
    }
}

/// The key under which a presented token would be known. `None` if the text is no token: not exactly one dot, or no
/// decimal index after it (as etcd's `server/auth/simple_token.go`).
pub(crate) fn parse(text: &str) -> Option<TokenKey> {
    let (prefix, index) = text.split_once('.')?;
    // `parse` alone would take a sign; a second dot fails here as well.
    let decimal = !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
    let index = if decimal {
        index.parse().ok()?
    } else {
        return None;
    };
    Some(TokenKey {
        index,
        prefix_hash: hash(prefix),
    })
}

fn hash(prefix: &str) -> [u8; 32] {
    Sha256::digest(prefix.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawn_token_is_found_under_its_key() {
        let prefix = Prefix::draw();
        let text = prefix.token(7);
        assert_eq!(text.len(), PREFIX_LETTERS + 2);
        assert!(
            text[..PREFIX_LETTERS]
                .bytes()
                .all(|byte| byte.is_ascii_alphabetic())
        );
        assert_eq!(
            parse(&text),
            Some(TokenKey {
                index: 7,
                prefix_hash: prefix.hash()
            })
        );
        assert_ne!(prefix.hash(), Prefix::draw().hash());
    }

    #[test]
    fn what_has_no_single_dot_before_a_decimal_index_is_no_token() {
        for text in [
            "",
            "abc",
            "abc.",
            "abc.x",
            "abc.+1",
            "abc.-1",
            "a.b.1",
            "abc.1.",
            "abc. 1",
            "abc.18446744073709551616",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
        for (text, index) in [
            ("abc.1", 1),
            (".0", 0),
            ("abc.007", 7),
            ("abc.18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse(text).map(|key| key.index), Some(index), "{text:?}");
        }
    }

    #[test]
    fn a_prefix_does_not_show_in_debug_output() {
        assert_eq!(format!("{:?}", Prefix::draw()), "Prefix(redacted)");
    }
}
