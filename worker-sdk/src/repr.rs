//! Text as Python shows it, in words that a model reads.

use std::fmt::Write as _;

use serde_json::Value;

/// Python's `repr` of what JSON says.
pub(crate) fn of(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        // Floats as Python writes them; a number can be written.
        Value::Number(number) => gym_wire::message::dumps(number).unwrap_or_else(|_| number.to_string()),
        Value::String(text) => repr(text),
        Value::Array(array) => format!("[{}]", array.iter().map(of).collect::<Vec<_>>().join(", ")),
        Value::Object(object) => {
            let entries = object.iter().map(|(key, value)| format!("{}: {}", repr(key), of(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Python's `str` of what JSON says.
pub(crate) fn str_of(value: &Value) -> String {
    value.as_str().map_or_else(|| of(value), str::to_owned)
}

/// The name of its type in Python.
pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "NoneType",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "int",
        Value::String(_) => "str",
        Value::Array(_) => "list",
        Value::Object(_) => "dict",
    }
}

/// Python's `repr` of a string.
pub(crate) fn repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str(r"\\"),
            '\n' => out.push_str(r"\n"),
            '\r' => out.push_str(r"\r"),
            '\t' => out.push_str(r"\t"),
            _ if c == quote => out.extend(['\\', c]),
            // Writing to a string cannot fail.
            _ if c.is_control() => drop(write!(out, "\\x{:02x}", u32::from(c))),
            _ => out.push(c),
        }
    }
    out.push(quote);
    out
}

/// Python's `repr` of a list of strings, sorted.
pub(crate) fn sorted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    let names: Vec<_> = names.into_iter().map(repr).collect();
    format!("[{}]", names.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_shown_as_python_reads_it() {
        let value = json!({"a": [null, true, false, 1, 5.0, 1e16, 1e-5], "it's": {"b": "c"}});
        let shown = r#"{'a': [None, True, False, 1, 5.0, 1e+16, 1e-05], "it's": {'b': 'c'}}"#;
        assert_eq!(of(&value), shown);
        assert_eq!((of(&json!({})), of(&json!([]))), ("{}".to_owned(), "[]".to_owned()));
    }

    #[test]
    fn strings_are_quoted_as_python_quotes_them() {
        for (text, shown) in [
            ("tool", "'tool'"),
            ("", "''"),
            ("it's", "\"it's\""),
            ("it's \"so\"", r#"'it\'s "so"'"#),
            ("a\\b\n\t\u{1b}\u{7f}", r"'a\\b\n\t\x1b\x7f'"),
            ("é 🦀", "'é 🦀'"),
        ] {
            assert_eq!(repr(text), shown);
        }
    }

    #[test]
    fn json_is_shown_as_python_shows_it() {
        let value = serde_json::json!({"a": [null, true, 1, 2.5, "x"], "it's": {}});
        assert_eq!(of(&value), r#"{'a': [None, True, 1, 2.5, 'x'], "it's": {}}"#);
        assert_eq!((str_of(&value["a"][4]), type_of(&value["a"][3])), ("x".to_owned(), "float"));
    }

    #[test]
    fn lists_are_sorted() {
        assert_eq!(sorted(["b", "a"].into_iter()), "['a', 'b']");
        assert_eq!(sorted([].into_iter()), "[]");
    }
}
