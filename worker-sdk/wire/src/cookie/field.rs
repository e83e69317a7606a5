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
/// Bytes that are not a whole JSON object have no fields. `NaN` and `Infinity` are taken, as Python takes them.
pub fn string_field<'a>(json: &'a [u8], name: &str) -> Field<'a> {
    // jiter does not look into the strings that it steps over.
    if std::str::from_utf8(json).is_err() {
        return Field::Absent;
    }
    // An error is not lost here: what cannot be read names nothing.
    read(json, name).unwrap_or(Field::Absent)
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
