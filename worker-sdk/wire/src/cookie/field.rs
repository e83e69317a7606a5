//! One top-level string of a small JSON object.

use std::borrow::Cow;

use jiter::{Jiter, JiterError, JsonValue, Peek};

/// What a JSON object has under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field<'a> {
    /// No such key, or the bytes are not a JSON object.
    Absent,
    /// A string, borrowed where it has no escapes.
    Text(Cow<'a, str>),
    /// A value of another type, `null` included.
    NotText,
}

/// Returns the top-level field `name` of a JSON object. The last duplicate counts, as in Python.
///
/// Bytes that are not a whole JSON object have no fields. `NaN`, `Infinity` and half surrogate pairs are taken, as Python
/// takes them; a string with half a pair is no text, and so absent.
pub fn string_field<'a>(json: &'a [u8], name: &str) -> Field<'a> {
    // jiter does not look into the strings that it steps over.
    if std::str::from_utf8(json).is_err() {
        return Field::Absent;
    }
    // No error is lost here: what cannot be read names nothing.
    match read(json, name) {
        Ok(field) => field,
        Err(_) => with_whole_pairs(json).map_or(Field::Absent, |json| owned(read(&json, name))),
    }
}

/// Stands for half a surrogate pair: the last code point, which is no character.
const HALF: char = '\u{10FFFF}';

/// The same JSON with [`HALF`] for every half of a surrogate pair, which jiter refuses wherever it stands. `None` if
/// there is none.
fn with_whole_pairs(json: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::with_capacity(json.len());
    let mut has_half = false;
    let mut at = 0;
    while let Some(byte) = json.get(at) {
        let length = match (byte, unit(json, at)) {
            (b'\\', Some(0xD800..=0xDBFF)) if matches!(unit(json, at + 6), Some(0xDC00..=0xDFFF)) => 12,
            (b'\\', Some(0xD800..=0xDFFF)) => {
                whole.extend_from_slice(HALF.encode_utf8(&mut [0; 4]).as_bytes());
                has_half = true;
                at += 6;
                continue;
            }
            // A backslash may stand behind one.
            (b'\\', _) => 2,
            _ => 1,
        };
        whole.extend_from_slice(&json[at..json.len().min(at + length)]);
        at += length;
    }
    has_half.then_some(whole)
}

/// The UTF-16 unit whose escape stands here.
fn unit(json: &[u8], at: usize) -> Option<u16> {
    let digits = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
    // `from_str_radix` would take a sign.
    let digits = std::str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'))?;
    u16::from_str_radix(digits, 16).ok()
}

fn owned(field: Result<Field<'_>, JiterError>) -> Field<'static> {
    match field {
        Ok(Field::Text(text)) if !text.contains(HALF) => Field::Text(Cow::Owned(text.into_owned())),
        Ok(Field::NotText) => Field::NotText,
        Ok(Field::Text(_) | Field::Absent) | Err(_) => Field::Absent,
    }
}

fn read<'a>(json: &'a [u8], name: &str) -> Result<Field<'a>, JiterError> {
    let mut jiter = Jiter::new(json).with_allow_inf_nan();
    let mut field = Field::Absent;
    let mut key = jiter.next_object()?.map(|key| key == name);
    while let Some(wanted) = key {
        if wanted {
            field = value(&mut jiter)?;
        } else {
            jiter.next_skip()?;
        }
        key = jiter.next_key()?.map(|key| key == name);
    }
    jiter.finish()?;
    Ok(field)
}

fn value<'a>(jiter: &mut Jiter<'a>) -> Result<Field<'a>, JiterError> {
    let peek = jiter.peek()?;
    if peek != Peek::String {
        jiter.known_skip(peek)?;
        return Ok(Field::NotText);
    }
    match jiter.known_value(peek)? {
        JsonValue::Str(text) => Ok(Field::Text(text)),
        _ => Ok(Field::NotText),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Field<'_> {
        Field::Text(text.into())
    }

    #[test]
    fn finds_a_top_level_string() {
        let cases = [
            (r#"{"id": "a"}"#, text("a")),
            (r#" {"x": {"id": "inner"}, "y": [1, "id"], "id":"a", "z": null} "#, text("a")),
            (r#"{"id": "a", "id": "b"}"#, text("b")),
            (r#"{"id": "a", "id": 1}"#, Field::NotText),
            (r#"{"id": 1, "id": "b"}"#, text("b")),
            (r#"{"\u0069d": "escaped key"}"#, text("escaped key")),
            (r#"{"id": "\u00e9\n\ud83e\udd80"}"#, text("é\n🦀")),
            (r#"{"id": "é🦀"}"#, text("é🦀")),
            (r#"{"id": ""}"#, text("")),
            (r#"{"\ud83eBudd80": 1, "id": "a"}"#, text("a")),
            (r#"{"x": [{"\udd80": "\ud83e\u00e4"}], "id": "\ud83e\udd80"}"#, text("🦀")),
            (r#"{"x": "\\ud83e \ud83e\ud83e\udd80", "id": 1}"#, Field::NotText),
            (r#"{"id": "\ud83e", "id": "b"}"#, text("b")),
            (r#"{"\ud83": 1, "id": "a"}"#, Field::Absent),
            (r#"{"\u+123\ud83e": 1, "id": "a"}"#, Field::Absent),
            (r#"{"n": NaN, "m": -Infinity, "id": "a"}"#, text("a")),
            (r#"{"id": null}"#, Field::NotText),
            (r#"{"id": {"id": "a"}}"#, Field::NotText),
            (r#"{"ID": "a"}"#, Field::Absent),
            ("{}", Field::Absent),
        ];
        for (json, expected) in cases {
            assert_eq!(string_field(json.as_bytes(), "id"), expected, "{json}");
        }
    }

    #[test]
    fn what_is_no_object_has_no_fields() {
        for json in [
            "",
            "null",
            "[]",
            r#""id""#,
            r#"{"id": "a""#,
            r#"{"id": "a"} x"#,
            r#"{"id": "a",}"#,
            "{'id': 'a'}",
        ] {
            assert_eq!(string_field(json.as_bytes(), "id"), Field::Absent, "{json}");
        }
        assert_eq!(string_field(b"{\"id\": \"\xff\"}", "id"), Field::Absent, "not UTF-8");
        assert_eq!(string_field(b"{\"id\": \"a\", \"b\": \"\xff\"}", "id"), Field::Absent, "elsewhere");
        assert_eq!(string_field(br#"{"id": "\ud800"}"#, "id"), Field::Absent, "half a surrogate pair");
    }

    #[test]
    fn borrows_what_has_no_escapes() {
        assert!(matches!(string_field(br#"{"id": "abc"}"#, "id"), Field::Text(Cow::Borrowed("abc"))));
    }
}
