//! Text as Python shows it, in words that a model reads.

use std::fmt::Write as _;

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
    use super::*;

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
    fn lists_are_sorted() {
        assert_eq!(sorted(["b", "a"].into_iter()), "['a', 'b']");
        assert_eq!(sorted([].into_iter()), "[]");
    }
}
