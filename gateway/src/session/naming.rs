//! The session ID in a naming route's body, and the request's in a JSON-RPC message.
//!
//! A worker reads the body with Python's `json`, which takes `NaN`, half surrogate pairs and nesting of any usual
//! depth, and lets the last duplicate of a key count. So values that are not asked for are stepped over by their
//! quotes and brackets alone; keys that have escapes, top-level scalars and the ID itself are read by jiter. What
//! is broken deep inside a value is for the worker to refuse.

use jiter::{Jiter, JiterError, JsonValue};

use super::{MAX_ID_BYTES, Refusal, SessionId};

/// Reads the top-level `field` of a JSON object. `None`: not a JSON object, or no such key.
///
/// # Errors
/// [`Refusal::InvalidSessionId`] if the field is there and is not a string of 1 to [`MAX_ID_BYTES`] bytes.
pub(super) fn body_id(body: &[u8], field: &str) -> Result<Option<SessionId>, Refusal> {
    let Some(value) = Scan { body, at: 0 }.find(field) else { return Ok(None) };
    let invalid = |what: &str| {
        let text = format!(
            "The body's {field} must be a string of 1 to {MAX_ID_BYTES} bytes; it is {what}. Send another ID, or none."
        );
        Refusal::InvalidSessionId(text)
    };
    match Jiter::new(value).with_allow_inf_nan().next_value() {
        Ok(JsonValue::Str(text)) => SessionId::new(&text).map(Some).ok_or_else(|| match text.len() {
            0 => invalid("empty"),
            bytes => invalid(&format!("{bytes} bytes long")),
        }),
        Ok(JsonValue::Null) => Err(invalid("null")),
        Ok(_) => Err(invalid("of another type")),
        Err(_) => Err(invalid("not readable as Unicode text, or nested too deeply")),
    }
}

/// The `id` of a JSON-RPC message as it is written, if it is text or a number.
pub(super) fn call_id(body: &[u8]) -> Option<String> {
    let value = Scan { body, at: 0 }.find("id")?;
    match Jiter::new(value).next_value().ok()? {
        JsonValue::Str(_) | JsonValue::Int(_) | JsonValue::Float(_) => String::from_utf8(value.to_vec()).ok(),
        _ => None,
    }
}

/// Steps through the top level of a JSON object.
struct Scan<'a> {
    body: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    /// The value of the last duplicate of `field`; `None` if there is none, or this is not an object.
    fn find(mut self, field: &str) -> Option<&'a [u8]> {
        // Python's `json.loads` takes a byte order mark in front of bytes.
        if self.body.starts_with(b"\xef\xbb\xbf") {
            self.at = 3;
        }
        let mut found = None;
        self.expect(b'{')?;
        if self.peek()? == b'}' {
            self.at += 1;
        } else {
            loop {
                self.peek()?;
                let key = self.string()?;
                self.expect(b':')?;
                let value = self.value()?;
                if is_key(key, field)? {
                    found = Some(value);
                }
                match self.peek()? {
                    b',' => self.at += 1,
                    b'}' => break self.at += 1,
                    _ => return None,
                }
            }
        }
        // Only white space may follow.
        if self.peek().is_some() { None } else { found }
    }

    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.body.get(self.at) {
            self.at += 1;
        }
        self.body.get(self.at).copied()
    }

    fn expect(&mut self, wanted: u8) -> Option<()> {
        let found = self.peek()?;
        self.at += 1;
        (found == wanted).then_some(())
    }

    /// A string with its quotes; the opening one is next.
    fn string(&mut self) -> Option<&'a [u8]> {
        let start = self.at;
        if self.body.get(start) != Some(&b'"') {
            return None;
        }
        self.at += 1;
        loop {
            let rest = self.body.get(self.at..)?;
            let step = memchr::memchr2(b'"', b'\\', rest)?;
            self.at += step + 1;
            if rest[step] == b'"' {
                return self.body.get(start..self.at);
            }
            // Whatever is escaped, a quote included, is one byte further on at least.
            self.at += 1;
        }
    }

    fn value(&mut self) -> Option<&'a [u8]> {
        let first = self.peek()?;
        let start = self.at;
        match first {
            b'"' => self.string(),
            b'{' | b'[' => {
                self.nested()?;
                self.body.get(start..self.at)
            }
            _ => self.scalar(),
        }
    }

    /// Steps over an object or array by its brackets.
    fn nested(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match *self.body.get(self.at)? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }

    /// A number, `true`, `false`, `null`, `NaN` or an infinity.
    fn scalar(&mut self) -> Option<&'a [u8]> {
        let rest = self.body.get(self.at..)?;
        let end =
            rest.iter().position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r'));
        let value = &rest[..end?];
        self.at += value.len();
        is_scalar(value).ok()?;
        Some(value)
    }
}

fn is_scalar(value: &[u8]) -> Result<(), JiterError> {
    let mut jiter = Jiter::new(value).with_allow_inf_nan();
    jiter.next_skip()?;
    jiter.finish()
}

/// Compares a key as written, with its quotes. `None` if its escapes are broken beyond what Python reads.
fn is_key(written: &[u8], field: &str) -> Option<bool> {
    let inner = &written[1..written.len() - 1];
    if !inner.contains(&b'\\') {
        return Some(inner == field.as_bytes());
    }
    let mut jiter = Jiter::new(written);
    match jiter.next_str().map(|key| key == field) {
        Ok(same) => Some(same),
        // Half a surrogate pair is no error to Python, and in none of the fields' names.
        Err(_) if inner.windows(2).any(|pair| pair == b"\\u") => Some(false),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests;
