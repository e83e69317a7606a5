//! Session IDs and the table's clock.

use std::{borrow::Borrow, fmt, sync::Arc};

/// Milliseconds on the gateway's monotonic clock.
pub type Millis = u64;

/// The longest session ID, in bytes.
pub const MAX_ID_BYTES: usize = 256;

/// A session's ID: 1 to [`MAX_ID_BYTES`] bytes of UTF-8. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionId(Arc<str>);

impl SessionId {
    /// Takes a text as an ID; `None` if it is empty or longer than [`MAX_ID_BYTES`].
    pub fn new(text: &str) -> Option<Self> {
        (1..=MAX_ID_BYTES).contains(&text.len()).then(|| Self(text.into()))
    }

    /// A new random ID, a UUID v4 as NeMo Gym's own are.
    pub fn random() -> Self {
        let mut buffer = uuid::Uuid::encode_buffer();
        let text: &str = uuid::Uuid::new_v4().hyphenated().encode_lower(&mut buffer);
        Self(text.into())
    }

    /// The whole ID.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The ID's first eight characters, for pages and logs: whoever has the whole can act for the session.
    pub fn shortened(&self) -> String {
        match self.0.char_indices().nth(8) {
            Some((end, _)) => format!("{}...", &self.0[..end]),
            None => self.0.to_string(),
        }
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for SessionId {
    fn borrow(&self) -> &str {
        &self.0
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
