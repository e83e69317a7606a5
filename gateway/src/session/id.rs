//! Session IDs and the table's clock.

use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

/// Milliseconds on the gateway's monotonic clock.
pub type Millis = u64;

/// The longest session ID, in bytes.
pub const MAX_ID_BYTES: usize = 256;

/// The longest session ID that comes in a header of its own, in bytes. MCP servers choose their IDs and may take a
/// signed token for one, of which their clients cannot make a shorter one.
pub const MAX_HEADER_ID_BYTES: usize = 4096;

/// The longest ID that needs no heap block of its own: what makes [`SessionId`] 40 bytes. A UUID's text has 36.
const INLINE_BYTES: usize = 38;

/// A session's ID: 1 to [`MAX_ID_BYTES`] bytes of UTF-8, or what a header holds. Cheap to clone.
///
/// One of up to 38 bytes lies where the value lies: among a million sessions each block of memory that a lookup has
/// to follow a pointer to is a cache miss.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionId(Text);

/// The length alone decides which, so that equal texts are equal here.
#[derive(Clone, PartialEq, Eq)]
enum Text {
    /// Zeros behind the text's end.
    Inline {
        length: u8,
        bytes: [u8; INLINE_BYTES],
    },
    Shared(Arc<str>),
}

impl SessionId {
    /// Takes a text as an ID; `None` if it is empty or longer than [`MAX_ID_BYTES`].
    pub fn new(text: &str) -> Option<Self> {
        (1..=MAX_ID_BYTES).contains(&text.len()).then(|| Self(Text::new(text)))
    }

    /// Takes a header's value as an ID, each byte for a character (as Starlette does) and without white space around
    /// it; `None` if nothing is left.
    pub(super) fn from_header(value: &[u8]) -> Option<Self> {
        let decoded: String;
        let text = match std::str::from_utf8(value) {
            Ok(text) if text.is_ascii() => text,
            _ => {
                decoded = value.iter().copied().map(char::from).collect();
                &decoded
            }
        };
        let text = text.trim();
        (!text.is_empty()).then(|| Self(Text::new(text)))
    }

    /// A new random ID, a UUID v4 as NeMo Gym's own are.
    pub fn random() -> Self {
        let mut buffer = uuid::Uuid::encode_buffer();
        let text: &str = uuid::Uuid::new_v4().hyphenated().encode_lower(&mut buffer);
        Self(Text::new(text))
    }

    /// The whole ID.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Text::Shared(text) => text,
            Text::Inline { .. } => match std::str::from_utf8(self.as_bytes()) {
                Ok(text) => text,
                Err(_) => unreachable!("an ID is made of a whole text"),
            },
        }
    }

    fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Text::Inline { length, bytes } => &bytes[..usize::from(*length)],
            Text::Shared(text) => text.as_bytes(),
        }
    }

    /// The ID's first eight characters, for pages and logs: whoever has the whole can act for the session.
    pub fn shortened(&self) -> String {
        let text = self.as_str();
        match text.char_indices().nth(8) {
            Some((end, _)) => format!("{}...", &text[..end]),
            None => text.to_owned(),
        }
    }
}

impl Text {
    fn new(text: &str) -> Self {
        let mut bytes = [0; INLINE_BYTES];
        match (bytes.get_mut(..text.len()), u8::try_from(text.len())) {
            (Some(start), Ok(length)) => {
                start.copy_from_slice(text.as_bytes());
                Self::Inline { length, bytes }
            }
            _ => Self::Shared(text.into()),
        }
    }
}

impl Hash for SessionId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The length tells an ID from another one that begins with it.
        state.write_usize(self.as_bytes().len());
        state.write(self.as_bytes());
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionId").field(&self.as_str()).finish()
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_1_to_256_bytes() {
        assert_eq!(SessionId::new(""), None);
        assert_eq!(SessionId::new("a").unwrap().as_str(), "a");
        assert!(SessionId::new(&"a".repeat(256)).is_some());
        assert_eq!(SessionId::new(&"a".repeat(257)), None);
        assert_eq!(SessionId::new(&"é".repeat(129)), None, "bytes, not characters");
    }

    #[test]
    fn equal_texts_are_one_id_inline_or_not() {
        use std::hash::BuildHasher;
        assert_eq!(size_of::<SessionId>(), 40);
        let hasher = foldhash::quality::RandomState::default();
        for length in 1..=MAX_ID_BYTES {
            let text = "é".repeat(length / 2) + &"a".repeat(length % 2);
            let id = SessionId::new(&text).unwrap();
            assert_eq!(id.as_str(), text);
            assert_eq!(id.to_string(), text);
            assert_eq!(matches!(id.0, Text::Inline { .. }), length <= INLINE_BYTES, "{length}");
            let again = SessionId::new(&text).unwrap();
            assert_eq!(id, again);
            assert_eq!(hasher.hash_one(&id), hasher.hash_one(&again));
            let other =
                SessionId::new(&format!("{}b", &text[..text.len() - 1 - usize::from(length % 2 == 0)]));
            assert_ne!(Some(id), other);
        }
    }

    #[test]
    fn a_zero_byte_belongs_to_the_id() {
        assert_ne!(SessionId::new("a"), SessionId::new("a\0"));
    }

    #[test]
    fn is_shortened_by_characters() {
        let short = |text| SessionId::new(text).unwrap().shortened();
        assert_eq!(short("12345678"), "12345678");
        assert_eq!(short("123456789"), "12345678...");
        assert_eq!(short("éééééééééé"), "éééééééé...");
    }

    #[test]
    fn random_ids_are_uuids() {
        let id = SessionId::random();
        assert_eq!(uuid::Uuid::parse_str(id.as_str()).unwrap().get_version_num(), 4);
        assert_ne!(id, SessionId::random());
    }
}
