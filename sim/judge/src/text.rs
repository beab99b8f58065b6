//! Text that is cheap to keep a million times: names, kinds, decisions and keys come back in almost every event of a
//! history, so equal short texts share one allocation, and a copy is a count.

use arcstr::ArcStr;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Borrow;
use std::cell::RefCell;
use std::fmt;
use std::ops::Deref;
use xxhash_rust::xxh3::xxh3_64;

/// Longest text that is looked up among those that this thread has made, in bytes: above names and keys, below values
/// worth counting.
const SHARED_BYTES_MAX: usize = 64;

/// Places for texts to share, per thread. A text that finds its place taken by another one moves in, so the memory is
/// bounded whatever a file holds.
const PLACES: usize = 4096;

thread_local! {
    static SHARED: RefCell<Vec<Text>> = const { RefCell::new(Vec::new()) };
}

/// Immutable text of the size of one pointer. It reads as a `&str`.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(ArcStr);

impl Text {
    /// The text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Whether it is the empty text.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text, from what this thread has made before if it is there.
    fn shared(text: &str) -> Text {
        if text.is_empty() {
            return Text::default();
        }
        if text.len() > SHARED_BYTES_MAX {
            return Text(ArcStr::from(text));
        }
        let places = u64::try_from(PLACES).expect("a small number");
        let place = usize::try_from(xxh3_64(text.as_bytes()) % places).expect("below PLACES");
        SHARED.with_borrow_mut(|shared| {
            if shared.is_empty() {
                shared.resize(PLACES, Text::default());
            }
            let kept = &mut shared[place];
            if kept.as_str() != text {
                *kept = Text(ArcStr::from(text));
            }
            kept.clone()
        })
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

// Equality, order and hash of a text are those of its `str`.
impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text::shared(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text::shared(&text)
    }
}

impl From<&String> for Text {
    fn from(text: &String) -> Text {
        Text::shared(text)
    }
}

impl From<&Text> for Text {
    fn from(text: &Text) -> Text {
        text.clone()
    }
}

impl From<Text> for String {
    fn from(text: Text) -> String {
        text.as_str().to_owned()
    }
}

impl From<&Text> for String {
    fn from(text: &Text) -> String {
        text.as_str().to_owned()
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialEq<String> for Text {
    fn eq(&self, other: &String) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<Text> for str {
    fn eq(&self, other: &Text) -> bool {
        self == other.as_str()
    }
}

impl PartialEq<Text> for &str {
    fn eq(&self, other: &Text) -> bool {
        *self == other.as_str()
    }
}

impl PartialEq<Text> for String {
    fn eq(&self, other: &Text) -> bool {
        self == other.as_str()
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
        deserializer.deserialize_str(TextVisitor)
    }
}

struct TextVisitor;

impl de::Visitor<'_> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
        Ok(Text::from(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_short_texts_share_their_memory() {
        let (one, other) = (Text::from("/app/x"), Text::from("/app/x".to_owned()));
        assert_eq!(one.as_ptr(), other.as_ptr());
        assert_eq!(std::mem::size_of::<Option<Text>>(), 8);
    }

    #[test]
    fn a_text_is_what_it_was_made_of() {
        let long = "x".repeat(SHARED_BYTES_MAX + 1);
        let many: Vec<String> = (0..3 * PLACES).map(|number| number.to_string()).collect();
        let texts: Vec<Text> = many.iter().map(Text::from).collect();
        assert_eq!(texts, many);
        for text in ["", "a\n\"\0é", &long] {
            let json = serde_json::to_string(&Text::from(text)).unwrap();
            assert_eq!(json, serde_json::to_string(text).unwrap());
            assert_eq!(serde_json::from_str::<Text>(&json).unwrap(), text);
        }
    }
}
